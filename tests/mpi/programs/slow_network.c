/* A slow network: a library to preload behind the profiler, as if it were a part of MPI. Each
 * MPI_Allreduce takes SLOW_NETWORK_US longer after all ranks have come; with SLOW_NETWORK_RANK, it
 * is this rank's connection that is slow, and the others wait in MPI for its message. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static void delay(void)
{
    const char *delay_us = getenv("SLOW_NETWORK_US");
    nanosleep(&(struct timespec){.tv_nsec = delay_us ? atol(delay_us) * 1000 : 0}, NULL);
}

int MPI_Allreduce(const void *sent, void *received, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    const char *slow_rank = getenv("SLOW_NETWORK_RANK");
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (slow_rank && atoi(slow_rank) == rank)
        delay();
    int error = PMPI_Allreduce(sent, received, count, type, op, comm);
    if (!slow_rank)
        delay();
    return error;
}
