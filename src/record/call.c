#include "call.h"

#include "base/frames.h"
#include "message_numbers.h"

__attribute__((cold, noinline)) struct thread *call_thread_catch_up(call_site site, uintptr_t frame)
{
    struct thread *thread = thread_ready();
    if (!thread) {
        if (__atomic_load_n(&thread_epoch, __ATOMIC_RELAXED)) /* there is no room for it: its messages are not counted */
            message_numbers_end();
        return NULL;
    }
    if (thread->outermost)
        return call_thread_again(thread, site, frame);
    thread->outermost = frame;
    return thread;
}

/* The call is inside the outermost wrapper, unless an exception or longjmp left that wrapper and calls continue from further down the
 * stack. A site in another PMPI tool is always taken as inside: the job's own call was checked before. */
static bool is_inside(const struct thread *thread, call_site site, uintptr_t frame)
{
    return frame < thread->outermost && (site & SITE_TOOL || !frames_was_left(thread->outermost, frame));
}

__attribute__((cold, noinline)) struct thread *call_thread_again(struct thread *thread, call_site site, uintptr_t frame)
{
    if (is_inside(thread, site, frame))
        return NULL;
    message_numbers_end(); /* the wrapper that was left may have been a message's */
    thread->outermost = frame;
    return thread;
}

/* NCCL calls only launch work, so their host time is not noted. */
__attribute__((cold, noinline)) void call_note_time(struct thread *thread, unsigned id, uint64_t start_ticks, uint64_t end_ticks)
{
    if (id < CALL_FIRST_OF_NCCL)
        host_time_add(&thread->host_time, start_ticks, end_ticks);
}
