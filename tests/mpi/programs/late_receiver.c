/* Rank 0's small Bcast returns before rank 1 has called it, and only then does rank 0 send the
 * message that rank 1 waits for. A profiler that adds a barrier or any other synchronization to the
 * Bcast hangs here. */
#include <mpi.h>

#include "check.h"

int main(int argc, char **argv)
{
    int rank, number = 7, go = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        go = 1;
        MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Send(&go, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    CHECK(go == 1 && number == 7);
    MPI_Finalize();
    return 0;
}
