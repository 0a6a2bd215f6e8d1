/* When threads of the job were in MPI, for the unions with what the GPU did: each thread's last calls, in a ring that the GPU thread empties.
 *
 *     thread of the job    slots[written % SLOTS] = call; written + 1         one load and branch where no GPU is traced
 *     GPU thread           reads what is new; looks whether it was overwritten meanwhile, and counts what was lost
 *
 * A call counts once, however many it makes inside; one that looked for something and found nothing (Test, Iprobe) does not. */
#ifndef COMMPROF_GPU_HOST_TIME_H
#define COMMPROF_GPU_HOST_TIME_H

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

/* A thread's calls. All zero but for its record, which says what it is doing; it stays for good, as threads' states do. */
struct host_time {
    const struct ledger_thread *record;
    struct host_time_ring *ring; /* NULL: no call was wanted yet */
    uint64_t unkept;             /* calls for whose ring there was no memory */

    /* of the GPU thread */
    struct host_time *next;
    uint64_t read, unkept_told;
    uint64_t until_ticks; /* handed over up to here */
};

/* Whether calls are wanted now; threads look at it on each call. Set by the GPU thread (begin, end of a window of tracing). */
extern bool host_time_wanted;

/* A thread's calls will be asked for. */
void host_time_enter(struct host_time *thread);

/* The thread has made a call. Its ring is allocated at the first. */
void host_time_add(struct host_time *thread, uint64_t start_ticks, uint64_t end_ticks);

typedef void (*host_time_take)(uint64_t start_ticks, uint64_t end_ticks);

/* GPU thread: hand over the calls of MPI that have ended since the last time, and those that threads are in still, up to the moment that is
 * returned: of what was before it nothing is missing. Of a call that lasts for several rounds each gets what is new. `lost` grows by the
 * calls that were lost. */
uint64_t host_time_collect(host_time_take take, uint64_t *lost);

#endif
