/* When GPUs are traced: in windows that coincide on all ranks without communication.
 *
 * The first window begins when the process first uses a GPU. It ends at a multiple of GPU_ON_S seconds of the wall clock, at least GPU_ON_S
 * after its begin; so ranks that begin within GPU_ON_S of each other overlap, nearly all of them to the end. Later windows begin at
 * multiples of GPU_EVERY_S. If steps are marked, a window is extended by whole GPU_ON_S until it holds two. */
#ifndef COMMPROF_WINDOWS_H
#define COMMPROF_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: no window yet. */
struct windows {
    int64_t begin_ns, end_ns; /* of the last one, on the monotonic clock, so that setting the wall clock does not extend it */
    uint64_t first_step;      /* number of steps begun by then */
};

/* The current time on both clocks, and how many marked steps have begun. */
struct windows_now {
    int64_t monotonic_ns, unix_ns;
    uint64_t steps;
};

/* Whether a window should begin now. */
bool windows_is_due(const struct windows *windows, const struct windows_now *now);

void windows_begin(struct windows *windows, const struct windows_now *now);

/* Whether the window that was begun is over. */
bool windows_is_over(struct windows *windows, const struct windows_now *now);

#endif
