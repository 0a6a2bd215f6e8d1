/* Converts the clock of CUPTI's records to CLOCK_MONOTONIC.
 *
 *     CUPTI's      x1 ---------- x2 -------------- x3        pairs: both read at the same time
 *     monotonic    m1 ---------- m2 -------------- m3        between them: linear interpolation
 *
 * CUPTI's clock is CLOCK_REALTIME (other clocks on other systems). An administrator or NTP may set
 * it: it then steps between two pairs. It can also be another client's function, in any unit:
 * PyTorch's profiler uses the processor's counter. CUPTI keeps using such a function after its
 * client has ended, and we follow. We do not set one. */
#ifndef COMMPROF_CUPTI_CLOCK_H
#define COMMPROF_CUPTI_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Begins with `now` (cuptiGetTimestamp) as CUPTI's clock. */
void cupti_clock_begin(int (*now)(uint64_t *ns));

/* Another client's function becomes CUPTI's clock from the next pair on. Any thread. */
void cupti_clock_is_foreign(uint64_t (*now)(void));

/* Reads both clocks. */
void cupti_clock_pair(void);

/* The last pair; false: none yet. */
bool cupti_clock_last(uint64_t *theirs, int64_t *ours_ns);

/* Converts a timestamp of a record to CLOCK_MONOTONIC. */
int64_t cupti_clock_ns(uint64_t timestamp);

/* The largest error of conversions since the last call, due to this conversion alone; the error of
 * CUPTI's own conversion from the GPU's clock is unknown. UINT32_MAX: unknown. */
uint32_t cupti_clock_error_ns(void);

#endif
