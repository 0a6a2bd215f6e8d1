/* Which kernels carried out which operations.
 *
 * Nothing in a kernel's record says which call launched it, so they are counted off against each other. NCCL launches what a communicator
 * is given in one group on one stream (the one that was new to it last, if there are several), in the order of the groups. Which of a
 * group's communicators comes first it decides by a hash of theirs, so those that share a stream are one group here:
 *
 *     calls     [AllReduce] [Group: Send Recv Recv ]  [AllReduce]                           [Broadcast]
 *     stream         kkkkkkkkkk       kkkkkk kkkkk         kkkkkkk                               kkkk
 *     device    cccccccccccccccccccccccccccccccccc     ccc ccc kkk|          idle           |  ccc
 *               ^ gap: aligned                                    ^ gap: 3 groups, 4 kernels, all settled
 *
 * The host may be any number of calls ahead of the device, so the times of begin do not tell which is whose. A gap does: where nothing at
 * all ran on the device for a while, all that was launched before it has run (LATENCY covers the way from a launch to its begin). What lies
 * between two gaps is settled together:
 *
 *     each group needs a number of kernels: none, one, some (one or more), any
 *     as many kernels as are needed at least     each group has what it needs at least: there is no other way
 *     more, and one group may have more          that one has them
 *     more, and several groups may have more     groups before the first and behind the last of these are told; the others are not
 *     more, and no group may have more           somebody else launches on this stream: nothing is told
 *     fewer                                      the device may have waited for the host in between: together with what follows up to
 *                                                the next gap; after PATIENCE gaps nothing is told
 *     a kernel that began before its group       nothing is told
 *
 * What is not told counts as unmatched; so does all before the first gap after tracing began, after records or operations were lost, and
 * what is behind the last gap at the end. A job that leaves no gaps has no times of single operations, rather than wrong ones. Kernels that
 * graphs launch are nobody's, and other libraries' are not counted, though they may use the same stream.
 *
 * Assumed, and to be measured on a GPU: LATENCY; that clocks agree within TOLERANCE. */
#include "nccl.h"

#include "call.h"
#include "gpu/communication.h"
#include "gpu/gpu.h"
#include "nccl_groups.h"

#include <stdlib.h>

enum { LATENCY_NS = NCCL_IDLE_NS, TOLERANCE_NS = 20000, LATER_NS = 100000000, PATIENCE = 8, MOST_PENDING = 65536, SEVERAL = UINT16_MAX };

struct group {
    int64_t start_ns, end_ns; /* of the call that launched it */
    uint32_t first, count;    /* its operations, in the stream's */
    uint8_t kernels;          /* enum nccl_kernels */
};

struct kernel {
    int64_t start_ns, end_ns;
};

struct stream {
    struct gpu_stream numbers; /* that events have */
    uint32_t device;
    bool is_met;     /* a kernel of it has come, so its device is known */
    bool is_aligned; /* the first pending group and the first pending kernel belong to the same time */
    unsigned gaps;   /* since which kernels are missing */
    uint16_t slot;   /* of the one communicator that has used it; SEVERAL */
    struct group *groups;
    struct kernel *kernels;
    struct nccl_operation *operations;
    uint32_t group_count, group_room, kernel_count, kernel_room, operation_count, operation_room;
    struct stream *next;
};

static struct stream *streams;
static int64_t lost_until_ns; /* up to here operations were lost that may have kernels, or kernels of operations */

static void begin_anew(void);

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
#define MAKE_ROOM(ENTRIES, ROOM, COUNT) make_room((void **)&(ENTRIES), &(ROOM), (COUNT), sizeof *(ENTRIES))

/* Forget what is pending up to (not including) a group, and all kernels. */
static void forget_groups(struct stream *stream, uint32_t end)
{
    uint32_t first = end < stream->group_count ? stream->groups[end].first : stream->operation_count;
    stream->operation_count -= first;
    memmove(stream->operations, stream->operations + first, stream->operation_count * sizeof *stream->operations);
    stream->group_count -= end;
    memmove(stream->groups, stream->groups + end, stream->group_count * sizeof *stream->groups);
    for (uint32_t i = 0; i < stream->group_count; i++)
        stream->groups[i].first -= first;
    stream->kernel_count = 0;
    stream->gaps = 0;
}

static void leave_untold(const struct stream *stream, const struct group *group)
{
    for (uint32_t i = 0; i < group->count; i++)
        nccl_operation_is_unmatched(&stream->operations[group->first + i]);
}

static void give_up(struct stream *stream, uint32_t end)
{
    for (uint32_t i = 0; i < end; i++)
        leave_untold(stream, &stream->groups[i]);
    forget_groups(stream, end);
}

/* Order is lost: nothing is told up to the next gap. */
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

/* From the queues. */

static bool is_same_stream(struct gpu_stream one, struct gpu_stream other)
{
    return one.number == other.number && one.context == other.context;
}

static struct stream *find_stream(struct gpu_stream numbers)
{
    struct stream *stream = streams;
    while (stream && !is_same_stream(stream->numbers, numbers))
        stream = stream->next;
    return stream;
}

/* NULL: not known, or no memory. */
static struct stream *stream_given_to(const struct nccl_operation *operation)
{
    struct stream *stream = operation->has_stream ? find_stream(operation->stream) : NULL;
    if (stream || !operation->has_stream)
        return stream;
    stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->numbers = operation->stream;
    stream->next = streams;
    streams = stream;
    return stream;
}

static bool is_of(const struct nccl_operation *operation, const struct nccl_operation *other)
{
    return operation->communicator == other->communicator;
}

/* Operations without work bring no stream: NCCL drops them. */
static bool brings_new_stream(const struct nccl_operation *operations, uint32_t at)
{
    if (operations[at].kernels == NCCL_KERNELS_NONE)
        return false;
    for (uint32_t i = 0; i < at; i++)
        if (is_of(&operations[i], &operations[at]) && is_same_stream(operations[i].stream, operations[at].stream) &&
            operations[i].kernels != NCCL_KERNELS_NONE)
            return false;
    return true;
}

/* Where the operations of the communicator whose last one this is were launched. */
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
    return one == NCCL_KERNELS_ANY && other == NCCL_KERNELS_ANY ? NCCL_KERNELS_ANY : NCCL_KERNELS_SOME;
}

/* Groups of several threads on one stream: in the order of the calls that launched them. */
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

/* Operations lie in the order in which they came; when groups of two threads had to change places, theirs do, too. */
static void sort_operations(struct stream *stream)
{
    struct nccl_operation *sorted = malloc((stream->operation_count + 1) * sizeof *sorted);
    uint32_t used = 0;
    for (uint32_t i = 0; sorted && i < stream->group_count; i++) {
        memcpy(sorted + used, stream->operations + stream->groups[i].first, stream->groups[i].count * sizeof *sorted);
        stream->groups[i].first = used;
        used += stream->groups[i].count;
    }
    if (sorted)
        memcpy(stream->operations, sorted, used * sizeof *sorted);
    free(sorted);
}

static struct stream *launched_on[NCCL_QUEUE_ITEMS]; /* each operation of the group that is being taken */

/* The operations of a published group that were launched on this stream. */
static bool add_group(struct stream *stream, const struct nccl_operation *operations, uint32_t count, const struct nccl_operation *end)
{
    struct group group = {.start_ns = clock_ns_of_late(end->start_ticks),
                          .end_ns = clock_ns_of_late(end->end_ticks) + (end->may_be_later ? LATER_NS : 0),
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
        group.kernels = group.count++ ? kernels_of_both(group.kernels, operations[i].kernels) : operations[i].kernels;
    }
    bool is_last = stream->group_count == 0 || stream->groups[stream->group_count - 1].start_ns <= group.start_ns;
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
        bool is_found = false; /* with a later one of the same communicator */
        for (uint32_t i = last + 1; i < count && !is_found; i++)
            is_found = is_of(&operations[i], &operations[last]);
        struct stream *stream = is_found ? NULL : stream_launched_on(operations, last);
        for (uint32_t i = 0; stream && i <= last; i++)
            if (is_of(&operations[i], &operations[last]))
                launched_on[i] = stream;
    }
}

static void take_group(const struct nccl_operation *operations, uint32_t count, const struct nccl_operation *end)
{
    find_streams(operations, count);
    for (uint32_t at = 0; at < count; at++) {
        bool is_told = false; /* an earlier one on the same stream has taken it along */
        for (uint32_t i = 0; i < at && !is_told; i++)
            is_told = launched_on[i] == launched_on[at];
        if (!launched_on[at])
            nccl_operation_is_unmatched(&operations[at]);
        else if (!is_told && !add_group(launched_on[at], operations, count, end))
            lose(launched_on[at]);
    }
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
    if (lost != queue->lost_seen) {
        int64_t until_ns = clock_ns_of_late(__atomic_load_n(&queue->lost_until_ticks, __ATOMIC_RELAXED));
        lost_until_ns = until_ns > lost_until_ns ? until_ns : lost_until_ns;
        begin_anew();
    }
    queue->lost_seen = lost;
}

static void take_queues(void)
{
    for (struct nccl_queue *queue = nccl_groups_queues(); queue; queue = queue->next)
        take_queue(queue);
}

/* Whether a thread has been in a call that launches since before a moment. */
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
    return (uint32_t)(units < INT32_MAX ? units : INT32_MAX) << 1 | (is_shared ? LEDGER_DEVICE_SPAN_SHARED : 0);
}

static void tell(const struct stream *stream, const struct group *group, const struct kernel *kernels, uint32_t count)
{
    const struct nccl_operation *operations = stream->operations + group->first;
    if (count == 0) {
        leave_untold(stream, group);
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
    struct thread *thread = call_thread_of_ours();
    if (!thread || operations->epoch != thread->epoch)
        return;
    uint64_t key = cell_key(is_shared ? CALL_ncclGroup : operations->call, slot, LEDGER_DEVICE_TIME) |
                   cell_key_place(LEDGER_DEVICE | LEDGER_DEVICE << LEDGER_PLACE_TO_BIT);
    call_count(thread, bytes, key, duration_ns + !duration_ns, volume_bytes);
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

/* How the kernels of a segment are dealt out: in front of the group `first_open` and behind `last_open` each has what it needs at least;
 * what is left belongs to those from the one to the other. */
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

/* How many kernels a group has in this deal; those between several that are open have none that can be told. */
static uint32_t dealt_to(const struct stream *stream, const struct deal *deal, uint32_t at)
{
    uint32_t more = stream->kernel_count - deal->needed;
    uint32_t least = at_least(&stream->groups[at]);
    return more && at == deal->first_open && at == deal->last_open ? least + more : least;
}

static bool is_untold(const struct stream *stream, const struct deal *deal, uint32_t at)
{
    return stream->kernel_count > deal->needed && deal->first_open < deal->last_open && at >= deal->first_open && at <= deal->last_open;
}

/* Whether each kernel began after the call that launched its group. */
static bool is_in_time(const struct stream *stream, const struct deal *deal, uint32_t end)
{
    uint32_t kernel = 0;
    for (uint32_t i = 0; i < end; i++) {
        uint32_t count = dealt_to(stream, deal, i);
        if (!is_untold(stream, deal, i) && count && stream->kernels[kernel].start_ns + TOLERANCE_NS < stream->groups[i].start_ns)
            return false;
        kernel += count;
        if (i == deal->last_open && is_untold(stream, deal, i))
            kernel += stream->kernel_count - deal->needed;
    }
    return true;
}

static void deal_out(struct stream *stream, const struct deal *deal, uint32_t end)
{
    uint32_t kernel = 0;
    for (uint32_t i = 0; i < end; i++) {
        uint32_t count = dealt_to(stream, deal, i);
        if (is_untold(stream, deal, i))
            leave_untold(stream, &stream->groups[i]);
        else
            tell(stream, &stream->groups[i], stream->kernels + kernel, count);
        kernel += count;
        if (i == deal->last_open && is_untold(stream, deal, i))
            kernel += stream->kernel_count - deal->needed;
    }
    forget_groups(stream, end);
}

/* The groups that were launched before a gap of the stream's device; UINT32_MAX where one may have been launched before it or after it.
 * What a call launched that began within the gap runs behind it, for nothing ran inside. */
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

/* Since when each device is known to have been idle once, with nothing lost since. A stream whose first group came later is aligned. */
enum { DEVICES = 64 };
static int64_t idle_at_ns[DEVICES];

static void align_by_device(struct stream *stream)
{
    int64_t idle_ns = stream->device < DEVICES ? idle_at_ns[stream->device] : 0;
    stream->is_aligned = idle_ns && stream->groups[0].start_ns >= idle_ns;
}

static void begin_anew(void)
{
    memset(idle_at_ns, 0, sizeof idle_at_ns);
    lose_all();
}

/* What activity.c and gpu.c call. */

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

unsigned nccl_kernel(const struct gpu_event *event)
{
    if (event->flags & LEDGER_ACTIVITY_GRAPH || (event->name && !communication_is_nccls(event->name)))
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

void nccl_idle(uint32_t device, int64_t from_ns, int64_t until_ns)
{
    bool is_clear = !somebody_launches(from_ns); /* asked first: who has launched has published before */
    take_queues();
    if (until_ns - from_ns < NCCL_IDLE_NS || !is_clear || from_ns < lost_until_ns)
        return; /* operations come from the host ahead of the gaps before them: a loss, too */
    if (device < DEVICES && !idle_at_ns[device])
        idle_at_ns[device] = from_ns;
    for (struct stream *stream = streams; stream; stream = stream->next)
        if (stream->is_met && stream->device == device)
            settle_at_gap(stream, from_ns, until_ns);
}

void nccl_settle(int64_t until_ns)
{
    (void)until_ns; /* gaps settle; the queues are emptied in time */
    take_queues();
}

/* How many groups from before are still to run nobody knows. */
void nccl_untraced(int64_t from_ns, int64_t until_ns)
{
    (void)from_ns;
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

/* Where it ends, kernels of what is pending may still be handed over. */
void nccl_follow(bool followed)
{
    if (followed) {
        take_queues();
        begin_anew();
    }
    __atomic_store_n(&nccl_followed, followed, __ATOMIC_RELEASE);
}
