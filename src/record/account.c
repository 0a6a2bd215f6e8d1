#include "account.h"

#include "mpi/request_memory.h"
#include "persistent_collectives.h"

/* `sample`: of a call after unsuccessful polls; NULL: it is not sampled. */
static void store_polls(unsigned id, uint64_t start_ticks, struct ledger_sample *sample,
                        uint64_t since_ticks, uint64_t ticks)
{
    if (!sample || since_ticks > start_ticks)
        return;
    sample->completed_ticks = since_ticks;
    sample->sequence = ticks;
    sample_set_call(sample, (uint16_t)(id | (sample->flags | LEDGER_SAMPLE_POLLED) << 12));
}

void account_polled(struct thread *thread, unsigned id, uint64_t start_ticks,
                    struct ledger_sample *sample)
{
    if (id < CALL_Wait || id > CALL_Testsome)
        return;
    store_polls(id, start_ticks, sample, thread->polled_since_ticks, thread->polled_ticks);
    thread->polled_ticks = 0;
}
_Static_assert(CALL_Testsome - CALL_Wait == 7, "the calls that complete requests are neighbours");

void account_simple(const struct call *call)
{
    account_waited(call);
}

/* The sample of a further message of a call, or of a persistent collective that it starts, if the
 * call is sampled. `id`: the call that describes it. */
static struct ledger_sample *sample_further(const struct call *call, const struct traffic *traffic,
                                            unsigned id, unsigned slot)
{
    struct thread *thread = call->thread;
    struct ledger_sample *sample =
        call_is_counted(call->id)
            ? samples_of_window(&thread->window, thread->cells.record, call->end)
            : NULL;
    if (!sample)
        return NULL;
    sample_fill(sample, &(struct ledger_sample){
                            .start_ticks = call->start,
                            .end_ticks = call->end,
                            .bytes_and_signature = sample_bytes(traffic->bytes),
                            .peer = traffic->peer,
                            .call = id & 0xfff,
                            .flags = (account_flags(traffic) | LEDGER_SAMPLE_FURTHER) & 0xf,
                            .communicator = (uint16_t)slot,
                            .number = traffic->number,
                            .region = (uint16_t)(thread->region >> CELL_KEY_REGION_BIT),
                            .tag = account_tag(traffic)});
    return sample;
}

void account_created(const struct call *call, const void *newcomm, mpi_handle parent,
                     bool has_parent, uint64_t tag)
{
    if (!call->succeeded || !mpi_abi.known) {
        account_simple(call);
        return;
    }
    account_call(call,
                 (struct traffic){.communicator = has_parent ? communicators_find(parent) : NULL,
                                  .peer = PEER_NONE});
    if (call->id == CALL_Comm_dup || call->id == CALL_Comm_dup_with_info) {
        communicators_duplicated(mpi_handle_load(newcomm, 0), call->id, parent);
        return;
    }
    /* MPI_Comm_accept on one side pairs with MPI_Comm_connect on the other. */
    unsigned constructor = call->id == CALL_Comm_accept ? CALL_Comm_connect : call->id;
    struct communicator *created =
        communicators_created(mpi_handle_load(newcomm, 0), constructor, parent, has_parent, tag);
    if (created)
        created->constructor = call->id;
}

void account_poll(const struct call *call)
{
    if (call->thread && call_is_counted(call->id))
        account_count(call->thread, 0, cell_key(call->id, LEDGER_COMMUNICATOR_NONE, LEDGER_POLL),
                      call_duration_ns(call), 0);
}

void account_test_poll(const struct call *call)
{
    account_poll(call);
    if (!call->thread)
        return;
    if (!call->thread->polled_ticks)
        call->thread->polled_since_ticks = call->start;
    call->thread->polled_ticks += call->end - call->start;
}

void account_seek(const struct call *call, uint64_t sought)
{
    struct thread *thread = call->thread;
    account_poll(call);
    if (!thread)
        return;
    if (!thread->sought_ticks || thread->sought != sought) {
        thread->sought = sought;
        thread->sought_since_ticks = call->start;
        thread->sought_ticks = 0;
    }
    thread->sought_ticks += call->end - call->start;
}

void account_find(const struct call *call, uint64_t sought, struct ledger_sample *sample)
{
    struct thread *thread = call->thread;
    if (!thread || !thread->sought_ticks || thread->sought != sought)
        return;
    store_polls(call->id, call->start, sample, thread->sought_since_ticks, thread->sought_ticks);
    thread->sought_ticks = 0;
}

void account_arrival(const struct call *call, struct traffic received, bool is_counted)
{
    if (!call->thread || received.peer == PEER_NONE)
        return;
    traffic_number(call, &received);
    if (!call_is_counted(call->id))
        return;
    account_peer(call->thread, received.peer, call->id, LEDGER_RECEIVED, received.bytes,
                 call_duration_ns(call));
    if (is_counted)
        sample_further(call, &received, call->id, communicators_slot(received.communicator));
}

/* All ranks count the persistent collectives that they set up on a communicator alike. */
static unsigned set_up_collective(const struct call *call, struct communicator *communicator)
{
    if (!communicator || communicator != call->communicator)
        return 0; /* another thread has freed it since */
    if (communicator->persistent < UINT32_MAX)
        communicator->persistent++;
    return persistent_collectives_add(communicator->persistent, call->root);
}

uint16_t account_persistent_origin(const struct call *call, const struct traffic *traffic)
{
    if (traffic->flags & TRAFFIC_IS_MESSAGE)
        return traffic->peer == PEER_NONE ? 0 : (uint16_t)message_envelope(traffic_key(traffic));
    return call->sequence ? (uint16_t)set_up_collective(call, traffic->communicator) : 0;
}

/* Whose message it receives is known at its completion. After an exchange with any source or tag,
 * no order is certain: MPICH 4.0 fills no status in, so its end is not counted. */
uint16_t account_hold(struct communicator *communicator, unsigned slot, unsigned flags)
{
    if (communicator)
        communicators_hold(communicator);
    bool is_wildcard =
        (flags & (REQUEST_WILDCARD | REQUEST_ACTIVE)) == (REQUEST_WILDCARD | REQUEST_ACTIVE);
    return is_wildcard ? message_wildcard_begin(slot) : 0;
}

void account_untracked(struct communicator *held, struct ledger_sample *pinned)
{
    ledger_count(&the_ledger.header->untracked_requests);
    if (pinned)
        sample_finish(pinned, 0);
    if (held)
        communicators_release(held);
}

struct ledger_sample *account_exchange_started(const struct call *call,
                                               const struct traffic *traffic, int source, int tag,
                                               const void *request)
{
    if (!call->thread)
        return NULL;
    struct traffic expected = traffic_on(traffic->communicator);
    expected.bytes = LEDGER_BYTES_UNKNOWN;
    if (traffic->communicator)
        traffic_expect(call, &expected, source, tag);
    struct ledger_sample *sample;
    samples_keep_together(&call->thread->window);
    account_sampled(call, *traffic, &sample);
    if (expected.peer != PEER_NONE)
        sample_further(call, &expected, call->id, communicators_slot(traffic->communicator));
    unsigned flags = expected.flags & TRAFFIC_IS_WILDCARD ? REQUEST_EXCHANGE | REQUEST_WILDCARD
                                                          : REQUEST_EXCHANGE;
    if (call->succeeded && mpi_abi.known)
        account_track(call, traffic, request, flags | REQUEST_ACTIVE, sample);
    return account_still_its_own(call, sample);
}

struct ledger_sample *account_prepared(const struct call *call, const struct traffic *traffic,
                                       const void *request, unsigned flags)
{
    struct traffic itself = *traffic;
    itself.peer = PEER_NONE; /* no message yet: it is counted at completion */
    itself.flags = 0;
    itself.volume_bytes = 0;
    struct ledger_sample *sample = account_call(call, itself);
    traffic_check(call);
    if (call->succeeded && mpi_abi.known)
        account_track(call, traffic, request, flags | REQUEST_PERSISTENT, NULL);
    return sample;
}

/* Release what a request holds, at its end. */
HOT void let_go(const struct request *request, uint64_t completed_ticks)
{
    if (request->flags & REQUEST_PINS)
        sample_finish(request->sample, completed_ticks);
    else if (__builtin_expect(request->flags & REQUEST_HOLDS && request->communicator, 0))
        communicators_release(request->communicator);
}

static const struct mpi_arrival NO_ARRIVAL = {0, MPI_UNDEFINED, true};

/* MPICH 4.0.2 does not write the status of an exchange: it is that of any earlier operation. */
static int32_t source_of_holding(const struct request *done, struct mpi_arrival arrival)
{
    bool is_unwritten = done->flags & REQUEST_EXCHANGE && mpi_abi.kind == MPI_ABI_MPICH;
    return is_unwritten ? PEER_NONE : communicators_world_rank(done->communicator, arrival.source);
}

/* World rank of the source of what arrived; PEER_NONE: nothing did, or it is not known. */
HOT int32_t source_of(const struct request *done, struct mpi_arrival arrival)
{
    if (arrival.cancelled)
        return PEER_NONE;
    return done->flags & REQUEST_HOLDS ? source_of_holding(done, arrival) : done->peer;
}

HOT uint64_t volume_of(const struct request *done, uint64_t bytes)
{
    if (__builtin_expect(done->flags & REQUEST_HOLDS, 0))
        return done->flags & REQUEST_EXCHANGE ? bytes : 0;
    return done->volume_bytes;
}

/* `bytes`: those of the request, or what has arrived. */
HOT void count_completion(struct thread *thread, const struct request *done, uint64_t bytes,
                          struct mpi_arrival arrival, uint64_t end_ticks, uint64_t blocked_ticks)
{
    uint64_t completion_ns = clock_duration_ns(end_ticks - done->start_ticks);
    completion_ns += !completion_ns;
    uint64_t key = cell_key(done->call, done->slot, LEDGER_COMPLETION) |
                   cell_key_memory_kind(done->memory_kind);
    uint64_t blocked_ns = clock_duration_ns(blocked_ticks + done->blocked_ticks);
    blocked_ns = blocked_ns < completion_ns ? blocked_ns : completion_ns;
    struct ledger_cell *cell = account_cell_again(thread, done->call, bytes, key);
    account_count_in(thread, cell, LEDGER_COMPLETION, completion_ns, volume_of(done, bytes),
                     blocked_ns);
    enum ledger_direction direction =
        done->flags & REQUEST_INCOMING ? LEDGER_RECEIVED : LEDGER_SENT;
    /* A nonblocking send was counted when it was posted; the source of a receive is known only on
     * arrival. */
    if (done->peer != PEER_NONE &&
        (done->flags & (REQUEST_PERSISTENT | REQUEST_RECEIVE)) == REQUEST_PERSISTENT)
        account_peer(thread, done->peer, done->call, direction, bytes, completion_ns);
    int32_t source = source_of(done, arrival);
    if (source != PEER_NONE)
        account_peer(thread, source, done->call, LEDGER_RECEIVED, arrival.bytes, completion_ns);
}

/* The page may have been reused since; another sample of this thread has not the same start. After
 * a cancellation the number may be too high: it was given when the receive was posted. */
HOT void complete_sample(const struct request *done, struct ledger_sample *sample,
                         uint64_t completed_ticks)
{
    if (!sample || __atomic_load_n(&sample->start_ticks, __ATOMIC_RELAXED) != done->start_ticks)
        return;
    if (message_numbers_have_ended() && sample->flags & LEDGER_SAMPLE_RECEIVED)
        sample->number = 0;
    __atomic_store_n(&sample->completed_ticks, completed_ticks, __ATOMIC_RELEASE);
}

/* Numbers a message from any source or with any tag. */
static void number_arrival(const struct thread *thread, const struct request *done, int32_t source,
                           const void *status)
{
    struct ledger_sample *sample = done->sample;
    bool is_certain = message_wildcard_end(done->slot, done->wildcard, thread->cells.record);
    if (!status)
        message_numbers_end();
    if (source == PEER_NONE)
        return;
    int32_t tag = mpi_status_tag(status);
    uint16_t number =
        message_count(message_key(done->slot, LEDGER_RECEIVED, source, tag), thread->cells.record);
    if (!is_certain || !sample || sample->start_ticks != done->start_ticks)
        return;
    sample->peer = source;
    sample->tag = tag;
    sample->number = number;
}

/* The message that an exchange receives has the sample after that of the message that it sends. */
static void complete_further(const struct request *done, uint64_t completed_ticks)
{
    if (done->sample && done->sample[1].flags & LEDGER_SAMPLE_FURTHER)
        complete_sample(done, done->sample + 1, completed_ticks);
}

/* Completes a receive from any source or with any tag, or an exchange. */
static __attribute__((noinline)) void
complete_holding(const struct thread *thread, uint64_t end_ticks, const struct request *done,
                 struct mpi_arrival arrival, const void *status)
{
    if (done->flags & REQUEST_EXCHANGE)
        complete_further(done, end_ticks);
    else
        number_arrival(thread, done, source_of(done, arrival), status);
}

/* The request is accounted in place, in its slot of the table. */
void account_completed_by(struct thread *thread, uint64_t start_ticks, uint64_t end_ticks,
                          mpi_handle handle, const void *status, uint64_t blocked_before_ticks)
{
    struct request *done = requests_take(handle, thread->cells.record, start_ticks, end_ticks);
    if (!done)
        return;
    bool arrives = done->flags & (REQUEST_RECEIVE | REQUEST_EXCHANGE) && status;
    struct mpi_arrival arrival = arrives ? mpi_arrival_read(status) : NO_ARRIVAL;
    uint64_t bytes = arrives && done->flags & REQUEST_RECEIVE ? arrival.bytes : done->bytes;
    uint64_t began = start_ticks > done->start_ticks ? start_ticks : done->start_ticks;
    if (call_is_counted(done->call))
        count_completion(thread, done, bytes, arrival, end_ticks,
                         blocked_before_ticks + end_ticks - began);
    if (__builtin_expect(done->flags & REQUEST_HOLDS, 0))
        complete_holding(thread, end_ticks, done, arrival, arrives ? status : NULL);
    if (!(arrives && arrival.cancelled) && !(done->flags & REQUEST_PINS))
        complete_sample(done, done->sample, end_ticks);
    if (!(done->flags & REQUEST_PERSISTENT)) {
        request_memory_release(handle);
        let_go(done, end_ticks);
    }
    requests_end(done, handle);
}

void account_incomplete(const struct call *call, mpi_handle handle)
{
    if (call->thread && mpi_handle_bits(handle) != mpi_abi.request_null)
        requests_blocked(handle, call->end - call->start, call->end);
}

/* The message of a persistent request; its sample. */
static struct ledger_sample *restart_message(const struct call *call, struct request *request)
{
    bool is_received = request->flags & REQUEST_RECEIVE,
         is_wildcard = request->flags & REQUEST_WILDCARD;
    if (request->peer == PEER_NONE)
        return NULL;
    struct traffic traffic = {.bytes = request->bytes,
                              .peer = request->peer,
                              .tag = LEDGER_NO_TAG,
                              .flags = TRAFFIC_IS_MESSAGE};
    traffic.direction = is_received ? LEDGER_RECEIVED : LEDGER_SENT;
    if (is_wildcard) {
        request->wildcard = message_wildcard_begin(request->slot);
    } else if (request->envelope) {
        traffic.tag = message_tag_of(request->envelope);
        traffic.number =
            message_count(message_key_of(request->envelope), call->thread->cells.record);
    }
    if (is_received && !is_wildcard && !message_order_is_certain(request->slot)) {
        message_wildcards_disturb(request->slot);
        traffic.number = 0;
    }
    return sample_further(call, &traffic, request->call, request->slot);
}

/* The sample of a persistent collective. It is in a thread's page, because ranks may start theirs
 * in different order. */
static struct ledger_sample *restart_collective(const struct call *call,
                                                const struct request *request)
{
    struct persistent_collective *collective = persistent_collectives_at(request->collective);
    if (!request->collective || message_numbers_have_ended() || collective->starts == INT32_MAX)
        return NULL;
    collective->starts++;
    struct traffic traffic = {
        .bytes = request->bytes, .peer = collective->root, .tag = collective->starts};
    traffic.number = (uint16_t)collective->operation;
    return sample_further(call, &traffic, request->call, request->slot);
}

static struct ledger_sample *restart(const struct call *call, struct request *request)
{
    return request->flags & REQUEST_MESSAGE ? restart_message(call, request)
                                            : restart_collective(call, request);
}

void account_claim_restart(const struct call *call, mpi_handle handle)
{
    const struct request *request =
        call->thread && mpi_abi.known ? requests_inactive(handle) : NULL;
    if (!request || !(request->flags & REQUEST_MESSAGE) || request->peer == PEER_NONE)
        return;
    const struct ledger_thread *thread = call->thread->cells.record;
    bool is_wildcard = request->flags & REQUEST_WILDCARD;
    if (request->flags & REQUEST_RECEIVE)
        message_claim_receive(request->slot, is_wildcard, thread);
    if (!is_wildcard && request->envelope)
        message_claim(message_key_of(request->envelope), thread);
}

void account_restart(const struct call *call, mpi_handle handle)
{
    if (!call->succeeded || !mpi_abi.known)
        return;
    wait_array_settle(&call->thread->wait_array);
    struct request *request = requests_inactive(handle);
    if (!requests_start(request, call->start, call->end, request ? restart(call, request) : NULL))
        message_numbers_end(); /* it may be a message */
}

void account_forgotten(const struct call *call, mpi_handle handle)
{
    struct request forgotten;
    if (!mpi_abi.known ||
        !requests_forget(handle, call->thread->cells.record, call->start, &forgotten))
        return;
    let_go(&forgotten, 0);
    if (!(forgotten.flags & REQUEST_ACTIVE)) /* MPI still reads the arrays of an active request */
        request_memory_release(handle);
}

/* A matched message waits for its receive in the table of requests, under a key that no request
 * handle has. */
static mpi_handle matched_key(const void *message)
{
    return mpi_handle_load(message, 0) ^ 0x03000001;
}

void account_matched(const struct call *call, const void *message, struct traffic matched)
{
    if (!call->succeeded || matched.peer == PEER_NONE)
        return;
    struct request waiting = {.communicator = matched.communicator,
                              .matched_tag = (uint32_t)matched.tag,
                              .flags = REQUEST_ACTIVE};
    waiting.peer = matched.peer;
    waiting.matched_number = matched.number;
    communicators_hold(matched.communicator);
    if (!requests_track(matched_key(message), &waiting))
        communicators_release(matched.communicator);
}

struct traffic account_take_matched(const struct call *call, const void *message)
{
    if (!call->thread || !mpi_abi.known || !message)
        return traffic_nowhere();
    mpi_handle key = matched_key(message);
    struct request *matched =
        requests_take(key, call->thread->cells.record, UINT64_MAX, UINT64_MAX);
    if (!matched)
        return traffic_nowhere();
    struct traffic traffic = traffic_on(matched->communicator);
    traffic.peer = matched->peer;
    traffic.tag = (int32_t)matched->matched_tag;
    traffic.number = matched->matched_number;
    traffic.direction = LEDGER_RECEIVED;
    traffic.flags = TRAFFIC_IS_MESSAGE;
    requests_end(matched, key);
    return traffic;
}
