/* A thread that ends passes its state to the next one that starts: sums may mix threads. So a job
 * with thousands of short threads needs no more memory than the threads that run at one time. */
#include "thread.h"

#include "base/memory.h"
#include "base/quiet.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

uint32_t thread_epoch;
struct thread thread_nobody = {.epoch = UINT32_MAX};
_Thread_local struct thread *this_thread = &thread_nobody;

static pthread_mutex_t adopting = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t leaving;
static void (*on_leaving)(struct thread *thread);
static struct thread *free_threads;
static uint32_t thread_count;

void thread_forget(struct thread *thread)
{
    memset(thread->recent, 0, sizeof thread->recent);
    thread->wait_array.array = NULL;
    thread->wait_array.count = thread->wait_array.live = 0;
    thread->wait_array.total_ticks = 0;
}

/* A thread may end inside a call (pthread_exit in an error handler), or in our own code
 * (asynchronous cancellation): mark the call as left. */
static void leave_call(struct thread *thread)
{
    uint64_t *doing = &thread->cells.record->doing;
    if (thread->wrapper)
        thread_forget(thread);
    thread->wrapper = thread->depth = 0;
    thread->nested_ticks = 0;
    __atomic_store_n(doing, *doing & ~LEDGER_DOING_INSIDE, __ATOMIC_RELEASE);
}

static void leave(void *thread)
{
    struct quiet before = quiet_lock(&adopting);
    leave_call(thread);
    on_leaving(thread);
    ((struct thread *)thread)->next_free = free_threads;
    free_threads = thread;
    this_thread = &thread_nobody;
    quiet_unlock(&adopting, &before);
}

static struct ledger_thread *enter_thread(uint32_t number, uint32_t epoch)
{
    struct ledger_thread entry = {
        .thread = number, .tid = (int64_t)syscall(SYS_gettid), .epoch = epoch};
    entry.is_main = entry.tid == getpid();
    if (prctl(PR_GET_NAME, entry.name) != 0)
        entry.name[0] = '\0';
    return ledger_append(LEDGER_THREADS, &entry, sizeof entry);
}

static struct thread *make_thread(uint32_t epoch)
{
    static struct ledger_cell none; /* of no key */
    struct thread *fresh = memory_take(sizeof *fresh);
    struct ledger_thread *entry = fresh ? enter_thread(thread_count, epoch) : NULL;
    if (!entry || !cells_create(&fresh->cells, entry) ||
        !peers_create(&fresh->peers, thread_count)) {
        if (entry)
            cells_destroy(&fresh->cells);
        memory_give(fresh);
        return NULL;
    }
    thread_count++;
    fresh->epoch = epoch;
    for (int i = 0; i < THREAD_RECENT_CELLS; i++)
        fresh->recent_cells[i] = &none;
    fresh->host_time.record = entry;
    host_time_enter(&fresh->host_time);
    return fresh;
}

/* Only the thread itself changes its counters, so a reset takes effect at its next call. Until then
 * readers skip them, because their epoch in the ledger is old. */
void thread_catch_up(struct thread *thread, uint32_t epoch)
{
    if (thread->epoch == epoch)
        return;
    struct quiet before = quiet_begin();
    cells_clear(&thread->cells);
    peers_clear(&thread->peers);
    thread->epoch = epoch;
    __atomic_store_n(&thread->cells.record->epoch, epoch, __ATOMIC_RELEASE);
    quiet_end(&before);
}

static struct thread *take_or_make(uint32_t epoch)
{
    struct thread *thread = free_threads;
    if (!thread)
        return make_thread(epoch);
    free_threads = thread->next_free;
    __atomic_store_n(&thread->cells.record->tid, (int64_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    thread_catch_up(thread, epoch);
    return thread;
}

struct thread *thread_adopt(void)
{
    uint32_t epoch = __atomic_load_n(&thread_epoch, __ATOMIC_ACQUIRE);
    struct quiet before = quiet_lock(&adopting);
    struct thread *thread = this_thread; /* a signal handler's call may have adopted it just now */
    if (thread == &thread_nobody)
        thread = take_or_make(epoch);
    if (thread) {
        this_thread = thread;
        pthread_setspecific(leaving, thread);
    } else {
        ledger_count(&the_ledger.header->dropped_calls);
    }
    quiet_unlock(&adopting, &before);
    return thread;
}

struct thread *thread_ready(void)
{
    uint32_t epoch = __atomic_load_n(&thread_epoch, __ATOMIC_ACQUIRE);
    if (!epoch)
        return NULL;
    struct thread *thread = this_thread == &thread_nobody ? thread_adopt() : this_thread;
    if (thread)
        thread_catch_up(thread, epoch);
    return thread;
}

void *thread_scratch(struct thread *thread, size_t bytes)
{
    if (bytes <= thread->scratch_bytes)
        return thread->scratch;
    size_t wanted = bytes < 4096 ? 4096 : 2 * bytes;
    struct quiet before = quiet_begin();
    void *larger = memory_resize(thread->scratch, wanted);
    if (larger) {
        thread->scratch = larger;
        thread->scratch_bytes = wanted;
    }
    quiet_end(&before);
    return larger;
}

/* A forked child has the ledger mapped but is not a rank: it must not write to it. */
static void in_forked_child(void)
{
    thread_epoch = 0;
}

/* Before the job creates keys of its own: the C library allocates memory for the values of all but
 * the first 32. */
__attribute__((constructor)) static void create_key(void)
{
    pthread_key_create(&leaving, leave);
}

void thread_begin(void (*leaves)(struct thread *thread))
{
    on_leaving = leaves;
    pthread_atfork(NULL, NULL, in_forked_child);
}
