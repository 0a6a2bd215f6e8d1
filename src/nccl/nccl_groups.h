/* Operations on their way from the thread that called them to the GPU thread: in groups, as NCCL launches them.
 *
 *     thread of the job    items[written] = operation ...; at the end of the outermost group: an end, and `published`
 *     GPU thread           takes what is published
 *
 * One ring for each thread, with one writer and one reader; made at the thread's first operation that is followed. A call outside of all
 * groups is a group of its own. */
#ifndef COMMPROF_NCCL_GROUPS_H
#define COMMPROF_NCCL_GROUPS_H

#include "gpu/backend.h"

#include <stdbool.h>
#include <stdint.h>

enum { NCCL_QUEUE_ITEMS = 4096 };

/* How many kernels an operation has of its own. Together, operations of a group may share one, or need more. */
enum nccl_kernels {
    NCCL_KERNELS_NONE, /* nothing to do, or a copy alone */
    NCCL_KERNELS_ONE,
    NCCL_KERNELS_SOME, /* at least one */
    NCCL_KERNELS_ANY,  /* perhaps none */
};

struct nccl_operation {
    const void *communicator; /* its handle, to tell the operations of a group apart; NULL: the end of a group */
    struct gpu_stream stream;
    uint64_t start_ticks, end_ticks; /* of the call that launched; in the end of a group */
    uint64_t bytes, volume_bytes;
    struct ledger_sample *sample; /* begun unfinished; NULL: none */
    uint32_t epoch;               /* that it was counted in; 0: it is not counted */
    uint16_t call, slot;
    uint8_t kernels;   /* enum nccl_kernels */
    bool has_stream;   /* false: on which stream it runs is not known */
    bool may_be_later; /* in the end of a group: NCCL_LAUNCHES_LATER */
};

struct nccl_queue {
    uint64_t written, published; /* by its thread */
    uint64_t launching_since;    /* ticks, while its thread is in a call that launches; 0 */
    uint64_t lost;               /* groups that found no room, or whose end is not known */
    uint64_t lost_until_ticks;   /* when the call ended that launched the last of them */
    bool is_broken;              /* the group that is being put in has found no room */
    uint64_t read;               /* by the GPU thread */
    uint64_t lost_seen;
    struct nccl_queue *next, *next_free;
    struct nccl_operation items[NCCL_QUEUE_ITEMS];
};

/* True while operations are wanted. */
extern bool nccl_followed;

/* The calling thread has called an operation that is not captured, inside `depth` groups. It is published at the end of the outermost;
 * nccl_groups_launched follows for an operation outside of all. */
void nccl_groups_add(const struct nccl_operation *operation);

/* How a call that launches has ended. */
enum nccl_launch {
    NCCL_LAUNCHED,
    NCCL_LAUNCHES_LATER, /* when the call has returned, on another thread (nonblocking communicators) */
    NCCL_LAUNCH_FAILED,  /* what it has launched is not known */
};

/* The calling thread begins a call that launches (the outermost ncclGroupEnd, an operation outside of all groups), and has come back. */
void nccl_groups_launching(uint64_t start_ticks);
void nccl_groups_launched(uint64_t start_ticks, uint64_t end_ticks, enum nccl_launch launch);

/* The calling thread's group ends without anything being launched (ncclGroupSimulateEnd). */
void nccl_groups_forget(void);

/* GPU thread: all queues. */
struct nccl_queue *nccl_groups_queues(void);

/* What is known of an operation goes on without its time on the device. */
void nccl_operation_is_unmatched(const struct nccl_operation *operation);

#endif
