/* The states of GPU tracing in a process.
 *
 *     dormant --------> tracing <-----> paused        duty cycle, MPI_Pcontrol
 *        |                 |   \------> yielded       another tool traces: PyTorch's profiler, say
 *        |                 v
 *        \----> refused  stopped                      MPI_Finalize
 *
 * No vendor library is opened before the process has a GPU context and the profile has begun. All
 * work is done by the GPU thread, a service thread that exists only if the machine has a GPU
 * driver. A forked child does not trace GPUs. */
#ifndef COMMPROF_GPU_H
#define COMMPROF_GPU_H

#include "backend.h"

/* Starts the GPU thread when the profile begins. `complain` gets one line if GPUs cannot be
 * traced. */
void gpu_begin(void (*complain)(const char *line));

/* MPI is about to end: collects the rest within a bounded time. A thread that hangs in a vendor's
 * library is abandoned. */
void gpu_end(void);

/* The process ends in another way (exit, MPI_Abort): no vendor function is called any more; what
 * has been collected remains. */
void gpu_exit(void);

/* The backend whose GPUs this process uses; NULL while it uses none. Any thread. */
extern const struct gpu_backend *gpu_used;

#endif
