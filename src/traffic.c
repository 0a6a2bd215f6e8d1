/* Only significant arguments are looked at (a non-root may pass anything as recvtype), and only after the call has succeeded:
 * asking MPI for the size of an invalid type would raise the job's error handler. */
#include "traffic.h"

uint64_t traffic_asked_size(mpi_handle type)
{
    int size = 0;
    mpi_count large = 0;
    if (mpi_query.Type_size(type, &size) == MPI_SUCCESS && size >= 0)
        return (uint64_t)size;
    if (mpi_query.Type_size_x && mpi_query.Type_size_x(type, &large) == MPI_SUCCESS && large >= 0)
        return (uint64_t)large; /* larger than an int */
    return 0;
}

static mpi_count count_at(struct counts counts, int index)
{
    return counts.wide ? ((const mpi_count *)counts.at)[index] : ((const int *)counts.at)[index];
}

static mpi_count sum_of(struct counts counts, int length)
{
    mpi_count sum = 0;
    for (int i = 0; i < length; i++)
        sum += count_at(counts, i);
    return sum;
}

/* What a w-variant sends, each count with its own type. */
static uint64_t bytes_of(struct counts counts, const void *types, int length)
{
    uint64_t bytes = 0;
    for (int i = 0; i < length; i++)
        if (count_at(counts, i) > 0)
            bytes += traffic_bytes(count_at(counts, i), mpi_handle_load(types, (size_t)i));
    return bytes;
}

/* How many processes a rank of this communicator exchanges with: the remote group's, if there is one. */
static int others_in(const struct communicator *communicator)
{
    return communicator->is_inter ? communicator->remote_size : communicator->size;
}

struct traffic traffic_receive(const struct call *call, mpi_count count, mpi_handle type, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic.bytes = traffic_bytes(count, type);
    return traffic;
}

struct traffic traffic_arrival(const struct call *call, struct mpi_arrival arrival, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic.bytes = arrival.bytes;
    return traffic;
}

struct traffic traffic_reduce(const struct call *call, mpi_count count, mpi_handle type, int root, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic) || traffic_is_idle(traffic.communicator, root))
        return traffic;
    traffic.bytes = traffic_bytes(count, type);
    bool only_receives = traffic.communicator->is_inter && traffic_is_root(traffic.communicator, root);
    traffic.volume_bytes = only_receives ? 0 : traffic.bytes;
    return traffic;
}

/* The send buffer holds a block for each process of the local group, also on an inter-communicator (MPI-4.1, 6.10). */
struct traffic traffic_reduce_scatter_block(const struct call *call, mpi_count count, mpi_handle type, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic.bytes = traffic.volume_bytes = traffic_bytes(count * traffic.communicator->size, type);
    return traffic;
}

struct traffic traffic_reduce_scatter(const struct call *call, struct counts counts, mpi_handle type, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic.bytes = traffic.volume_bytes = traffic_bytes(sum_of(counts, traffic.communicator->size), type);
    return traffic;
}

struct traffic traffic_gather(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype, mpi_count recvcount,
                              mpi_handle recvtype, int root, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic) || traffic_is_idle(traffic.communicator, root))
        return traffic;
    bool root_here = traffic_is_root(traffic.communicator, root);
    bool only_receives = root_here && traffic.communicator->is_inter;
    bool in_place = root_here && sendbuf == mpi_abi.in_place;
    traffic.bytes = only_receives || in_place ? traffic_bytes(recvcount, recvtype) : traffic_bytes(sendcount, sendtype);
    traffic.volume_bytes = only_receives ? 0 : traffic.bytes;
    return traffic;
}

struct traffic traffic_scatter(const struct call *call, mpi_count sendcount, mpi_handle sendtype, mpi_count recvcount, mpi_handle recvtype,
                               int root, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic) || traffic_is_idle(traffic.communicator, root))
        return traffic;
    bool root_here = traffic_is_root(traffic.communicator, root);
    traffic.bytes = root_here ? traffic_bytes(sendcount, sendtype) : traffic_bytes(recvcount, recvtype);
    traffic.volume_bytes = root_here ? traffic.bytes * (uint64_t)others_in(traffic.communicator) : 0;
    return traffic;
}

struct traffic traffic_allgather(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                                 mpi_count recvcount, mpi_handle recvtype, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic))
        return traffic;
    bool in_place = sendbuf == mpi_abi.in_place;
    traffic.bytes = traffic.volume_bytes = in_place ? traffic_bytes(recvcount, recvtype) : traffic_bytes(sendcount, sendtype);
    return traffic;
}

struct traffic traffic_alltoall(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype, mpi_count recvcount,
                                mpi_handle recvtype, mpi_handle comm)
{
    struct traffic traffic = traffic_allgather(call, sendbuf, sendcount, sendtype, recvcount, recvtype, comm);
    if (traffic.communicator)
        traffic.volume_bytes = traffic.bytes * (uint64_t)others_in(traffic.communicator);
    return traffic;
}

struct traffic traffic_gatherv(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                               struct counts recvcounts, mpi_handle recvtype, int root, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic) || traffic_is_idle(traffic.communicator, root))
        return traffic;
    bool root_here = traffic_is_root(traffic.communicator, root);
    if (root_here && traffic.communicator->is_inter)
        return traffic; /* sends nothing */
    bool in_place = root_here && sendbuf == mpi_abi.in_place;
    traffic.bytes =
        in_place ? traffic_bytes(count_at(recvcounts, traffic.communicator->comm_rank), recvtype) : traffic_bytes(sendcount, sendtype);
    traffic.volume_bytes = traffic.bytes;
    return traffic;
}

struct traffic traffic_scatterv(const struct call *call, struct counts sendcounts, mpi_handle sendtype, mpi_count recvcount,
                                mpi_handle recvtype, int root, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic) || traffic_is_idle(traffic.communicator, root))
        return traffic;
    if (!traffic_is_root(traffic.communicator, root)) {
        traffic.bytes = traffic_bytes(recvcount, recvtype);
        return traffic;
    }
    traffic.bytes = traffic.volume_bytes = traffic_bytes(sum_of(sendcounts, others_in(traffic.communicator)), sendtype);
    return traffic;
}

struct traffic traffic_allgatherv(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                                  struct counts recvcounts, mpi_handle recvtype, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic))
        return traffic;
    bool in_place = sendbuf == mpi_abi.in_place;
    traffic.bytes =
        in_place ? traffic_bytes(count_at(recvcounts, traffic.communicator->comm_rank), recvtype) : traffic_bytes(sendcount, sendtype);
    traffic.volume_bytes = traffic.bytes;
    return traffic;
}

struct traffic traffic_alltoallv(const struct call *call, const void *sendbuf, struct counts sendcounts, mpi_handle sendtype,
                                 struct counts recvcounts, mpi_handle recvtype, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic))
        return traffic;
    int others = others_in(traffic.communicator);
    bool in_place = sendbuf == mpi_abi.in_place;
    traffic.bytes = in_place ? traffic_bytes(sum_of(recvcounts, others), recvtype) : traffic_bytes(sum_of(sendcounts, others), sendtype);
    traffic.volume_bytes = traffic.bytes;
    return traffic;
}

struct traffic traffic_alltoallw(const struct call *call, const void *sendbuf, struct counts sendcounts, const void *sendtypes,
                                 struct counts recvcounts, const void *recvtypes, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic))
        return traffic;
    bool in_place = sendbuf == mpi_abi.in_place;
    int others = others_in(traffic.communicator);
    traffic.bytes = in_place ? bytes_of(recvcounts, recvtypes, others) : bytes_of(sendcounts, sendtypes, others);
    traffic.volume_bytes = traffic.bytes;
    return traffic;
}

struct traffic traffic_neighbor_allgather(const struct call *call, mpi_count sendcount, mpi_handle sendtype, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic) && communicators_out_neighbors(traffic.communicator) > 0)
        traffic.bytes = traffic.volume_bytes = traffic_bytes(sendcount, sendtype);
    return traffic;
}

struct traffic traffic_neighbor_alltoall(const struct call *call, mpi_count sendcount, mpi_handle sendtype, mpi_handle comm)
{
    struct traffic traffic = traffic_neighbor_allgather(call, sendcount, sendtype, comm);
    if (traffic.communicator)
        traffic.volume_bytes = traffic.bytes * (uint64_t)communicators_out_neighbors(traffic.communicator);
    return traffic;
}

struct traffic traffic_neighbor_alltoallv(const struct call *call, struct counts sendcounts, mpi_handle sendtype, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic))
        return traffic;
    int neighbors = communicators_out_neighbors(traffic.communicator);
    if (neighbors > 0) /* who sends to nobody may pass anything as sendtype */
        traffic.bytes = traffic.volume_bytes = traffic_bytes(sum_of(sendcounts, neighbors), sendtype);
    return traffic;
}

struct traffic traffic_neighbor_alltoallw(const struct call *call, struct counts sendcounts, const void *sendtypes, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic.bytes = traffic.volume_bytes = bytes_of(sendcounts, sendtypes, communicators_out_neighbors(traffic.communicator));
    return traffic;
}

struct traffic traffic_on(struct communicator *communicator)
{
    struct traffic traffic = traffic_nowhere();
    traffic.communicator = communicator;
    return traffic;
}

struct traffic traffic_incoming(const struct call *call, mpi_count count, mpi_handle type, int source, mpi_handle comm)
{
    struct traffic traffic = traffic_message(call, count, type, source, comm);
    traffic.volume_bytes = 0;
    traffic.direction = LEDGER_RECEIVED;
    return traffic;
}

struct traffic traffic_file(const struct call *call, mpi_count count, mpi_handle type, mpi_handle file)
{
    struct traffic traffic;
    if (traffic_begin_on(call, communicators_key_of_file(file), &traffic) && count > 0)
        traffic.bytes = traffic_bytes(count, type);
    return traffic;
}

struct traffic traffic_written(const struct call *call, mpi_count count, mpi_handle type, mpi_handle file)
{
    struct traffic traffic = traffic_file(call, count, type, file);
    traffic.volume_bytes = traffic.bytes;
    return traffic;
}

struct traffic traffic_read(const struct call *call, struct mpi_arrival arrival, mpi_handle file)
{
    struct traffic traffic;
    if (traffic_begin_on(call, communicators_key_of_file(file), &traffic))
        traffic.bytes = arrival.bytes;
    return traffic;
}
