/* The intervals that threads of the job spent in MPI, for the overlap sums: each thread's last
 * calls, in a ring that the GPU thread empties.
 *
 *     thread of the job    slots[written % SLOTS] = call; written + 1; one load and branch if no
 * GPU is traced GPU thread           reads new slots; checks whether they were overwritten during
 * the read, and counts lost calls
 *
 * A call counts once, however many calls it makes inside; an unsuccessful poll (Test, Iprobe) does
 * not count. */
#ifndef COMMPROF_HOST_TIME_H
#define COMMPROF_HOST_TIME_H

#include "ledger/ledger_format.h"

#include <stdbool.h>
#include <stdint.h>

enum { HOST_TIME_SLOTS = 16384 };

struct host_time_ring {
    uint64_t written; /* how many calls, ever */
    struct {
        uint64_t start_ticks, end_ticks;
    } slots[HOST_TIME_SLOTS];
};

/* A thread's ring. Initially all zero except `record`, which says what call the thread is in. Never
 * freed, like threads' states. */
struct host_time {
    const struct ledger_thread *record;
    struct host_time_ring *ring; /* NULL: no call was wanted yet */
    uint64_t unrecorded;         /* calls lost because the ring could not be allocated */

    /* of the GPU thread */
    struct host_time *next;
    uint64_t read, unrecorded_before;
    uint64_t until_ticks; /* handed over up to here */
};

/* Whether calls are recorded now; threads read it on each call. The GPU thread sets it (begin and
 * end of a tracing window). */
extern bool host_time_wanted;

/* Register a thread with the GPU thread. */
void host_time_enter(struct host_time *thread);

/* Record a call of this thread. The first call allocates the ring. */
void host_time_add(struct host_time *thread, uint64_t start_ticks, uint64_t end_ticks);

typedef void (*host_time_take)(uint64_t start_ticks, uint64_t end_ticks);

/* Called by the GPU thread: hand over the MPI calls that ended since the last time, and the calls
 * that threads are still in, up to the time that is returned; nothing before that time is missing.
 * A call that lasts for several rounds contributes its new part to each. `lost` grows by the number
 * of calls lost. */
uint64_t host_time_collect(host_time_take take, uint64_t *lost);

#endif
