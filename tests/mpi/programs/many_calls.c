/* Three million cheap calls: rank 0 sends to MPI_PROC_NULL, rank 1 receives from it; both reduce on
 * MPI_COMM_SELF. */
#include <mpi.h>

#include "check.h"

enum { CALLS = 3000000, REDUCTIONS = 200000 };

int main(int argc, char **argv)
{
    int rank, found, number = 1, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; rank == 0 && i < CALLS; i++)
        MPI_Send(&number, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 1 && i < CALLS; i++)
        MPI_Recv(&found, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < REDUCTIONS; i++)
        MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    MPI_Finalize();
    return 0;
}
