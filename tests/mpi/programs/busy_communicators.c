/* 100 communicators with 1,100 Allreduces each: more than the sample log has room for. Then 1,200 Allreduces on MPI_COMM_WORLD. */
#include <mpi.h>

#include "check.h"

enum { COMMUNICATORS = 100 };

static void allreduce(int count, MPI_Comm comm)
{
    for (int i = 0, value = 1, sum; i < count; i++)
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
}

int main(int argc, char **argv)
{
    MPI_Comm comms[COMMUNICATORS];
    MPI_Init(&argc, &argv);
    for (int i = 0; i < COMMUNICATORS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < COMMUNICATORS; i++)
        allreduce(1100, comms[i]);
    allreduce(1200, MPI_COMM_WORLD);
    for (int i = 0; i < COMMUNICATORS; i++)
        MPI_Comm_free(&comms[i]);
    MPI_Finalize();
    return 0;
}
