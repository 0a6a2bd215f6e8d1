/* Only significant arguments are read (a non-root may pass anything as recvtype), and only after
 * the call has succeeded: asking MPI for the size of an invalid type would raise the job's error
 * handler. */
#include "traffic.h"

__attribute__((noinline)) struct communicator *traffic_look_up(bool was_announced, mpi_handle comm)
{
    struct communicator *found =
        was_announced ? communicators_under(mpi_handle_bits(comm)) : communicators_find(comm);
    communicators_slot(found); /* gives it one if it has none: traffic_key reads it */
    return found;
}

__attribute__((noinline)) uint64_t traffic_bytes_not_announced(mpi_count count, mpi_handle type)
{
    return traffic_bytes(count, type);
}

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

#define COLD __attribute__((cold, noinline))

static bool is_buffer(const void *address)
{
    return address && address != mpi_abi.in_place;
}

static uint8_t memory_kinds_of(const void *from, const void *to)
{
    from = is_buffer(from) ? from : to;
    to = is_buffer(to) ? to : from;
    if (!is_buffer(from))
        return LEDGER_HOST;
    unsigned kind = memory_kind_find(from);
    return memory_kind_pair(kind, to == from ? kind : memory_kind_find(to));
}

COLD uint8_t traffic_memory_kinds_between(uint64_t bytes, const void *from, const void *to)
{
    return bytes ? memory_kinds_of(from, to) : LEDGER_HOST;
}

COLD uint8_t traffic_memory_kinds_exchanged(uint64_t bytes, const void *from, const void *to)
{
    return memory_kinds_of(bytes ? from : NULL, to);
}

/* The root of an inter-communicator only receives. */
COLD uint8_t traffic_memory_kinds_gathered(uint64_t bytes, const struct communicator *communicator,
                                           const void *from, const void *to, int root)
{
    bool root_here = traffic_is_root(communicator, root);
    bool sends = bytes && !(root_here && communicator->is_inter);
    return memory_kinds_of(sends ? from : NULL, root_here ? to : NULL);
}

/* The root of an inter-communicator only sends. */
COLD uint8_t traffic_memory_kinds_scattered(uint64_t bytes, const struct communicator *communicator,
                                            const void *from, const void *to, int root)
{
    bool root_here = traffic_is_root(communicator, root);
    bool receives = !(root_here && communicator->is_inter);
    return bytes ? memory_kinds_of(root_here ? from : NULL, receives ? to : NULL) : LEDGER_HOST;
}

/* Four independent sums, so that additions overlap in the pipeline. */
#define SUM_OF(TYPE)                      \
    {                                     \
        const TYPE *at = counts.at;       \
        for (; i + 4 <= length; i += 4) { \
            sums[0] += at[i];             \
            sums[1] += at[i + 1];         \
            sums[2] += at[i + 2];         \
            sums[3] += at[i + 3];         \
        }                                 \
        for (; i < length; i++)           \
            sums[0] += at[i];             \
    }

static mpi_count sum_of(struct counts counts, int length)
{
    mpi_count sums[4] = {0};
    int i = 0;
    if (counts.wide)
        SUM_OF(mpi_count)
    else
        SUM_OF(int)
    return sums[0] + sums[1] + sums[2] + sums[3];
}

/* Bytes of a w-variant: each count has its own type. */
static uint64_t bytes_of(struct counts counts, const void *types, int length)
{
    uint64_t bytes = 0;
    for (int i = 0; i < length; i++)
        if (traffic_count_at(counts, i) > 0)
            bytes += traffic_bytes(traffic_count_at(counts, i), mpi_handle_load(types, (size_t)i));
    return bytes;
}

static const struct moved NOTHING = {0, 0};

struct moved moved_reduce_scatter(const struct communicator *communicator, struct counts counts,
                                  mpi_handle type)
{
    uint64_t bytes = traffic_bytes(sum_of(counts, communicator->size), type);
    return (struct moved){bytes, bytes};
}

struct moved moved_gather(const struct communicator *communicator, const void *sendbuf,
                          mpi_count sendcount, mpi_handle sendtype, mpi_count recvcount,
                          mpi_handle recvtype, int root)
{
    if (traffic_is_idle(communicator, root))
        return NOTHING;
    bool only_receives = traffic_is_root(communicator, root) && communicator->is_inter;
    bool has_receive_arguments = traffic_root_receives(communicator, sendbuf, root);
    uint64_t bytes = has_receive_arguments ? traffic_bytes(recvcount, recvtype)
                                           : traffic_bytes(sendcount, sendtype);
    return (struct moved){bytes, only_receives ? 0 : bytes};
}

struct moved moved_scatter(const struct communicator *communicator, mpi_count sendcount,
                           mpi_handle sendtype, mpi_count recvcount, mpi_handle recvtype, int root)
{
    if (traffic_is_idle(communicator, root))
        return NOTHING;
    bool root_here = traffic_is_root(communicator, root);
    uint64_t bytes =
        root_here ? traffic_bytes(sendcount, sendtype) : traffic_bytes(recvcount, recvtype);
    return (struct moved){bytes, root_here ? bytes * (uint64_t)traffic_others_in(communicator) : 0};
}

struct moved moved_gatherv(const struct communicator *communicator, const void *sendbuf,
                           mpi_count sendcount, mpi_handle sendtype, struct counts recvcounts,
                           mpi_handle recvtype, int root)
{
    if (traffic_is_idle(communicator, root))
        return NOTHING;
    bool root_here = traffic_is_root(communicator, root);
    if (root_here && communicator->is_inter)
        return NOTHING; /* it only receives */
    bool in_place = root_here && sendbuf == mpi_abi.in_place;
    uint64_t bytes =
        in_place ? traffic_bytes(traffic_count_at(recvcounts, communicator->comm_rank), recvtype)
                 : traffic_bytes(sendcount, sendtype);
    return (struct moved){bytes, bytes};
}

struct moved moved_scatterv(const struct communicator *communicator, struct counts sendcounts,
                            mpi_handle sendtype, mpi_count recvcount, mpi_handle recvtype, int root)
{
    if (traffic_is_idle(communicator, root))
        return NOTHING;
    if (!traffic_is_root(communicator, root))
        return (struct moved){traffic_bytes(recvcount, recvtype), 0};
    uint64_t bytes = traffic_bytes(sum_of(sendcounts, traffic_others_in(communicator)), sendtype);
    return (struct moved){bytes, bytes};
}

struct moved moved_allgatherv(const struct communicator *communicator, const void *sendbuf,
                              mpi_count sendcount, mpi_handle sendtype, struct counts recvcounts,
                              mpi_handle recvtype)
{
    bool in_place = sendbuf == mpi_abi.in_place;
    uint64_t bytes =
        in_place ? traffic_bytes(traffic_count_at(recvcounts, communicator->comm_rank), recvtype)
                 : traffic_bytes(sendcount, sendtype);
    return (struct moved){bytes, bytes};
}

struct moved moved_alltoallv(const struct communicator *communicator, const void *sendbuf,
                             struct counts sendcounts, mpi_handle sendtype,
                             struct counts recvcounts, mpi_handle recvtype)
{
    int others = traffic_others_in(communicator);
    bool in_place = sendbuf == mpi_abi.in_place;
    uint64_t bytes = in_place ? traffic_bytes(sum_of(recvcounts, others), recvtype)
                              : traffic_bytes(sum_of(sendcounts, others), sendtype);
    return (struct moved){bytes, bytes};
}

struct moved moved_alltoallw(const struct communicator *communicator, const void *sendbuf,
                             struct counts sendcounts, const void *sendtypes,
                             struct counts recvcounts, const void *recvtypes)
{
    int others = traffic_others_in(communicator);
    bool in_place = sendbuf == mpi_abi.in_place;
    uint64_t bytes = in_place ? bytes_of(recvcounts, recvtypes, others)
                              : bytes_of(sendcounts, sendtypes, others);
    return (struct moved){bytes, bytes};
}

struct moved moved_neighbor_alltoallv(struct communicator *communicator, struct counts sendcounts,
                                      mpi_handle sendtype)
{
    uint64_t bytes =
        traffic_bytes(sum_of(sendcounts, communicators_out_neighbors(communicator)), sendtype);
    return (struct moved){bytes, bytes};
}

struct moved moved_neighbor_alltoallw(struct communicator *communicator, struct counts sendcounts,
                                      const void *sendtypes)
{
    uint64_t bytes = bytes_of(sendcounts, sendtypes, communicators_out_neighbors(communicator));
    return (struct moved){bytes, bytes};
}
