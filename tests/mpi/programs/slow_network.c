/* A slow network: a library to preload behind the profiler, as if it were a part of MPI. Each
 * MPI_Allreduce takes SLOW_NETWORK_US longer after all ranks have come, each MPI_Recv after its
 * message. With SLOW_NETWORK_RANK it is this rank's connection that is slow, and the others wait in
 * MPI for its part of an Allreduce. */
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

int MPI_Recv(void *received, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    int error = PMPI_Recv(received, count, type, source, tag, comm, status);
    if (!getenv("SLOW_NETWORK_RANK"))
        delay();
    return error;
}
