#include "nccl_groups.h"

#include "base/memory.h"
#include "base/quiet.h"
#include "ledger/ledger.h"
#include "ledger/samples.h"

#include <pthread.h>

bool nccl_followed;

static struct nccl_queue *queues, *free_queues;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t leaving;
static bool has_key;
static _Thread_local struct nccl_queue *own;

/* A thread that ends leaves its queue to the next thread that needs one. */
static void leave(void *queue)
{
    own = NULL;
    struct quiet before = quiet_lock(&making);
    ((struct nccl_queue *)queue)->next_free = free_queues;
    free_queues = queue;
    quiet_unlock(&making, &before);
}

static struct nccl_queue *make(void)
{
    struct nccl_queue *fresh = memory_take(sizeof *fresh);
    if (!fresh)
        return NULL;
    fresh->next = queues;
    __atomic_store_n(&queues, fresh, __ATOMIC_RELEASE);
    return fresh;
}

static __attribute__((cold, noinline)) struct nccl_queue *adopt(void)
{
    struct quiet before = quiet_lock(&making);
    has_key = has_key || pthread_key_create(&leaving, leave) == 0;
    struct nccl_queue *queue = free_queues;
    if (queue)
        free_queues = queue->next_free;
    else
        queue = make();
    if (queue)
        pthread_setspecific(leaving, queue);
    own = queue;
    quiet_unlock(&making, &before);
    return queue;
}

static bool are_given_up;

void nccl_groups_give_up(void)
{
    __atomic_store_n(&are_given_up, true, __ATOMIC_RELEASE);
    __atomic_store_n(&nccl_followed, false, __ATOMIC_RELEASE);
}

bool nccl_groups_are_given_up(void)
{
    return __atomic_load_n(&are_given_up, __ATOMIC_ACQUIRE);
}

struct nccl_queue *nccl_groups_queues(void)
{
    return __atomic_load_n(&queues, __ATOMIC_ACQUIRE);
}

void nccl_operation_is_unmatched(const struct nccl_operation *operation)
{
    if (operation->sample)
        sample_finish(operation->sample, 0);
    bool had_kernels =
        operation->kernels == NCCL_KERNELS_ONE || operation->kernels == NCCL_KERNELS_SOME;
    if (had_kernels && operation->epoch)
        ledger_count(&the_ledger.header->gpu_unmatched_operations);
}

/* One item is reserved for the end marker of the group. */
static bool has_room(const struct nccl_queue *queue, uint64_t wanted)
{
    return queue->written + wanted - __atomic_load_n(&queue->read, __ATOMIC_ACQUIRE) <=
           NCCL_QUEUE_ITEMS;
}

static void drop_unpublished(struct nccl_queue *queue)
{
    while (queue->written > queue->published)
        nccl_operation_is_unmatched(&queue->items[--queue->written % NCCL_QUEUE_ITEMS]);
}

/* Counts as lost what was, or may have been, launched up to until_ticks. */
static void lose(struct nccl_queue *queue, uint64_t until_ticks)
{
    drop_unpublished(queue);
    queue->is_broken = false;
    __atomic_store_n(&queue->lost_until_ticks, until_ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&queue->lost, queue->lost + 1, __ATOMIC_RELEASE);
}

void nccl_groups_add(const struct nccl_operation *operation)
{
    struct nccl_queue *queue = own ? own : adopt();
    if (queue && has_room(queue, 2)) {
        if (operation->sample)
            sample_begin_unfinished(operation->sample);
        queue->items[queue->written++ % NCCL_QUEUE_ITEMS] = *operation;
        return;
    }
    struct nccl_operation lost = *operation;
    lost.sample = NULL;
    nccl_operation_is_unmatched(&lost);
    if (queue)
        queue->is_broken = true;
}

void nccl_groups_launching(uint64_t start_ticks)
{
    struct nccl_queue *queue = own ? own : adopt();
    if (queue)
        __atomic_store_n(&queue->launching_since, start_ticks, __ATOMIC_RELAXED);
}

void nccl_groups_launched(uint64_t start_ticks, uint64_t end_ticks, enum nccl_launch launch)
{
    struct nccl_queue *queue = own;
    if (!queue)
        return;
    if (launch == NCCL_LAUNCH_FAILED || queue->is_broken)
        lose(queue, end_ticks);
    else if (queue->written > queue->published) {
        queue->items[queue->written++ % NCCL_QUEUE_ITEMS] =
            (struct nccl_operation){.start_ticks = start_ticks,
                                    .end_ticks = end_ticks,
                                    .may_be_later = launch == NCCL_LAUNCHES_LATER};
        __atomic_store_n(&queue->published, queue->written, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&queue->launching_since, 0, __ATOMIC_RELEASE);
}

void nccl_groups_forget(void)
{
    struct nccl_queue *queue = own;
    while (queue && queue->written > queue->published) {
        struct nccl_operation *operation = &queue->items[--queue->written % NCCL_QUEUE_ITEMS];
        if (operation->sample)
            sample_finish(operation->sample, 0);
    }
    if (queue)
        queue->is_broken = false;
}
