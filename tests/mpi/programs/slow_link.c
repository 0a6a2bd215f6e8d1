/* A slow link: a library to preload behind the profiler, as if it were a part of MPI. Each message
 * from rank SLOW_LINK_FROM to rank SLOW_LINK_TO arrives SLOW_LINK_US later: the receiver's
 * MPI_Recv returns later. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static int is_rank(const char *name, int rank)
{
    const char *value = getenv(name);
    return value && atoi(value) == rank;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    const char *delay_us = getenv("SLOW_LINK_US");
    int rank;
    int error = PMPI_Recv(buffer, count, type, source, tag, comm, status);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (is_rank("SLOW_LINK_FROM", source) && is_rank("SLOW_LINK_TO", rank))
        nanosleep(&(struct timespec){.tv_nsec = delay_us ? atol(delay_us) * 1000 : 0}, NULL);
    return error;
}
