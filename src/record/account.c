#include "account.h"

#include "mpi/request_memory.h"

void account_simple(const struct call *call)
{
    if (!call->thread || !call_is_counted(call->id))
        return;
    account_count(call->thread, 0, cell_key(call->id, LEDGER_COMMUNICATOR_NONE, LEDGER_CALL), call_duration_ns(call), 0);
    bool awaits = call->doing >> LEDGER_DOING_REQUEST_CALL_BIT;
    if (!call->sequence)
        account_sample(call, NULL, awaits ? call->thread->cells.record->bytes : 0, PEER_NONE);
}

void account_made(const struct call *call, const void *newcomm, mpi_handle parent, bool has_parent, uint64_t tag)
{
    if (!call->succeeded || !mpi_abi.known) {
        account_simple(call);
        return;
    }
    account_call(call, (struct traffic){.communicator = has_parent ? communicators_find(parent) : NULL, .peer = PEER_NONE});
    if (call->id == CALL_Comm_dup || call->id == CALL_Comm_dup_with_info) {
        communicators_duplicated(mpi_handle_load(newcomm, 0), call->id, parent);
        return;
    }
    /* MPI_Comm_accept on one side pairs with MPI_Comm_connect on the other. */
    unsigned constructor = call->id == CALL_Comm_accept ? CALL_Comm_connect : call->id;
    struct communicator *made = communicators_made(mpi_handle_load(newcomm, 0), constructor, parent, has_parent, tag);
    if (made)
        made->constructor = call->id;
}

void account_poll(const struct call *call)
{
    if (call->thread && call_is_counted(call->id))
        account_count(call->thread, 0, cell_key(call->id, LEDGER_COMMUNICATOR_NONE, LEDGER_POLL), call_duration_ns(call), 0);
}

void account_arrival(const struct call *call, struct mpi_arrival arrival, struct communicator *communicator)
{
    if (!call->thread || !call_is_counted(call->id) || arrival.cancelled)
        return;
    int32_t peer = communicators_world_rank(communicator, arrival.source);
    if (peer != PEER_NONE)
        account_peer(call->thread, peer, call->id, LEDGER_RECEIVED, arrival.bytes, call_duration_ns(call));
}

/* Release what a request holds, at its end. */
static void let_go(const struct request *request, uint64_t completed_ticks)
{
    if (request->flags & REQUEST_KEPT)
        sample_finish(request->sample, completed_ticks);
    else if (request->communicator)
        communicators_release(request->communicator);
}

static void track(const struct call *call, struct traffic traffic, const void *request, unsigned flags, struct ledger_sample *sample)
{
    mpi_handle handle = mpi_handle_load(request, 0);
    if (mpi_handle_bits(handle) == mpi_abi.request_null)
        return;
    bool receives = flags & (REQUEST_RECEIVE | REQUEST_EXCHANGE);
    int32_t announced = call->communicator ? call->thread->cells.record->peer : PEER_NONE;
    if (traffic.direction == LEDGER_RECEIVED)
        flags |= REQUEST_INCOMING;
    struct request entry = {
        .start_ticks = call->start,
        .bytes = traffic.bytes,
        .volume_bytes = traffic.volume_bytes,
        .blocked_ticks = call->end - call->start,
        .communicator = receives ? traffic.communicator : NULL,
        .peer = flags & REQUEST_RECEIVE ? announced : traffic.peer,
        .call = call->id,
        .slot = (uint16_t)communicators_slot(traffic.communicator),
        .flags = (uint16_t)flags,
        .memory_kind = traffic.memory_kind,
    };
    if (entry.communicator)
        communicators_hold(entry.communicator);
    else if (sample && call->sequence) {
        entry.sample = sample;
        entry.flags |= REQUEST_KEPT;
        sample_begin_unfinished(sample);
    }
    if (requests_track(handle, &entry))
        return;
    ledger_count(&the_ledger.header->untracked_requests);
    let_go(&entry, 0);
}

void account_started(const struct call *call, struct traffic traffic, const void *request, unsigned flags)
{
    struct ledger_sample *sample;
    account_sampled(call, traffic, &sample);
    if (call->succeeded && mpi_abi.known)
        track(call, traffic, request, flags | REQUEST_ACTIVE, sample);
}

void account_prepared(const struct call *call, struct traffic traffic, const void *request, unsigned flags)
{
    struct traffic itself = traffic;
    itself.peer = PEER_NONE; /* no message yet: it is counted at completion */
    itself.volume_bytes = 0;
    account_call(call, itself);
    if (call->succeeded && mpi_abi.known)
        track(call, traffic, request, flags | REQUEST_PERSISTENT, NULL);
}

static const struct mpi_arrival NO_ARRIVAL = {0, MPI_UNDEFINED, true};

static void count_completion(struct thread *thread, const struct request *done, struct mpi_arrival arrival, uint64_t end_ticks,
                             uint64_t blocked_ticks)
{
    uint64_t completion_ns = clock_duration_ns(end_ticks - done->start_ticks);
    uint64_t key = cell_key(done->call, done->slot, LEDGER_COMPLETION) | cell_key_memory_kind(done->memory_kind);
    key |= thread->region; /* the region of the thread that completes it */
    struct ledger_cell *cell = cells_find(&thread->cells, done->bytes, key);
    if (!cell) {
        ledger_count(&the_ledger.header->dropped_calls);
        return;
    }
    blocked_ticks += done->blocked_ticks;
    uint64_t blocked_ns = clock_duration_ns(blocked_ticks);
    cell->blocked_ns += blocked_ns < completion_ns ? blocked_ns : completion_ns;
    cell_add(cell, completion_ns, done->volume_bytes);
    enum ledger_direction direction = done->flags & REQUEST_INCOMING ? LEDGER_RECEIVED : LEDGER_SENT;
    /* A nonblocking send was counted when it was posted; the source of a receive is known only on arrival. */
    if (done->peer != PEER_NONE && (done->flags & (REQUEST_PERSISTENT | REQUEST_RECEIVE)) == REQUEST_PERSISTENT)
        account_peer(thread, done->peer, done->call, direction, done->bytes, completion_ns);
    struct communicator *communicator = done->flags & REQUEST_KEPT ? NULL : done->communicator;
    int32_t source = arrival.cancelled ? PEER_NONE : communicators_world_rank(communicator, arrival.source);
    if (source != PEER_NONE)
        account_peer(thread, source, done->call, LEDGER_RECEIVED, arrival.bytes, completion_ns);
}

void account_completed(const struct call *call, mpi_handle handle, const void *status, uint64_t blocked_before_ticks)
{
    struct request done;
    if (!call->thread || mpi_handle_bits(handle) == mpi_abi.request_null || !requests_complete(handle, call->end, &done))
        return;
    if (!(done.flags & REQUEST_PERSISTENT))
        request_memory_release(handle);
    bool arrives = done.flags & (REQUEST_RECEIVE | REQUEST_EXCHANGE) && status;
    struct mpi_arrival arrival = arrives ? mpi_arrival_read(status) : NO_ARRIVAL;
    if (arrives && done.flags & REQUEST_RECEIVE)
        done.bytes = arrival.bytes;
    uint64_t began = call->start > done.start_ticks ? call->start : done.start_ticks;
    if (call_is_counted(done.call))
        count_completion(call->thread, &done, arrival, call->end, blocked_before_ticks + call->end - began);
    if (!(done.flags & REQUEST_PERSISTENT))
        let_go(&done, call->end);
}

void account_incomplete(const struct call *call, mpi_handle handle)
{
    if (call->thread && mpi_handle_bits(handle) != mpi_abi.request_null)
        requests_blocked(handle, call->end - call->start, call->end);
}

void account_restart(const struct call *call, mpi_handle handle)
{
    if (!call->succeeded || !mpi_abi.known)
        return;
    wait_array_settle(&call->thread->wait_array);
    requests_start(handle, call->start, call->end);
}

void account_forgotten(mpi_handle handle)
{
    struct request forgotten;
    if (!mpi_abi.known || !requests_forget(handle, &forgotten))
        return;
    let_go(&forgotten, 0);
    if (!(forgotten.flags & REQUEST_ACTIVE)) /* MPI still reads the arrays of an active request */
        request_memory_release(handle);
}

/* A matched message waits for its receive in the table of requests, under a key that no request handle has. */
static mpi_handle message_key(const void *message)
{
    return mpi_handle_load(message, 0) ^ 0x03000001;
}

void account_matched(const struct call *call, const void *message, struct mpi_arrival arrival, struct communicator *communicator)
{
    if (!call->succeeded || !communicator || arrival.source == mpi_abi.proc_null)
        return;
    struct request matched = {.communicator = communicator, .flags = REQUEST_ACTIVE};
    communicators_hold(communicator);
    if (!requests_track(message_key(message), &matched))
        communicators_release(communicator);
}

struct communicator *account_take_matched(const struct call *call, const void *message)
{
    struct request matched;
    bool known = call->thread && mpi_abi.known && message && requests_complete(message_key(message), UINT64_MAX, &matched);
    return known ? matched.communicator : NULL;
}
