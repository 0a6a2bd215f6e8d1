/* Overlap sums: how long a device was in each combination of states. Intervals may overlap in any
 * way.
 *
 *     computing      ======   =====            state_ns[COMPUTING]                 += a
 *     communicating     =========      ==      state_ns[COMPUTING | COMMUNICATING] += b, c
 *                    a  b  d  c  e ..          state_ns[COMMUNICATING]             += d, ...
 *
 * Intervals are added in the order of their begin. Up to the settled time, only the ends of
 * intervals that are still running are retained, in a bounded heap. The sums can be added over
 * windows, devices and ranks. */
#ifndef COMMPROF_GPU_OVERLAP_H
#define COMMPROF_GPU_OVERLAP_H

#include "ledger/ledger_format.h"

#include <stdbool.h>
#include <stdint.h>

enum { OVERLAP_MOST_RUNNING = 4096, OVERLAP_KINDS = 4 };

/* The end of a running interval. */
struct overlap_end {
    int64_t ns;
    uint32_t state; /* one bit of enum ledger_busy */
};

struct overlap {
    uint64_t *state_ns;                            /* LEDGER_BUSY_STATES sums, in the ledger */
    int64_t settled_ns;                            /* the sums are complete up to here */
    bool is_traced;                                /* if false, time passes without growing a sum */
    uint32_t running;                              /* intervals that have begun and not ended */
    uint32_t how_many[OVERLAP_KINDS];              /* how many of them are in each state */
    struct overlap_end ends[OVERLAP_MOST_RUNNING]; /* their ends, a heap: the earliest first */
};

/* No interval yet, tracing off. */
#define OVERLAP_NONE            \
    {                           \
        .settled_ns = INT64_MIN \
    }

/* Sums up from begin_ns on, into `state_ns`. Intervals that run at begin_ns count from there. */
void overlap_begin(struct overlap *overlap, uint64_t state_ns[LEDGER_BUSY_STATES],
                   int64_t begin_ns);

/* Copies the state of `from`, with its running intervals; later time goes into `state_ns`. */
void overlap_branch(struct overlap *overlap, const struct overlap *from,
                    uint64_t state_ns[LEDGER_BUSY_STATES]);

/* Adds an interval in one state. It must not begin before any interval added earlier; the part
 * before settled_ns is cut off. False: too many intervals are running. */
bool overlap_add(struct overlap *overlap, enum ledger_busy state, int64_t begin_ns, int64_t end_ns);

/* Sums up to until_ns; no interval that is added later may begin before it. */
void overlap_settle(struct overlap *overlap, int64_t until_ns);

/* Sums up to until_ns and stops until the next overlap_begin. Intervals continue and can still be
 * added. */
void overlap_end(struct overlap *overlap, int64_t until_ns);

/* Resets the sums at `from_ns`; running intervals continue. */
void overlap_reset(struct overlap *overlap, int64_t from_ns);

#endif
