/* How many bytes a call moves. There is one function per counting rule; it takes the arguments that
 * the MPI standard calls significant. shapes.h says which call uses which function. All return zero
 * for calls that are not counted or have failed.
 *
 *   bytes          the message size as the OSU micro-benchmarks define it: count x type size for
 *                  point-to-point, Bcast, Reduce, Allreduce, Scan; one process's block for Gather,
 *                  Scatter, Allgather, Alltoall; the whole send buffer for Reduce_scatter; for v-
 *                  and w-variants what this rank sends (Scatterv off the root: what it receives);
 *                  for RMA count x type size of the origin; for files what was read, or was to be
 *                  written
 *   volume_bytes   what this rank passes to the call in total */
#ifndef COMMPROF_TRAFFIC_H
#define COMMPROF_TRAFFIC_H

#include "call.h"
#include "memory_kind.h"
#include "message_numbers.h"

enum traffic_flags {
    TRAFFIC_IS_POSTED =
        1, /* a message that this call does not receive: its peer is counted when it is */
    /* The same bits in the flags of its request: */
    TRAFFIC_IS_MESSAGE =
        64, /* point-to-point, not partitioned: it has a tag, and may have a number */
    TRAFFIC_IS_WILDCARD = 128, /* of any source or tag: it is numbered then */
};

/* The traffic of one call; docs/SCHEMA.md, Words, defines the terms. */
struct traffic {
    uint64_t bytes;
    uint64_t volume_bytes;
    struct communicator *communicator;
    int32_t peer;    /* world rank of the destination or source; PEER_NONE; of a posted receive also
                        LEDGER_PEER_ANY */
    int32_t tag;     /* of a message; negative: not known */
    uint16_t number; /* of a message (message_numbers.h); 0: not known */
    uint8_t direction; /* enum ledger_direction of that message */
    uint8_t flags;     /* enum traffic_flags */
    /* Memory kinds of the buffers, as in struct ledger_cell: 8 bits. As a byte, gcc stores it on
     * the stack and reads it back as part of a 64-bit key, which waits until the store has reached
     * the cache (8 ns). */
    uint64_t memory_kind;
};

/* An array of counts, of int or of MPI_Count. */
struct counts {
    const void *at;
    bool wide;
};

HOT mpi_count traffic_count_at(struct counts counts, int index)
{
    return counts.wide ? ((const mpi_count *)counts.at)[index] : ((const int *)counts.at)[index];
}

/* MPICH encodes the size of a predefined type in its handle, bits 8 to 15 (part of its ABI: mpi.h
 * spells the handles out). */
HOT bool traffic_mpich_predefined(mpi_handle bits)
{
    return mpi_abi.kind == MPI_ABI_MPICH && (bits & 0xffff0000) == 0x4c000000;
}

/* Ask MPI for the size of a type that is not in our table. */
uint64_t traffic_asked_size(mpi_handle type);

/* The size of a predefined type, without asking MPI; false for any other type. */
HOT bool traffic_known_size(mpi_handle bits, uint64_t *bytes)
{
    const struct mpi_type_size *known = &mpi_type_sizes[mpi_type_slot(bits)];
    if (known->type == bits) {
        *bytes = known->bytes;
        return true;
    }
    *bytes = bits >> 8 & 0xff;
    return traffic_mpich_predefined(bits);
}

/* Bytes of `count` elements. The type must be valid. */
HOT uint64_t traffic_bytes(mpi_count count, mpi_handle type)
{
    mpi_handle bits = mpi_handle_bits(type);
    uint64_t bytes;
    if (count <= 0)
        return 0;
    if (traffic_known_size(bits, &bytes))
        return (uint64_t)count * bytes;
    return bits == mpi_abi.datatype_null ? 0 : (uint64_t)count * traffic_asked_size(type);
}

/* Slow half of the next function. */
uint64_t traffic_bytes_not_announced(mpi_count count, mpi_handle type);

/* The same for the buffer of a call whose size may have been announced. */
HOT uint64_t traffic_counted_bytes(const struct call *call, mpi_count count, mpi_handle type)
{
    bool is_known = call->bytes - 1 < LEDGER_BYTES_UNKNOWN - 1;
    return __builtin_expect(is_known, 1) ? call->bytes : traffic_bytes_not_announced(count, type);
}

HOT bool traffic_is_root(const struct communicator *communicator, int root)
{
    return communicator->is_inter ? root == mpi_abi.root : root == communicator->comm_rank;
}

/* In a rooted collective on an inter-communicator, processes of the root's group other than the
 * root take no part. */
HOT bool traffic_is_idle(const struct communicator *communicator, int root)
{
    return communicator->is_inter && root == mpi_abi.proc_null;
}

/* Whether what counts is described by the root's receive arguments (MPI_Gather). */
HOT bool traffic_root_receives(const struct communicator *communicator, const void *sendbuf,
                               int root)
{
    return traffic_is_root(communicator, root) &&
           (communicator->is_inter || sendbuf == mpi_abi.in_place);
}

HOT struct traffic traffic_nowhere(void)
{
    return (struct traffic){.peer = PEER_NONE, .tag = LEDGER_NO_TAG};
}

/* Traffic on a communicator (NULL: on none), with no bytes yet. */
HOT struct traffic traffic_on(struct communicator *communicator)
{
    struct traffic traffic = traffic_nowhere();
    traffic.communicator = communicator;
    return traffic;
}

/* Whether the communicator that the call was announced on still exists: another thread may have
 * freed it since. */
HOT bool traffic_is_announced(const struct call *call)
{
    return __builtin_expect(call->communicator &&
                                call->removed ==
                                    __atomic_load_n(&communicators_removed, __ATOMIC_ACQUIRE),
                            1);
}

/* Slow half: the communicator of a call that announced none, or that was announced before some
 * communicator was freed. A communicator that was itself freed is not looked up at MPI. */
struct communicator *traffic_look_up(bool was_announced, mpi_handle comm);

/* Find the communicator of a call. False if the call is not counted or has failed. */
HOT bool traffic_begin(const struct call *call, mpi_handle comm, struct traffic *traffic)
{
    *traffic = traffic_nowhere();
    if (!call->succeeded)
        return false;
    if (traffic_is_announced(call)) {
        traffic->communicator = call->communicator;
        return true;
    }
    if (mpi_abi.known)
        traffic->communicator = traffic_look_up(call->communicator != NULL, comm);
    return traffic->communicator != NULL;
}

/* The same for a window or a file, with the communicator that it was created on. */
HOT bool traffic_begin_on(const struct call *call, mpi_handle key, struct traffic *traffic)
{
    *traffic = traffic_nowhere();
    if (!call->succeeded || !mpi_abi.known)
        return false;
    traffic->communicator =
        traffic_is_announced(call) ? call->communicator : communicators_under(key);
    return true;
}

/* The most frequent counting rules are inlined. */

HOT struct traffic traffic_none(const struct call *call, mpi_handle comm)
{
    struct traffic traffic;
    traffic_begin(call, comm, &traffic);
    return traffic;
}

/* Partitioned messages are matched with each other and have no numbers. */
HOT struct traffic traffic_partitioned(const struct call *call, mpi_count count, mpi_handle type,
                                       int dest, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic) || dest < 0) /* MPI_PROC_NULL */
        return traffic;
    traffic.bytes = traffic.volume_bytes = traffic_counted_bytes(call, count, type);
    traffic.peer = communicators_world_rank(traffic.communicator, dest);
    return traffic;
}

/* After an error it is not known whether a message was sent or received. */
HOT void traffic_check(const struct call *call)
{
    if (__builtin_expect(!call->succeeded, 0) && call->thread)
        message_numbers_end();
}

/* The key of a message; its communicator has a slot, because it was announced or looked up. */
HOT uint64_t traffic_key(const struct traffic *traffic)
{
    unsigned slot = __atomic_load_n(&traffic->communicator->slot, __ATOMIC_RELAXED);
    return message_key(slot, traffic->direction, traffic->peer, traffic->tag);
}

/* The call only prepares its message. */
HOT bool traffic_is_prepared(const struct call *call)
{
    return call->id >= CALL_Send_init && call->id <= CALL_Recv_init;
}

/* Numbers a message, unless the call only prepares it. */
HOT void traffic_number(const struct call *call, struct traffic *traffic)
{
    if (traffic_is_prepared(call) || !call->thread)
        return;
    traffic->number = message_count(traffic_key(traffic), call->thread->cells.record);
    if (traffic->direction != LEDGER_RECEIVED ||
        message_order_is_certain(traffic->communicator->slot))
        return;
    message_wildcards_disturb(traffic->communicator->slot);
    traffic->number = 0;
}
_Static_assert(CALL_Recv_init - CALL_Send_init == 4,
               "the calls that prepare messages are neighbours");

HOT struct traffic traffic_message(const struct call *call, mpi_count count, mpi_handle type,
                                   int dest, int tag, mpi_handle comm)
{
    struct traffic traffic;
    traffic_check(call);
    if (!traffic_begin(call, comm, &traffic))
        return traffic;
    traffic.flags = TRAFFIC_IS_MESSAGE;
    if (dest < 0) /* MPI_PROC_NULL */
        return traffic;
    traffic.bytes = traffic.volume_bytes = traffic_counted_bytes(call, count, type);
    traffic.peer = communicators_world_rank(traffic.communicator, dest);
    traffic.tag = tag;
    traffic_number(call, &traffic);
    return traffic;
}

/* The same traffic, received from the peer instead of sent to it. */
HOT struct traffic traffic_turned_round(struct traffic sent)
{
    sent.volume_bytes = 0;
    sent.direction = LEDGER_RECEIVED;
    return sent;
}

/* A partitioned message from `source`: its size is known before it arrives. */
HOT struct traffic traffic_incoming(const struct call *call, mpi_count count, mpi_handle type,
                                    int source, mpi_handle comm)
{
    return traffic_turned_round(traffic_partitioned(call, count, type, source, comm));
}

HOT struct traffic traffic_bcast(const struct call *call, mpi_count count, mpi_handle type,
                                 int root, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic) || traffic_is_idle(traffic.communicator, root))
        return traffic;
    traffic.bytes = traffic_counted_bytes(call, count, type);
    traffic.volume_bytes = traffic_is_root(traffic.communicator, root) ? traffic.bytes : 0;
    return traffic;
}

HOT struct traffic traffic_allreduce(const struct call *call, mpi_count count, mpi_handle type,
                                     mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic.bytes = traffic.volume_bytes = traffic_counted_bytes(call, count, type);
    return traffic;
}

/* RMA: what this rank sends to the target, or gets from it. */

HOT struct traffic traffic_window(const struct call *call, mpi_handle win)
{
    struct traffic traffic;
    traffic_begin_on(call, communicators_key_of_window(win), &traffic);
    return traffic;
}

HOT struct traffic traffic_put(const struct call *call, mpi_count count, mpi_handle type,
                               int target, mpi_handle win)
{
    struct traffic traffic;
    if (!traffic_begin_on(call, communicators_key_of_window(win), &traffic) ||
        target < 0) /* MPI_PROC_NULL */
        return traffic;
    traffic.bytes = traffic.volume_bytes = traffic_counted_bytes(call, count, type);
    traffic.peer = communicators_world_rank(traffic.communicator, target);
    return traffic;
}

HOT struct traffic traffic_get(const struct call *call, mpi_count count, mpi_handle type,
                               int target, mpi_handle win)
{
    return traffic_turned_round(traffic_put(call, count, type, target, win));
}

/* The world rank of a source, LEDGER_PEER_ANY for MPI_ANY_SOURCE. */
HOT int32_t traffic_source(const struct communicator *communicator, int source)
{
    return source == mpi_abi.any_source ? LEDGER_PEER_ANY
                                        : communicators_world_rank(communicator, source);
}
_Static_assert((int)PEER_NONE == (int)LEDGER_NO_RANK, "no peer is no rank");

/* A receive that is posted, in `traffic` of its communicator. */
HOT void traffic_expect(const struct call *call, struct traffic *traffic, int source, int tag)
{
    traffic->peer = traffic_source(traffic->communicator, source);
    traffic->tag = tag;
    traffic->direction = LEDGER_RECEIVED;
    traffic->flags = TRAFFIC_IS_MESSAGE | TRAFFIC_IS_POSTED;
    if (traffic->peer == PEER_NONE)
        return;
    if (traffic->peer == LEDGER_PEER_ANY || tag < 0)
        traffic->flags |= TRAFFIC_IS_WILDCARD;
    else
        traffic_number(call, traffic);
}

HOT struct traffic traffic_receive(const struct call *call, mpi_count count, mpi_handle type,
                                   int source, int tag, mpi_handle comm)
{
    struct traffic traffic;
    traffic_check(call);
    if (!traffic_begin(call, comm, &traffic))
        return traffic;
    traffic.bytes = traffic_counted_bytes(call, count, type);
    traffic_expect(call, &traffic, source, tag);
    return traffic;
}

/* A message that has been received on a communicator; NULL if unknown. */
HOT struct traffic traffic_received(struct mpi_arrival arrival, int tag,
                                    struct communicator *communicator)
{
    struct traffic traffic = traffic_on(communicator);
    traffic.bytes = arrival.bytes;
    traffic.peer = communicators_world_rank(communicator, arrival.source);
    traffic.tag = tag;
    traffic.direction = LEDGER_RECEIVED;
    traffic.flags = TRAFFIC_IS_MESSAGE;
    return traffic;
}

/* A message that a probe has found. The receive will have its number; a matching probe receives it
 * already, in MPI's order. */
HOT struct traffic traffic_found(const struct call *call, struct traffic found, bool is_matched)
{
    found.flags |= TRAFFIC_IS_POSTED;
    if (found.peer == PEER_NONE || !call->thread)
        return found;
    if (is_matched)
        traffic_number(call, &found);
    else if (message_order_is_certain(found.communicator->slot))
        found.number = message_next(traffic_key(&found), call->thread->cells.record);
    return found;
}

/* Files: what a call asks to read (counted as nothing), what it writes, what it has read. */

HOT struct traffic traffic_file(const struct call *call, mpi_count count, mpi_handle type,
                                mpi_handle file)
{
    struct traffic traffic;
    if (traffic_begin_on(call, communicators_key_of_file(file), &traffic))
        traffic.bytes = traffic_bytes(count, type);
    return traffic;
}

HOT struct traffic traffic_written(const struct call *call, mpi_count count, mpi_handle type,
                                   mpi_handle file)
{
    struct traffic traffic = traffic_file(call, count, type, file);
    traffic.volume_bytes = traffic.bytes;
    return traffic;
}

HOT struct traffic traffic_read(const struct call *call, struct mpi_arrival arrival,
                                mpi_handle file)
{
    struct traffic traffic;
    if (traffic_begin_on(call, communicators_key_of_file(file), &traffic))
        traffic.bytes = arrival.bytes;
    return traffic;
}

/* The memory kinds of a call's buffers: `from` is the send buffer, `to` the receive buffer. Looked
 * up after the call, outside of its measured time, and only if the process uses a GPU. A buffer
 * that is absent (NULL, MPI_IN_PLACE), not significant, or from which nothing is sent takes the
 * kind of the other buffer. A call that moves nothing is counted as LEDGER_HOST, and so is
 * MPI_BOTTOM: only its datatype holds the addresses. */

uint8_t traffic_memory_kinds_between(uint64_t bytes, const void *from, const void *to);
uint8_t traffic_memory_kinds_exchanged(uint64_t bytes, const void *from, const void *to);
uint8_t traffic_memory_kinds_gathered(uint64_t bytes, const struct communicator *communicator,
                                      const void *from, const void *to, int root);
uint8_t traffic_memory_kinds_scattered(uint64_t bytes, const struct communicator *communicator,
                                       const void *from, const void *to, int root);

HOT bool traffic_memory_kind_is_asked(void)
{
    return __builtin_expect(__atomic_load_n(&memory_kind_ask, __ATOMIC_RELAXED) != NULL, 0);
}

/* Both sizes are equal, or nothing is received if nothing is sent. */
HOT struct traffic traffic_between(const void *from, const void *to, struct traffic traffic)
{
    if (traffic_memory_kind_is_asked())
        traffic.memory_kind = traffic_memory_kinds_between(traffic.bytes, from, to);
    return traffic;
}

HOT struct traffic traffic_at(const void *buffer, struct traffic traffic)
{
    return traffic_between(buffer, buffer, traffic);
}

/* A rank that sends nothing may still receive. */
HOT struct traffic traffic_exchanged(const void *from, const void *to, struct traffic traffic)
{
    if (traffic_memory_kind_is_asked() && traffic.communicator)
        traffic.memory_kind = traffic_memory_kinds_exchanged(traffic.bytes, from, to);
    return traffic;
}

/* All ranks send; the root alone receives, whether or not it sends. */
HOT struct traffic traffic_gathered(const void *from, const void *to, int root,
                                    struct traffic traffic)
{
    if (traffic_memory_kind_is_asked() && traffic.communicator)
        traffic.memory_kind =
            traffic_memory_kinds_gathered(traffic.bytes, traffic.communicator, from, to, root);
    return traffic;
}

/* Only the root sends. */
HOT struct traffic traffic_scattered(const void *from, const void *to, int root,
                                     struct traffic traffic)
{
    if (traffic_memory_kind_is_asked() && traffic.communicator)
        traffic.memory_kind =
            traffic_memory_kinds_scattered(traffic.bytes, traffic.communicator, from, to, root);
    return traffic;
}

/* Collectives whose size follows from this rank's arguments alone. */

/* How many processes a rank of this communicator exchanges with: the remote group's size on an
 * inter-communicator. */
HOT int traffic_others_in(const struct communicator *communicator)
{
    return communicator->is_inter ? communicator->remote_size : communicator->size;
}

HOT struct traffic traffic_reduce(const struct call *call, mpi_count count, mpi_handle type,
                                  int root, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic) || traffic_is_idle(traffic.communicator, root))
        return traffic;
    traffic.bytes = traffic_counted_bytes(call, count, type);
    bool only_receives =
        traffic.communicator->is_inter && traffic_is_root(traffic.communicator, root);
    traffic.volume_bytes = only_receives ? 0 : traffic.bytes;
    return traffic;
}

/* The send buffer holds a block for each process of the local group, also on an inter-communicator
 * (MPI-4.1, 6.10). */
HOT struct traffic traffic_reduce_scatter_block(const struct call *call, mpi_count count,
                                                mpi_handle type, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic.bytes = traffic.volume_bytes =
            traffic_bytes(count * traffic.communicator->size, type);
    return traffic;
}

HOT struct traffic traffic_allgather(const struct call *call, const void *sendbuf,
                                     mpi_count sendcount, mpi_handle sendtype, mpi_count recvcount,
                                     mpi_handle recvtype, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic))
        return traffic;
    bool in_place = sendbuf == mpi_abi.in_place;
    traffic.bytes = traffic.volume_bytes =
        traffic_bytes(in_place ? recvcount : sendcount, in_place ? recvtype : sendtype);
    return traffic;
}

HOT struct traffic traffic_alltoall(const struct call *call, const void *sendbuf,
                                    mpi_count sendcount, mpi_handle sendtype, mpi_count recvcount,
                                    mpi_handle recvtype, mpi_handle comm)
{
    struct traffic traffic =
        traffic_allgather(call, sendbuf, sendcount, sendtype, recvcount, recvtype, comm);
    if (traffic.communicator)
        traffic.volume_bytes = traffic.bytes * (uint64_t)traffic_others_in(traffic.communicator);
    return traffic;
}

/* A rank without destinations may pass any sendtype. */
HOT struct traffic traffic_neighbor_allgather(const struct call *call, mpi_count sendcount,
                                              mpi_handle sendtype, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic) &&
        communicators_out_neighbors(traffic.communicator) > 0)
        traffic.bytes = traffic.volume_bytes = traffic_bytes(sendcount, sendtype);
    return traffic;
}

HOT struct traffic traffic_neighbor_alltoall(const struct call *call, mpi_count sendcount,
                                             mpi_handle sendtype, mpi_handle comm)
{
    struct traffic traffic = traffic_neighbor_allgather(call, sendcount, sendtype, comm);
    if (traffic.communicator)
        traffic.volume_bytes =
            traffic.bytes * (uint64_t)communicators_out_neighbors(traffic.communicator);
    return traffic;
}

/* The other rules are out of line. They return two registers: a `struct traffic` returned through
 * memory and copied takes longer than the counting itself, because its fields are written one by
 * one and read two at a time. */
struct moved {
    uint64_t bytes, volume_bytes;
};

struct moved moved_reduce_scatter(const struct communicator *communicator, struct counts counts,
                                  mpi_handle type);
struct moved moved_gather(const struct communicator *communicator, const void *sendbuf,
                          mpi_count sendcount, mpi_handle sendtype, mpi_count recvcount,
                          mpi_handle recvtype, int root);
struct moved moved_scatter(const struct communicator *communicator, mpi_count sendcount,
                           mpi_handle sendtype, mpi_count recvcount, mpi_handle recvtype, int root);
struct moved moved_gatherv(const struct communicator *communicator, const void *sendbuf,
                           mpi_count sendcount, mpi_handle sendtype, struct counts recvcounts,
                           mpi_handle recvtype, int root);
struct moved moved_scatterv(const struct communicator *communicator, struct counts sendcounts,
                            mpi_handle sendtype, mpi_count recvcount, mpi_handle recvtype,
                            int root);
struct moved moved_allgatherv(const struct communicator *communicator, const void *sendbuf,
                              mpi_count sendcount, mpi_handle sendtype, struct counts recvcounts,
                              mpi_handle recvtype);
struct moved moved_alltoallv(const struct communicator *communicator, const void *sendbuf,
                             struct counts sendcounts, mpi_handle sendtype,
                             struct counts recvcounts, mpi_handle recvtype);
struct moved moved_alltoallw(const struct communicator *communicator, const void *sendbuf,
                             struct counts sendcounts, const void *sendtypes,
                             struct counts recvcounts, const void *recvtypes);
struct moved moved_neighbor_alltoallv(struct communicator *communicator, struct counts sendcounts,
                                      mpi_handle sendtype);
struct moved moved_neighbor_alltoallw(struct communicator *communicator, struct counts sendcounts,
                                      const void *sendtypes);

HOT void traffic_set(struct traffic *traffic, struct moved moved)
{
    traffic->bytes = moved.bytes;
    traffic->volume_bytes = moved.volume_bytes;
}

HOT struct traffic traffic_reduce_scatter(const struct call *call, struct counts counts,
                                          mpi_handle type, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_reduce_scatter(traffic.communicator, counts, type));
    return traffic;
}

HOT struct traffic traffic_gather(const struct call *call, const void *sendbuf, mpi_count sendcount,
                                  mpi_handle sendtype, mpi_count recvcount, mpi_handle recvtype,
                                  int root, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_gather(traffic.communicator, sendbuf, sendcount, sendtype,
                                           recvcount, recvtype, root));
    return traffic;
}

HOT struct traffic traffic_scatter(const struct call *call, mpi_count sendcount,
                                   mpi_handle sendtype, mpi_count recvcount, mpi_handle recvtype,
                                   int root, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_scatter(traffic.communicator, sendcount, sendtype, recvcount,
                                            recvtype, root));
    return traffic;
}

HOT struct traffic traffic_gatherv(const struct call *call, const void *sendbuf,
                                   mpi_count sendcount, mpi_handle sendtype,
                                   struct counts recvcounts, mpi_handle recvtype, int root,
                                   mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_gatherv(traffic.communicator, sendbuf, sendcount, sendtype,
                                            recvcounts, recvtype, root));
    return traffic;
}

HOT struct traffic traffic_scatterv(const struct call *call, struct counts sendcounts,
                                    mpi_handle sendtype, mpi_count recvcount, mpi_handle recvtype,
                                    int root, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_scatterv(traffic.communicator, sendcounts, sendtype, recvcount,
                                             recvtype, root));
    return traffic;
}

HOT struct traffic traffic_allgatherv(const struct call *call, const void *sendbuf,
                                      mpi_count sendcount, mpi_handle sendtype,
                                      struct counts recvcounts, mpi_handle recvtype,
                                      mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_allgatherv(traffic.communicator, sendbuf, sendcount, sendtype,
                                               recvcounts, recvtype));
    return traffic;
}

HOT struct traffic traffic_alltoallv(const struct call *call, const void *sendbuf,
                                     struct counts sendcounts, mpi_handle sendtype,
                                     struct counts recvcounts, mpi_handle recvtype, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_alltoallv(traffic.communicator, sendbuf, sendcounts, sendtype,
                                              recvcounts, recvtype));
    return traffic;
}

HOT struct traffic traffic_alltoallw(const struct call *call, const void *sendbuf,
                                     struct counts sendcounts, const void *sendtypes,
                                     struct counts recvcounts, const void *recvtypes,
                                     mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_alltoallw(traffic.communicator, sendbuf, sendcounts, sendtypes,
                                              recvcounts, recvtypes));
    return traffic;
}

HOT struct traffic traffic_neighbor_alltoallv(const struct call *call, struct counts sendcounts,
                                              mpi_handle sendtype, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_neighbor_alltoallv(traffic.communicator, sendcounts, sendtype));
    return traffic;
}

HOT struct traffic traffic_neighbor_alltoallw(const struct call *call, struct counts sendcounts,
                                              const void *sendtypes, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic,
                    moved_neighbor_alltoallw(traffic.communicator, sendcounts, sendtypes));
    return traffic;
}

#endif
