/* When GPUs are traced: in windows that coincide on all ranks without communication.
 *
 * By default (GPU_EVERY_S=once) tracing begins when the process first uses a GPU, and goes on until
 * steps are seen to repeat, a minute at most. A window of steps replaces the counts until then. It
 * ends at a multiple of GPU_ON_S seconds of the wall clock, at least GPU_ON_S after its begin; so
 * ranks that begin within GPU_ON_S of each other overlap, nearly all of them to the end. If steps
 * are not seen to repeat, the window after the first minute is such a one, and steps that are seen
 * to repeat later replace it with another. A job that ends before keeps what it has.
 *
 * With a period, the first window begins when the process first uses a GPU and ends as above. Later
 * windows begin at multiples of GPU_EVERY_S.
 *
 * If steps are marked, a window is extended by whole GPU_ON_S until it holds two. */
#ifndef COMMPROF_WINDOWS_H
#define COMMPROF_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: no window yet. */
struct windows {
    int64_t begin_ns, end_ns; /* of the last one, on the monotonic clock, so that setting the wall
                                 clock does not extend it */
    uint64_t first_step;      /* number of steps begun by then */
    int64_t first_use_ns;     /* begin of the first one */
    uint32_t part;            /* of the last one: enum ledger_tracing_part */
};

/* The current time on both clocks, how many marked steps have begun, and whether the job's calls
 * repeat (repetition.h). */
struct windows_now {
    int64_t monotonic_ns, unix_ns;
    uint64_t steps;
    bool repeats;
};

/* Whether a window should begin now. */
bool windows_is_due(const struct windows *windows, const struct windows_now *now);

void windows_begin(struct windows *windows, const struct windows_now *now);

/* Whether a window that begins now would be of a better part of the run than the last one, which it
 * replaces. */
bool windows_is_better(const struct windows *windows, const struct windows_now *now);

/* Whether the job's calls are still to be watched for repetition. */
bool windows_wait_for_steps(const struct windows *windows);

/* The last window is not complete, or the user wants to see what follows: the next one is due at
 * once. */
void windows_repeat(struct windows *windows);

/* Whether the window that was begun is over. */
bool windows_is_over(struct windows *windows, const struct windows_now *now);

#endif
