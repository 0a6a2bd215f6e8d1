/* One call of the job, from the moment a wrapper is entered to the moment it is counted.
 *
 *     struct call call;
 *     call_enter(&call, CALL_Bcast, site);          is it the job's own?
 *     announce_collective(&call, ...);              what it is about to do, for whoever looks at the ledger meanwhile
 *     call_start(&call);                            first clock reading
 *     int error = real(...);
 *     call_end(&call, error);                       second clock reading
 *     call_account(&call, traffic_at(buffer, traffic_bcast(&call, ...)));
 *
 * A call that does not count (made by MPI itself, inside another call, or while nothing is recorded) goes through the same
 * lines; its `thread` is NULL and nothing happens. */
#ifndef COMMPROF_CALL_H
#define COMMPROF_CALL_H

#include "awaited.h"
#include "clock.h"
#include "communicators.h"
#include "gpu/host_time.h"
#include "ledger/cells.h"
#include "ledger/peers.h"
#include "ledger/samples.h"
#include "mpi/provider.h"
#include "requests.h"

/* The calls that are counted apart, in the order of calls.def and nccl_calls.def. */
enum call_id {
    CALL_NONE,
#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS) CALL_##NAME,
#include "wrappers/calls.def"
#undef CALL
#define NCCL_CALL(NAME, FAMILY) CALL_nccl##NAME,
#include "nccl/nccl_calls.def"
#undef NCCL_CALL
    CALL_COUNT,
    CALL_FIRST_OF_NCCL = CALL_ncclCommInitRank
};

extern const char *const CALL_NAMES[CALL_COUNT];    /* "MPI_Bcast", "ncclBroadcast" */
extern const char *const CALL_FAMILIES[CALL_COUNT]; /* "collective" */

/* What belongs to one thread of the job. Threads that end leave it to those that come. */
struct thread {
    uintptr_t outermost; /* struct call of the outermost wrapper this thread is in; 0: in none */
    uint32_t epoch;      /* of its counters */
    uint64_t region;     /* that it is in (regions.h), in its place in a cell's key */
    struct cells cells;
    struct peers peers;
    struct awaited awaited;
    struct samples_window window;
    struct host_time host_time;
    void *scratch;
    size_t scratch_bytes;
    struct regions *regions; /* NULL: it has been in none yet */
    struct thread *next_free;
};

struct call {
    struct thread *thread;             /* NULL: not counted */
    uint64_t start, end;               /* ticks */
    uint64_t doing;                    /* as in struct ledger_thread, without LEDGER_DOING_INSIDE */
    struct communicator *communicator; /* that it was announced on; NULL: on none, or MPI has to be asked about it */
    uint64_t removed;                  /* communicators_removed before it was looked up */
    uint64_t sequence;                 /* of a collective on that communicator, from 1; 0: it is none */
    uint16_t id;
    bool succeeded;
};

/* What a call moves, in the terms of docs/ARCHITECTURE.md. */
struct traffic {
    uint64_t bytes;
    uint64_t volume_bytes;
    struct communicator *communicator;
    int32_t peer;      /* world rank a message goes to or is taken from; PEER_NONE */
    uint8_t direction; /* enum ledger_direction of that message */
    uint8_t place;     /* of its buffers, as in struct ledger_cell */
};

/* The epoch that calls are counted in, 0 while none are recorded: they are from the end of MPI_Init to MPI_Finalize, in the process that
 * called it. A thread with another epoch, as every thread is before its first call, has something to do before it counts. */
extern uint32_t call_epoch;

/* Which calls are counted: 0 for those that the user left out, for all of them while MPI_Pcontrol(0) holds. */
extern uint8_t call_counted[CALL_COUNT];

HOT bool call_is_counted(unsigned id)
{
    return __atomic_load_n(&call_counted[id], __ATOMIC_RELAXED);
}

/* Never NULL: a thread without a state of its own has that of nobody, which is in no epoch. */
extern _Thread_local struct thread *this_thread __attribute__((tls_model("initial-exec")));
extern struct thread call_nobody;

/* This thread's state, ready to count, made at its first call; NULL where there is no memory or no room in the ledger. */
struct thread *call_thread_adopt(void);

/* The state of a thread of ours that counts what is not a call of its own (the GPU thread), in the present epoch; NULL while nothing is
 * recorded, or there is no room. */
struct thread *call_thread_of_ours(void);

/* Begin and stop recording. */
void call_recording_begin(void);
void call_recording_end(void);

/* What MPI_Pcontrol and a time window do: stop counting and go on with it; begin anew at zero. */
void call_switch(bool on);
void call_reset(void);

/* A buffer of this thread, at least so large, good until the next call of this function. NULL when out of memory. */
void *call_scratch(struct thread *thread, size_t bytes);

/* Slow halves of call_thread: for a thread in another epoch, and for a call whose frame lies below the outermost wrapper's. */
struct thread *call_thread_anew(call_site site, uintptr_t frame);
struct thread *call_thread_below(struct thread *thread, call_site site, uintptr_t frame);

/* The thread of a call that counts, which is now the outermost one. Frames of C calls lie below each other, so a frame that lies
 * above the outermost wrapper's is not inside it: that wrapper was left by an exception or longjmp. */
HOT struct thread *call_thread(call_site site, uintptr_t frame)
{
    if (__builtin_expect(!(site & SITE_JOB), 0))
        return NULL;
    struct thread *thread = this_thread;
    if (__builtin_expect(thread->epoch != __atomic_load_n(&call_epoch, __ATOMIC_RELAXED), 0))
        return call_thread_anew(site, frame);
    if (__builtin_expect(frame < thread->outermost, 0))
        return call_thread_below(thread, site, frame);
    thread->outermost = frame;
    return thread;
}

/* call_begin is call_enter and call_start; what a wrapper looks at or announces before the call stands between both. */
HOT void call_enter(struct call *call, enum call_id id, call_site site)
{
    call->id = (uint16_t)id;
    call->doing = id;
    call->communicator = NULL;
    call->sequence = 0;
    call->thread = call_thread(site, (uintptr_t)call);
}

HOT void call_start(struct call *call)
{
    call->start = clock_ticks();
    if (!call->thread)
        return;
    struct ledger_thread *record = call->thread->cells.record;
    __atomic_store_n(&record->since_ticks, call->start, __ATOMIC_RELAXED);
    __atomic_store_n(&record->doing, call->doing | LEDGER_DOING_INSIDE, __ATOMIC_RELEASE);
}

HOT void call_begin(struct call *call, enum call_id id, call_site site)
{
    call_enter(call, id, site);
    call_start(call);
}

/* call_end is call_stop and call_leave; a wrapper that has looked for something sees in between whether it was there: a poll that finds
 * nothing is not time in MPI that something could overlap with.
 *
 * The counter of another core, or of another machine that the process was moved to, may be behind: no call ends before it began. */
HOT void call_stop(struct call *call, int error)
{
    uint64_t now = clock_ticks();
    call->end = now > call->start ? now : call->start;
    call->succeeded = error == MPI_SUCCESS && call->thread;
}

/* Slow half of call_leave: the GPU side wants to know. */
void call_note_time(const struct call *call);

HOT void call_leave(const struct call *call, bool found_something)
{
    if (!call->thread)
        return;
    call->thread->outermost = 0;
    if (__builtin_expect(__atomic_load_n(&host_time_wanted, __ATOMIC_RELAXED), 0) && found_something)
        call_note_time(call); /* before it is out of the call: see host_time.c */
    struct ledger_thread *record = call->thread->cells.record;
    __atomic_store_n(&record->doing, call->doing, __ATOMIC_RELEASE);
    __atomic_store_n(&record->since_ticks, call->end, __ATOMIC_RELEASE);
}

HOT void call_end(struct call *call, int error)
{
    call_stop(call, error);
    call_leave(call, true);
}

/* A call shorter than the clock's step took some time all the same: 1 ns. */
HOT uint64_t call_duration_ns(const struct call *call)
{
    uint64_t ns = clock_duration_ns(call->end - call->start);
    return ns + !ns;
}

/* Count one event on this thread, in the region that it is in: a call, a poll. False: there was no room, and that is counted. */
HOT bool call_count(struct thread *thread, uint64_t bytes, uint64_t key, uint64_t duration_ns, uint64_t volume_bytes)
{
    struct ledger_cell *cell = cells_find(&thread->cells, bytes, key | thread->region);
    if (__builtin_expect(cell != NULL, 1))
        cell_add(cell, duration_ns, volume_bytes);
    else
        ledger_count(&the_ledger.header->dropped_calls);
    return cell != NULL;
}

/* Count a message to or from a peer: by the key of its row, or by the peer's world rank. */
HOT void call_count_message(struct thread *thread, uint64_t peer_key, uint64_t bytes, uint64_t time_ns)
{
    struct ledger_peer *row = peers_find(&thread->peers, peer_key);
    if (__builtin_expect(row != NULL, 1))
        peer_add(row, bytes, time_ns);
    else
        ledger_count(&the_ledger.header->dropped_calls);
}

HOT void call_count_peer(struct thread *thread, int32_t peer, unsigned id, enum ledger_direction direction, uint64_t bytes,
                         uint64_t time_ns)
{
    call_count_message(thread, peer_key(peer, id, direction), bytes, time_ns);
}

/* Where a call is kept as a sample, and the root of a rooted collective; NULL: nowhere. */
HOT struct ledger_sample *call_sample_of_collective(const struct call *call, struct communicator *communicator, int32_t *root)
{
    if (__builtin_expect(!communicator || communicator != call->communicator, 0))
        return NULL; /* another thread has freed it meanwhile */
    *root = communicator->entry->recent[(call->sequence - 1) % LEDGER_RECENT_COLLECTIVES].root;
    return samples_of_sequence(&communicator->samples, communicator->slot, call->sequence);
}

/* Keep a finished call as a sample, if its turn has come. What was not found out by then stands where it was announced. */
HOT struct ledger_sample *call_keep(const struct call *call, struct communicator *communicator, uint64_t bytes, int32_t peer)
{
    struct thread *thread = call->thread;
    struct ledger_thread *record = thread->cells.record;
    bool is_announced = (uint16_t)(call->doing >> LEDGER_DOING_SLOT_BIT);
    if (peer == PEER_NONE && is_announced)
        peer = record->peer;
    struct ledger_sample *sample =
        call->sequence ? call_sample_of_collective(call, communicator, &peer) : samples_of_window(&thread->window, record, call->start);
    if (!sample)
        return NULL;
    unsigned slot = communicator ? communicator->slot : (uint16_t)(call->doing >> LEDGER_DOING_SLOT_BIT);
    sample_fill(sample, &(struct ledger_sample){.start_ticks = call->start,
                                                .end_ticks = call->end,
                                                .bytes = bytes,
                                                .peer = peer,
                                                .call = call->id,
                                                .communicator = (uint16_t)slot,
                                                .thread = (uint16_t)record->thread,
                                                .region = (uint16_t)(thread->region >> CELL_KEY_REGION_BIT),
                                                .awaited = (uint16_t)(call->doing >> LEDGER_DOING_AWAITED_BIT)});
    return sample;
}

/* Account a finished call: itself, its message if it has a peer, and as a sample (NULL: it is not kept). False if it does not count, or
 * there was no room. */
HOT bool call_account_kept(const struct call *call, struct traffic traffic, struct ledger_sample **sample)
{
    *sample = NULL;
    if (!call->thread || !call_is_counted(call->id))
        return false;
    uint64_t duration_ns = call_duration_ns(call);
    uint64_t key = cell_key(call->id, communicators_slot(traffic.communicator), LEDGER_CALL) | cell_key_place(traffic.place);
    if (!call_count(call->thread, traffic.bytes, key, duration_ns, traffic.volume_bytes))
        return false;
    if (traffic.peer != PEER_NONE)
        call_count_peer(call->thread, traffic.peer, call->id, traffic.direction, traffic.bytes, duration_ns);
    *sample = call_keep(call, traffic.communicator, traffic.bytes, traffic.peer);
    return true;
}

HOT bool call_account(const struct call *call, struct traffic traffic)
{
    struct ledger_sample *sample;
    return call_account_kept(call, traffic, &sample);
}

/* The same for a call without communicator and bytes. */
void call_account_simple(const struct call *call);

/* A constructor of communicators: the call itself, on its parent, and what it made (communicators_made). */
void call_account_made(const struct call *call, const void *newcomm, mpi_handle parent, bool has_parent, uint64_t tag);

/* A call that looked for something and found nothing (Test, Iprobe). */
void call_account_poll(const struct call *call);

/* A blocking receive, or the receiving half of a sendrecv: what arrived, from whom. */
void call_account_arrival(const struct call *call, struct mpi_arrival arrival, struct communicator *communicator);

/* A call that started an operation: the call itself, and the request that will complete it. `request` points to the handle. */
void call_account_started(const struct call *call, struct traffic traffic, const void *request, unsigned flags);

/* A persistent operation was set up (no message yet). */
void call_account_prepared(const struct call *call, struct traffic traffic, const void *request, unsigned flags);

/* `call` has completed, or has waited for but not completed, the request that had this handle. `status` may be NULL; `blocked_before`
 * is for how long calls that the request does not know of have waited for it (awaited.h). */
void call_account_completed(const struct call *call, mpi_handle handle, const void *status, uint64_t blocked_before_ticks);
void call_account_incomplete(const struct call *call, mpi_handle handle);

/* MPI_Start and its like: the request begins with this call. */
void call_account_restart(const struct call *call, mpi_handle handle);

/* A probe has matched a message on a communicator; the receive of that message asks which it was (NULL: not known), and releases
 * it. MPI_MESSAGE_NO_PROC is no message: nobody has to receive it, and all communicators share it. */
void call_note_matched(const struct call *call, const void *message, struct mpi_arrival arrival, struct communicator *communicator);
struct communicator *call_take_matched(const struct call *call, const void *message);

/* MPI_Request_free. */
void call_account_forgotten(mpi_handle handle);

#endif
