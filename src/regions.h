/* What the program tells us of itself: that a training step begins, and which part of it, a region, a thread is in.
 *
 * Regions lie in each other, each thread's by themselves; a call counts in the innermost one of its thread. A region is known by its
 * path, "epoch/forward", and has one number in the process, entered into the ledger when it is met first. What is counted takes the
 * number from struct thread, where it stands as a cell's key has it: outside all regions it is 0.
 *
 * There is a bound to names (REGIONS_MAX, their length, REGIONS_DEEP). What begins beyond it is not told from the region around it. */
#ifndef COMMPROF_REGIONS_H
#define COMMPROF_REGIONS_H

#include "call.h"

enum { REGIONS_MAX = 4095, REGIONS_DEEP = 32, REGION_NAME_BYTES = 120 };

/* Who has begun a region, and alone can end it: the program by one of its two ways, or an NVTX domain. */
extern const char REGIONS_OF_PROGRAM[];

/* This thread enters a region within the one that it is in. `name` may be NULL or empty: a region that is not told from the one around
 * it. Returns how many of the same owner were open on this thread before. */
int regions_begin(struct thread *thread, const char *name, const void *owner);

/* It leaves the innermost region of this owner. Returns how many are still open then, -1 where there was none to leave. */
int regions_end(struct thread *thread, const void *owner);

/* It leaves all of them: it ends, or recording does. */
void regions_end_all(struct thread *thread);

/* A step begins, and the one before ends. */
void regions_step(struct thread *thread);

/* This thread's state, where the program's own code calls and is recorded; else NULL: MPI has called it back, nothing is recorded (yet, or
 * any more), a forked child. Like a wrapper, but there is nothing to leave. `frame` is the caller's. */
HOT struct thread *regions_thread(void *frame)
{
    struct thread *thread = call_thread(SITE_JOB, (uintptr_t)frame);
    if (thread)
        thread->outermost = 0;
    return thread;
}

#endif
