/* From the clock of CUPTI's records to CLOCK_MONOTONIC.
 *
 *     CUPTI's      x1 ---------- x2 -------------- x3        pairs: both clocks read at one moment, at each collection
 *     monotonic    m1 ---------- m2 -------------- m3        between two pairs: along the line through them
 *
 * CUPTI's clock is CLOCK_REALTIME (other systems have others), which an administrator or NTP may set: it then steps between two pairs. It
 * can also be a function of another client's, in any unit: PyTorch's profiler has the processor's counter. CUPTI keeps using such a function
 * when its client has ended, and so do we. We give it none. */
#ifndef COMMPROF_CUPTI_CLOCK_H
#define COMMPROF_CUPTI_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* CUPTI's clock from now on: `now` is cuptiGetTimestamp. */
void cupti_clock_begin(int (*now)(uint64_t *ns));

/* Another client's function is CUPTI's clock from the next pair on. Any thread. */
void cupti_clock_is_foreign(uint64_t (*now)(void));

/* Read both clocks. */
void cupti_clock_pair(void);

/* What was read last; false: nothing yet. */
bool cupti_clock_last(uint64_t *theirs, int64_t *ours_ns);

/* A moment of a record on CLOCK_MONOTONIC. */
int64_t cupti_clock_ns(uint64_t moment);

/* How far moments that were converted since this was last asked may be off, by this conversion alone; what CUPTI's own from the GPU's clock
 * adds nobody tells. UINT32_MAX: not known. */
uint32_t cupti_clock_error_ns(void);

#endif
