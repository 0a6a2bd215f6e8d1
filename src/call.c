#include "call.h"

#include "frames.h"
#include "kept.h"
#include "regions.h"
#include "settings.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const CALL_NAMES[CALL_COUNT] = {
    "",
#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS) "MPI_" #NAME,
#include "wrappers/calls.def"
#undef CALL
#define NCCL_CALL(NAME, FAMILY) "nccl" #NAME,
#include "nccl/nccl_calls.def"
#undef NCCL_CALL
};

const char *const CALL_FAMILIES[CALL_COUNT] = {
    "",
#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS) #FAMILY,
#include "wrappers/calls.def"
#undef CALL
#define NCCL_CALL(NAME, FAMILY) #FAMILY,
#include "nccl/nccl_calls.def"
#undef NCCL_CALL
};

uint32_t call_epoch;
uint8_t call_counted[CALL_COUNT];
static uint8_t counted_when_on[CALL_COUNT];
struct thread call_nobody = {.epoch = UINT32_MAX};
_Thread_local struct thread *this_thread = &call_nobody;

/* Threads. A thread that ends leaves its state to the next one that starts (the sums do not mind), so that a job with
 * thousands of short threads needs no more memory than it has threads at one time. */

static pthread_mutex_t adopting = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t leaving;
static struct thread *free_threads;
static uint32_t thread_count;

/* A thread may end inside a call (pthread_exit in an error handler): nobody is in that call any longer. */
static void leave_call(struct thread *thread)
{
    uint64_t *doing = &thread->cells.record->doing;
    thread->outermost = 0;
    __atomic_store_n(doing, *doing & ~LEDGER_DOING_INSIDE, __ATOMIC_RELEASE);
}

static void leave(void *thread)
{
    regions_end_all(thread);
    pthread_mutex_lock(&adopting);
    leave_call(thread);
    ((struct thread *)thread)->next_free = free_threads;
    free_threads = thread;
    this_thread = &call_nobody;
    pthread_mutex_unlock(&adopting);
}

static struct ledger_thread *enter_thread(uint32_t number, uint32_t epoch)
{
    struct ledger_thread entry = {.thread = number, .tid = (int64_t)syscall(SYS_gettid), .epoch = epoch};
    entry.is_main = entry.tid == getpid();
    if (prctl(PR_GET_NAME, entry.name) != 0)
        entry.name[0] = '\0';
    return ledger_append(LEDGER_THREADS, &entry, sizeof entry);
}

static struct thread *make_thread(uint32_t epoch)
{
    struct thread *fresh = calloc(1, sizeof *fresh);
    struct ledger_thread *entry = fresh ? enter_thread(thread_count, epoch) : NULL;
    if (!entry || !cells_create(&fresh->cells, entry) || !peers_create(&fresh->peers, thread_count)) {
        free(fresh);
        return NULL;
    }
    thread_count++;
    fresh->epoch = epoch;
    fresh->host_time.record = entry;
    host_time_enter(&fresh->host_time);
    return fresh;
}

/* Only the thread itself changes its counters, so a reset reaches it at its next call. Until then they do not count, for its epoch in
 * the ledger is an old one. */
static void catch_up(struct thread *thread, uint32_t epoch)
{
    if (thread->epoch == epoch)
        return;
    cells_clear(&thread->cells);
    peers_clear(&thread->peers);
    thread->epoch = epoch;
    __atomic_store_n(&thread->cells.record->epoch, epoch, __ATOMIC_RELEASE);
}

struct thread *call_thread_adopt(void)
{
    uint32_t epoch = __atomic_load_n(&call_epoch, __ATOMIC_ACQUIRE);
    pthread_mutex_lock(&adopting);
    struct thread *thread = free_threads;
    if (thread)
        free_threads = thread->next_free;
    else
        thread = make_thread(epoch);
    pthread_mutex_unlock(&adopting);
    if (!thread) {
        ledger_count(&the_ledger.header->dropped_calls);
        return NULL;
    }
    catch_up(thread, epoch);
    this_thread = thread;
    pthread_setspecific(leaving, thread);
    return thread;
}

struct thread *call_thread_of_ours(void)
{
    uint32_t epoch = __atomic_load_n(&call_epoch, __ATOMIC_ACQUIRE);
    if (!epoch)
        return NULL;
    struct thread *thread = this_thread == &call_nobody ? call_thread_adopt() : this_thread;
    if (thread)
        catch_up(thread, epoch);
    return thread;
}

__attribute__((cold, noinline)) struct thread *call_thread_anew(call_site site, uintptr_t frame)
{
    struct thread *thread = call_thread_of_ours();
    if (!thread)
        return NULL;
    if (frame < thread->outermost)
        return call_thread_below(thread, site, frame);
    thread->outermost = frame;
    return thread;
}

/* It is inside the outermost wrapper, unless that one was left by an exception or longjmp and calls go on from further down. Another
 * tool, which calls back on every call, is believed: the job's own call has been looked at before. */
__attribute__((cold, noinline)) struct thread *call_thread_below(struct thread *thread, call_site site, uintptr_t frame)
{
    if (site & SITE_TOOL || !frames_was_left(thread->outermost, frame))
        return NULL;
    thread->outermost = frame;
    return thread;
}

void *call_scratch(struct thread *thread, size_t bytes)
{
    if (bytes <= thread->scratch_bytes)
        return thread->scratch;
    size_t wanted = bytes < 4096 ? 4096 : 2 * bytes;
    void *larger = realloc(thread->scratch, wanted);
    if (!larger)
        return NULL;
    thread->scratch = larger;
    thread->scratch_bytes = wanted;
    return larger;
}

/* Recording. */

/* A forked child has the ledger mapped but is not a rank: it must not write to it. */
static void in_forked_child(void)
{
    call_epoch = 0;
}

static void prepare(void)
{
    pthread_key_create(&leaving, leave);
    pthread_atfork(NULL, NULL, in_forked_child);
    for (int i = 1; i < CALL_COUNT; i++)
        counted_when_on[i] = !settings_excludes(CALL_NAMES[i]);
    call_switch(settings.start);
    if (settings.start) /* the initialization is counted, too */
        the_ledger.header->counting_since_ns = the_ledger.header->start_ns;
}

void call_recording_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    __atomic_store_n(&call_epoch, the_ledger.header->epoch, __ATOMIC_RELEASE);
}

void call_recording_end(void)
{
    __atomic_store_n(&call_epoch, 0, __ATOMIC_RELEASE);
}

static pthread_mutex_t switching = PTHREAD_MUTEX_INITIALIZER;

static void keep_time(bool on)
{
    struct ledger_header *header = the_ledger.header;
    int64_t now_ns = clock_monotonic_ns();
    if (header->counting_since_ns)
        header->counted_ns += now_ns - header->counting_since_ns;
    __atomic_store_n(&header->counting_since_ns, on ? now_ns : 0, __ATOMIC_RELAXED); /* the GPU thread looks at it */
}

void call_switch(bool on)
{
    pthread_mutex_lock(&switching);
    keep_time(on);
    for (int i = 0; i < CALL_COUNT; i++)
        __atomic_store_n(&call_counted[i], on ? counted_when_on[i] : 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&switching);
}

static void begin_at_zero(struct ledger_header *header)
{
    keep_time(header->counting_since_ns != 0);
    header->counted_ns = 0;
    header->reset_ticks = clock_ticks();
    header->reset_unix_ns = clock_unix_ns();
    __atomic_store_n(&header->dropped_calls, 0, __ATOMIC_RELAXED); /* other threads may be adding to these */
    __atomic_store_n(&header->untracked_requests, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&header->folded_cells, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&header->folded_communicators, 0, __ATOMIC_RELAXED);
    /* 0 is for not recording, UINT32_MAX for nobody; who resets a thousand times a second comes here after seven weeks. */
    __atomic_store_n(&header->epoch, header->epoch < UINT32_MAX - 1 ? header->epoch + 1 : 1, __ATOMIC_RELEASE);
}

void call_reset(void)
{
    pthread_mutex_lock(&switching);
    if (call_epoch) {
        begin_at_zero(the_ledger.header);
        __atomic_store_n(&call_epoch, the_ledger.header->epoch, __ATOMIC_RELEASE);
        if (this_thread != &call_nobody)
            catch_up(this_thread, call_epoch);
    }
    pthread_mutex_unlock(&switching);
}

/* Accounting. */

/* A call of NCCL only launches what takes the time. */
__attribute__((cold, noinline)) void call_note_time(const struct call *call)
{
    if (call->id < CALL_FIRST_OF_NCCL)
        host_time_add(&call->thread->host_time, call->start, call->end);
}

void call_account_simple(const struct call *call)
{
    if (!call->thread || !call_is_counted(call->id))
        return;
    call_count(call->thread, 0, cell_key(call->id, LEDGER_COMMUNICATOR_NONE, LEDGER_CALL), call_duration_ns(call), 0);
    bool awaits = call->doing >> LEDGER_DOING_AWAITED_BIT;
    if (!call->sequence)
        call_keep(call, NULL, awaits ? call->thread->cells.record->bytes : 0, PEER_NONE);
}

void call_account_made(const struct call *call, const void *newcomm, mpi_handle parent, bool has_parent, uint64_t tag)
{
    if (!call->succeeded || !mpi_abi.known) {
        call_account_simple(call);
        return;
    }
    call_account(call, (struct traffic){.communicator = has_parent ? communicators_find(parent) : NULL, .peer = PEER_NONE});
    if (call->id == CALL_Comm_dup || call->id == CALL_Comm_dup_with_info) {
        communicators_duplicated(mpi_handle_load(newcomm, 0), call->id, parent);
        return;
    }
    /* MPI_Comm_accept here is MPI_Comm_connect there. */
    unsigned constructor = call->id == CALL_Comm_accept ? CALL_Comm_connect : call->id;
    struct communicator *made = communicators_made(mpi_handle_load(newcomm, 0), constructor, parent, has_parent, tag);
    if (made)
        made->constructor = call->id;
}

void call_account_poll(const struct call *call)
{
    if (call->thread && call_is_counted(call->id))
        call_count(call->thread, 0, cell_key(call->id, LEDGER_COMMUNICATOR_NONE, LEDGER_POLL), call_duration_ns(call), 0);
}

void call_account_arrival(const struct call *call, struct mpi_arrival arrival, struct communicator *communicator)
{
    if (!call->thread || !call_is_counted(call->id) || arrival.cancelled)
        return;
    int32_t peer = communicators_world_rank(communicator, arrival.source);
    if (peer != PEER_NONE)
        call_count_peer(call->thread, peer, call->id, LEDGER_RECEIVED, arrival.bytes, call_duration_ns(call));
}

/* What a request has held on to, at its end. */
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
        .communicator = receives ? traffic.communicator : NULL,
        .peer = flags & REQUEST_RECEIVE ? announced : traffic.peer,
        .call = call->id,
        .slot = (uint16_t)communicators_slot(traffic.communicator),
        .flags = (uint16_t)flags,
        .place = traffic.place,
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

void call_account_started(const struct call *call, struct traffic traffic, const void *request, unsigned flags)
{
    struct ledger_sample *sample;
    call_account_kept(call, traffic, &sample);
    if (call->succeeded && mpi_abi.known)
        track(call, traffic, request, flags | REQUEST_ACTIVE, sample);
}

void call_account_prepared(const struct call *call, struct traffic traffic, const void *request, unsigned flags)
{
    struct traffic itself = traffic;
    itself.peer = PEER_NONE; /* no message yet: it counts when it has completed */
    itself.volume_bytes = 0;
    call_account(call, itself);
    if (call->succeeded && mpi_abi.known)
        track(call, traffic, request, flags | REQUEST_PERSISTENT, NULL);
}

static const struct mpi_arrival NO_ARRIVAL = {0, MPI_UNDEFINED, true};

static void count_completion(struct thread *thread, const struct request *done, struct mpi_arrival arrival, uint64_t end_ticks,
                             uint64_t blocked_ticks)
{
    uint64_t completion_ns = clock_duration_ns(end_ticks - done->start_ticks);
    uint64_t key = cell_key(done->call, done->slot, LEDGER_COMPLETION) | cell_key_place(done->place);
    key |= thread->region; /* of who sees that it is complete */
    struct ledger_cell *cell = cells_find(&thread->cells, done->bytes, key);
    if (!cell) {
        ledger_count(&the_ledger.header->dropped_calls);
        return;
    }
    cell->blocked_ns += clock_duration_ns(done->blocked_ticks + blocked_ticks);
    cell_add(cell, completion_ns, done->volume_bytes);
    enum ledger_direction direction = done->flags & REQUEST_INCOMING ? LEDGER_RECEIVED : LEDGER_SENT;
    /* A nonblocking send was counted when it was posted, and who a receive is from only the arrival says. */
    if (done->peer != PEER_NONE && (done->flags & (REQUEST_PERSISTENT | REQUEST_RECEIVE)) == REQUEST_PERSISTENT)
        call_count_peer(thread, done->peer, done->call, direction, done->bytes, completion_ns);
    struct communicator *communicator = done->flags & REQUEST_KEPT ? NULL : done->communicator;
    int32_t source = arrival.cancelled ? PEER_NONE : communicators_world_rank(communicator, arrival.source);
    if (source != PEER_NONE)
        call_count_peer(thread, source, done->call, LEDGER_RECEIVED, arrival.bytes, completion_ns);
}

void call_account_completed(const struct call *call, mpi_handle handle, const void *status, uint64_t blocked_before_ticks)
{
    struct request done;
    if (!call->thread || mpi_handle_bits(handle) == mpi_abi.request_null || !requests_complete(handle, call->end, &done))
        return;
    if (!(done.flags & REQUEST_PERSISTENT))
        kept_release(handle);
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

void call_account_incomplete(const struct call *call, mpi_handle handle)
{
    if (call->thread && mpi_handle_bits(handle) != mpi_abi.request_null)
        requests_blocked(handle, call->end - call->start, call->end);
}

void call_account_restart(const struct call *call, mpi_handle handle)
{
    if (!call->succeeded || !mpi_abi.known)
        return;
    awaited_settle(&call->thread->awaited);
    requests_start(handle, call->start);
}

void call_account_forgotten(mpi_handle handle)
{
    struct request forgotten;
    if (!mpi_abi.known || !requests_forget(handle, &forgotten))
        return;
    let_go(&forgotten, 0);
    if (!(forgotten.flags & REQUEST_ACTIVE)) /* MPI still reads what an active one was given */
        kept_release(handle);
}

/* Messages between a matching probe and their receive wait in the table of requests, under a handle that no request has. */
static mpi_handle message_key(const void *message)
{
    return mpi_handle_load(message, 0) ^ 0x03000001;
}

void call_note_matched(const struct call *call, const void *message, struct mpi_arrival arrival, struct communicator *communicator)
{
    if (!call->succeeded || !communicator || arrival.source == mpi_abi.proc_null)
        return;
    struct request matched = {.communicator = communicator, .flags = REQUEST_ACTIVE};
    communicators_hold(communicator);
    if (!requests_track(message_key(message), &matched))
        communicators_release(communicator);
}

struct communicator *call_take_matched(const struct call *call, const void *message)
{
    struct request matched;
    bool known = call->thread && mpi_abi.known && message && requests_complete(message_key(message), UINT64_MAX, &matched);
    return known ? matched.communicator : NULL;
}
