/* When threads of the job were in MPI, for the unions with what the GPU did: each thread's last calls, in a ring that the GPU thread empties.
 *
 *     thread of the job    slots[written % SIZE] = call; written + 1          one compare where no GPU is traced
 *     GPU thread           reads what is new; looks whether it was overwritten meanwhile, and counts what was lost */
#ifndef COMMPROF_GPU_HOST_TIME_H
#define COMMPROF_GPU_HOST_TIME_H

#include <stdbool.h>
#include <stdint.h>

enum { HOST_TIME_SLOTS = 16384 };

struct host_time {
    uint64_t written; /* by its thread */
    uint64_t read;    /* by the GPU thread */
    struct host_time *next;
    struct {
        uint64_t start_ticks, end_ticks;
    } slots[HOST_TIME_SLOTS];
};

/* Whether calls are wanted now; threads look at it on each call. Set by the GPU thread (begin, end of a window of tracing). */
extern bool host_time_wanted;

/* A ring for a thread (it keeps it for good: threads' states are handed on); NULL when out of memory. */
struct host_time *host_time_ring(void);

static inline void host_time_add(struct host_time *ring, uint64_t start_ticks, uint64_t end_ticks)
{
    uint64_t at = ring->written;
    __atomic_store_n(&ring->slots[at % HOST_TIME_SLOTS].start_ticks, start_ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&ring->slots[at % HOST_TIME_SLOTS].end_ticks, end_ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&ring->written, at + 1, __ATOMIC_RELEASE);
}

/* GPU thread: hand over what all rings have that is new, each ring's in order; returns how many calls were lost. A call that a thread is
 * still in is not handed over. */
uint64_t host_time_collect(void (*take)(uint64_t start_ticks, uint64_t end_ticks));

/* GPU thread: hand over the calls of MPI that threads are still in, from their begin up to now. They will come again, whole, when they have
 * ended. */
void host_time_under_way(void (*take)(uint64_t start_ticks, uint64_t end_ticks));

#endif
