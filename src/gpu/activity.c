/* The two steps of an event:
 *
 *     take     its kernel, stream and device get their numbers; it is counted and queued
 *     settle   once all earlier events have arrived: overlap sums of its device, the NCCL
 *              operation, a sample
 *
 * MPI calls are queued with the events. If the queue is full, the earliest entries are settled
 * ahead of time, and any event that arrives too late for its order is counted as late.
 *
 * A device's overlap sums start as a copy of those of an imaginary device without events, which
 * contain MPI calls only; so they are complete when the device enters the ledger. When a table is
 * full, new entries are counted under 'other': other kernels, the other stream, and one other
 * activity per kind (three entries are reserved for these). A table also counts as full once the
 * ledger is, so the ledger is not asked again for each event. */
#include "activity.h"

#include "base/clock.h"
#include "kernels.h"
#include "ledger/histogram.h"
#include "ledger/samples.h"
#include "observer.h"
#include "overlap.h"
#include "reorder.h"

#include <stdlib.h>
#include <string.h>

enum {
    KINDS = 3,
    ACTIVITY_PLACES = 8192,
    STREAM_PLACES = 2048
}; /* slots of the indices: at least twice the number of entries */

struct device {
    struct ledger_device *entry;
    struct overlap overlap;
    /* the latest end of the settled activities; 0: none since tracing began */
    int64_t busy_until_ns;
};

struct stream {
    uint32_t context, number;
    uint16_t slot; /* 0: unused */
    struct device *device;
    struct ledger_stream *entry;
    struct samples_window window;
};

static struct {
    const struct gpu_backend *backend;
    struct device *devices[ACTIVITY_MOST_DEVICES + 1]; /* by slot */
    unsigned device_count, most_devices;
    struct stream streams[LEDGER_STREAM_OTHER + 1]; /* by slot */
    uint16_t stream_index[STREAM_PLACES];           /* open addressing; 0: empty */
    unsigned stream_count, most_streams;
    uint16_t activity_index[ACTIVITY_PLACES]; /* open addressing: number from 1; 0: empty */
    struct ledger_activity *activities[ACTIVITY_MOST]; /* all entries in the ledger, */
    uint64_t keys[ACTIVITY_MOST];
    unsigned activity_count, activity_used; /* and how many of them are in use */
    unsigned most_activities;
    struct reorder waiting;
    int64_t settled_ns;       /* events that began before this are settled */
    int64_t counts_from_ns;   /* events that began before this precede a reset */
    struct overlap no_device; /* MPI calls only */
    uint64_t no_device_ns[LEDGER_BUSY_STATES];
} gpu;

static uint32_t mixed(uint64_t key)
{
    key *= 0x9e3779b97f4a7c15ull;
    key = (key ^ key >> 32) * 0xd6e8feb86659fd93ull;
    return (uint32_t)(key >> 32);
}

/* Devices */

static struct device *enter_device(uint32_t number)
{
    struct gpu_device_facts facts = {"", "", 0};
    struct ledger_device entry = {.device = gpu.device_count + 1, .number = number};
    struct device *device = gpu.device_count < gpu.most_devices ? calloc(1, sizeof *device) : NULL;
    if (!device)
        return NULL;
    gpu.backend->device_facts(number, &facts);
    memcpy(entry.name, facts.name, sizeof entry.name);
    memcpy(entry.uuid, facts.uuid, sizeof entry.uuid);
    entry.sms = facts.sms;
    memcpy(entry.state_ns, gpu.no_device_ns, sizeof entry.state_ns);
    device->entry = ledger_append(LEDGER_DEVICES, &entry, sizeof entry);
    if (!device->entry) {
        gpu.most_devices = gpu.device_count;
        free(device);
        return NULL;
    }
    overlap_branch(&device->overlap, &gpu.no_device, device->entry->state_ns);
    return gpu.devices[++gpu.device_count] = device;
}

/* NULL: there is no room for it. */
static struct device *find_device(uint32_t number)
{
    for (unsigned slot = 1; slot <= gpu.device_count; slot++)
        if (gpu.devices[slot]->entry->number == number)
            return gpu.devices[slot];
    return enter_device(number);
}

/* A block is on one multiprocessor, and those of communication kernels are large: each has one of
 * its own while there are enough. */
static void count_sms(struct ledger_device *device, const struct gpu_event *event)
{
    uint64_t duration_ns =
        event->end_ns > event->start_ns ? (uint64_t)(event->end_ns - event->start_ns) : 0;
    uint32_t sms = device->sms && event->blocks > device->sms ? device->sms : event->blocks;
    if (!sms)
        return;
    device->communication_ns += duration_ns;
    device->communication_sm_ns += duration_ns * sms;
    if (sms > device->communication_most_sms)
        device->communication_most_sms = sms;
}

static void count_on_device(struct ledger_device *device, const struct gpu_event *event,
                            bool is_communication)
{
    uint64_t *const counts[] = {&device->kernels, &device->copies, &device->sets};
    if (!device->first_ns || event->start_ns < device->first_ns)
        device->first_ns = event->start_ns;
    if (event->end_ns > device->last_ns)
        device->last_ns = event->end_ns;
    ++*counts[event->kind - 1];
    if (is_communication)
        count_sms(device, event);
}

struct ledger_device *activity_device(unsigned slot)
{
    return slot >= 1 && slot <= gpu.device_count ? gpu.devices[slot]->entry : NULL;
}

/* Streams */

/* The stream for everything that has no own entry. It belongs to no device and has no samples. */
static struct stream *other_stream(void)
{
    struct stream *other = &gpu.streams[LEDGER_STREAM_OTHER];
    struct ledger_stream entry = {.stream = LEDGER_STREAM_OTHER, .sampled_since_ticks = UINT64_MAX};
    if (!other->slot)
        ledger_append(LEDGER_STREAMS, &entry, sizeof entry);
    other->slot = LEDGER_STREAM_OTHER;
    return other;
}

/* NULL: there is no room for it. */
static struct stream *enter_stream(const struct gpu_event *event)
{
    struct device *device = gpu.stream_count < gpu.most_streams ? find_device(event->device) : NULL;
    if (!device)
        return NULL;
    struct ledger_stream entry = {.stream = gpu.stream_count + 1,
                                  .device = device->entry->device,
                                  .context = event->context,
                                  .number = event->stream};
    struct ledger_stream *entered = ledger_append(LEDGER_STREAMS, &entry, sizeof entry);
    if (!entered) {
        gpu.most_streams = gpu.stream_count;
        return NULL;
    }
    struct stream *stream = &gpu.streams[++gpu.stream_count];
    *stream = (struct stream){event->context, event->stream, (uint16_t)gpu.stream_count,
                              device,         entered,       {0}};
    return stream;
}

static bool is_stream(const struct stream *stream, const struct gpu_event *event)
{
    return stream->number == event->stream && stream->context == event->context &&
           stream->device->entry->number == event->device;
}

static struct stream *find_stream(const struct gpu_event *event)
{
    uint32_t at =
        mixed(event->stream ^ (uint64_t)event->context << 24 ^ (uint64_t)event->device << 56);
    uint16_t *place = &gpu.stream_index[at % STREAM_PLACES];
    for (; *place; place = &gpu.stream_index[++at % STREAM_PLACES])
        if (is_stream(&gpu.streams[*place], event))
            return &gpu.streams[*place];
    struct stream *stream = enter_stream(event);
    if (!stream)
        return other_stream();
    *place = stream->slot;
    return stream;
}

/* Activities */

/* 0 for 0 bytes; k for more than 2^(k-2) and up to 2^(k-1) bytes. */
static unsigned size_class(uint64_t bytes)
{
    return bytes <= 1 ? (unsigned)bytes : 65 - (unsigned)__builtin_clzll(bytes - 1);
}

enum { HIGHEST_CLASS = 65 };

static uint64_t bytes_of_class(unsigned size)
{
    return size == 0 ? 0 : size == HIGHEST_CLASS ? UINT64_MAX : 1ull << (size - 1);
}

enum {
    KEY_STREAM_BIT = 16,
    KEY_KIND_BIT = 32,
    KEY_COPY_BIT = 40,
    KEY_FLAGS_BIT = 48,
    KEY_CLASS_BIT = 56
};

static uint64_t activity_key(const struct gpu_event *event, uint16_t kernel, uint16_t stream)
{
    unsigned size = event->kind == LEDGER_ACTIVITY_KERNEL ? 0 : size_class(event->bytes);
    return (uint64_t)kernel | (uint64_t)stream << KEY_STREAM_BIT |
           (uint64_t)event->kind << KEY_KIND_BIT | (uint64_t)event->copy << KEY_COPY_BIT |
           (uint64_t)event->flags << KEY_FLAGS_BIT | (uint64_t)size << KEY_CLASS_BIT;
}

/* The key of the other activity of a kind. */
static uint64_t other_key(uint8_t kind)
{
    bool is_kernel = kind == LEDGER_ACTIVITY_KERNEL;
    uint8_t copy = kind == LEDGER_ACTIVITY_COPY ? LEDGER_COPY_OTHER : LEDGER_COPY_NONE;
    struct gpu_event any = {.kind = kind, .copy = copy, .bytes = UINT64_MAX};
    return activity_key(&any, is_kernel ? LEDGER_KERNEL_OTHER : 0, LEDGER_STREAM_OTHER);
}

static bool take_chunk(void)
{
    uint32_t capacity = ledger_chunk_capacity(sizeof(struct ledger_activity));
    bool fits = gpu.activity_count + capacity <= gpu.most_activities;
    struct ledger_chunk *chunk =
        fits ? ledger_chunk(LEDGER_ACTIVITIES, sizeof(struct ledger_activity), 0) : NULL;
    if (!chunk) {
        gpu.most_activities = gpu.activity_count;
        return false;
    }
    for (uint32_t i = 0; i < capacity; i++)
        gpu.activities[gpu.activity_count++] = ledger_entry(chunk, i);
    __atomic_store_n(&chunk->used, capacity, __ATOMIC_RELEASE);
    return true;
}

static void enter_activity(uint64_t key)
{
    struct ledger_activity *entry = gpu.activities[gpu.activity_used];
    gpu.keys[gpu.activity_used++] = key;
    memset(entry, 0, sizeof *entry);
    entry->bytes = bytes_of_class(key >> KEY_CLASS_BIT);
    entry->kernel = (uint16_t)key;
    entry->stream = (uint16_t)(key >> KEY_STREAM_BIT);
    entry->kind = (uint8_t)(key >> KEY_KIND_BIT);
    entry->copy = (uint8_t)(key >> KEY_COPY_BIT);
    entry->flags = (uint8_t)(key >> KEY_FLAGS_BIT);
    entry->min_ns = UINT64_MAX;
    __atomic_store_n(&entry->live, 1, __ATOMIC_RELEASE);
}

/* NULL: no room besides `reserved` entries. */
static struct ledger_activity *find_activity(uint64_t key, unsigned reserved)
{
    uint32_t at = mixed(key);
    uint16_t *place = &gpu.activity_index[at % ACTIVITY_PLACES];
    for (; *place; place = &gpu.activity_index[++at % ACTIVITY_PLACES])
        if (gpu.keys[*place - 1] == key)
            return gpu.activities[*place - 1];
    if (gpu.activity_used + reserved >= gpu.activity_count && !take_chunk())
        return NULL;
    enter_activity(key);
    *place = (uint16_t)gpu.activity_used;
    return gpu.activities[gpu.activity_used - 1];
}

/* The bucket is updated last: this one store makes the activity count. */
static void add(struct ledger_activity *activity, uint64_t duration_ns, uint64_t volume_bytes)
{
    activity->total_ns += duration_ns;
    activity->volume_bytes += volume_bytes;
    if (duration_ns < activity->min_ns)
        activity->min_ns = duration_ns;
    if (duration_ns > activity->max_ns)
        activity->max_ns = duration_ns;
    __asm__ volatile("" ::: "memory");
    activity->buckets[histogram_bucket(duration_ns)]++;
}

static void count(const struct gpu_event *event, uint16_t kernel, const struct stream *stream)
{
    uint64_t duration_ns =
        event->end_ns > event->start_ns ? (uint64_t)(event->end_ns - event->start_ns) : 0;
    struct ledger_activity *activity =
        find_activity(activity_key(event, kernel, stream->slot), KINDS);
    if (!activity || kernel == LEDGER_KERNEL_OTHER || stream->slot == LEDGER_STREAM_OTHER)
        the_ledger.header->gpu_unattributed_records++;
    if (!activity)
        activity = find_activity(other_key(event->kind), 0);
    if (activity)
        add(activity, duration_ns, event->kind == LEDGER_ACTIVITY_KERNEL ? 0 : event->bytes);
}

/* Settling */

static void add_to_all(const struct reorder_event *call)
{
    bool has_room = overlap_add(&gpu.no_device, LEDGER_IN_MPI, call->start_ns, call->end_ns);
    for (unsigned slot = 1; slot <= gpu.device_count; slot++)
        has_room &=
            overlap_add(&gpu.devices[slot]->overlap, LEDGER_IN_MPI, call->start_ns, call->end_ns);
    the_ledger.header->gpu_lost_intervals += !has_room;
}

static unsigned communicator_of(const struct reorder_event *event)
{
    struct gpu_event kernel = {.start_ns = event->start_ns,
                               .end_ns = event->end_ns,
                               .name = kernels_communication(event->kernel),
                               .device = event->device,
                               .context = event->context,
                               .stream = event->stream,
                               .kind = event->kind,
                               .flags = event->flags};
    return gpu_observer->kernel(&kernel);
}

static void keep(const struct reorder_event *event, unsigned communicator)
{
    struct stream *stream = &gpu.streams[event->stream_slot];
    uint64_t start_ticks = clock_ticks_of_late(event->start_ns);
    struct ledger_activity_sample *sample =
        stream->entry ? (struct ledger_activity_sample *)samples_of_stream(
                            &stream->window, stream->entry, start_ticks)
                      : NULL;
    if (!sample)
        return;
    sample->start_ticks = start_ticks;
    sample->unused = 0;
    sample->bytes = event->bytes;
    sample->kernel = event->kernel;
    sample->zero = 0;
    sample->communicator = (uint16_t)communicator;
    sample->stream = event->stream_slot;
    sample->kind = event->kind;
    sample->copy = event->copy;
    sample->flags = event->flags;
    memset(sample->reserved, 0, sizeof sample->reserved);
    __atomic_store_n(&sample->end_ticks, clock_ticks_of_late(event->end_ns), __ATOMIC_RELEASE);
}

/* Reports that a device was idle up to until_ns, if its last activity ended long enough before. */
static void report_idle(const struct device *device, int64_t until_ns)
{
    if (device->busy_until_ns && until_ns - device->busy_until_ns >= GPU_IDLE_NS)
        gpu_observer->idle(device->entry->number, device->busy_until_ns, until_ns);
}

/* The overlap sums lack an activity of this duration. */
static void count_late(int64_t start_ns, int64_t end_ns)
{
    the_ledger.header->gpu_late_records++;
    the_ledger.header->gpu_late_ns += (uint64_t)(end_ns - start_ns);
}

static void settle(const struct reorder_event *event)
{
    if (event->start_ns > gpu.settled_ns)
        gpu.settled_ns = event->start_ns;
    if (event->state == LEDGER_IN_MPI) {
        add_to_all(event);
        return;
    }
    struct device *device = gpu.devices[event->device_slot];
    if (device && !overlap_add(&device->overlap, event->state, event->start_ns, event->end_ns))
        count_late(event->start_ns, event->end_ns);
    if (device)
        report_idle(device, event->start_ns);
    if (device && event->end_ns > device->busy_until_ns)
        device->busy_until_ns = event->end_ns;
    keep(event, event->state == LEDGER_COMMUNICATING ? communicator_of(event) : 0);
}

static void settle_first(void)
{
    struct reorder_event first = reorder_take(&gpu.waiting);
    settle(&first);
}

/* If there is no room, settles the earliest event first, which may be this one. */
static void wait_for_earlier(const struct reorder_event *event)
{
    while (!reorder_put(&gpu.waiting, event)) {
        if (event->start_ns <= reorder_first_ns(&gpu.waiting)) {
            settle(event);
            return;
        }
        settle_first();
    }
}

static uint8_t state_of(const struct gpu_event *event, bool is_communication)
{
    if (event->kind != LEDGER_ACTIVITY_KERNEL)
        return LEDGER_COPYING;
    return is_communication ? LEDGER_COMMUNICATING : LEDGER_COMPUTING;
}

void activity_take(const struct gpu_event *event)
{
    struct kernel kernel = event->kind == LEDGER_ACTIVITY_KERNEL ? kernels_find(event->name)
                                                                 : (struct kernel){0, false};
    const struct stream *stream = find_stream(event);
    struct device *device = stream->device ? stream->device : find_device(event->device);
    bool counts = event->start_ns >= gpu.counts_from_ns;
    if (counts)
        count(event, kernel.number, stream);
    if (counts && device)
        count_on_device(device->entry, event, kernel.is_communication);
    if (event->start_ns < gpu.settled_ns) {
        if (counts)
            count_late(event->start_ns, event->end_ns);
        return;
    }
    wait_for_earlier(
        &(struct reorder_event){.start_ns = event->start_ns,
                                .end_ns = event->end_ns,
                                .bytes = event->bytes,
                                .device = event->device,
                                .context = event->context,
                                .stream = event->stream,
                                .kernel = kernel.number,
                                .stream_slot = stream->slot,
                                .kind = event->kind,
                                .copy = event->copy,
                                .device_slot = device ? (uint8_t)device->entry->device : 0,
                                .state = state_of(event, kernel.is_communication),
                                .flags = event->flags});
}

void activity_in_mpi(uint64_t start_ticks, uint64_t end_ticks)
{
    wait_for_earlier(&(struct reorder_event){.start_ns = clock_ns_of_late(start_ticks),
                                             .end_ns = clock_ns_of_late(end_ticks),
                                             .state = LEDGER_IN_MPI});
}

void activity_settle(int64_t until_ns)
{
    while (reorder_first_ns(&gpu.waiting) < until_ns)
        settle_first();
    if (until_ns > gpu.settled_ns)
        gpu.settled_ns = until_ns;
    overlap_settle(&gpu.no_device, until_ns);
    for (unsigned slot = 1; slot <= gpu.device_count; slot++) {
        overlap_settle(&gpu.devices[slot]->overlap, until_ns);
        report_idle(gpu.devices[slot], until_ns);
    }
}

/* Life */

void activity_begin(const struct gpu_backend *backend)
{
    for (unsigned slot = 1; slot <= gpu.device_count; slot++)
        free(gpu.devices[slot]);
    free(gpu.waiting.heap);
    free(gpu.waiting.events);
    memset(&gpu, 0, sizeof gpu);
    gpu.backend = backend;
    gpu.waiting.most = ACTIVITY_MOST_WAITING;
    gpu.most_devices = ACTIVITY_MOST_DEVICES;
    gpu.most_streams = LEDGER_STREAM_OTHER - 1;
    gpu.most_activities = ACTIVITY_MOST;
    gpu.settled_ns = gpu.counts_from_ns = INT64_MIN;
    gpu.no_device = (struct overlap)OVERLAP_NONE;
    gpu.no_device.state_ns = gpu.no_device_ns;
    kernels_begin();
    the_ledger.header->gpu_epoch = the_ledger.header->epoch;
}

void activity_trace_from(int64_t begin_ns)
{
    overlap_begin(&gpu.no_device, gpu.no_device_ns, begin_ns);
    for (unsigned slot = 1; slot <= gpu.device_count; slot++) {
        overlap_begin(&gpu.devices[slot]->overlap, gpu.devices[slot]->entry->state_ns, begin_ns);
        gpu.devices[slot]->busy_until_ns = 0;
    }
}

void activity_trace_until(int64_t end_ns)
{
    activity_settle(end_ns);
    overlap_end(&gpu.no_device, end_ns);
    for (unsigned slot = 1; slot <= gpu.device_count; slot++)
        overlap_end(&gpu.devices[slot]->overlap, end_ns);
}

static void reset_device(struct device *device, int64_t from_ns)
{
    struct ledger_device *entry = device->entry;
    overlap_reset(&device->overlap, from_ns);
    entry->kernels = entry->copies = entry->sets = 0;
    entry->first_ns = entry->last_ns = 0;
    entry->communication_most_sms = 0;
    entry->communication_ns = entry->communication_sm_ns = 0;
}

void activity_reset(int64_t from_ns)
{
    gpu.counts_from_ns = from_ns;
    overlap_reset(&gpu.no_device, from_ns);
    for (unsigned slot = 1; slot <= gpu.device_count; slot++)
        reset_device(gpu.devices[slot], from_ns);
    for (unsigned i = 0; i < gpu.activity_used; i++)
        gpu.activities[i]->live = 0;
    gpu.activity_used = 0;
    memset(gpu.activity_index, 0, sizeof gpu.activity_index);
    __atomic_store_n(&the_ledger.header->gpu_epoch, the_ledger.header->epoch, __ATOMIC_RELEASE);
}
