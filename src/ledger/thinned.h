/* A log of bounded size that halves its rate when it is full: it holds the entries of every
 * period-th tick, a number that the writer increments; when it is full, the period doubles, and the
 * entries of other ticks are free. One writer. */
#ifndef COMMPROF_THINNED_H
#define COMMPROF_THINNED_H

#include "ledger_format.h"

#include <stdbool.h>

enum { THINNED_MOST = 4092 }; /* entries of a log: four chunks */

struct thinned {
    enum ledger_kind kind;
    uint32_t period;
    unsigned count, most, next; /* entries in the ledger; where a free one is looked for */
    struct ledger_thinned *entries[THINNED_MOST];
};

/* `most` is at most THINNED_MOST. */
void thinned_begin(struct thinned *log, enum ledger_kind kind, unsigned most);

static inline bool thinned_wants(const struct thinned *log, uint32_t tick)
{
    return tick % log->period == 0;
}

/* Copies an entry of 64 bytes, but for its `live`, which is set here. It is left out if the ledger
 * has no room. */
void thinned_add(struct thinned *log, const void *entry);

#endif
