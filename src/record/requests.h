/* Requests in flight: when each operation started, what it carries, and how long the job was
 * blocked on it.
 *
 * A request is tracked when a nonblocking call returns it, and completed when a Wait or Test call
 * reports it. Several requests in flight may have equal handles (Open MPI and MPICH return the same
 * handle for several small sends that are already complete), so the table is a multiset. A
 * persistent request stays until it is freed and is active between Start and completion. */
#ifndef COMMPROF_REQUESTS_H
#define COMMPROF_REQUESTS_H

#include "communicators.h"

enum request_flags {
    REQUEST_RECEIVE = 1,    /* the size and source are known only on completion */
    REQUEST_EXCHANGE = 8,   /* sends, and receives what the status reports (Isendrecv) */
    REQUEST_INCOMING = 16,  /* the peer is known and sends (partitioned receive) */
    REQUEST_PERSISTENT = 2, /* stays in the table after completion */
    REQUEST_ACTIVE = 4,     /* started and not completed */
    REQUEST_PINS =
        32, /* a nonblocking collective, whose page of samples is not reused before it completes */
    REQUEST_MESSAGE = 64,   /* point-to-point, not partitioned */
    REQUEST_WILDCARD = 128, /* receives a message from any source or with any tag, which is numbered
                               on completion */
    REQUEST_HOLDS =
        REQUEST_EXCHANGE | REQUEST_WILDCARD, /* `communicator` is set, not `volume_bytes` */
};

struct request {
    uintptr_t handle; /* REQUEST_EMPTY, REQUEST_BUSY, or the request's */
    uint64_t start_ticks;
    union {
        uint64_t bytes;
        uint64_t matched_tag; /* of a message that MPI_Mprobe has found: no request's */
    };
    union {
        uint64_t volume_bytes_or_communicator; /* to copy whichever it is */
        uint64_t volume_bytes;
        struct communicator *communicator; /* translates the source to its world rank. The volume is
                                              `bytes`, or 0 if it only receives */
    };
    uint64_t blocked_ticks;
    struct ledger_sample *sample; /* of a collective or message: completed with the request; NULL if
                                     it is not sampled */
    int32_t peer; /* world rank of the destination or expected source; PEER_NONE, LEDGER_PEER_ANY */
    uint16_t call;
    uint16_t slot; /* the communicator's number in the ledger */
    uint8_t flags;
    uint8_t memory_kind; /* memory kinds of the buffers, as in struct ledger_cell */
    union {
        uint16_t origin;         /* to copy whichever it is; 0: none */
        uint16_t wildcard;       /* of a wildcard: its place (message_wildcard_begin) */
        uint16_t envelope;       /* of another persistent message (message_envelope) */
        uint16_t collective;     /* of a persistent collective: place in persistent_collectives */
        uint16_t matched_number; /* of a message that MPI_Mprobe has found */
        uint16_t thread; /* of others, with MPI_THREAD_MULTIPLE: started by (requests_thread) */
    };
    uint32_t charged; /* low bits of the end of the last call whose blocked time was charged to this
                         request */
};

/* `concurrent`: threads may call at the same time (MPI_THREAD_MULTIPLE). False when out of
 * memory. */
bool requests_begin(bool concurrent);

/* The ordinary case is inlined: one thread at a time uses MPI, and the request is in the first slot
 * of its bucket. NULL if threads may call at the same time (or there is no table): every case is
 * the general one then. */
extern struct request *requests_firsts;
enum { REQUEST_EMPTY = 0, REQUESTS_BUCKETS_LOG2 = 15, REQUESTS_BUCKETS = 1 << 15 };

/* Chunks of seven requests that were taken, and at most: 2 GiB. */
extern uint32_t requests_chunks;
enum { REQUESTS_CHUNKS_MOST = 1 << 22 };

/* The bucket of a handle. Handles that MPI gave out one after the other have buckets next to each
 * other: requests_shift is 0 for numbers, and for pointers as many bits as are alike in all. */
extern unsigned requests_shift;

HOT unsigned requests_bucket(mpi_handle bits)
{
    uint64_t number = bits >> requests_shift;
    return (unsigned)(number ^ number >> REQUESTS_BUCKETS_LOG2) % REQUESTS_BUCKETS;
}

HOT struct request *requests_first(mpi_handle bits)
{
    return &requests_firsts[requests_bucket(bits)];
}

/* The general cases of the functions below. */
struct request *requests_claim_anywhere(mpi_handle handle);
void requests_publish_anywhere(struct request *slot, mpi_handle handle);
struct request *requests_look_anywhere(mpi_handle handle, const struct ledger_thread *thread);
struct request *requests_take_anywhere(mpi_handle handle, const struct ledger_thread *thread,
                                       uint64_t start_ticks);
void requests_end_anywhere(struct request *slot, mpi_handle handle);

/* Track a request: claim a slot for its handle (NULL when the table is full: its completion will
 * not be recorded), fill it, publish it. */
HOT struct request *requests_claim(mpi_handle handle)
{
    if (__builtin_expect(requests_firsts != NULL, 1)) {
        struct request *first = requests_first(mpi_handle_bits(handle));
        if (__builtin_expect(first->handle == REQUEST_EMPTY, 1))
            return first;
    }
    return requests_claim_anywhere(handle);
}

HOT void requests_publish(struct request *slot, mpi_handle handle)
{
    if (__builtin_expect(requests_firsts != NULL, 1))
        slot->handle = mpi_handle_bits(handle);
    else
        requests_publish_anywhere(slot, handle);
}

/* Write every field except the handle. Another thread may still be reading the slot's previous
 * request. */
HOT void requests_fill(struct request *slot, const struct request *request)
{
#define FILL(FIELD) __atomic_store_n(&slot->FIELD, request->FIELD, __ATOMIC_RELAXED)
    FILL(start_ticks);
    FILL(bytes);
    FILL(volume_bytes_or_communicator);
    FILL(blocked_ticks);
    FILL(sample);
    FILL(peer);
    FILL(call);
    FILL(slot);
    FILL(flags);
    FILL(memory_kind);
    FILL(origin);
    FILL(charged);
#undef FILL
}

/* All three at once. False when the table is full. */
bool requests_track(mpi_handle handle, const struct request *request);

/* A thread, as a request names it; threads whose numbers are far apart may be equal. */
HOT uint16_t requests_thread(const struct ledger_thread *thread)
{
    return (uint16_t)(thread->thread + 1);
}

/* The active request with this handle, if it is in the first slot of its bucket. */
HOT struct request *requests_in_first(mpi_handle handle)
{
    mpi_handle bits = mpi_handle_bits(handle);
    struct request *first = requests_firsts ? requests_first(bits) : NULL;
    return first && first->handle == bits && first->flags & REQUEST_ACTIVE ? first : NULL;
}

/* An active request that `thread` is about to wait for; NULL if none has this handle. Another
 * thread may complete it at any time: read its fields by relaxed loads. */
HOT const struct request *requests_look(mpi_handle handle, const struct ledger_thread *thread)
{
    const struct request *first = requests_in_first(handle);
    return __builtin_expect(first != NULL, 1) ? first : requests_look_anywhere(handle, thread);
}

/* A persistent request that is not active; NULL for handles that are not tracked. */
struct request *requests_inactive(mpi_handle handle);

/* Start it by a call from start_ticks to end_ticks, in which the job is blocked on it. `sample`: of
 * the message that is started, or NULL. False if `request` is NULL. */
bool requests_start(struct request *request, uint64_t start_ticks, uint64_t end_ticks,
                    struct ledger_sample *sample);

/* Charge a request with time in Wait and Test calls that did not complete it; the last of them
 * ended at end_ticks. The charge is limited to the time since the request started. Among requests
 * with equal handles (which are already complete inside MPI) only one is charged. */
void requests_blocked(mpi_handle handle, uint64_t blocked_ticks, uint64_t end_ticks);

/* Take an active request that a thread completed by a call from start_ticks to end_ticks, out of
 * other threads' sight; its `handle` is not valid then. NULL if there is none with this handle.
 * With several threads, requests with this handle that other threads have completed or started
 * meanwhile are left alone. If the request started after the call's end, the tick counter went
 * backwards: it counts as started at the end. */
HOT struct request *requests_take(mpi_handle handle, const struct ledger_thread *thread,
                                  uint64_t start_ticks, uint64_t end_ticks)
{
    struct request *slot = requests_in_first(handle);
    if (__builtin_expect(!slot, 0))
        slot = requests_take_anywhere(handle, thread, start_ticks);
    if (slot && __builtin_expect(slot->start_ticks > end_ticks, 0))
        __atomic_store_n(&slot->start_ticks, end_ticks, __ATOMIC_RELAXED);
    return slot;
}

/* The request that was taken is accounted: remove it (a persistent one stays, inactive). */
HOT void requests_end(struct request *slot, mpi_handle handle)
{
    bool is_first = (uintptr_t)slot - (uintptr_t)requests_firsts < REQUESTS_BUCKETS * sizeof *slot;
    if (__builtin_expect(is_first && !(slot->flags & REQUEST_PERSISTENT), 1))
        slot->handle = REQUEST_EMPTY;
    else
        requests_end_anywhere(slot, handle);
}

/* MPI_Request_free, which began at start_ticks: remove the request and copy it to `forgotten`. If
 * it was active, its completion will not be recorded. */
bool requests_forget(mpi_handle handle, const struct ledger_thread *thread, uint64_t start_ticks,
                     struct request *forgotten);

#endif
