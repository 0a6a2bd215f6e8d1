/* What GPUs did, reduced to bounded tables of the ledger: per kernel, copy and memset (struct ledger_activity), per device the union of
 * what ran (struct ledger_device), and single activities in the sample log. No event is kept longer than it takes to put events in order.
 *
 * Called by the GPU thread alone. Events come in any order, some seconds late; they are settled in the order in which they began, when
 * all that began earlier have come.
 *
 * The 16 sums of a device add up to the time that was traced in this process, settled windows whole. That holds for a device that is first
 * used in the middle, too: before, it was idle, or threads were in MPI. */
#ifndef COMMPROF_GPU_ACTIVITY_H
#define COMMPROF_GPU_ACTIVITY_H

#include "backend.h"

enum {
    ACTIVITY_MOST = 4096,       /* counted apart, some 10 MB; what comes then is counted by kind */
    ACTIVITY_MOST_DEVICES = 64, /* what other devices do has the stream LEDGER_STREAM_OTHER */
    ACTIVITY_MOST_WAITING = 1 << 20,
};

/* Begin with empty tables. */
void activity_begin(void);

/* An event has ended: a gpu_take. It is counted at once; unions, NCCL's operations and samples follow when it is settled. One that is too
 * late for that is in none of them. */
void activity_take(const struct gpu_event *event);

/* Tracing is on from begin_ns: from here on the unions add up. Tracing ends at end_ns: everything up to there is settled, and nothing adds
 * up until it goes on. */
void activity_trace_from(int64_t begin_ns);
void activity_trace_until(int64_t end_ns);

/* A thread of the job was in an MPI call. What lies before the settled moment is cut off, and the same time may be told twice: unions do
 * not mind. */
void activity_in_mpi(uint64_t start_ticks, uint64_t end_ticks);

/* All that began before `until_ns` has come: settle it. */
void activity_settle(int64_t until_ns);

/* The counters begin anew at zero (MPI_Pcontrol(2)) at the header's reset_ticks, or where the unions are settled, if that is later: what has
 * been taken was before, and what is taken now counts if it began later. Of what ran at that moment the unions have the rest. */
void activity_reset(void);

/* Who is told of communication kernels: nccl_kernel, but in tests. */
extern unsigned (*activity_tell_communication)(const struct gpu_event *kernel);

#endif
