#include "call.h"

#include "base/frames.h"
#include "base/quiet.h"
#include "message_numbers.h"

#include <string.h>

/* Memory that MPI may be using for the outer call; the inner one has its own. */
static void exchange_buffers(struct thread *thread, struct around *around)
{
    struct around mine = {.wait_array = thread->wait_array,
                          .scratch = thread->scratch,
                          .scratch_bytes = thread->scratch_bytes};
    thread->wait_array = around->wait_array;
    thread->scratch = around->scratch;
    thread->scratch_bytes = around->scratch_bytes;
    around->wait_array = mine.wait_array;
    around->scratch = mine.scratch;
    around->scratch_bytes = mine.scratch_bytes;
}

/* The GPU thread takes a thread's calls one after the other, so the part of the outer call up to
 * now comes before the inner call. */
static void note_time_so_far(struct thread *thread, const struct around *around)
{
    if (__atomic_load_n(&host_time_wanted, __ATOMIC_RELAXED))
        call_note_time(thread, (uint16_t)around->doing, around->since_ticks, around->entered_ticks);
}

static void enter_nested(struct thread *thread, uint64_t entered_ticks)
{
    struct around *around = &thread->around[thread->depth++];
    const struct ledger_thread *record = thread->cells.record;
    around->wrapper = thread->wrapper;
    around->entered_ticks = entered_ticks;
    around->nested_ticks = thread->nested_ticks;
    around->doing = record->doing;
    around->since_ticks = record->since_ticks;
    around->bytes = record->bytes;
    around->peer = record->peer;
    around->tag = record->tag;
    exchange_buffers(thread, around);
    note_time_so_far(thread, around);
    thread->nested_ticks = 0;
}

static void leave_nested(struct thread *thread)
{
    struct around *around = &thread->around[--thread->depth];
    struct ledger_thread *record = thread->cells.record;
    exchange_buffers(thread, around);
    __atomic_store_n(&record->bytes, around->bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&record->peer, around->peer, __ATOMIC_RELAXED);
    __atomic_store_n(&record->tag, around->tag, __ATOMIC_RELAXED);
    __atomic_store_n(&record->since_ticks, around->since_ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&record->doing, around->doing, __ATOMIC_RELEASE);
    thread->nested_ticks = around->nested_ticks + clock_ticks() - around->entered_ticks;
    thread->wrapper = around->wrapper | WRAPPER_AROUND;
}

static void leave_wrapper(struct thread *thread)
{
    if (thread->depth) {
        leave_nested(thread);
        return;
    }
    thread->nested_ticks = 0;
    thread->wrapper = 0;
}

/* An exception or longjmp has left the wrapper, which may have been a message's. */
static void leave_abandoned(struct thread *thread)
{
    uint64_t *doing = &thread->cells.record->doing;
    message_numbers_end();
    if (!(thread->wrapper & WRAPPER_IN_MPI))
        thread_forget(thread);
    else if (call_is_counted((uint16_t)*doing))
        ledger_count(&the_ledger.header->interrupted_calls);
    __atomic_store_n(doing, *doing & ~LEDGER_DOING_INSIDE, __ATOMIC_RELEASE);
    leave_wrapper(thread);
}

__attribute__((cold, noinline)) void thread_return_slowly(struct thread *thread)
{
    struct quiet before = quiet_begin();
    leave_wrapper(thread);
    quiet_end(&before);
}

/* A site in another PMPI tool is always taken as inside, without a look at the stack: the job's own
 * call was checked before. */
static bool was_left(const struct thread *thread, call_site site, uintptr_t frame)
{
    uintptr_t wrapper = thread->wrapper & ~(uintptr_t)WRAPPER_BITS;
    return site & SITE_TOOL ? frame >= wrapper : frames_was_left(wrapper, frame);
}

/* The call is not recorded, so what this rank counts is not what the others count. */
static void pass_on(unsigned id)
{
    const char *family = CALL_TABLE[id].family;
    if (strcmp(family, "point_to_point") == 0 || strcmp(family, "probe") == 0 ||
        strcmp(family, "completion") == 0)
        message_numbers_end();
    else if (strcmp(family, "setup") != 0)
        communicators_lose_count();
    if (call_is_counted(id))
        ledger_count(&the_ledger.header->interrupted_calls);
}

static struct thread *enter_again(struct thread *thread, call_site site, uintptr_t frame,
                                  unsigned id, uint64_t now_ticks)
{
    while (thread->wrapper && was_left(thread, site, frame))
        leave_abandoned(thread);
    if (!thread->wrapper)
        return thread;
    if (site & SITE_TOOL || id == CALL_NONE) /* a mark of a region */
        return NULL;
    if (!(thread->wrapper & WRAPPER_IN_MPI) || thread->depth == WRAPPERS_NESTED) {
        pass_on(id);
        return NULL;
    }
    enter_nested(thread, now_ticks);
    return thread;
}

__attribute__((cold, noinline)) struct thread *call_thread_slowly(call_site site, uintptr_t frame,
                                                                  unsigned id)
{
    uint64_t now_ticks = clock_ticks();
    uint32_t epoch = __atomic_load_n(&thread_epoch, __ATOMIC_ACQUIRE);
    if (!epoch)
        return NULL;
    struct quiet before = quiet_begin();
    struct thread *thread = this_thread == &thread_nobody ? thread_adopt() : this_thread;
    if (!thread)
        message_numbers_end(); /* there is no room for it: its messages are not counted */
    else
        thread = enter_again(thread, site, frame, id, now_ticks);
    if (thread) {
        thread->wrapper = frame | (thread->depth ? WRAPPER_NESTED : 0);
        thread_catch_up(thread, epoch);
    }
    quiet_end(&before);
    return thread;
}

/* NCCL calls only launch work, so their host time is not noted. */
__attribute__((cold, noinline)) void call_note_time(struct thread *thread, unsigned id,
                                                    uint64_t start_ticks, uint64_t end_ticks)
{
    if (id < CALL_FIRST_OF_NCCL)
        host_time_add(&thread->host_time, start_ticks, end_ticks);
}
