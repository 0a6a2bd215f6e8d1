/* A log of bounded size that halves its rate when it is full: it holds the entries of every
 * period-th tick, a number that the writer increments; when it is full, the period doubles, and the
 * entries of other ticks are free. One writer. */
#ifndef COMMPROF_THINNED_H
#define COMMPROF_THINNED_H

#include "ledger_format.h"

#include <stdbool.h>

enum {
    THINNED_CHUNKS = 4, /* of a log */
    THINNED_IN_CHUNK =
        (LEDGER_CHUNK_BYTES - LEDGER_CHUNK_HEADER_BYTES) / sizeof(struct ledger_thinned),
    THINNED_MOST = THINNED_CHUNKS * THINNED_IN_CHUNK
};

struct thinned {
    enum ledger_kind kind;
    uint32_t period;
    unsigned count, most, next; /* entries in the ledger; where a free one is looked for */
    struct ledger_chunk *chunks[THINNED_CHUNKS];
};

/* `most` entries, at most THINNED_MOST. */
void thinned_begin(struct thinned *log, enum ledger_kind kind, unsigned most);

static inline bool thinned_wants(const struct thinned *log, uint32_t tick)
{
    return tick % log->period == 0;
}

/* Copies an entry of 64 bytes, but for its `live`, which is set here. It is left out if the ledger
 * has no room. */
void thinned_add(struct thinned *log, const void *entry);

#endif
