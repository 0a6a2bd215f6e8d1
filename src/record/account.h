/* Counts a finished call: updates its cell and its peer's row, fills its sample, and tracks or
 * completes its request. */
#ifndef COMMPROF_ACCOUNT_H
#define COMMPROF_ACCOUNT_H

#include "requests.h"
#include "traffic.h"

/* Count one event of this measure (a call, a completion, a poll) in its cell; NULL: the ledger has
 * no room. Then false is returned; the loss is counted. */
HOT bool account_count_in(struct thread *thread, struct ledger_cell *cell,
                          enum ledger_measure measure, uint64_t duration_ns, uint64_t volume_bytes,
                          uint64_t blocked_ns)
{
    if (__builtin_expect(
            cell && cells_count(&thread->cells, cell, duration_ns, volume_bytes, blocked_ns), 1))
        return true;
    bool is_end = measure == LEDGER_COMPLETION || measure == LEDGER_DEVICE_TIME;
    ledger_count(is_end ? &the_ledger.header->dropped_completions
                        : &the_ledger.header->dropped_calls);
    return false;
}

/* The same in this thread's current region. */
HOT bool account_count(struct thread *thread, uint64_t bytes, uint64_t key, uint64_t duration_ns,
                       uint64_t volume_bytes)
{
    return account_count_in(thread, cells_find(&thread->cells, bytes, key | thread->region),
                            cell_measure(key), duration_ns, volume_bytes, 0);
}

/* Whether a call is not accounted on the communicator that it was announced on (NULL: on none). */
HOT bool account_is_elsewhere(const struct call *call, const struct communicator *communicator)
{
    return __builtin_expect(communicator != call->communicator, 0);
}

/* The key of a call's cell. The announcement is packed in the same way. */
HOT uint64_t account_key(const struct call *call, const struct traffic *traffic)
{
    uint64_t key = (uint32_t)call->doing;
    if (account_is_elsewhere(call, traffic->communicator))
        key = cell_key(call->id, communicators_slot(traffic->communicator), LEDGER_CALL);
    return key | cell_key_memory_kind(traffic->memory_kind);
}
_Static_assert(LEDGER_DOING_SLOT_BIT == 16 && LEDGER_CALL == 0, "as in cell_key");

/* The cell of a call; NULL: the ledger has no room. */
HOT struct ledger_cell *account_cell(const struct call *call, uint64_t bytes, uint64_t key)
{
    struct thread *thread = call->thread;
    key |= thread->region;
    return call->recent ? cells_find_again(&thread->cells, bytes, key, &call->recent->cell)
                        : cells_find(&thread->cells, bytes, key);
}

/* The cell of a call or completion that has no `struct recent`: first the one that this thread's
 * last call with this number used. */
HOT struct ledger_cell *account_cell_again(struct thread *thread, unsigned call, uint64_t bytes,
                                           uint64_t key)
{
    return cells_find_again(&thread->cells, bytes, key | thread->region,
                            &thread->recent_cells[call % THREAD_RECENT_CELLS]);
}

/* Count a message to or from a peer, given by the key of its row or by its world rank. */
HOT void account_message(struct thread *thread, uint64_t peer_key, uint64_t bytes, uint64_t time_ns)
{
    struct ledger_peer *row = peers_find(&thread->peers, peer_key);
    if (__builtin_expect(row != NULL, 1))
        peer_add(row, bytes, time_ns);
    else
        ledger_count(&the_ledger.header->dropped_messages);
}

HOT void account_peer(struct thread *thread, int32_t peer, unsigned id,
                      enum ledger_direction direction, uint64_t bytes, uint64_t time_ns)
{
    account_message(thread, peer_key(peer, id, direction), bytes, time_ns);
}

/* A sample's flags, and its tag. */
HOT uint16_t account_flags(const struct traffic *traffic)
{
    if (!(traffic->flags & TRAFFIC_IS_MESSAGE))
        return 0;
    return traffic->direction == LEDGER_RECEIVED ? LEDGER_SAMPLE_MESSAGE | LEDGER_SAMPLE_RECEIVED
                                                 : LEDGER_SAMPLE_MESSAGE;
}

HOT int32_t account_tag(const struct traffic *traffic)
{
    return traffic->tag < 0 ? LEDGER_NO_TAG : traffic->tag;
}

/* The rank of a call's sample, if it is not a collective: a message's peer, or the announced
 * one. */
HOT int32_t account_rank(const struct call *call, const struct traffic *traffic,
                         const struct ledger_thread *record)
{
    bool is_announced = (uint16_t)(call->doing >> LEDGER_DOING_SLOT_BIT),
         is_message = traffic->flags & TRAFFIC_IS_MESSAGE;
    return traffic->peer == PEER_NONE && is_announced && !is_message ? record->peer : traffic->peer;
}

/* Fill a finished call's sample, if this call is sampled. Missing fields are taken from the
 * announcement. */
HOT struct ledger_sample *account_sample(const struct call *call, struct traffic traffic)
{
    struct thread *thread = call->thread;
    struct ledger_thread *record = thread->cells.record;
    struct communicator *communicator = traffic.communicator;
    bool is_message = traffic.flags & TRAFFIC_IS_MESSAGE;
    bool is_elsewhere = account_is_elsewhere(call, communicator);
    if (is_elsewhere && call->sequence)
        return NULL; /* another thread has freed it since */
    struct ledger_sample *sample = samples_of_window(&thread->window, record, call->end);
    if (!sample)
        return NULL;
    bool is_collective = __builtin_expect(call->sequence != 0, 1);
    int32_t rank = is_collective ? call->root : account_rank(call, &traffic, record);
    uint32_t tag_or_request = is_message ? (uint32_t)account_tag(&traffic)
                                         : (uint16_t)(call->doing >> LEDGER_DOING_REQUEST_CALL_BIT);
    unsigned slot = is_elsewhere && communicator ? communicator->slot
                                                 : (uint16_t)(call->doing >> LEDGER_DOING_SLOT_BIT);
    sample_fill(sample, &(struct ledger_sample){
                            .start_ticks = call->start,
                            .end_ticks = call->end,
                            .bytes_and_signature = sample_bytes(traffic.bytes),
                            .peer = rank,
                            .call = call->id & 0xfff,
                            .flags = account_flags(&traffic) & 0xf,
                            .communicator = (uint16_t)slot,
                            .thread = is_message ? traffic.number : (uint16_t)record->thread,
                            .region = (uint16_t)(thread->region >> CELL_KEY_REGION_BIT),
                            .tag_or_request = tag_or_request,
                            .sequence = call->sequence});
    return sample;
}

/* Account a finished call, its message if it has a peer, and its sample (set to NULL if it is not
 * sampled). False if the call is not counted, or the ledger has no room. */
HOT bool account_sampled(const struct call *call, struct traffic traffic,
                         struct ledger_sample **sample)
{
    *sample = NULL;
    if (!call->thread || !call_is_counted(call->id))
        return false;
    uint64_t duration_ns = call_duration_ns(call);
    struct ledger_cell *cell = account_cell(call, traffic.bytes, account_key(call, &traffic));
    bool has_room =
        account_count_in(call->thread, cell, LEDGER_CALL, duration_ns, traffic.volume_bytes, 0);
    if (traffic.peer != PEER_NONE && !(traffic.flags & TRAFFIC_IS_POSTED))
        account_peer(call->thread, traffic.peer, call->id, traffic.direction, traffic.bytes,
                     duration_ns);
    if (has_room)
        *sample = account_sample(call, traffic);
    return has_room;
}

/* The same; its sample, or NULL. */
HOT struct ledger_sample *account_call(const struct call *call, struct traffic traffic)
{
    struct ledger_sample *sample;
    account_sampled(call, traffic, &sample);
    return sample;
}

/* The polls before such a call; `sample`: its own, or NULL. */
void account_polled(struct thread *thread, unsigned id, uint64_t start_ticks,
                    struct ledger_sample *sample);

/* The same for a call without communicator or bytes; account_waited, inlined, for those that wait
 * for requests. */
void account_simple(const struct call *call);
HOT void account_waited(const struct call *call)
{
    struct thread *thread = call->thread;
    if (!thread || !call_is_counted(call->id))
        return;
    uint64_t key = cell_key(call->id, LEDGER_COMMUNICATOR_NONE, LEDGER_CALL);
    account_count_in(thread, account_cell_again(thread, call->id, 0, key), LEDGER_CALL,
                     call_duration_ns(call), 0, 0);
    if (call->sequence)
        return;
    bool awaits = call->doing >> LEDGER_DOING_REQUEST_CALL_BIT;
    struct ledger_sample *sample =
        account_sample(call, (struct traffic){.bytes = awaits ? thread->cells.record->bytes : 0,
                                              .peer = PEER_NONE});
    if (__builtin_expect(thread->polled_ticks != 0, 0))
        account_polled(thread, call->id, call->start, sample);
}

/* A communicator constructor: counts the call on the parent and registers the new communicator
 * (communicators_created). */
void account_created(const struct call *call, const void *newcomm, mpi_handle parent,
                     bool has_parent, uint64_t tag);

/* An unsuccessful poll (Test, Iprobe). */
void account_poll(const struct call *call);

/* One of requests: its time is added to the sample of the call that completes some. */
void account_test_poll(const struct call *call);

/* One for a message or the end of an exposure, and a successful one. `sought` stands for what they
 * look for: the time of those in vain is added to the sample of the one that finds it, if the
 * thread has not polled for anything else in between. */
void account_seek(const struct call *call, uint64_t sought);
void account_find(const struct call *call, uint64_t sought, struct ledger_sample *sample);

/* The receiving half of a sendrecv, whose call has been accounted, with this result. */
void account_arrival(const struct call *call, struct traffic received, bool is_counted);

/* The rare cases of the following function: a request that holds its communicator (returns the
 * place of a wildcard), a persistent one (returns what its starts have in common; 0: nothing that
 * is recorded), and one that finds no room. */
uint16_t account_hold(struct communicator *communicator, unsigned slot, unsigned flags);
uint16_t account_persistent_origin(const struct call *call, const struct traffic *traffic);
void account_untracked(struct communicator *held, struct ledger_sample *pinned);

HOT unsigned account_request_flags(const struct traffic *traffic, unsigned flags)
{
    _Static_assert((int)REQUEST_MESSAGE == (int)TRAFFIC_IS_MESSAGE &&
                       (int)REQUEST_WILDCARD == (int)TRAFFIC_IS_WILDCARD &&
                       REQUEST_INCOMING == LEDGER_RECEIVED << 4,
                   "the bits need not be moved one by one");
    return flags | (traffic->flags & (REQUEST_MESSAGE | REQUEST_WILDCARD)) |
           (unsigned)traffic->direction << 4;
}

/* Fills the slot of a request in place. */
HOT void account_track(const struct call *call, const struct traffic *traffic, const void *request,
                       unsigned flags, struct ledger_sample *sample)
{
    mpi_handle handle = mpi_handle_load(request, 0);
    if (mpi_handle_bits(handle) == mpi_abi.request_null)
        return;
    struct communicator *held = NULL;
    struct ledger_sample *pinned = NULL;
    uint64_t volume_bytes_or_communicator = traffic->volume_bytes;
    unsigned slot = communicators_slot(traffic->communicator);
    uint16_t origin = 0;
    flags = account_request_flags(traffic, flags);
    if (__builtin_expect(flags & REQUEST_HOLDS, 0)) {
        held = traffic->communicator;
        volume_bytes_or_communicator = (uintptr_t)held;
        origin = account_hold(held, slot, flags);
    } else if (flags & REQUEST_PERSISTENT) {
        origin = account_persistent_origin(call, traffic);
    } else if (__builtin_expect(message_numbers_are_concurrent, 0)) {
        origin = requests_thread(call->thread->cells.record);
    }
    if (!(flags & (REQUEST_HOLDS | REQUEST_PERSISTENT)) && call->sequence && sample) {
        pinned = sample;
        sample_begin_unfinished(sample);
    }
    struct request *place = requests_claim(handle);
    if (__builtin_expect(!place, 0)) {
        account_untracked(held, pinned);
        return;
    }
    requests_fill(place, &(struct request){
                             .start_ticks = call->start,
                             .bytes = traffic->bytes,
                             .volume_bytes_or_communicator = volume_bytes_or_communicator,
                             .blocked_ticks = call->end - call->start,
                             .sample = flags & REQUEST_MESSAGE || call->sequence ? sample : NULL,
                             .peer = traffic->peer,
                             .call = call->id,
                             .slot = (uint16_t)slot,
                             .flags = (uint8_t)(flags | (pinned ? REQUEST_PINS : 0)),
                             .memory_kind = traffic->memory_kind,
                             .origin = origin,
                         });
    requests_publish(place, handle);
}

/* The sample of a call that has returned a request; NULL: another thread has completed that
 * already, and the page may have been reused. */
HOT struct ledger_sample *account_still_its_own(const struct call *call,
                                                struct ledger_sample *sample)
{
    return sample && __atomic_load_n(&sample->start_ticks, __ATOMIC_RELAXED) == call->start ? sample
                                                                                            : NULL;
}

/* A call that started an operation: counts the call and tracks the request. `request` points to the
 * handle. Like the next two, it returns the call's sample, or NULL. */
HOT struct ledger_sample *account_started(const struct call *call, const struct traffic *traffic,
                                          const void *request, unsigned flags)
{
    struct ledger_sample *sample;
    account_sampled(call, *traffic, &sample);
    if (call->succeeded && mpi_abi.known)
        account_track(call, traffic, request, flags | REQUEST_ACTIVE, sample);
    return account_still_its_own(call, sample);
}

/* A call that sends, and receives from `source`. */
struct ledger_sample *account_exchange_started(const struct call *call,
                                               const struct traffic *traffic, int source, int tag,
                                               const void *request);

/* A persistent operation was set up (no message yet). */
struct ledger_sample *account_prepared(const struct call *call, const struct traffic *traffic,
                                       const void *request, unsigned flags);

/* `call` has completed the request with this handle, or has waited for it without completing it.
 * `status` may be NULL. `blocked_before_ticks` is the time that earlier calls waited for it and
 * that is not yet charged to the request (wait_array.h). */
void account_completed_by(struct thread *thread, uint64_t start_ticks, uint64_t end_ticks,
                          mpi_handle handle, const void *status, uint64_t blocked_before_ticks);
HOT void account_completed(const struct call *call, mpi_handle handle, const void *status,
                           uint64_t blocked_before_ticks)
{
    if (call->thread && mpi_handle_bits(handle) != mpi_abi.request_null)
        account_completed_by(call->thread, call->start, call->end, handle, status,
                             blocked_before_ticks);
}
void account_incomplete(const struct call *call, mpi_handle handle);

/* MPI_Start and MPI_Startall: the request's operation starts with this call. With
 * MPI_THREAD_MULTIPLE the thread claims it before. */
void account_claim_restart(const struct call *call, mpi_handle handle);
void account_restart(const struct call *call, mpi_handle handle);

/* A matching probe (MPI_Mprobe) stores its message. The receive of that message takes it out again,
 * without its size; on no communicator: it is unknown. MPI_MESSAGE_NO_PROC is not stored: it need
 * not be received, and all communicators share it. */
void account_matched(const struct call *call, const void *message, struct traffic matched);
struct traffic account_take_matched(const struct call *call, const void *message);

/* MPI_Request_free. */
void account_forgotten(const struct call *call, mpi_handle handle);

#endif
