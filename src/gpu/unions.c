/* Between two moments at which something begins or ends the state is one and the same, and its sum grows by the time between: one store.
 * So whenever the process is killed, the sums add up to the time from the begin to one such moment. */
#include "unions.h"

#include <stddef.h>
#include <string.h>

/* A heap of ends */

static void put_end(struct unions *unions, struct unions_end end)
{
    struct unions_end *ends = unions->ends;
    uint32_t at = unions->running++;
    for (; at && ends[(at - 1) / 2].ns > end.ns; at = (at - 1) / 2)
        ends[at] = ends[(at - 1) / 2];
    ends[at] = end;
}

static void remove_first_end(struct unions *unions)
{
    struct unions_end *ends = unions->ends, last = ends[--unions->running];
    uint32_t at = 0;
    for (uint32_t child = 1; child < unions->running; child = 2 * at + 1) {
        child += child + 1 < unions->running && ends[child + 1].ns < ends[child].ns;
        if (ends[child].ns >= last.ns)
            break;
        ends[at] = ends[child];
        at = child;
    }
    ends[at] = last;
}

/* Sums */

static unsigned state_now(const struct unions *unions)
{
    unsigned state = 0;
    for (unsigned i = 0; i < UNIONS_KINDS; i++)
        state |= (unions->how_many[i] != 0) << i;
    return state;
}

static uint32_t *how_many(struct unions *unions, uint32_t state)
{
    return &unions->how_many[__builtin_ctz(state)];
}

/* Nothing begins or ends up to there. */
static void pass(struct unions *unions, int64_t until_ns)
{
    if (until_ns <= unions->settled_ns)
        return;
    if (unions->is_traced)
        unions->state_ns[state_now(unions)] += (uint64_t)(until_ns - unions->settled_ns);
    unions->settled_ns = until_ns;
}

void unions_begin(struct unions *unions, uint64_t state_ns[LEDGER_BUSY_STATES], int64_t begin_ns)
{
    unions_settle(unions, begin_ns);
    unions->state_ns = state_ns;
    unions->is_traced = true;
}

void unions_branch(struct unions *unions, const struct unions *from, uint64_t state_ns[LEDGER_BUSY_STATES])
{
    memcpy(unions, from, offsetof(struct unions, ends));
    memcpy(unions->ends, from->ends, from->running * sizeof *from->ends);
    unions->state_ns = state_ns;
}

bool unions_add(struct unions *unions, enum ledger_busy state, int64_t begin_ns, int64_t end_ns)
{
    unions_settle(unions, begin_ns);
    if (end_ns <= unions->settled_ns)
        return true;
    if (unions->running == UNIONS_MOST_RUNNING)
        return false;
    ++*how_many(unions, state);
    put_end(unions, (struct unions_end){end_ns, state});
    return true;
}

void unions_settle(struct unions *unions, int64_t until_ns)
{
    while (unions->running && unions->ends[0].ns <= until_ns) {
        pass(unions, unions->ends[0].ns);
        --*how_many(unions, unions->ends[0].state);
        remove_first_end(unions);
    }
    pass(unions, until_ns);
}

void unions_end(struct unions *unions, int64_t until_ns)
{
    unions_settle(unions, until_ns);
    unions->is_traced = false;
}

void unions_reset(struct unions *unions, int64_t from_ns)
{
    if (from_ns > unions->settled_ns)
        unions->settled_ns = from_ns;
    memset(unions->state_ns, 0, LEDGER_BUSY_STATES * sizeof *unions->state_ns);
}
