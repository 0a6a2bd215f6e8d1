/* Union arithmetic: how long a device was in each combination of states, of intervals that overlap in any way.
 *
 *     computing      ======   =====            state_ns[COMPUTING]                 += a
 *     communicating     =========      ==      state_ns[COMPUTING | COMMUNICATING] += b, c
 *                    a  b  d  c  e ..          state_ns[COMMUNICATING]             += d, ...
 *
 * Intervals are added in the order of their begin. What is settled up to a moment can be forgotten but for the ends of what still runs:
 * a bounded heap. The sums add up over windows, devices and ranks. */
#ifndef COMMPROF_GPU_UNIONS_H
#define COMMPROF_GPU_UNIONS_H

#include "ledger/ledger_format.h"

#include <stdbool.h>
#include <stdint.h>

enum { UNIONS_MOST_RUNNING = 4096, UNIONS_KINDS = 4 };

/* The end of an interval that has begun. */
struct unions_end {
    int64_t ns;
    uint32_t state; /* one bit of enum ledger_busy */
};

struct unions {
    uint64_t *state_ns;                          /* LEDGER_BUSY_STATES sums, in the ledger */
    int64_t settled_ns;                          /* up to here */
    bool is_traced;                              /* else time passes and is in no sum */
    uint32_t running;                            /* intervals that have begun and not ended */
    uint32_t how_many[UNIONS_KINDS];             /* of them are in each state */
    struct unions_end ends[UNIONS_MOST_RUNNING]; /* theirs, as a heap: the first to come is in front */
};

/* Nothing has been added yet, and nothing is traced. */
#define UNIONS_NONE             \
    {                           \
        .settled_ns = INT64_MIN \
    }

/* Sum up from begin_ns on, into `state_ns`. What runs at that moment counts from there. */
void unions_begin(struct unions *unions, uint64_t state_ns[LEDGER_BUSY_STATES], int64_t begin_ns);

/* Go on from where another one is, with the same intervals running, into sums of one's own. */
void unions_branch(struct unions *unions, const struct unions *from, uint64_t state_ns[LEDGER_BUSY_STATES]);

/* An interval in one state. Its begin lies not before that of those added before; what lies before the settled moment is cut off. False:
 * too many are running. */
bool unions_add(struct unions *unions, enum ledger_busy state, int64_t begin_ns, int64_t end_ns);

/* Sum up to a moment; nothing that is added later begins before. */
void unions_settle(struct unions *unions, int64_t until_ns);

/* Sum up to a moment, and then nothing more until another begin. Intervals go on and can be added. */
void unions_end(struct unions *unions, int64_t until_ns);

/* The sums begin anew at zero, with what happens from a moment on. What runs goes on. */
void unions_reset(struct unions *unions, int64_t from_ns);

#endif
