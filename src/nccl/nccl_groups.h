/* Passes operations from the threads that call them to the GPU thread, in groups, as NCCL launches
 * them.
 *
 *     thread of the job    items[written] = operation ...; at the end of the outermost group: an
 *                          end marker, and `published`
 *     GPU thread           takes what is published
 *
 * Each thread has one ring, with one writer and one reader, created at its first operation that is
 * followed. A call outside all groups is a group of its own. */
#ifndef COMMPROF_NCCL_GROUPS_H
#define COMMPROF_NCCL_GROUPS_H

#include "gpu/backend.h"

#include <stdbool.h>
#include <stdint.h>

enum { NCCL_QUEUE_ITEMS = 4096 };

/* The number of kernels of an operation on its own. Operations of one group may share a kernel or
 * need more. */
enum nccl_kernels {
    NCCL_KERNELS_NONE, /* no work, or only a copy */
    NCCL_KERNELS_ONE,
    NCCL_KERNELS_SOME, /* at least one */
    NCCL_KERNELS_ANY,  /* zero or more */
};

struct nccl_operation {
    const void *communicator; /* its handle, which distinguishes the operations of a group; NULL: an
                                 end marker */
    struct gpu_stream stream;
    uint64_t start_ticks, end_ticks; /* of the call that launched; in the end marker */
    uint64_t bytes, volume_bytes;
    struct ledger_sample *sample; /* still unfinished; NULL: none */
    uint32_t epoch;               /* the epoch it was counted in; 0: not counted */
    uint16_t call, slot;
    uint8_t kernels;   /* enum nccl_kernels */
    bool has_stream;   /* false: its stream is unknown */
    bool may_be_later; /* in the end marker: NCCL_LAUNCHES_LATER */
};

struct nccl_queue {
    uint64_t written, published; /* written by its thread */
    uint64_t launching_since;    /* in ticks, while its thread is in a call that launches; else 0 */
    uint64_t lost;               /* groups without room, or with unknown end */
    uint64_t lost_until_ticks;   /* end of the call that launched the last lost group */
    bool is_broken;              /* the group being added has found no room */
    uint64_t read;               /* written by the GPU thread */
    uint64_t lost_seen;
    struct nccl_queue *next, *next_free;
    struct nccl_operation items[NCCL_QUEUE_ITEMS];
};

/* True while the GPU thread wants operations. */
extern bool nccl_followed;

/* Adds an operation that the calling thread has called and that is not captured. It is published at
 * the end of the outermost group; for an operation outside all groups, nccl_groups_launched
 * follows. */
void nccl_groups_add(const struct nccl_operation *operation);

/* The outcome of a call that launches. */
enum nccl_launch {
    NCCL_LAUNCHED,
    NCCL_LAUNCHES_LATER, /* after the call has returned, on another thread (nonblocking
                            communicators) */
    NCCL_LAUNCH_FAILED,  /* it is unknown what was launched */
};

/* The calling thread enters, and has left, a call that launches (the outermost ncclGroupEnd, or an
 * operation outside all groups). */
void nccl_groups_launching(uint64_t start_ticks);
void nccl_groups_launched(uint64_t start_ticks, uint64_t end_ticks, enum nccl_launch launch);

/* The calling thread's group ends without a launch (ncclGroupSimulateEnd). */
void nccl_groups_forget(void);

/* Stops following operations for good: their device times come from another source
 * (nccl_times.h). */
void nccl_groups_give_up(void);
bool nccl_groups_are_given_up(void);

/* GPU thread: all queues. */
struct nccl_queue *nccl_groups_queues(void);

/* Completes an operation without its time on the device and counts it as unmatched. */
void nccl_operation_is_unmatched(const struct nccl_operation *operation);

#endif
