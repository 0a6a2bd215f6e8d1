/* Rank 0 cancels the Slurm job that this is, after a collective; all ranks then make collectives
 * until they are killed. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && system("scancel $SLURM_JOB_ID") != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (;;)
        MPI_Barrier(MPI_COMM_WORLD);
}
