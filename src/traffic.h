/* How many bytes a call moves. One function per way of counting, with the arguments that MPI's own text calls significant;
 * calls.def says which call uses which. All answer zero for calls that are not counted or have failed.
 *
 *   bytes          the message size as the OSU micro-benchmarks define it: count x type size for point-to-point, Bcast, Reduce,
 *                  Allreduce, Scan; one process's block for Gather, Scatter, Allgather, Alltoall; the whole send buffer for
 *                  Reduce_scatter; for v- and w-variants what this rank sends (Scatterv off the root: what it receives); for
 *                  RMA count x type size of the origin; for files what was read, or was to be written
 *   volume_bytes   what this rank hands to the call in total */
#ifndef COMMPROF_TRAFFIC_H
#define COMMPROF_TRAFFIC_H

#include "call.h"
#include "gpu/place.h"

/* An array of counts, of int or of MPI_Count. */
struct counts {
    const void *at;
    bool wide;
};

/* MPICH encodes the size of a predefined type in its handle, bits 8 to 15 (part of its ABI: mpi.h spells the handles out). */
HOT bool traffic_mpich_predefined(mpi_handle bits)
{
    return mpi_abi.kind == MPI_ABI_MPICH && (bits & 0xffff0000) == 0x4c000000;
}

/* What MPI says of a type that we do not know. */
uint64_t traffic_asked_size(mpi_handle type);

/* The size of a predefined type, which can be told without asking MPI; false for any other. */
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

/* count elements of a type, in bytes. The type must be a valid one. */
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

HOT bool traffic_is_root(const struct communicator *communicator, int root)
{
    return communicator->is_inter ? root == mpi_abi.root : root == communicator->comm_rank;
}

/* A process of the root's group of an inter-communicator, that is not the root, takes no part. */
HOT bool traffic_is_idle(const struct communicator *communicator, int root)
{
    return communicator->is_inter && root == mpi_abi.proc_null;
}

HOT struct traffic traffic_nowhere(void)
{
    return (struct traffic){.peer = PEER_NONE};
}

/* On a communicator that is known already; NULL: on none. */
HOT struct traffic traffic_on(struct communicator *communicator)
{
    struct traffic traffic = traffic_nowhere();
    traffic.communicator = communicator;
    return traffic;
}

/* Whether the communicator that the call was announced on is there still: another thread may have freed it meanwhile. */
HOT bool traffic_is_announced(const struct call *call)
{
    return __builtin_expect(call->communicator && call->removed == __atomic_load_n(&communicators_removed, __ATOMIC_ACQUIRE), 1);
}

/* The communicator of a call, where it was not announced or others have gone since. One that has gone itself is not asked about. */
struct communicator *traffic_look_up(const struct call *call, mpi_handle comm);

/* The communicator of a call that counts and has succeeded. */
HOT bool traffic_begin(const struct call *call, mpi_handle comm, struct traffic *traffic)
{
    *traffic = traffic_nowhere();
    if (!call->succeeded || !mpi_abi.known)
        return false;
    traffic->communicator = traffic_is_announced(call) ? call->communicator : traffic_look_up(call, comm);
    return traffic->communicator != NULL;
}

/* The same for a window or a file: the communicator that it was made on. */
HOT bool traffic_begin_on(const struct call *call, mpi_handle key, struct traffic *traffic)
{
    *traffic = traffic_nowhere();
    if (!call->succeeded || !mpi_abi.known)
        return false;
    traffic->communicator = traffic_is_announced(call) ? call->communicator : communicators_under(key);
    return true;
}

/* A matched receive, on the communicator of its probe; NULL where that is not known. */
HOT struct traffic traffic_matched(const struct call *call, uint64_t bytes, struct communicator *communicator)
{
    if (!call->succeeded || !mpi_abi.known)
        return traffic_nowhere();
    struct traffic traffic = traffic_on(communicator);
    traffic.bytes = bytes;
    return traffic;
}

/* The ways of counting that matter most stand here, to be inlined. */

HOT struct traffic traffic_none(const struct call *call, mpi_handle comm)
{
    struct traffic traffic;
    traffic_begin(call, comm, &traffic);
    return traffic;
}

HOT struct traffic traffic_message(const struct call *call, mpi_count count, mpi_handle type, int dest, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic) || dest < 0) /* MPI_PROC_NULL */
        return traffic;
    traffic.bytes = traffic.volume_bytes = traffic_bytes(count, type);
    traffic.peer = communicators_world_rank(traffic.communicator, dest);
    return traffic;
}

/* What is sent to a peer, as if it came from there. */
HOT struct traffic traffic_turned_round(struct traffic sent)
{
    sent.volume_bytes = 0;
    sent.direction = LEDGER_RECEIVED;
    return sent;
}

/* A message that `source` sends, of a size and from a rank that are known beforehand. */
HOT struct traffic traffic_incoming(const struct call *call, mpi_count count, mpi_handle type, int source, mpi_handle comm)
{
    return traffic_turned_round(traffic_message(call, count, type, source, comm));
}

HOT struct traffic traffic_bcast(const struct call *call, mpi_count count, mpi_handle type, int root, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic) || traffic_is_idle(traffic.communicator, root))
        return traffic;
    traffic.bytes = traffic_bytes(count, type);
    traffic.volume_bytes = traffic_is_root(traffic.communicator, root) ? traffic.bytes : 0;
    return traffic;
}

HOT struct traffic traffic_allreduce(const struct call *call, mpi_count count, mpi_handle type, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic.bytes = traffic.volume_bytes = traffic_bytes(count, type);
    return traffic;
}

/* RMA: what this rank hands over to the target, or takes from it. */

HOT struct traffic traffic_window(const struct call *call, mpi_handle win)
{
    struct traffic traffic;
    traffic_begin_on(call, communicators_key_of_window(win), &traffic);
    return traffic;
}

HOT struct traffic traffic_put(const struct call *call, mpi_count count, mpi_handle type, int target, mpi_handle win)
{
    struct traffic traffic;
    if (!traffic_begin_on(call, communicators_key_of_window(win), &traffic) || target < 0) /* MPI_PROC_NULL */
        return traffic;
    traffic.bytes = traffic.volume_bytes = traffic_bytes(count, type);
    traffic.peer = communicators_world_rank(traffic.communicator, target);
    return traffic;
}

HOT struct traffic traffic_get(const struct call *call, mpi_count count, mpi_handle type, int target, mpi_handle win)
{
    return traffic_turned_round(traffic_put(call, count, type, target, win));
}

HOT struct traffic traffic_receive(const struct call *call, mpi_count count, mpi_handle type, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic.bytes = traffic_bytes(count, type);
    return traffic;
}

HOT struct traffic traffic_arrival(const struct call *call, struct mpi_arrival arrival, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic.bytes = arrival.bytes;
    return traffic;
}

/* Files: what a call asks to read (nothing: it asks for something else), what it writes, what it has read. */

HOT struct traffic traffic_file(const struct call *call, mpi_count count, mpi_handle type, mpi_handle file)
{
    struct traffic traffic;
    if (traffic_begin_on(call, communicators_key_of_file(file), &traffic))
        traffic.bytes = traffic_bytes(count, type);
    return traffic;
}

HOT struct traffic traffic_written(const struct call *call, mpi_count count, mpi_handle type, mpi_handle file)
{
    struct traffic traffic = traffic_file(call, count, type, file);
    traffic.volume_bytes = traffic.bytes;
    return traffic;
}

HOT struct traffic traffic_read(const struct call *call, struct mpi_arrival arrival, mpi_handle file)
{
    struct traffic traffic;
    if (traffic_begin_on(call, communicators_key_of_file(file), &traffic))
        traffic.bytes = arrival.bytes;
    return traffic;
}

/* Where the buffers of a call lie: `from` is what it sends of, `to` what it receives into. Asked after the call, outside of its time, and
 * only where the process uses a GPU. A buffer that is not there (NULL, MPI_IN_PLACE), that is not significant, or of which nothing is sent
 * has the place of the other. A call that moves nothing has LEDGER_HOST, and so has MPI_BOTTOM: only its type could say what lies there. */

uint8_t traffic_places_between(uint64_t bytes, const void *from, const void *to);
uint8_t traffic_places_exchanged(uint64_t bytes, const void *from, const void *to);
uint8_t traffic_places_gathered(uint64_t bytes, const struct communicator *communicator, const void *from, const void *to, int root);
uint8_t traffic_places_scattered(uint64_t bytes, const struct communicator *communicator, const void *from, const void *to, int root);

HOT bool traffic_place_is_asked(void)
{
    return __builtin_expect(__atomic_load_n(&place_is_asked, __ATOMIC_RELAXED), 0);
}

/* What is received is as much as what is sent, or cannot be without it. */
HOT struct traffic traffic_between(const void *from, const void *to, struct traffic traffic)
{
    if (traffic_place_is_asked())
        traffic.place = traffic_places_between(traffic.bytes, from, to);
    return traffic;
}

HOT struct traffic traffic_at(const void *buffer, struct traffic traffic)
{
    return traffic_between(buffer, buffer, traffic);
}

/* Who sends nothing may receive all the same. */
HOT struct traffic traffic_exchanged(const void *from, const void *to, struct traffic traffic)
{
    if (traffic_place_is_asked() && traffic.communicator)
        traffic.place = traffic_places_exchanged(traffic.bytes, from, to);
    return traffic;
}

/* All send, the root alone receives, whatever it sends itself. */
HOT struct traffic traffic_gathered(const void *from, const void *to, int root, struct traffic traffic)
{
    if (traffic_place_is_asked() && traffic.communicator)
        traffic.place = traffic_places_gathered(traffic.bytes, traffic.communicator, from, to, root);
    return traffic;
}

/* The root alone sends. */
HOT struct traffic traffic_scattered(const void *from, const void *to, int root, struct traffic traffic)
{
    if (traffic_place_is_asked() && traffic.communicator)
        traffic.place = traffic_places_scattered(traffic.bytes, traffic.communicator, from, to, root);
    return traffic;
}

/* Collectives with a size that this rank's arguments tell alone. */

/* How many processes a rank of this communicator exchanges with: the remote group's, if there is one. */
HOT int traffic_others_in(const struct communicator *communicator)
{
    return communicator->is_inter ? communicator->remote_size : communicator->size;
}

HOT struct traffic traffic_reduce(const struct call *call, mpi_count count, mpi_handle type, int root, mpi_handle comm)
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
HOT struct traffic traffic_reduce_scatter_block(const struct call *call, mpi_count count, mpi_handle type, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic.bytes = traffic.volume_bytes = traffic_bytes(count * traffic.communicator->size, type);
    return traffic;
}

HOT struct traffic traffic_allgather(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                                     mpi_count recvcount, mpi_handle recvtype, mpi_handle comm)
{
    struct traffic traffic;
    if (!traffic_begin(call, comm, &traffic))
        return traffic;
    bool in_place = sendbuf == mpi_abi.in_place;
    traffic.bytes = traffic.volume_bytes = traffic_bytes(in_place ? recvcount : sendcount, in_place ? recvtype : sendtype);
    return traffic;
}

HOT struct traffic traffic_alltoall(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                                    mpi_count recvcount, mpi_handle recvtype, mpi_handle comm)
{
    struct traffic traffic = traffic_allgather(call, sendbuf, sendcount, sendtype, recvcount, recvtype, comm);
    if (traffic.communicator)
        traffic.volume_bytes = traffic.bytes * (uint64_t)traffic_others_in(traffic.communicator);
    return traffic;
}

/* Who sends to nobody may pass anything as sendtype. */
HOT struct traffic traffic_neighbor_allgather(const struct call *call, mpi_count sendcount, mpi_handle sendtype, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic) && communicators_out_neighbors(traffic.communicator) > 0)
        traffic.bytes = traffic.volume_bytes = traffic_bytes(sendcount, sendtype);
    return traffic;
}

HOT struct traffic traffic_neighbor_alltoall(const struct call *call, mpi_count sendcount, mpi_handle sendtype, mpi_handle comm)
{
    struct traffic traffic = traffic_neighbor_allgather(call, sendcount, sendtype, comm);
    if (traffic.communicator)
        traffic.volume_bytes = traffic.bytes * (uint64_t)communicators_out_neighbors(traffic.communicator);
    return traffic;
}

/* The others are counted out of line. They give their result in two registers: a `struct traffic`, given back through memory and then
 * copied, takes longer than all the counting, for its parts are written one by one and read two at a time. */
struct moved {
    uint64_t bytes, volume_bytes;
};

struct moved moved_reduce_scatter(const struct communicator *communicator, struct counts counts, mpi_handle type);
struct moved moved_gather(const struct communicator *communicator, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                          mpi_count recvcount, mpi_handle recvtype, int root);
struct moved moved_scatter(const struct communicator *communicator, mpi_count sendcount, mpi_handle sendtype, mpi_count recvcount,
                           mpi_handle recvtype, int root);
struct moved moved_gatherv(const struct communicator *communicator, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                           struct counts recvcounts, mpi_handle recvtype, int root);
struct moved moved_scatterv(const struct communicator *communicator, struct counts sendcounts, mpi_handle sendtype, mpi_count recvcount,
                            mpi_handle recvtype, int root);
struct moved moved_allgatherv(const struct communicator *communicator, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                              struct counts recvcounts, mpi_handle recvtype);
struct moved moved_alltoallv(const struct communicator *communicator, const void *sendbuf, struct counts sendcounts, mpi_handle sendtype,
                             struct counts recvcounts, mpi_handle recvtype);
struct moved moved_alltoallw(const struct communicator *communicator, const void *sendbuf, struct counts sendcounts, const void *sendtypes,
                             struct counts recvcounts, const void *recvtypes);
struct moved moved_neighbor_alltoallv(struct communicator *communicator, struct counts sendcounts, mpi_handle sendtype);
struct moved moved_neighbor_alltoallw(struct communicator *communicator, struct counts sendcounts, const void *sendtypes);

HOT void traffic_set(struct traffic *traffic, struct moved moved)
{
    traffic->bytes = moved.bytes;
    traffic->volume_bytes = moved.volume_bytes;
}

HOT struct traffic traffic_reduce_scatter(const struct call *call, struct counts counts, mpi_handle type, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_reduce_scatter(traffic.communicator, counts, type));
    return traffic;
}

HOT struct traffic traffic_gather(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                                  mpi_count recvcount, mpi_handle recvtype, int root, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_gather(traffic.communicator, sendbuf, sendcount, sendtype, recvcount, recvtype, root));
    return traffic;
}

HOT struct traffic traffic_scatter(const struct call *call, mpi_count sendcount, mpi_handle sendtype, mpi_count recvcount,
                                   mpi_handle recvtype, int root, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_scatter(traffic.communicator, sendcount, sendtype, recvcount, recvtype, root));
    return traffic;
}

HOT struct traffic traffic_gatherv(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                                   struct counts recvcounts, mpi_handle recvtype, int root, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_gatherv(traffic.communicator, sendbuf, sendcount, sendtype, recvcounts, recvtype, root));
    return traffic;
}

HOT struct traffic traffic_scatterv(const struct call *call, struct counts sendcounts, mpi_handle sendtype, mpi_count recvcount,
                                    mpi_handle recvtype, int root, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_scatterv(traffic.communicator, sendcounts, sendtype, recvcount, recvtype, root));
    return traffic;
}

HOT struct traffic traffic_allgatherv(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                                      struct counts recvcounts, mpi_handle recvtype, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_allgatherv(traffic.communicator, sendbuf, sendcount, sendtype, recvcounts, recvtype));
    return traffic;
}

HOT struct traffic traffic_alltoallv(const struct call *call, const void *sendbuf, struct counts sendcounts, mpi_handle sendtype,
                                     struct counts recvcounts, mpi_handle recvtype, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_alltoallv(traffic.communicator, sendbuf, sendcounts, sendtype, recvcounts, recvtype));
    return traffic;
}

HOT struct traffic traffic_alltoallw(const struct call *call, const void *sendbuf, struct counts sendcounts, const void *sendtypes,
                                     struct counts recvcounts, const void *recvtypes, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_alltoallw(traffic.communicator, sendbuf, sendcounts, sendtypes, recvcounts, recvtypes));
    return traffic;
}

HOT struct traffic traffic_neighbor_alltoallv(const struct call *call, struct counts sendcounts, mpi_handle sendtype, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_neighbor_alltoallv(traffic.communicator, sendcounts, sendtype));
    return traffic;
}

HOT struct traffic traffic_neighbor_alltoallw(const struct call *call, struct counts sendcounts, const void *sendtypes, mpi_handle comm)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic_set(&traffic, moved_neighbor_alltoallw(traffic.communicator, sendcounts, sendtypes));
    return traffic;
}

#endif
