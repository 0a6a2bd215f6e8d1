/* The profiler's life in a process: from the job's MPI_Init (or first session, or NCCL communicator) to its MPI_Finalize, exit or abort.
 *
 *     nothing -> prepared -> recording -> ended
 *                   \-> stopped: something was in the way; it was said once, the job goes on unrecorded
 *
 * Nothing happens before the job initializes MPI or NCCL: a process that does not leaves no trace and pays nothing. */
#ifndef COMMPROF_RUNTIME_H
#define COMMPROF_RUNTIME_H

#include "call.h"

/* Before the real MPI_Init. False if this is not the first initialization: then nothing else is to be done. */
bool runtime_prepare(void);

/* After it: begin to record. `call` is the initialization itself, already clocked. With sessions there is no world to ask:
 * pass the session. */
void runtime_begin(const struct call *call, int thread_level, const void *session);

/* A process that has not initialized MPI (yet) makes an NCCL communicator of `nranks` as its `rank`: begin to record. The launcher's word on
 * the process's rank goes before. Nothing if the profile has begun already. */
void runtime_begin_without_mpi(int rank, int nranks);

/* MPI_Init after that: now there is a world. */
void runtime_add_world(int thread_level);

/* Before the real MPI_Finalize (the last session's): stop asking MPI for anything. */
void runtime_end_begin(void);

/* After it: store the rank's database. `call` is the finalization, already clocked. */
void runtime_end(const struct call *call);

/* Write a database of what was measured up to now, snapshot-<k>/rank-<n>.db in the run folder. */
void runtime_snapshot(void);

/* The job calls MPI_Abort: the ledger stays and says so. */
void runtime_aborted(int error_code);

#endif
