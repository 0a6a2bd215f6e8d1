/* Facts that a thread has found out about calls with the same arguments: most calls are made in
 * loops, and need not look them up again.
 *
 * Entries are never dropped, because each use sees whether they still hold:
 *
 *   communicator   none has been removed from the index since
 *   cell           it has the key looked for: a fold, a reset or another region leaves it otherwise
 *   bytes          depend on the arguments alone; those of a type that may be freed are
 *                  LEDGER_BYTES_UNKNOWN
 *   signature      is remembered of predefined types and operations only: handles of others may be
 *                  reused */
#ifndef COMMPROF_RECENT_H
#define COMMPROF_RECENT_H

#include "communicators.h"
#include "ledger/cells.h"

struct recent {
    mpi_handle comm, type, op; /* register images; `comm` may be a window, and is 0 in the entry of
                                  a signature alone */
    uint64_t count;
    uint32_t how;       /* recent_how, or signature_how and RECENT_SIGNATURE */
    uint32_t signature; /* number; 0: not known yet */
    uint64_t removed;   /* communicators_removed before the communicator was looked up */
    struct communicator *communicator;
    uint64_t doing; /* as in struct call */
    uint64_t bytes; /* as announced */
    struct ledger_cell *cell;
};
enum { RECENT_LOG2 = 8, RECENT_SIGNATURE = 1 << 30 };

HOT uint32_t recent_how(unsigned call, bool is_in_place)
{
    return call | (uint32_t)is_in_place << 16;
}

/* The place of a call or signature in a thread's table. */
HOT struct recent *recent_place(struct recent table[1 << RECENT_LOG2], const struct recent *key)
{
    uint64_t mixed = (key->comm + key->type + key->op + key->count + key->how) * 0x9e3779b97f4a7c15;
    return &table[mixed >> (64 - RECENT_LOG2)];
}

HOT bool recent_is(const struct recent *recent, const struct recent *key)
{
    return recent->comm == key->comm && recent->type == key->type && recent->op == key->op &&
           recent->count == key->count && recent->how == key->how;
}

#endif
