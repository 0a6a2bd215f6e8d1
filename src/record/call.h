/* One call of the job, from entering the wrapper until it is counted.
 *
 *     struct call call UNTIL_RETURN;
 *     call_enter(&call, CALL_Bcast, site);          is it the job's own?
 *     announce_collective(&call, ...);              write its arguments to the ledger, for readers
 *                                                   during the call
 *     call_start(&call);                            first clock reading
 *     int error = real(...);
 *     call_end(&call, error);                       second clock reading
 *     account_call(&call, traffic_at(buffer, traffic_bcast(&call, ...)));
 *     return error;                                 call_return(&call)
 *
 * A call that does not count (made by MPI itself, or while nothing is recorded) has `thread` NULL
 * after call_enter. The frequent wrappers pass it on at once; the others run the same lines, and
 * nothing is recorded.
 *
 * The program's own callbacks (of attributes, error handlers, generalized requests, reductions) and
 * signal handlers may make calls inside the real function. Such a call is nested: it counts like
 * any other, and its time is taken off the duration of the call around it. A signal handler may
 * also interrupt our own code, before or after the real function. The state that it finds is half
 * changed then, so its calls are only passed on, and the header's interrupted_calls counts them.
 *
 *     wrapper    0 | frame       | frame + IN_MPI                   | frame    | 0
 *     runs     job | our code    | the real function                | our code | job
 *     a call       | interrupted | is nested: | frame' + NESTED ... |
 * interrupted */
#ifndef COMMPROF_CALL_H
#define COMMPROF_CALL_H

#include "base/clock.h"
#include "call_table.h"
#include "communicators.h"
#include "mpi/provider.h"
#include "thread.h"

struct call {
    struct thread *thread;             /* NULL: not counted */
    uint64_t start, end;               /* ticks */
    uint64_t doing;                    /* as in struct ledger_thread, without LEDGER_DOING_INSIDE */
    struct communicator *communicator; /* the communicator that it was announced on; NULL: on none,
                                          or MPI must be asked for it */
    uint64_t removed;                  /* communicators_removed before it was looked up */
    uint64_t bytes; /* of the buffer that counts, as announced; 0: none was, LEDGER_BYTES_UNKNOWN:
                       MPI must be asked */
    struct recent *recent; /* of calls with the same arguments; NULL: not looked for */
    /* number of the collective on that communicator, from 1; 0: not a collective */
    uint64_t sequence;
    int32_t root;       /* of a rooted collective, as announced */
    uint16_t signature; /* its number, if it was known beforehand; or 0 */
    uint16_t id;
    bool succeeded;
};

/* Slow half of call_thread: for a thread with an old epoch, and for one that is in a wrapper, or
 * has left one by longjmp. */
struct thread *call_thread_slowly(call_site site, uintptr_t frame, unsigned id);

/* The thread of a call that counts. Our own code runs from here to call_start. */
HOT struct thread *call_thread(call_site site, uintptr_t frame, unsigned id)
{
    if (__builtin_expect(!(site & SITE_JOB), 0))
        return NULL;
    struct thread *thread = this_thread;
    if (__builtin_expect(thread->epoch != __atomic_load_n(&thread_epoch, __ATOMIC_RELAXED) ||
                             thread->wrapper != 0,
                         0))
        return call_thread_slowly(site, frame, id);
    thread_set_wrapper(thread, frame);
    return thread;
}

/* An address in the frame of the function that this is inlined into. It is not that of `struct
 * call`, whose fields then stay in registers, as long as no function that is not inlined gets its
 * address. */
HOT uintptr_t call_frame(void)
{
    _Alignas(WRAPPER_BITS + 1) char mark;
    uintptr_t frame;
    __asm__("" : "=r"(frame) : "0"(&mark));
    return frame;
}

/* call_begin is call_enter followed by call_start. A wrapper reads arguments and announces the call
 * between the two. */
HOT void call_enter(struct call *call, enum call_id id, call_site site)
{
    call->thread = NULL;
    call->id = (uint16_t)id;
    call->doing = id;
    call->communicator = NULL;
    call->removed = 0;
    call->bytes = 0;
    call->recent = NULL;
    call->signature = 0;
    call->sequence = 0;
    call->root = LEDGER_NO_RANK;
    call->thread = call_thread(site, call_frame(), id);
}

HOT void call_start(struct call *call)
{
    call->start = clock_ticks();
    if (!call->thread)
        return;
    struct ledger_thread *record = call->thread->cells.record;
    __atomic_store_n(&record->since_ticks, call->start, __ATOMIC_RELAXED);
    __atomic_store_n(&record->doing, call->doing | LEDGER_DOING_INSIDE, __ATOMIC_RELEASE);
    call->thread->wrapper |= WRAPPER_IN_MPI;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

HOT void call_begin(struct call *call, enum call_id id, call_site site)
{
    call_enter(call, id, site);
    call_start(call);
}

/* call_end is call_stop followed by call_leave. A wrapper that polls (Test, Iprobe) checks between
 * the two whether the poll succeeded: an unsuccessful poll is not counted as time in MPI for the
 * overlap sums.
 *
 * The tick counter of another core, or of another machine that the process was moved to, may be
 * behind: a call lasts at least as long as those inside it. */
HOT void call_stop(struct call *call, int error)
{
    uint64_t least = call->start;
    if (call->thread) {
        call->thread->wrapper &= ~(uintptr_t)WRAPPER_IN_MPI;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        least += call->thread->nested_ticks;
    }
    uint64_t now = clock_ticks();
    call->end = now > least ? now : least;
    call->succeeded = error == MPI_SUCCESS && call->thread;
}

/* Slow half of call_leave: record the call's interval for the GPU thread. */
void call_note_time(struct thread *thread, unsigned id, uint64_t start_ticks, uint64_t end_ticks);

HOT void call_leave(const struct call *call, bool found_something)
{
    if (!call->thread)
        return;
    if (__builtin_expect(__atomic_load_n(&host_time_wanted, __ATOMIC_RELAXED), 0) &&
        found_something)
        call_note_time(call->thread, call->id, call->start,
                       call->end); /* must precede the end of the call: see host_time.c */
    struct ledger_thread *record = call->thread->cells.record;
    __atomic_store_n(&record->doing, call->doing, __ATOMIC_RELEASE);
    __atomic_store_n(&record->since_ticks, call->end, __ATOMIC_RELEASE);
}

HOT void call_end(struct call *call, int error)
{
    call_stop(call, error);
    call_leave(call, true);
}

/* From entry to return, less the calls inside it. A call shorter than one clock step counts as 1
 * ns. */
HOT uint64_t call_duration_ns(const struct call *call)
{
    uint64_t ns = clock_duration_ns(call->end - call->start - call->thread->nested_ticks);
    return ns + !ns;
}

/* Slow half of thread_return: the wrapper was nested, or others were nested in it. */
void thread_return_slowly(struct thread *thread);

/* The thread returns from a wrapper to the job. */
HOT void thread_return(struct thread *thread)
{
    if (__builtin_expect(thread->wrapper & WRAPPER_BITS, 0))
        thread_return_slowly(thread);
    else
        thread_set_wrapper(thread, 0);
}

/* Ends a call, given its struct call or a struct that begins with it. */
HOT void call_return(const void *begins_with_call)
{
    const struct call *call = begins_with_call;
    if (call->thread)
        thread_return(call->thread);
}

/* Attribute of such a variable: runs call_return wherever the wrapper returns. An exception leaves
 * it as longjmp does: our frames have no clean-ups, which would cost 2 to 22 instructions a
 * call. */
#define UNTIL_RETURN __attribute__((cleanup(call_return)))

#endif
