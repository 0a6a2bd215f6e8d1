/* Only significant arguments are looked at (a non-root may pass anything as recvtype), and only after the call has succeeded:
 * asking MPI for the size of an invalid type would raise the job's error handler. */
#include "traffic.h"

static const struct traffic NOTHING = {.peer = PEER_NONE};

/* MPICH encodes the size of a predefined type in its handle, bits 8 to 15 (part of its ABI: mpi.h spells the handles out). */
static bool mpich_predefined(mpi_handle bits)
{
    return mpi_abi.kind == MPI_ABI_MPICH && (bits & 0xffff0000) == 0x4c000000;
}

static int64_t asked_type_size(mpi_handle type)
{
    int size = 0;
    mpi_count large = 0;
    if (mpi_query.Type_size(type, &size) == MPI_SUCCESS && size >= 0)
        return size;
    if (mpi_query.Type_size_x && mpi_query.Type_size_x(type, &large) == MPI_SUCCESS && large >= 0)
        return large; /* larger than an int */
    return 0;
}

uint64_t traffic_bytes(mpi_count count, mpi_handle type)
{
    mpi_handle bits = mpi_handle_bits(type);
    if (count <= 0 || bits == mpi_abi.datatype_null)
        return 0;
    if (mpich_predefined(bits))
        return (uint64_t)count * (bits >> 8 & 0xff);
    return (uint64_t)count * (uint64_t)asked_type_size(type);
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

/* How many processes a rank of this communicator exchanges with: the remote group's, if there is one. */
static int others_in(const struct communicator *communicator)
{
    return communicator->is_inter ? communicator->remote_size : communicator->size;
}

static bool is_root(const struct communicator *communicator, int root)
{
    return communicator->is_inter ? root == mpi_abi.root : root == communicator->comm_rank;
}

/* A process of the root's group of an inter-communicator, that is not the root, takes no part. */
static bool is_idle(const struct communicator *communicator, int root)
{
    return communicator->is_inter && root == mpi_abi.proc_null;
}

static bool begin(const struct call *call, mpi_handle comm, struct traffic *traffic)
{
    *traffic = NOTHING;
    if (!call->succeeded || !mpi_abi.known)
        return false;
    traffic->communicator = communicators_find(comm);
    return traffic->communicator != NULL;
}

struct traffic traffic_none(const struct call *call, mpi_handle comm)
{
    struct traffic traffic;
    begin(call, comm, &traffic);
    return traffic;
}

struct traffic traffic_message(const struct call *call, mpi_count count, mpi_handle type, int dest, mpi_handle comm)
{
    struct traffic traffic;
    if (!begin(call, comm, &traffic) || dest == mpi_abi.proc_null)
        return traffic;
    traffic.bytes = traffic.volume_bytes = traffic_bytes(count, type);
    traffic.peer = communicators_world_rank(traffic.communicator, dest);
    return traffic;
}

struct traffic traffic_receive(const struct call *call, mpi_count count, mpi_handle type, mpi_handle comm)
{
    struct traffic traffic;
    if (begin(call, comm, &traffic))
        traffic.bytes = traffic_bytes(count, type);
    return traffic;
}

struct traffic traffic_arrival(const struct call *call, struct mpi_arrival arrival, mpi_handle comm)
{
    struct traffic traffic;
    if (begin(call, comm, &traffic))
        traffic.bytes = arrival.bytes;
    return traffic;
}

struct traffic traffic_bcast(const struct call *call, mpi_count count, mpi_handle type, int root, mpi_handle comm)
{
    struct traffic traffic;
    if (!begin(call, comm, &traffic) || is_idle(traffic.communicator, root))
        return traffic;
    traffic.bytes = traffic_bytes(count, type);
    traffic.volume_bytes = is_root(traffic.communicator, root) ? traffic.bytes : 0;
    return traffic;
}

struct traffic traffic_reduce(const struct call *call, mpi_count count, mpi_handle type, int root, mpi_handle comm)
{
    struct traffic traffic;
    if (!begin(call, comm, &traffic) || is_idle(traffic.communicator, root))
        return traffic;
    traffic.bytes = traffic_bytes(count, type);
    bool only_receives = traffic.communicator->is_inter && is_root(traffic.communicator, root);
    traffic.volume_bytes = only_receives ? 0 : traffic.bytes;
    return traffic;
}

struct traffic traffic_allreduce(const struct call *call, mpi_count count, mpi_handle type, mpi_handle comm)
{
    struct traffic traffic;
    if (begin(call, comm, &traffic))
        traffic.bytes = traffic.volume_bytes = traffic_bytes(count, type);
    return traffic;
}

/* The send buffer holds a block for each process of the local group, also on an inter-communicator (MPI-4.1, 6.10). */
struct traffic traffic_reduce_scatter_block(const struct call *call, mpi_count count, mpi_handle type, mpi_handle comm)
{
    struct traffic traffic;
    if (begin(call, comm, &traffic))
        traffic.bytes = traffic.volume_bytes = traffic_bytes(count * traffic.communicator->size, type);
    return traffic;
}

struct traffic traffic_reduce_scatter(const struct call *call, struct counts counts, mpi_handle type, mpi_handle comm)
{
    struct traffic traffic;
    if (begin(call, comm, &traffic))
        traffic.bytes = traffic.volume_bytes = traffic_bytes(sum_of(counts, traffic.communicator->size), type);
    return traffic;
}

struct traffic traffic_gather(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype, mpi_count recvcount,
                              mpi_handle recvtype, int root, mpi_handle comm)
{
    struct traffic traffic;
    if (!begin(call, comm, &traffic) || is_idle(traffic.communicator, root))
        return traffic;
    bool root_here = is_root(traffic.communicator, root);
    bool only_receives = root_here && traffic.communicator->is_inter;
    bool in_place = root_here && sendbuf == mpi_abi.in_place;
    traffic.bytes = only_receives || in_place ? traffic_bytes(recvcount, recvtype) : traffic_bytes(sendcount, sendtype);
    traffic.volume_bytes = only_receives ? 0 : traffic.bytes;
    return traffic;
}

struct traffic traffic_scatter(const struct call *call, mpi_count sendcount, mpi_handle sendtype, mpi_count recvcount,
                               mpi_handle recvtype, int root, mpi_handle comm)
{
    struct traffic traffic;
    if (!begin(call, comm, &traffic) || is_idle(traffic.communicator, root))
        return traffic;
    bool root_here = is_root(traffic.communicator, root);
    traffic.bytes = root_here ? traffic_bytes(sendcount, sendtype) : traffic_bytes(recvcount, recvtype);
    traffic.volume_bytes = root_here ? traffic.bytes * (uint64_t)others_in(traffic.communicator) : 0;
    return traffic;
}

struct traffic traffic_allgather(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                                 mpi_count recvcount, mpi_handle recvtype, mpi_handle comm)
{
    struct traffic traffic;
    if (!begin(call, comm, &traffic))
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
    if (!begin(call, comm, &traffic) || is_idle(traffic.communicator, root))
        return traffic;
    bool root_here = is_root(traffic.communicator, root);
    if (root_here && traffic.communicator->is_inter)
        return traffic; /* sends nothing */
    bool in_place = root_here && sendbuf == mpi_abi.in_place;
    traffic.bytes = in_place ? traffic_bytes(count_at(recvcounts, traffic.communicator->comm_rank), recvtype) : traffic_bytes(sendcount, sendtype);
    traffic.volume_bytes = traffic.bytes;
    return traffic;
}

struct traffic traffic_scatterv(const struct call *call, struct counts sendcounts, mpi_handle sendtype, mpi_count recvcount,
                                mpi_handle recvtype, int root, mpi_handle comm)
{
    struct traffic traffic;
    if (!begin(call, comm, &traffic) || is_idle(traffic.communicator, root))
        return traffic;
    if (!is_root(traffic.communicator, root)) {
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
    if (!begin(call, comm, &traffic))
        return traffic;
    bool in_place = sendbuf == mpi_abi.in_place;
    traffic.bytes = in_place ? traffic_bytes(count_at(recvcounts, traffic.communicator->comm_rank), recvtype) : traffic_bytes(sendcount, sendtype);
    traffic.volume_bytes = traffic.bytes;
    return traffic;
}

struct traffic traffic_alltoallv(const struct call *call, const void *sendbuf, struct counts sendcounts, mpi_handle sendtype,
                                 struct counts recvcounts, mpi_handle recvtype, mpi_handle comm)
{
    struct traffic traffic;
    if (!begin(call, comm, &traffic))
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
    if (!begin(call, comm, &traffic))
        return traffic;
    bool in_place = sendbuf == mpi_abi.in_place;
    struct counts counts = in_place ? recvcounts : sendcounts;
    const void *types = in_place ? recvtypes : sendtypes;
    for (int i = 0; i < others_in(traffic.communicator); i++)
        if (count_at(counts, i) > 0)
            traffic.bytes += traffic_bytes(count_at(counts, i), mpi_handle_load(types, (size_t)i));
    traffic.volume_bytes = traffic.bytes;
    return traffic;
}
