/* NCCL's calls: counted like MPI's, and put together with the kernels that carry them out.
 *
 *     thread of the job     ncclGroupStart; ncclAllReduce; ncclAllReduce; ncclGroupEnd      each call is counted as it returns
 *                                            \-> group: operations on a stream -> queue
 *     GPU thread            kernels of that stream, in order of their begin     <- queue, in order of the calls
 *                           each group's time on the device: one operation's own, or shared by several, and called so */
#ifndef COMMPROF_NCCL_H
#define COMMPROF_NCCL_H

#include "gpu/backend.h"

/* GPU thread: a communication kernel, when it is settled; kernels of one stream come in the order in which they began. Returns the
 * communicator's slot that it belongs to, 0 where that cannot be told. */
unsigned nccl_kernel(const struct gpu_event *kernel);

/* GPU thread: nothing at all ran on a device between both moments, with all that began before handed over. All that was launched before and
 * could run has run; it is here that operations and kernels are counted off against each other. Gaps shorter than NCCL_IDLE_NS need not be
 * reported. */
enum { NCCL_IDLE_NS = 50000 };
void nccl_idle(uint32_t device, int64_t from_ns, int64_t until_ns);

/* GPU thread: all kernels that began before until_ns have been handed over. Operations from before that had none are done with. */
void nccl_settle(int64_t until_ns);

/* GPU thread: tracing was off, or records were lost, between both moments: operations in between are not expected to have kernels. */
void nccl_untraced(int64_t from_ns, int64_t until_ns);

/* GPU thread: whether operations are put in the queue for it (while the GPU is traced). */
void nccl_follow(bool followed);

#endif
