/* A slow link: a library to preload behind the profiler, as if it were a part of MPI. Each message
 * from rank SLOW_LINK_FROM to rank SLOW_LINK_TO arrives SLOW_LINK_US later: the receiver's
 * MPI_Recv, or the MPI_Waitall that completes all its receives, returns later. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static int is_rank(const char *name, int rank)
{
    const char *value = getenv(name);
    return value && atoi(value) == rank;
}

static int is_slow(int source)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return is_rank("SLOW_LINK_FROM", source) && is_rank("SLOW_LINK_TO", rank);
}

static void arrive_later(int is_late)
{
    const char *delay_us = getenv("SLOW_LINK_US");
    if (is_late)
        nanosleep(&(struct timespec){.tv_nsec = delay_us ? atol(delay_us) * 1000 : 0}, NULL);
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    int error = PMPI_Recv(buffer, count, type, source, tag, comm, status);
    arrive_later(is_slow(source));
    return error;
}

static int pending;

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    pending += is_slow(source);
    return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    int error = PMPI_Waitall(count, requests, statuses);
    arrive_later(pending > 0);
    pending = 0;
    return error;
}
