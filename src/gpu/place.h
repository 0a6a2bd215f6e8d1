/* Where a buffer of an MPI call lies: host, device, managed, pinned. The driver is asked once for a region and then now and then. */
#ifndef COMMPROF_GPU_PLACE_H
#define COMMPROF_GPU_PLACE_H

#include "backend.h"

/* True from when the process is seen to use a GPU (set by gpu.c). Where it is false every buffer is on the host. */
extern bool place_is_asked;

/* Slow half: through the cache, or the driver. */
unsigned place_find(const void *address);

static inline unsigned place_of(const void *address)
{
    return __builtin_expect(!__atomic_load_n(&place_is_asked, __ATOMIC_RELAXED), 1) ? LEDGER_HOST : place_find(address);
}

/* A call's place: of the buffer that is sent, and of the one that is received. */
static inline uint8_t place_pair(unsigned from, unsigned to)
{
    return (uint8_t)(from | to << LEDGER_PLACE_TO_BIT);
}

#endif
