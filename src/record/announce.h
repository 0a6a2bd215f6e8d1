/* Writes a call's arguments to the ledger before the call, so that a call that never returns can
 * still be diagnosed. There is one function per kind of call; shapes.h says which call uses which.
 *
 * The arguments may be wrong, and MPI must be the one to report that. So nothing here asks MPI:
 * what is not in our tables stays unknown. */
#ifndef COMMPROF_ANNOUNCE_H
#define COMMPROF_ANNOUNCE_H

#include "requests.h"
#include "traffic.h"

HOT uint64_t announce_bytes(mpi_count count, mpi_handle type)
{
    uint64_t bytes;
    if (count <= 0)
        return 0;
    return traffic_known_size(mpi_handle_bits(type), &bytes) ? (uint64_t)count * bytes
                                                             : LEDGER_BYTES_UNKNOWN;
}

/* Looks up what is known of a call: all but its cell and its signature. Without a communicator the
 * entry serves this call alone. */
void announce_look_up(struct recent *recent, mpi_handle comm, mpi_handle type, mpi_handle op,
                      uint64_t count, uint32_t how);

/* The same for the buffer that counts, with everything else that is known of calls like this one
 * (recent.h): what follows need not look it up. `comm` may be a window; `op` and `is_in_place` are
 * those of the call's signature. */
HOT uint64_t announce_counted(struct call *call, mpi_handle comm, mpi_count count, mpi_handle type,
                              mpi_handle op, bool is_in_place)
{
    struct recent key = {.comm = comm,
                         .type = type,
                         .op = op,
                         .count = (uint64_t)count,
                         .how = recent_how(call->id, is_in_place)};
    if (!call->thread)
        return 0;
    struct recent *recent = recent_place(call->thread->recent, &key);
    uint64_t removed = __atomic_load_n(&communicators_removed, __ATOMIC_ACQUIRE);
    if (__builtin_expect(!recent_is(recent, &key) || recent->removed != removed, 0))
        announce_look_up(recent, comm, type, op, key.count, key.how);
    call->recent = recent;
    call->communicator = recent->communicator;
    call->removed = removed;
    call->doing = recent->doing;
    call->signature = (uint16_t)recent->signature;
    return call->bytes = recent->bytes;
}

HOT void announce_details(const struct call *call, uint64_t bytes, int32_t peer, int32_t tag)
{
    struct ledger_thread *record = call->thread->cells.record;
    __atomic_store_n(&record->bytes, bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&record->peer, peer, __ATOMIC_RELAXED);
    __atomic_store_n(&record->tag, tag, __ATOMIC_RELAXED);
}

/* The communicator under a key of the index. NULL if it is unknown or the call does not count. */
HOT struct communicator *announce_under(struct call *call, mpi_handle key)
{
    if (call->recent) /* it was looked up with the size */
        return call->communicator;
    if (!call->thread || !mpi_abi.known)
        return NULL;
    call->removed = __atomic_load_n(&communicators_removed, __ATOMIC_ACQUIRE);
    call->communicator = communicators_under(key);
    if (__builtin_expect(call->communicator != NULL, 1))
        call->doing |= (uint64_t)communicators_slot(call->communicator) << LEDGER_DOING_SLOT_BIT;
    return call->communicator;
}

HOT void announce_nothing(void)
{
}

/* A call on a communicator, window or file, without size or peer. */
HOT void announce_object(struct call *call, mpi_handle key)
{
    if (announce_under(call, key))
        announce_details(call, LEDGER_BYTES_UNKNOWN, LEDGER_NO_RANK, LEDGER_NO_TAG);
}

HOT void announce_on(struct call *call, mpi_handle comm)
{
    announce_object(call, mpi_handle_bits(comm));
}

/* The sequence of the next collective on a window or a file; 0: no number is left, or ranks may
 * count differently. */
HOT uint64_t announce_object_sequence(struct communicator *object)
{
    if (!object->object || object->object > COMMUNICATORS_OBJECTS_MAX || !object->entry ||
        object->object_collectives == (1ull << LEDGER_OBJECT_BIT) - 1)
        return 0;
    return LEDGER_ON_OBJECT | (uint64_t)object->object << LEDGER_OBJECT_BIT |
           ++object->object_collectives;
}

/* A call on a window or a file. Those in which its ranks wait for each other are numbered: all
 * begin them in the same order. */
HOT void announce_on_object(struct call *call, mpi_handle key)
{
    announce_object(call, key);
    if (call_waits_for_all(call->id) && call->communicator)
        call->sequence = announce_object_sequence(call->communicator);
}

/* A message to or from a rank, or a probe for one. */
HOT void announce_message(struct call *call, mpi_handle comm, uint64_t bytes, int peer, int tag)
{
    struct communicator *communicator = announce_under(call, mpi_handle_bits(comm));
    if (communicator)
        announce_details(call, bytes, traffic_source(communicator, peer), tag);
}

/* With MPI_THREAD_MULTIPLE: what this thread is about to send or receive, before another thread can
 * be ahead of it inside MPI. */
HOT void announce_claim(const struct call *call, enum ledger_direction direction, int peer, int tag)
{
    struct communicator *communicator = call->communicator;
    if (__builtin_expect(!message_numbers_are_concurrent, 1) || !communicator ||
        traffic_is_prepared(call))
        return;
    int32_t world_rank = traffic_source(communicator, peer);
    bool is_wildcard = direction == LEDGER_RECEIVED && (world_rank == LEDGER_PEER_ANY || tag < 0);
    if (direction == LEDGER_RECEIVED && world_rank != PEER_NONE)
        message_claim_receive(communicators_slot(communicator), is_wildcard,
                              call->thread->cells.record);
    if (world_rank != PEER_NONE && !is_wildcard)
        message_claim(message_key(communicators_slot(communicator), direction, world_rank, tag),
                      call->thread->cells.record);
}

HOT void announce_send(struct call *call, mpi_handle comm, uint64_t bytes, int dest, int tag)
{
    announce_message(call, comm, bytes, dest, tag);
    announce_claim(call, LEDGER_SENT, dest, tag);
}

HOT void announce_receive(struct call *call, mpi_handle comm, uint64_t bytes, int source, int tag)
{
    announce_message(call, comm, bytes, source, tag);
    announce_claim(call, LEDGER_RECEIVED, source, tag);
}

/* Announces the message that is received. */
HOT void announce_exchange(struct call *call, mpi_handle comm, uint64_t bytes, int dest,
                           int sendtag, int source, int recvtag)
{
    announce_receive(call, comm, bytes, source, recvtag);
    announce_claim(call, LEDGER_SENT, dest, sendtag);
}

/* RMA on a target; `bytes` may be LEDGER_BYTES_UNKNOWN. */
HOT void announce_target(struct call *call, mpi_handle win, uint64_t bytes, int target)
{
    struct communicator *communicator = announce_under(call, communicators_key_of_window(win));
    if (communicator)
        announce_details(call, bytes, communicators_world_rank(communicator, target),
                         LEDGER_NO_TAG);
}

/* The next collective on a communicator. All its ranks start these in the same order. */
HOT void announce_next(struct call *call, struct communicator *communicator, uint64_t bytes,
                       int32_t root)
{
    announce_details(call, bytes, LEDGER_NO_RANK, LEDGER_NO_TAG);
    struct ledger_communicator *entry = communicator->entry;
    if (!entry)
        return;
    uint64_t begun = entry->collectives;
    call->sequence = begun + 1;
    call->root = root;
    struct ledger_collective *next = &entry->recent[begun % LEDGER_RECENT_COLLECTIVES];
    __atomic_store_n(&next->bytes, bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&next->call, call->id, __ATOMIC_RELAXED);
    __atomic_store_n(&next->root, root, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->collectives, begun + 1, __ATOMIC_RELEASE);
}

HOT void announce_rooted(struct call *call, mpi_handle comm, uint64_t bytes, int root)
{
    struct communicator *communicator = announce_under(call, mpi_handle_bits(comm));
    if (communicator)
        announce_next(call, communicator, bytes, root);
}

HOT void announce_collective(struct call *call, mpi_handle comm, uint64_t bytes)
{
    announce_rooted(call, comm, bytes, LEDGER_NO_RANK);
}

/* Counts one block for each process of the local group. */
HOT void announce_blocks(struct call *call, mpi_handle comm, mpi_count count, mpi_handle type)
{
    struct communicator *communicator = announce_under(call, mpi_handle_bits(comm));
    if (communicator)
        announce_next(call, communicator, announce_bytes(count * communicator->size, type),
                      LEDGER_NO_RANK);
}

/* A call that waits for a request: announces what the call that started the request announced. */
HOT void announce_wait(struct call *call, mpi_handle request)
{
    if (!call->thread || !mpi_abi.known || mpi_handle_bits(request) == mpi_abi.request_null)
        return;
    const struct request *started = requests_look(request, call->thread->cells.record);
    if (!started)
        return;
#define STARTED(FIELD) __atomic_load_n(&started->FIELD, __ATOMIC_RELAXED)
    call->doing |= (uint64_t)STARTED(slot) << LEDGER_DOING_SLOT_BIT |
                   (uint64_t)STARTED(call) << LEDGER_DOING_REQUEST_CALL_BIT;
    announce_details(call, STARTED(bytes), STARTED(peer), LEDGER_NO_TAG);
#undef STARTED
}

#endif
