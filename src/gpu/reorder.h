/* Puts GPU activities and MPI calls in the order in which they began: a bounded heap that doubles
 * up to its limit. */
#ifndef COMMPROF_GPU_REORDER_H
#define COMMPROF_GPU_REORDER_H

#include <stdbool.h>
#include <stdint.h>

/* A GPU activity that has been counted, or an MPI call; 48 bytes, because there may be a
 * million. */
struct reorder_event {
    int64_t start_ns, end_ns;
    uint64_t bytes;
    uint32_t device, context, stream; /* the vendor's numbers */
    uint16_t kernel;                  /* number in the ledger */
    uint16_t stream_slot : 10, kind : 2, copy : 3;
    uint8_t device_slot;
    uint8_t state; /* enum ledger_busy */
    uint8_t flags;
};

struct reorder {
    /* the first `count` form the heap; behind them are the numbers of free events */
    struct reorder_node *heap;
    struct reorder_event *events;
    uint32_t count, room;
    uint32_t most; /* limit of events; set by the owner */
};

/* False: full, or out of memory. */
bool reorder_put(struct reorder *reorder, const struct reorder_event *event);

/* When the earliest event began; INT64_MAX: none. */
int64_t reorder_first_ns(const struct reorder *reorder);

/* Removes and returns the earliest event. There must be one. */
struct reorder_event reorder_take(struct reorder *reorder);

#endif
