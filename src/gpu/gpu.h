/* The GPU side's life in a process.
 *
 *     dormant --------> tracing <-----> paused        duty cycle, MPI_Pcontrol
 *        |                 |   \------> yielded       another tool traces: PyTorch's profiler, say
 *        |                 v
 *        \----> refused  stopped                      MPI_Finalize
 *
 * Nothing of a vendor's is opened until the process has a GPU context of its own and the profile has begun. All of it happens on one
 * thread of ours, which exists where the machine has a GPU driver and nowhere else. A forked child has no GPU side. */
#ifndef COMMPROF_GPU_H
#define COMMPROF_GPU_H

#include "backend.h"

/* The profile has begun. `complain` gets one line about what cannot be done. */
void gpu_begin(void (*complain)(const char *line));

/* MPI is about to end: collect what is left, within a bounded time. A thread that hangs in a vendor's library is left behind. */
void gpu_end(void);

/* The process ends otherwise (exit, MPI_Abort): nothing of a vendor's is called any more; what has been collected stays. */
void gpu_exit(void);

/* Something happened that makes a look worth while (the first NCCL call): look now. Any thread; no lock, at most one system call. */
void gpu_wake(void);

/* Another client of the tracing interface begins (`to`: its name) and has ended. Called by its own thread, from inside its call; when
 * gpu_yield returns, no call of ours into the interface is under way or will begin. The wait for that is bounded. */
void gpu_yield(const char *to);
void gpu_unyield(void);

/* The backend whose GPUs this process uses; NULL while it uses none. Any thread. */
extern const struct gpu_backend *gpu_used;

#endif
