/* Between two consecutive begins or ends the state does not change, and its sum grows by the time
 * between them: one store. So if the process is killed, the sums still add up to the time from the
 * begin to the last such event. */
#include "overlap.h"

#include <stddef.h>
#include <string.h>

/* A heap of ends */

static void put_end(struct overlap *overlap, struct overlap_end end)
{
    struct overlap_end *ends = overlap->ends;
    uint32_t at = overlap->running++;
    for (; at && ends[(at - 1) / 2].ns > end.ns; at = (at - 1) / 2)
        ends[at] = ends[(at - 1) / 2];
    ends[at] = end;
}

static void remove_first_end(struct overlap *overlap)
{
    struct overlap_end *ends = overlap->ends, last = ends[--overlap->running];
    uint32_t at = 0;
    for (uint32_t child = 1; child < overlap->running; child = 2 * at + 1) {
        child += child + 1 < overlap->running && ends[child + 1].ns < ends[child].ns;
        if (ends[child].ns >= last.ns)
            break;
        ends[at] = ends[child];
        at = child;
    }
    ends[at] = last;
}

/* Sums */

static unsigned state_now(const struct overlap *overlap)
{
    unsigned state = 0;
    for (unsigned i = 0; i < OVERLAP_KINDS; i++)
        state |= (overlap->how_many[i] != 0) << i;
    return state;
}

static uint32_t *how_many(struct overlap *overlap, uint32_t state)
{
    return &overlap->how_many[__builtin_ctz(state)];
}

/* Adds the time up to until_ns, in which nothing begins or ends, to the current state. */
static void pass(struct overlap *overlap, int64_t until_ns)
{
    if (until_ns <= overlap->settled_ns)
        return;
    if (overlap->is_traced)
        overlap->state_ns[state_now(overlap)] += (uint64_t)(until_ns - overlap->settled_ns);
    overlap->settled_ns = until_ns;
}

void overlap_begin(struct overlap *overlap, uint64_t state_ns[LEDGER_BUSY_STATES], int64_t begin_ns)
{
    overlap_settle(overlap, begin_ns);
    overlap->state_ns = state_ns;
    overlap->is_traced = true;
}

void overlap_branch(struct overlap *overlap, const struct overlap *from,
                    uint64_t state_ns[LEDGER_BUSY_STATES])
{
    memcpy(overlap, from, offsetof(struct overlap, ends));
    memcpy(overlap->ends, from->ends, from->running * sizeof *from->ends);
    overlap->state_ns = state_ns;
}

bool overlap_add(struct overlap *overlap, enum ledger_busy state, int64_t begin_ns, int64_t end_ns)
{
    overlap_settle(overlap, begin_ns);
    if (end_ns <= overlap->settled_ns)
        return true;
    if (overlap->running == OVERLAP_MOST_RUNNING)
        return false;
    ++*how_many(overlap, state);
    put_end(overlap, (struct overlap_end){end_ns, state});
    return true;
}

void overlap_settle(struct overlap *overlap, int64_t until_ns)
{
    while (overlap->running && overlap->ends[0].ns <= until_ns) {
        pass(overlap, overlap->ends[0].ns);
        --*how_many(overlap, overlap->ends[0].state);
        remove_first_end(overlap);
    }
    pass(overlap, until_ns);
}

void overlap_end(struct overlap *overlap, int64_t until_ns)
{
    overlap_settle(overlap, until_ns);
    overlap->is_traced = false;
}

void overlap_reset(struct overlap *overlap, int64_t from_ns)
{
    if (from_ns > overlap->settled_ns)
        overlap->settled_ns = from_ns;
    memset(overlap->state_ns, 0, LEDGER_BUSY_STATES * sizeof *overlap->state_ns);
}
