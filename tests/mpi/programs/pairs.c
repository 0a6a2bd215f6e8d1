/* pairs ROUNDS BYTES: in each round even ranks send to the next one. Before, all ranks meet in two
 * Barriers: they wait for each other in the first one, so the second one shows their clocks. */
#include <mpi.h>

#include "check.h"

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(argc == 3);
    int bytes = atoi(argv[2]);
    char *message = calloc(1, (size_t)bytes);
    for (int round = 0; round < atoi(argv[1]); round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank % 2 == 0)
            MPI_Send(message, bytes, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(message, bytes, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    free(message);
    MPI_Finalize();
    return 0;
}
