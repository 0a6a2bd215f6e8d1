/* Persistent collectives, numbered so that a reader of several ranks can match their starts. All
 * ranks of a communicator set them up in the same order but may start them in any (MPI-4.1, 6.13):
 * a start is the n-th of the m-th operation that was set up on the communicator. */
#ifndef COMMPROF_PERSISTENT_COLLECTIVES_H
#define COMMPROF_PERSISTENT_COLLECTIVES_H

#include <stdint.h>

struct persistent_collective {
    uint32_t operation; /* the m-th on its communicator, from 1 */
    int32_t root;       /* rank in the communicator, or LEDGER_NO_RANK */
    int32_t starts;
};

/* The place of a new one, for its request. 0: its starts are not recorded, there is no room. Places
 * are never given back. */
unsigned persistent_collectives_add(uint32_t operation, int32_t root);

struct persistent_collective *persistent_collectives_at(unsigned place);

#endif
