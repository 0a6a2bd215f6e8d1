/* Steps and regions that the program marks: the beginning of a training step, and the part of the
 * program (a region) that a thread is in.
 *
 * Regions nest, separately for each thread; a call counts in the innermost region of its thread. A
 * region is identified by its path, "epoch/forward", and has one number in the process, entered
 * into the ledger at first use. Counting takes the number from struct thread, already shifted as in
 * a cell's key; outside all regions it is 0.
 *
 * The number of regions (REGIONS_MAX), the length of names and the nesting depth (REGIONS_DEEP) are
 * limited. A region beyond a limit is counted in its parent. */
#ifndef COMMPROF_REGIONS_H
#define COMMPROF_REGIONS_H

#include "call.h"

enum { REGIONS_MAX = 4095, REGIONS_DEEP = 32, REGION_NAME_BYTES = 120 };

/* The owner of a region began it, and alone can end it: the program by one of its two ways, or an
 * NVTX domain. */
extern const char REGIONS_OF_PROGRAM[];

/* Begin a region on this thread, within the current one. If `name` is NULL or empty, the region is
 * counted in its parent. Returns how many regions of this owner were open on this thread before. */
int regions_begin(struct thread *thread, const char *name, const void *owner);

/* End the innermost region of this owner. Returns how many are still open, or -1 if none was. */
int regions_end(struct thread *thread, const void *owner);

/* End all regions of a thread: the thread or the recording ends. */
void regions_end_all(struct thread *thread);

/* Begin a step; the previous one ends. */
void regions_step(struct thread *thread);

/* This thread's state if the program is recorded, until thread_return, as in a wrapper. Otherwise
 * NULL: in a callback from MPI, while nothing is recorded, in a forked child, or if a signal
 * handler interrupts our own code. `frame` is the caller's. */
HOT struct thread *regions_thread(void *frame)
{
    return call_thread(SITE_JOB, (uintptr_t)frame & ~(uintptr_t)WRAPPER_BITS, CALL_NONE);
}

#endif
