/* A launch is complete when its event has stopped and every channel of every operation has ended:
 * `pending` counts these down.
 *
 *     launching thread    launch, add, add, stop
 *     NCCL's proxy        channel_begin, channel_end ...    who reaches 0 counts the launch
 *
 * Its time is from the first channel's begin to the last channel's end. As in nccl_matching.c, the
 * operations of one launch have one time, under ncclGroup. Slots are used in turn. If a launch is
 * still pending when its slot is needed again, because NCCL has stamped fewer channels than
 * announced (kernels on symmetric memory), it has no time and counts as unmatched. */
#include "nccl_times.h"

#include "ledger/ledger.h"
#include "nccl_groups.h"
#include "record/account.h"

enum { LAUNCHES = 4096, KIND_BITS = 3, INDEX_BITS = 12, LAUNCH = 1, OPERATION = 2, CHANNEL = 3 };

static struct launch {
    uint64_t use; /* number of this use of the slot; 0: free */
    const void *owner;
    int64_t pending;
    uint64_t begin_ns, end_ns; /* on the GPU's clock */
    uint64_t bytes, volume_bytes;
    uint32_t operations, epoch;
    uint16_t call, slot;
} launches[LAUNCHES];
static uint64_t uses;

static void *handle_of(const struct launch *launch, uint64_t use, unsigned kind)
{
    return (void *)(use << (KIND_BITS + INDEX_BITS) | (uint64_t)(launch - launches) << KIND_BITS |
                    kind);
}

static unsigned kind_of(const void *handle)
{
    return (uint64_t)handle & ((1u << KIND_BITS) - 1);
}

static uint64_t use_of(const void *handle)
{
    return (uint64_t)handle >> (KIND_BITS + INDEX_BITS);
}

/* NULL: a handle of another kind, or from an earlier use of the slot. */
static struct launch *launch_of(const void *handle, unsigned kind)
{
    struct launch *launch = &launches[(uint64_t)handle >> KIND_BITS & (LAUNCHES - 1)];
    bool is_it = kind_of(handle) == kind &&
                 __atomic_load_n(&launch->use, __ATOMIC_ACQUIRE) == use_of(handle);
    return is_it ? launch : NULL;
}

bool nccl_times_is_ours(const void *handle)
{
    return kind_of(handle) != 0;
}

void nccl_times_take_over(void)
{
    static bool is_noted;
    if (__atomic_exchange_n(&is_noted, true, __ATOMIC_RELAXED))
        return;
    nccl_groups_give_up();
    ledger_fact("nccl.device_times", "kernelCh");
}

static void count_unmatched(const struct launch *launch)
{
    for (uint32_t i = 0; i < launch->operations; i++)
        ledger_count(&the_ledger.header->gpu_unmatched_operations);
}

/* Ends a use; only one caller succeeds. */
static bool end_use(struct launch *launch, uint64_t use)
{
    return __atomic_compare_exchange_n(&launch->use, &use, 0, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

void *nccl_times_launch(const void *owner)
{
    uint64_t use = __atomic_add_fetch(&uses, 1, __ATOMIC_RELAXED);
    struct launch *launch = &launches[use % LAUNCHES];
    uint64_t before = __atomic_load_n(&launch->use, __ATOMIC_ACQUIRE);
    if (before && end_use(launch, before))
        count_unmatched(launch);
    *launch = (struct launch){.owner = owner,
                              .pending = 1,
                              .begin_ns = UINT64_MAX,
                              .epoch = __atomic_load_n(&thread_epoch, __ATOMIC_RELAXED)};
    __atomic_store_n(&launch->use, use, __ATOMIC_RELEASE);
    return handle_of(launch, use, LAUNCH);
}

void *nccl_times_add(const void *handle, const struct nccl_timed *operation)
{
    struct launch *launch = launch_of(handle, LAUNCH);
    if (!launch)
        return NULL;
    launch->call = launch->operations++ ? CALL_ncclGroup : operation->call;
    launch->slot = operation->slot;
    launch->bytes += operation->bytes;
    launch->volume_bytes += operation->volume_bytes;
    __atomic_add_fetch(&launch->pending, operation->channels, __ATOMIC_RELAXED);
    return handle_of(launch, use_of(handle), OPERATION);
}

static void account(const struct launch *launch)
{
    struct thread *thread = thread_ready();
    if (!thread || launch->epoch != thread->epoch || !launch->operations ||
        !call_is_counted(launch->call))
        return;
    if (launch->end_ns < launch->begin_ns) {
        count_unmatched(launch);
        return;
    }
    uint64_t duration_ns = launch->end_ns - launch->begin_ns;
    uint64_t key = cell_key(launch->call, launch->slot, LEDGER_DEVICE_TIME) |
                   cell_key_memory_kind(LEDGER_DEVICE | LEDGER_DEVICE << LEDGER_MEMORY_KIND_TO_BIT);
    account_count(thread, launch->bytes, key, duration_ns + !duration_ns, launch->volume_bytes);
}

static void count_down(struct launch *launch, uint64_t use)
{
    if (__atomic_sub_fetch(&launch->pending, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    struct launch complete = *launch;
    if (end_use(launch, use))
        account(&complete);
}

void *nccl_times_channel_begin(const void *operation, uint64_t gpu_ns)
{
    struct launch *launch = launch_of(operation, OPERATION);
    if (!launch)
        return NULL;
    uint64_t known = __atomic_load_n(&launch->begin_ns, __ATOMIC_RELAXED);
    while (gpu_ns < known && !__atomic_compare_exchange_n(&launch->begin_ns, &known, gpu_ns, true,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return handle_of(launch, use_of(operation), CHANNEL);
}

void nccl_times_channel_end(const void *channel, uint64_t gpu_ns)
{
    struct launch *launch = launch_of(channel, CHANNEL);
    if (!launch)
        return;
    uint64_t known = __atomic_load_n(&launch->end_ns, __ATOMIC_RELAXED);
    while (gpu_ns > known && !__atomic_compare_exchange_n(&launch->end_ns, &known, gpu_ns, true,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    count_down(launch, use_of(channel));
}

void nccl_times_stop(const void *handle)
{
    struct launch *launch = launch_of(handle, LAUNCH);
    if (launch)
        count_down(launch, use_of(handle));
}

void nccl_times_forget(const void *owner)
{
    for (struct launch *launch = launches; launch < launches + LAUNCHES; launch++) {
        uint64_t use = __atomic_load_n(&launch->use, __ATOMIC_ACQUIRE);
        if (use && launch->owner == owner && end_use(launch, use))
            count_unmatched(launch);
    }
}
