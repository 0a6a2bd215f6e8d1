/* The profiler's life cycle in a process: from MPI_Init (or the first session or NCCL communicator)
 * to MPI_Finalize, exit or abort.
 *
 *     nothing -> prepared -> recording -> ended
 *                   \-> stopped: an error, reported once; the job continues unrecorded
 *
 * A process that initializes neither MPI nor NCCL is not recorded, and has no overhead. */
#ifndef COMMPROF_RUNTIME_H
#define COMMPROF_RUNTIME_H

#include "record/call.h"

/* Call before the real MPI_Init. False if MPI was initialized before: then call nothing else. */
bool runtime_prepare(void);

/* Call after the real MPI_Init: start recording. `call` is the initialization itself, already
 * timed. With sessions there is no MPI_COMM_WORLD: pass the session. */
void runtime_begin(const struct call *call, int thread_level, const void *session);

/* Start recording in a process that has not initialized MPI (yet) and creates an NCCL communicator
 * of `nranks` as `rank`. If the launcher gives the process's rank, that takes precedence. No effect
 * if recording has started already. */
void runtime_begin_without_mpi(int rank, int nranks);

/* Call after MPI_Init if recording has already started: adds MPI_COMM_WORLD. */
void runtime_add_world(int thread_level);

/* Call before the real MPI_Finalize (or that of the last session): no MPI calls are made after
 * this. `cost_per_call_ps` measures the overhead of a counted call. */
void runtime_end_begin(uint64_t (*cost_per_call_ps)(void));

/* Call after the real MPI_Finalize: write the rank's database. `call` is the finalization, already
 * timed. */
void runtime_end(const struct call *call);

/* Write the data measured so far to snapshot-<k>/rank-<n>.ledger in the run folder. A signal
 * handler may call it. */
void runtime_snapshot(void);

/* Call before MPI_Abort: note it in the ledger, which is retained. */
void runtime_aborted(int error_code);

/* Call before the program leaves without exit handlers, also in a signal handler: note an exit in
 * the ledger. Returns whether it did; then call the other if the program stays after all. */
bool runtime_leaves(void);
void runtime_stays(void);

#endif
