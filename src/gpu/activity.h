/* GPU activity, reduced to bounded tables of the ledger: counts per kernel, copy and memset (struct
 * ledger_activity), overlap sums per device (struct ledger_device), and single activities in the
 * sample log. An event is held in memory only until it can be put in order.
 *
 * Called by the GPU thread alone. Events arrive in any order, some seconds late; they are settled
 * in the order of their begin, once all earlier ones have arrived.
 *
 * The 16 sums of a device add up to the time that was traced in this process, counting whole
 * settled windows. This also holds for a device whose first use comes later: until then it was
 * idle, or threads were in MPI. */
#ifndef COMMPROF_GPU_ACTIVITY_H
#define COMMPROF_GPU_ACTIVITY_H

#include "backend.h"

enum {
    ACTIVITY_MOST =
        4096, /* limit of separate entries, some 10 MB; later ones are counted by kind */
    ACTIVITY_MOST_DEVICES =
        64, /* activities of further devices are counted in the stream LEDGER_STREAM_OTHER */
    ACTIVITY_MOST_WAITING = 1 << 20,
};

/* Empties the tables. The backend supplies the names of devices. */
void activity_begin(const struct gpu_backend *backend);

/* The device with this slot, from 1; NULL: there are not so many. */
struct ledger_device *activity_device(unsigned slot);

/* Counts an event that has ended (a gpu_take). Overlap sums, the observer's report and samples
 * follow when the event is settled; an event that arrives too late to be settled is in none of
 * them. */
void activity_take(const struct gpu_event *event);

/* Tracing begins at begin_ns: the overlap sums grow from there. It ends at end_ns: everything
 * before is settled, and the sums stop growing until tracing resumes. */
void activity_trace_from(int64_t begin_ns);
void activity_trace_until(int64_t end_ns);

/* Adds an interval in which a thread of the job was in an MPI call. The part that is already
 * settled is cut off; reporting the same time twice does not change the sums. */
void activity_in_mpi(uint64_t start_ticks, uint64_t end_ticks);

/* All events that began before `until_ns` have arrived: settle them. */
void activity_settle(int64_t until_ns);

/* Resets the counters to zero as of from_ns, or of the time up to which the overlap sums are
 * settled, whichever is later. Events taken before do not count; those taken from now on count if
 * they began later. Intervals in progress contribute only their remainder to the overlap sums. */
void activity_reset(int64_t from_ns);

#endif
