/* Three reductions, then an error whose handler calls MPI_Abort: the job's own handler, or with the
 * argument "mpi" MPI_ERRORS_ABORT. Only rank 0 makes the error: otherwise another rank might end
 * rank 0 inside the last reduction. */
#include <string.h>

#include <mpi.h>

#include "check.h"

static void give_up(MPI_Comm *comm, int *error, ...)
{
    (void)error;
    MPI_Abort(*comm, 7);
}

int main(int argc, char **argv)
{
    int one = 1, sum, rank;
    MPI_Errhandler handler;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_errhandler(give_up, &handler);
#ifdef MPI_ERRORS_ABORT
    if (argc > 1 && strcmp(argv[1], "mpi") == 0)
        handler = MPI_ERRORS_ABORT;
#endif
    for (int i = 0; i < 3; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank > 0)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD,
                            handler); /* MPICH 4.0 aborts here if it is MPI_ERRORS_ABORT */
    MPI_Send(&one, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    printf("not reached\n");
    return 0;
}
