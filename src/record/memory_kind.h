/* The memory kind of an MPI call's buffers: host, device, managed or pinned. The driver is asked
 * once for each region or page; answers are cached and checked again from time to time. */
#ifndef COMMPROF_MEMORY_KIND_H
#define COMMPROF_MEMORY_KIND_H

#include "ledger/ledger_format.h"

#include <stddef.h>

/* Asks the driver for the memory kind (enum ledger_memory_kind) of an address; -1 for ordinary host
 * memory. gpu.c sets it while the process uses a GPU; NULL: every buffer is host memory. */
extern int (*memory_kind_ask)(const void *address);

/* Looks in the cache, then asks the driver. */
unsigned memory_kind_find(const void *address);

/* Combines the memory kinds of the send buffer and the receive buffer. */
static inline uint8_t memory_kind_pair(unsigned from, unsigned to)
{
    return (uint8_t)(from | to << LEDGER_MEMORY_KIND_TO_BIT);
}

#endif
