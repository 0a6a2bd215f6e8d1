/* Device times of NCCL's operations, from the time stamps of its kernels (kernelCh events of the
 * profiler plugin, COMMPROF_NCCL_TIMES).
 *
 * NCCL returns the handle that we gave it for an event. Our handle is a number: which launch, and
 * which use of its slot. So an event that arrives too late for its launch is recognized and
 * ignored. */
#ifndef COMMPROF_NCCL_TIMES_H
#define COMMPROF_NCCL_TIMES_H

#include <stdbool.h>
#include <stdint.h>

/* One operation of a launch. */
struct nccl_timed {
    uint64_t bytes, volume_bytes;
    uint16_t call, slot;
    unsigned channels;
};

/* From now on device times come from here; matching by kernel counts (nccl_matching.c) ends. */
void nccl_times_take_over(void);

/* Whether a handle is one of ours. Other handles are NULL or addresses aligned to at least 8
 * bytes. */
bool nccl_times_is_ours(const void *handle);

/* Begins a launch: one kernel for some operations of a communicator (`owner`). */
void *nccl_times_launch(const void *owner);

/* Adds an operation to a launch; NULL: not a launch of ours, or no longer. */
void *nccl_times_add(const void *launch, const struct nccl_timed *operation);

/* A channel has begun, and ended, an operation, at a time of the GPU's clock. */
void *nccl_times_channel_begin(const void *operation, uint64_t gpu_ns);
void nccl_times_channel_end(const void *channel, uint64_t gpu_ns);

/* The event of a launch, operation or channel has stopped. */
void nccl_times_stop(const void *handle);

/* Drops the launches of a communicator that have not ended: they never will. */
void nccl_times_forget(const void *owner);

#endif
