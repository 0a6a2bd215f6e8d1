/* What GPUs and threads did, put in the order in which it began: a bounded heap. It grows by doubling up to its limit. */
#ifndef COMMPROF_GPU_REORDER_H
#define COMMPROF_GPU_REORDER_H

#include <stdbool.h>
#include <stdint.h>

/* An activity of a GPU that has been counted, or an MPI call; 48 bytes, for there may be a million. */
struct reorder_event {
    int64_t start_ns, end_ns;
    uint64_t bytes;
    uint32_t device, context, stream, correlation; /* the vendor's numbers */
    uint16_t kernel;                               /* numbers of the ledger */
    uint16_t stream_slot : 10, kind : 2, copy : 3;
    uint8_t device_slot;
    uint8_t state; /* enum ledger_busy */
    uint8_t flags;
};

struct reorder {
    struct reorder_node *heap; /* `count` of them in order; behind them the numbers of events that are free */
    struct reorder_event *events;
    uint32_t count, room;
    uint32_t most; /* events; set by whoever has it */
};

/* False: it is full, or there is no memory. */
bool reorder_put(struct reorder *reorder, const struct reorder_event *event);

/* When the earliest began; INT64_MAX: there is none. */
int64_t reorder_first_ns(const struct reorder *reorder);

/* Take the earliest out. There is one. */
struct reorder_event reorder_take(struct reorder *reorder);

#endif
