/* Both ranks make 20,000 Bcasts on a common communicator. The first rank also makes five times as
 * many on another one, so its log is full earlier. */
#include <mpi.h>

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, value = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 20000; i++) {
        MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (int k = 0; k < 5 && rank == 0; k++)
            MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_SELF);
    }
    MPI_Finalize();
    return 0;
}
