/* Matches kernels to the operations that launched them, by counting both.
 *
 * NCCL launches the operations of one group on one communicator on one stream (the last new one, if
 * the group names several), in the order of the groups. It orders the communicators of a group by a
 * hash of theirs, so communicators that share a stream are treated as one group:
 *
 *     calls     [AllReduce] [Group: Send Recv Recv]  [AllReduce]                [Broadcast]
 *     stream         kkkkkkkkkk       kkkkkk kkkkk         kkkkkkk                   kkkk
 *     device    cccccccccccccccccccccccccccccccccc    ccc ccc kkk|      idle    |  ccc
 *               ^ gap: aligned                                   ^ gap: 3 groups, 4 kernels,
 *                                                                  all settled
 *
 * The host may be any number of calls ahead of the device, so begin times alone do not identify the
 * operation of a kernel. Gaps do: if nothing ran on the device for a while, everything launched
 * before the gap has run (LATENCY covers the time from a launch to its begin). All groups and
 * kernels between two gaps are settled together:
 *
 *     each group needs a number of kernels: none, one, some (one or more), any
 *     as many kernels as the groups' minimum     each group gets its minimum: there is no other way
 *     more, and one group may have more          that group gets the rest
 *     more, and several groups may have more     groups before the first and after the last of
 *                                                these are matched; the others are not
 *     more, and no group may have more           another library launches on this stream: nothing
 *                                                is matched
 *     fewer                                      the device may have waited for the host in
 *                                                between: settled together with the next segment;
 *                                                after PATIENCE gaps nothing is matched
 *     a kernel that began before its group       nothing is matched
 *
 * Operations that are not matched are counted as unmatched. So are all before the first gap after
 * tracing began or after records or operations were lost, and all after the last gap at the end. A
 * job without gaps gets no times of single operations, rather than wrong ones. Kernels that graphs
 * launch are not matched, and those of other libraries are not counted, though they may use the
 * same stream.
 *
 * Two other methods would work on a device that is never idle. They cost more, so counting is the
 * default until a measurement on a GPU says otherwise:
 *
 *     external correlation ids    cuptiActivityPushExternalCorrelationId before a launch, pop after
 *                                 it: one more record for every API call in between. A kernel's
 *                                 record has a correlation id, but an id leads to a call only
 *                                 through records of the runtime's or driver's API, whose tracing
 *                                 touches every launch of the job, not only NCCL's. Launches on
 *                                 NCCL's own thread (nonblocking communicators) are missed
 *     kernelCh                    NCCL's profiler plugin (COMMPROF_NCCL_TIMES): time stamps written
 *                                 by the kernel, an operation of NCCL's proxy thread for each
 *                                 channel, a host function in every captured graph. NCCL 2.27 and
 *                                 later
 *
 * Counting adds one queue entry per operation to what is traced anyway; its price is the unmatched
 * operations, whose number is reported.
 *
 * Assumed, and to be measured on a GPU: LATENCY; that clocks agree within TOLERANCE. */
#include "nccl_groups.h"

#include "gpu/communication.h"
#include "gpu/observer.h"
#include "record/account.h"
#include "record/call.h"

#include <stdlib.h>

enum {
    LATENCY_NS = GPU_IDLE_NS,
    TOLERANCE_NS = 20000,
    LATER_NS = 100000000,
    PATIENCE = 8,
    MOST_PENDING = 65536,
    SEVERAL = UINT16_MAX,
    MOST_STREAMS = 256
};

struct group {
    int64_t start_ns, end_ns; /* of the call that launched it */
    uint32_t first, count;    /* its operations, in the stream's array */
    uint8_t kernels;          /* enum nccl_kernels */
};

struct kernel {
    int64_t start_ns, end_ns;
};

struct stream {
    struct gpu_stream numbers; /* as in events */
    uint32_t device;
    bool is_met;     /* a kernel on it has been seen, so its device is known */
    bool is_aligned; /* the first pending kernel belongs to the first pending group */
    unsigned gaps;   /* number of gaps since kernels are missing */
    uint16_t slot;   /* of the one communicator that has used it; SEVERAL: several */
    struct group *groups;
    struct kernel *kernels;
    struct nccl_operation *operations;
    uint32_t group_count, group_room, kernel_count, kernel_room, operation_count, operation_room;
    uint64_t used; /* number of the last group that used it */
    struct stream *next;
};

static struct stream *streams; /* most recently used first */
static unsigned stream_count;
static uint64_t groups_taken;
static bool lacks_stream;     /* an operation of the current group found no room for its stream */
static int64_t lost_until_ns; /* up to here, operations that may have kernels, or kernels of
                                 operations, were lost */

static void begin_again(void);

static bool make_room(void **entries, uint32_t *room, uint32_t count, size_t entry_bytes)
{
    if (count < *room)
        return true;
    uint32_t larger = *room ? 2 * *room : 64;
    void *moved = larger <= MOST_PENDING ? realloc(*entries, larger * entry_bytes) : NULL;
    if (!moved)
        return false;
    *entries = moved;
    *room = larger;
    return true;
}
#define MAKE_ROOM(ENTRIES, ROOM, COUNT) \
    make_room((void **)&(ENTRIES), &(ROOM), (COUNT), sizeof *(ENTRIES))

/* Drops the pending groups before `end`, and all kernels. */
static void forget_groups(struct stream *stream, uint32_t end)
{
    uint32_t first =
        end < stream->group_count ? stream->groups[end].first : stream->operation_count;
    stream->operation_count -= first;
    memmove(stream->operations, stream->operations + first,
            stream->operation_count * sizeof *stream->operations);
    stream->group_count -= end;
    memmove(stream->groups, stream->groups + end, stream->group_count * sizeof *stream->groups);
    for (uint32_t i = 0; i < stream->group_count; i++)
        stream->groups[i].first -= first;
    stream->kernel_count = 0;
    stream->gaps = 0;
}

static void leave_unattributed(const struct stream *stream, const struct group *group)
{
    for (uint32_t i = 0; i < group->count; i++)
        nccl_operation_is_unmatched(&stream->operations[group->first + i]);
}

static void give_up(struct stream *stream, uint32_t end)
{
    for (uint32_t i = 0; i < end; i++)
        leave_unattributed(stream, &stream->groups[i]);
    forget_groups(stream, end);
}

/* Order is lost: nothing is matched up to the next gap. */
static void lose(struct stream *stream)
{
    give_up(stream, stream->group_count);
    stream->is_aligned = false;
}

static void lose_all(void)
{
    for (struct stream *stream = streams; stream; stream = stream->next)
        lose(stream);
}

/* Taking groups from the queues. */

static bool is_same_stream(struct gpu_stream one, struct gpu_stream other)
{
    return one.number == other.number && one.context == other.context;
}

static struct stream *put_first(struct stream *stream)
{
    stream->next = streams;
    streams = stream;
    return stream;
}

static struct stream *find_stream(struct gpu_stream numbers)
{
    struct stream **link = &streams, *stream;
    while (*link && !is_same_stream((*link)->numbers, numbers))
        link = &(*link)->next;
    stream = *link;
    if (!stream)
        return NULL;
    *link = stream->next;
    return put_first(stream);
}

/* Kernels launched up to until_ns may arrive on streams that are unknown, or were forgotten
 * meanwhile: order is lost on all. */
static void lose_until(int64_t until_ns)
{
    lost_until_ns = until_ns > lost_until_ns ? until_ns : lost_until_ns;
    begin_again();
}

/* The least recently used stream, emptied; NULL: the current group uses as many as there may be. */
static struct stream *reuse_stream(void)
{
    struct stream **link = &streams;
    while ((*link)->next)
        link = &(*link)->next;
    struct stream *stream = *link;
    if (stream->used == groups_taken)
        return NULL;
    if (stream->group_count)
        lose_until(stream->groups[stream->group_count - 1].end_ns);
    *link = NULL;
    *stream = (struct stream){.groups = stream->groups,
                              .kernels = stream->kernels,
                              .operations = stream->operations,
                              .group_room = stream->group_room,
                              .kernel_room = stream->kernel_room,
                              .operation_room = stream->operation_room};
    return stream;
}

static struct stream *add_stream(void)
{
    if (stream_count == MOST_STREAMS)
        return reuse_stream();
    struct stream *stream = calloc(1, sizeof *stream);
    stream_count += stream != NULL;
    return stream;
}

/* NULL: unknown, or no room. */
static struct stream *stream_given_to(const struct nccl_operation *operation)
{
    if (!operation->has_stream)
        return NULL;
    struct stream *stream = find_stream(operation->stream);
    if (!stream && (stream = add_stream()))
        put_first(stream)->numbers = operation->stream;
    if (stream)
        stream->used = groups_taken;
    else
        lacks_stream = true;
    return stream;
}

static bool is_of(const struct nccl_operation *operation, const struct nccl_operation *other)
{
    return operation->communicator == other->communicator;
}

/* Operations without work add no stream: NCCL drops them. */
static bool brings_new_stream(const struct nccl_operation *operations, uint32_t at)
{
    if (operations[at].kernels == NCCL_KERNELS_NONE)
        return false;
    for (uint32_t i = 0; i < at; i++)
        if (is_of(&operations[i], &operations[at]) &&
            is_same_stream(operations[i].stream, operations[at].stream) &&
            operations[i].kernels != NCCL_KERNELS_NONE)
            return false;
    return true;
}

/* The stream that a communicator's operations were launched on; `last` is the last of them. */
static struct stream *stream_launched_on(const struct nccl_operation *operations, uint32_t last)
{
    for (uint32_t i = last + 1; i-- > 0;)
        if (is_of(&operations[i], &operations[last]) && brings_new_stream(operations, i))
            return stream_given_to(&operations[i]);
    return NULL;
}

static uint8_t kernels_of_both(uint8_t one, uint8_t other)
{
    if (one == NCCL_KERNELS_NONE || other == NCCL_KERNELS_NONE)
        return one + other;
    return one == NCCL_KERNELS_ANY && other == NCCL_KERNELS_ANY ? NCCL_KERNELS_ANY
                                                                : NCCL_KERNELS_SOME;
}

/* Inserts a group in the order of the launching calls: several threads may launch on one stream. */
static bool put_in_order(struct stream *stream, struct group group)
{
    if (!MAKE_ROOM(stream->groups, stream->group_room, stream->group_count))
        return false;
    uint32_t at = stream->group_count++;
    for (; at > 0 && stream->groups[at - 1].start_ns > group.start_ns; at--)
        stream->groups[at] = stream->groups[at - 1];
    stream->groups[at] = group;
    return true;
}

/* Operations are stored in the order of their arrival; if groups of two threads had to be swapped,
 * their operations are, too. */
static void sort_operations(struct stream *stream)
{
    struct nccl_operation *sorted = malloc((stream->operation_count + 1) * sizeof *sorted);
    uint32_t used = 0;
    for (uint32_t i = 0; sorted && i < stream->group_count; i++) {
        memcpy(sorted + used, stream->operations + stream->groups[i].first,
               stream->groups[i].count * sizeof *sorted);
        stream->groups[i].first = used;
        used += stream->groups[i].count;
    }
    if (sorted)
        memcpy(stream->operations, sorted, used * sizeof *sorted);
    free(sorted);
}

/* for each operation of the group being taken */
static struct stream *launched_on[NCCL_QUEUE_ITEMS];

/* Adds the operations of a published group that were launched on this stream. */
static bool add_group(struct stream *stream, const struct nccl_operation *operations,
                      uint32_t count, const struct nccl_operation *end)
{
    struct group group = {.start_ns = clock_ns_of_late(end->start_ticks),
                          .end_ns =
                              clock_ns_of_late(end->end_ticks) + (end->may_be_later ? LATER_NS : 0),
                          .first = stream->operation_count};
    for (uint32_t i = 0; i < count; i++) {
        if (launched_on[i] != stream)
            continue;
        if (!MAKE_ROOM(stream->operations, stream->operation_room, stream->operation_count)) {
            nccl_operation_is_unmatched(&operations[i]);
            return false;
        }
        stream->operations[stream->operation_count++] = operations[i];
        if (operations[i].slot != stream->slot)
            stream->slot = stream->slot ? SEVERAL : operations[i].slot;
        group.kernels = group.count++ ? kernels_of_both(group.kernels, operations[i].kernels)
                                      : operations[i].kernels;
    }
    bool is_last = stream->group_count == 0 ||
                   stream->groups[stream->group_count - 1].start_ns <= group.start_ns;
    if (!put_in_order(stream, group))
        return false;
    if (!is_last)
        sort_operations(stream);
    return true;
}

static void find_streams(const struct nccl_operation *operations, uint32_t count)
{
    memset(launched_on, 0, count * sizeof *launched_on);
    for (uint32_t last = count; last-- > 0;) {
        bool is_found = false; /* with a later operation of the same communicator */
        for (uint32_t i = last + 1; i < count && !is_found; i++)
            is_found = is_of(&operations[i], &operations[last]);
        struct stream *stream = is_found ? NULL : stream_launched_on(operations, last);
        for (uint32_t i = 0; stream && i <= last; i++)
            if (is_of(&operations[i], &operations[last]))
                launched_on[i] = stream;
    }
}

static void take_group(const struct nccl_operation *operations, uint32_t count,
                       const struct nccl_operation *end)
{
    groups_taken++;
    find_streams(operations, count);
    for (uint32_t at = 0; at < count; at++) {
        bool is_added = false; /* added with an earlier operation on the same stream */
        for (uint32_t i = 0; i < at && !is_added; i++)
            is_added = launched_on[i] == launched_on[at];
        if (!launched_on[at])
            nccl_operation_is_unmatched(&operations[at]);
        else if (!is_added && !add_group(launched_on[at], operations, count, end))
            lose(launched_on[at]);
    }
    if (lacks_stream)
        lose_until(clock_ns_of_late(end->end_ticks));
    lacks_stream = false;
}

static void take_queue(struct nccl_queue *queue)
{
    static struct nccl_operation group[NCCL_QUEUE_ITEMS];
    uint64_t published = __atomic_load_n(&queue->published, __ATOMIC_ACQUIRE);
    for (uint32_t count = 0; queue->read < published;) {
        group[count] = queue->items[queue->read % NCCL_QUEUE_ITEMS];
        if (!group[count++].communicator) {
            take_group(group, count - 1, &group[count - 1]);
            count = 0;
        }
        __atomic_store_n(&queue->read, queue->read + 1, __ATOMIC_RELEASE);
    }
    uint64_t lost = __atomic_load_n(&queue->lost, __ATOMIC_ACQUIRE);
    if (lost != queue->lost_seen)
        lose_until(clock_ns_of_late(__atomic_load_n(&queue->lost_until_ticks, __ATOMIC_RELAXED)));
    queue->lost_seen = lost;
}

static void take_queues(void)
{
    for (struct nccl_queue *queue = nccl_groups_queues(); queue; queue = queue->next)
        take_queue(queue);
}

/* Whether a thread is in a call that launches and began before since_ns. */
static bool somebody_launches(int64_t since_ns)
{
    for (struct nccl_queue *queue = nccl_groups_queues(); queue; queue = queue->next) {
        uint64_t ticks = __atomic_load_n(&queue->launching_since, __ATOMIC_ACQUIRE);
        if (ticks && clock_ns_of_late(ticks) < since_ns)
            return true;
    }
    return false;
}

/* Counting. */

static uint32_t span_of(uint64_t duration_ns, bool is_shared)
{
    uint64_t units = duration_ns / LEDGER_DEVICE_SPAN_UNIT_NS;
    return (uint32_t)(units < INT32_MAX ? units : INT32_MAX) << 1 |
           (is_shared ? LEDGER_DEVICE_SPAN_SHARED : 0);
}

static void attribute(const struct stream *stream, const struct group *group,
                      const struct kernel *kernels, uint32_t count)
{
    const struct nccl_operation *operations = stream->operations + group->first;
    if (count == 0) {
        leave_unattributed(stream, group);
        return;
    }
    bool is_shared = group->count > 1;
    uint64_t duration_ns = (uint64_t)(kernels[count - 1].end_ns - kernels[0].start_ns);
    uint64_t bytes = 0, volume_bytes = 0;
    unsigned slot = operations->slot;
    for (uint32_t i = 0; i < group->count; i++) {
        if (operations[i].slot != slot)
            slot = 0;
        bytes += operations[i].bytes;
        volume_bytes += operations[i].volume_bytes;
        if (!operations[i].sample)
            continue;
        operations[i].sample->device_span = span_of(duration_ns, is_shared);
        sample_finish(operations[i].sample, clock_ticks_of_late(kernels[count - 1].end_ns));
    }
    struct thread *thread = thread_ready();
    if (!thread || operations->epoch != thread->epoch)
        return;
    uint64_t key =
        cell_key(is_shared ? CALL_ncclGroup : operations->call, slot, LEDGER_DEVICE_TIME) |
        cell_key_memory_kind(LEDGER_DEVICE | LEDGER_DEVICE << LEDGER_MEMORY_KIND_TO_BIT);
    account_count(thread, bytes, key, duration_ns + !duration_ns, volume_bytes);
}

/* Settling. */

static bool may_have_more(const struct group *group)
{
    return group->kernels >= NCCL_KERNELS_SOME;
}

static uint32_t at_least(const struct group *group)
{
    return group->kernels == NCCL_KERNELS_ONE || group->kernels == NCCL_KERNELS_SOME;
}

/* How the kernels of a segment are assigned: each group before `first_open` or after `last_open`
 * gets its minimum; the groups from one to the other share the rest. */
struct deal {
    uint32_t needed, first_open, last_open;
};

static struct deal deal_for(const struct stream *stream, uint32_t end)
{
    struct deal deal = {.first_open = end, .last_open = 0};
    for (uint32_t i = 0; i < end; i++) {
        deal.needed += at_least(&stream->groups[i]);
        if (!may_have_more(&stream->groups[i]))
            continue;
        deal.last_open = i;
        if (deal.first_open == end)
            deal.first_open = i;
    }
    return deal;
}

/* How many kernels a group gets: the rest goes to the only open group; if several are open, it is
 * not assigned. */
static uint32_t dealt_to(const struct stream *stream, const struct deal *deal, uint32_t at)
{
    uint32_t more = stream->kernel_count - deal->needed;
    uint32_t least = at_least(&stream->groups[at]);
    return more && at == deal->first_open && at == deal->last_open ? least + more : least;
}

static bool is_unattributed(const struct stream *stream, const struct deal *deal, uint32_t at)
{
    return stream->kernel_count > deal->needed && deal->first_open < deal->last_open &&
           at >= deal->first_open && at <= deal->last_open;
}

/* Whether each kernel began after the call that launched its group. */
static bool is_in_time(const struct stream *stream, const struct deal *deal, uint32_t end)
{
    uint32_t kernel = 0;
    for (uint32_t i = 0; i < end; i++) {
        uint32_t count = dealt_to(stream, deal, i);
        if (!is_unattributed(stream, deal, i) && count &&
            stream->kernels[kernel].start_ns + TOLERANCE_NS < stream->groups[i].start_ns)
            return false;
        kernel += count;
        if (i == deal->last_open && is_unattributed(stream, deal, i))
            kernel += stream->kernel_count - deal->needed;
    }
    return true;
}

static void deal_out(struct stream *stream, const struct deal *deal, uint32_t end)
{
    uint32_t kernel = 0;
    for (uint32_t i = 0; i < end; i++) {
        uint32_t count = dealt_to(stream, deal, i);
        if (is_unattributed(stream, deal, i))
            leave_unattributed(stream, &stream->groups[i]);
        else
            attribute(stream, &stream->groups[i], stream->kernels + kernel, count);
        kernel += count;
        if (i == deal->last_open && is_unattributed(stream, deal, i))
            kernel += stream->kernel_count - deal->needed;
    }
    forget_groups(stream, end);
}

/* The number of groups launched before a gap of the stream's device; UINT32_MAX if it is unclear
 * for one of them. If a launching call began within the gap, its kernels run after it, because
 * nothing ran inside. */
static uint32_t launched_before(const struct stream *stream, int64_t from_ns, int64_t until_ns)
{
    uint32_t end = 0;
    for (; end < stream->group_count && stream->groups[end].start_ns < from_ns; end++)
        if (stream->groups[end].end_ns > until_ns - LATENCY_NS)
            return UINT32_MAX;
    return end;
}

static void settle_at_gap(struct stream *stream, int64_t from_ns, int64_t until_ns)
{
    uint32_t end = launched_before(stream, from_ns, until_ns);
    if (end == UINT32_MAX)
        return;
    struct deal deal = deal_for(stream, end);
    bool has_open = deal.first_open < end;
    bool is_short = stream->kernel_count < deal.needed;
    if (stream->is_aligned && is_short && ++stream->gaps <= PATIENCE)
        return;
    bool is_complete = !is_short && (stream->kernel_count == deal.needed || has_open);
    if (stream->is_aligned && is_complete && is_in_time(stream, &deal, end))
        deal_out(stream, &deal, end);
    else
        give_up(stream, end);
    stream->is_aligned = true;
}

/* The first time at which each device is known to have been idle, with nothing lost since. A stream
 * whose first group was launched later is aligned. */
enum { DEVICES = 64 };
static int64_t idle_at_ns[DEVICES];

static void align_by_device(struct stream *stream)
{
    int64_t idle_ns = stream->device < DEVICES ? idle_at_ns[stream->device] : 0;
    stream->is_aligned = idle_ns && stream->groups[0].start_ns >= idle_ns;
}

static void begin_again(void)
{
    memset(idle_at_ns, 0, sizeof idle_at_ns);
    lose_all();
}

/* The observer */

static struct stream *stream_of_kernel(const struct gpu_event *kernel)
{
    struct stream *stream = find_stream((struct gpu_stream){kernel->context, kernel->stream});
    if (!stream || stream->is_met)
        return stream;
    stream->device = kernel->device;
    stream->is_met = true;
    if (stream->group_count)
        align_by_device(stream);
    return stream;
}

static unsigned kernel(const struct gpu_event *event)
{
    if (event->flags & LEDGER_ACTIVITY_GRAPH ||
        (event->name && !communication_is_nccls(event->name)))
        return 0;
    take_queues();
    struct stream *stream = stream_of_kernel(event);
    if (!stream)
        return 0;
    if (MAKE_ROOM(stream->kernels, stream->kernel_room, stream->kernel_count))
        stream->kernels[stream->kernel_count++] = (struct kernel){event->start_ns, event->end_ns};
    else
        lose(stream);
    return stream->slot == SEVERAL ? 0 : stream->slot;
}

static void idle(uint32_t device, int64_t from_ns, int64_t until_ns)
{
    bool is_clear = !somebody_launches(
        from_ns); /* checked first: a thread that has finished launching has published before */
    take_queues();
    if (until_ns - from_ns < GPU_IDLE_NS || !is_clear || from_ns < lost_until_ns)
        return; /* operations come from the host ahead of the gaps before them: a loss, too */
    if (device < DEVICES && !idle_at_ns[device])
        idle_at_ns[device] = from_ns;
    for (struct stream *stream = streams; stream; stream = stream->next)
        if (stream->is_met && stream->device == device)
            settle_at_gap(stream, from_ns, until_ns);
}

/* Groups are settled at gaps; here the queues are only emptied in time. */
static void collected(void)
{
    take_queues();
}

/* It is unknown how many groups from before are still to run. */
static void untraced(int64_t until_ns)
{
    take_queues();
    lost_until_ns = until_ns > lost_until_ns ? until_ns : lost_until_ns;
    memset(idle_at_ns, 0, sizeof idle_at_ns);
    for (struct stream *stream = streams; stream; stream = stream->next) {
        uint32_t end = 0;
        while (end < stream->group_count && stream->groups[end].start_ns < until_ns)
            end++;
        give_up(stream, end);
        stream->is_aligned = false;
    }
}

/* After tracing ends, kernels of pending groups may still be handed over. */
static void follow(bool followed)
{
    if (followed) {
        take_queues();
        begin_again();
    }
    __atomic_store_n(&nccl_followed, followed && !nccl_groups_are_given_up(), __ATOMIC_RELEASE);
}

static const struct gpu_observer OBSERVER = {
    .follow = follow, .kernel = kernel, .idle = idle, .collected = collected, .untraced = untraced};
const struct gpu_observer *gpu_observer = &OBSERVER;
