/* A slow network: a library to preload behind the profiler, as if it were a part of MPI. Each
 * MPI_Allreduce takes SLOW_NETWORK_US longer after all ranks have come, each MPI_Recv after its
 * message. With SLOW_NETWORK_RANK it is this rank's connection that is slow, and the others wait in
 * MPI for its part of an Allreduce. With SLOW_NETWORK_PERCENT each MPI_Allreduce takes so much
 * longer than it does by itself, whatever that is. With SLOW_NETWORK_BYTES only those of this size
 * are slow. With SLOW_LINK_FROM and SLOW_LINK_TO only messages from one rank to the other are: the
 * receiver's MPI_Recv, or the MPI_Waitall that completes all its receives, returns later. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static void delay(void)
{
    const char *delay_us = getenv("SLOW_NETWORK_US");
    if (delay_us)
        nanosleep(&(struct timespec){.tv_nsec = atol(delay_us) * 1000}, NULL);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The delay of a call that began then. */
static void delay_in_proportion(double begin_s)
{
    const char *percent = getenv("SLOW_NETWORK_PERCENT");
    double end_s = now_s();
    double until_s = end_s + (percent ? atof(percent) / 100 : 0) * (end_s - begin_s);
    while (now_s() < until_s)
        continue;
}

int MPI_Allreduce(const void *sent, void *received, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    const char *slow_rank = getenv("SLOW_NETWORK_RANK"), *slow_bytes = getenv("SLOW_NETWORK_BYTES");
    int rank, type_bytes;
    PMPI_Type_size(type, &type_bytes);
    if ((slow_bytes && atoi(slow_bytes) != count * type_bytes) || getenv("SLOW_LINK_FROM"))
        return PMPI_Allreduce(sent, received, count, type, op, comm);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (slow_rank && atoi(slow_rank) == rank)
        delay();
    double begin_s = now_s();
    int error = PMPI_Allreduce(sent, received, count, type, op, comm);
    delay_in_proportion(begin_s);
    if (!slow_rank)
        delay();
    return error;
}

static int is_on_link(int source)
{
    const char *from = getenv("SLOW_LINK_FROM"), *to = getenv("SLOW_LINK_TO");
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return from && to && atoi(from) == source && atoi(to) == rank;
}

int MPI_Recv(void *received, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    int error = PMPI_Recv(received, count, type, source, tag, comm, status);
    if (getenv("SLOW_LINK_FROM") ? is_on_link(source) : !getenv("SLOW_NETWORK_RANK"))
        delay();
    return error;
}

static int pending;

int MPI_Irecv(void *received, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    pending += is_on_link(source);
    return PMPI_Irecv(received, count, type, source, tag, comm, request);
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    int error = PMPI_Waitall(count, requests, statuses);
    if (pending)
        delay();
    pending = 0;
    return error;
}
