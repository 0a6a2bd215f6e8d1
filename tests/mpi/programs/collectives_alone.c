/* Collectives on MPI_COMM_SELF; each rank makes a different number of them. */
#include <mpi.h>

#include "check.h"

int main(int argc, char **argv)
{
    int rank, number = 3, sum;
    MPI_Comm mine;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i <= rank; i++) {
        MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
        MPI_Barrier(MPI_COMM_SELF);
        MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_SELF);
    }
    if (rank == 1) {
        MPI_Comm_dup(MPI_COMM_SELF, &mine);
        MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, mine);
        MPI_Comm_free(&mine);
    }
    CHECK(sum == 3);
    MPI_Finalize();
    return 0;
}
