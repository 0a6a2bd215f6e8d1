#include "gpu/activity.h"

#include "base/clock.h"
#include "gpu/kernels.h"
#include "gpu/observer.h"
#include "ledger/histogram.h"
#include "ledger/ledger.h"
#include "ledger/samples.h"
#include "stepping.h"
#include "unit.h"

/* Origin of the times in the tests; ticks are nanoseconds. */
static int64_t zero_ns;

static uint64_t facts_asked;

static void device_facts(uint32_t device, struct gpu_device_facts *facts)
{
    facts_asked++;
    snprintf(facts->name, sizeof facts->name, "Test GPU %u", device);
    snprintf(facts->uuid, sizeof facts->uuid, "GPU-%u", device);
    facts->sms = device == 9 ? 0 : 100;
}

static const struct gpu_backend backend = {.name = "test", .device_facts = device_facts};

/* Reports to the observer, and its answers. */
static struct {
    struct gpu_event last;
    char name[64];
    uint64_t count;
    int64_t latest_ns;
    bool is_in_order;
} told = {.is_in_order = true};

static unsigned report_kernel(const struct gpu_event *kernel)
{
    told.is_in_order &= kernel->start_ns >= told.latest_ns;
    told.latest_ns = kernel->start_ns;
    told.last = *kernel;
    snprintf(told.name, sizeof told.name, "%s", kernel->name ? kernel->name : "");
    told.count++;
    return 7;
}

static void report_idle(uint32_t device, int64_t from_ns, int64_t until_ns)
{
    (void)device, (void)from_ns, (void)until_ns;
}

static const struct gpu_observer OBSERVER = {.kernel = report_kernel, .idle = report_idle};

static void begin_with(size_t ledger_bytes, size_t samples_bytes)
{
    clock_begin(CLOCK_GETTIME);
    CHECK_EQUAL(ledger_open("ledger", ledger_bytes), 0);
    zero_ns = clock_monotonic_ns();
    the_ledger.header->start_ns = zero_ns;
    the_ledger.header->start_unix_ns = (int64_t)1000 << LEDGER_WINDOW_NS_LOG2; /* a window begins */
    samples_begin(samples_bytes);
    gpu_observer = &OBSERVER;
    activity_begin(&backend);
}

static void begin(void)
{
    begin_with(64 << 20, 4 << 20);
}

/* Events */

static struct gpu_event on(uint32_t device, uint32_t stream, int64_t start_ns, int64_t end_ns)
{
    return (struct gpu_event){.start_ns = zero_ns + start_ns,
                              .end_ns = zero_ns + end_ns,
                              .device = device,
                              .context = 1 + device,
                              .stream = stream};
}

static void kernel_on(uint32_t device, uint32_t stream, const char *name, int64_t start_ns,
                      int64_t end_ns)
{
    struct gpu_event event = on(device, stream, start_ns, end_ns);
    event.kind = LEDGER_ACTIVITY_KERNEL;
    event.name = name;
    activity_take(&event);
}

static void kernel(const char *name, int64_t start_ns, int64_t end_ns)
{
    kernel_on(0, 7, name, start_ns, end_ns);
}

static void copy(enum ledger_copy direction, uint64_t bytes, int64_t start_ns, int64_t end_ns)
{
    struct gpu_event event = on(0, 7, start_ns, end_ns);
    event.kind = LEDGER_ACTIVITY_COPY;
    event.copy = (uint8_t)direction;
    event.bytes = bytes;
    activity_take(&event);
}

static void set(uint64_t bytes, int64_t start_ns, int64_t end_ns)
{
    struct gpu_event event = on(0, 7, start_ns, end_ns);
    event.kind = LEDGER_ACTIVITY_SET;
    event.bytes = bytes;
    activity_take(&event);
}

static void in_mpi(int64_t start_ns, int64_t end_ns)
{
    activity_in_mpi((uint64_t)(zero_ns + start_ns), (uint64_t)(zero_ns + end_ns));
}

static void trace_from(int64_t ns)
{
    activity_trace_from(zero_ns + ns);
}

static void trace_until(int64_t ns)
{
    activity_trace_until(zero_ns + ns);
}

static void settle(int64_t ns)
{
    activity_settle(zero_ns + ns);
}

/* The ledger's contents */

static uint32_t used_of(uint32_t chunk, enum ledger_kind kind)
{
    const struct ledger_chunk *at = ledger_chunk_at(the_ledger.header, chunk);
    return at->kind == kind ? at->used : 0;
}

#define FOR_EACH_ENTRY(TYPE, ENTRY, KIND)                                               \
    for (uint32_t chunk_ = 0; chunk_ < the_ledger.header->chunk_count; chunk_++)        \
        for (uint32_t number_ = 0; number_ < used_of(chunk_, KIND); number_++)          \
            for (const TYPE *ENTRY =                                                    \
                     ledger_entry(ledger_chunk_at(the_ledger.header, chunk_), number_); \
                 ENTRY; ENTRY = NULL)

static const struct ledger_device *device_of(uint32_t number)
{
    FOR_EACH_ENTRY(struct ledger_device, device, LEDGER_DEVICES)
        if (device->number == number)
            return device;
    return NULL;
}

static uint64_t traced_ns(uint32_t number)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < LEDGER_BUSY_STATES; i++)
        sum += device_of(number)->state_ns[i];
    return sum;
}

static uint64_t busy_ns(unsigned state)
{
    return device_of(0)->state_ns[state];
}

static uint64_t count_of(const struct ledger_activity *activity)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        count += activity->buckets[i];
    return count;
}

struct totals {
    uint64_t entries, count, total_ns, volume_bytes;
};

static struct totals totals(void)
{
    struct totals sum = {0};
    FOR_EACH_ENTRY(struct ledger_activity, activity, LEDGER_ACTIVITIES)
        if (activity->live) {
            sum.entries++;
            sum.count += count_of(activity);
            sum.total_ns += activity->total_ns;
            sum.volume_bytes += activity->volume_bytes;
        }
    return sum;
}

static const struct ledger_activity *activity_of(enum ledger_activity_kind kind, uint32_t number,
                                                 uint16_t stream, uint64_t bytes)
{
    FOR_EACH_ENTRY(struct ledger_activity, activity, LEDGER_ACTIVITIES)
        if (activity->live && activity->kind == kind && activity->kernel == number &&
            activity->stream == stream && activity->bytes == bytes)
            return activity;
    return NULL;
}

static uint64_t streams_in_ledger(void)
{
    uint64_t count = 0;
    FOR_EACH_ENTRY(struct ledger_stream, stream, LEDGER_STREAMS)
        count += stream->stream != 0;
    return count;
}

/* The n-th sample of a stream (slot), from 0; NULL if it has fewer. */
static const struct ledger_activity_sample *sample_of(unsigned stream, unsigned number)
{
    FOR_EACH_ENTRY(struct ledger_page, page, LEDGER_SAMPLES)
        for (unsigned i = 0;
             page->owner == (LEDGER_OF_STREAM | (uint64_t)stream << 8) && i < LEDGER_PAGE_SAMPLES;
             i++)
            if (page->samples[i].end_ticks && number-- == 0)
                return (const struct ledger_activity_sample *)&page->samples[i];
    return NULL;
}

/* Counting */

TEST(copies_are_counted_by_powers_of_two)
{
    begin();
    copy(LEDGER_COPY_TO_DEVICE, 1000, 0, 10);
    copy(LEDGER_COPY_TO_DEVICE, 1024, 20, 30);
    copy(LEDGER_COPY_TO_DEVICE, 1025, 40, 50);
    copy(LEDGER_COPY_TO_HOST, 1024, 60, 70);
    copy(LEDGER_COPY_TO_DEVICE, 0, 80, 90);
    copy(LEDGER_COPY_TO_DEVICE, 1, 80, 90);
    copy(LEDGER_COPY_TO_DEVICE, UINT64_MAX - 1, 80, 90);
    set(512, 100, 110);
    CHECK_EQUAL(totals().entries, 7);
    CHECK_EQUAL(activity_of(LEDGER_ACTIVITY_COPY, 0, 1, 1024)->volume_bytes, 2024);
    CHECK_EQUAL(activity_of(LEDGER_ACTIVITY_COPY, 0, 1, 2048)->volume_bytes, 1025);
    CHECK_EQUAL(activity_of(LEDGER_ACTIVITY_COPY, 0, 1, 0)->volume_bytes, 0);
    CHECK_EQUAL(activity_of(LEDGER_ACTIVITY_COPY, 0, 1, 1)->volume_bytes, 1);
    CHECK_EQUAL(count_of(activity_of(LEDGER_ACTIVITY_COPY, 0, 1, UINT64_MAX)), 1);
    CHECK_EQUAL(activity_of(LEDGER_ACTIVITY_SET, 0, 1, 512)->volume_bytes, 512);
}

static void kernel_of_blocks(uint32_t device, const char *name, uint32_t blocks,
                             int64_t duration_ns)
{
    struct gpu_event event = on(device, 7, 100, 100 + duration_ns);
    event.kind = LEDGER_ACTIVITY_KERNEL;
    event.name = name;
    event.blocks = blocks;
    activity_take(&event);
}

/* A kernel of more blocks than there are multiprocessors occupies all; of one without a grid
 * nothing is known. */
TEST(multiprocessors_of_communication_are_counted_by_time)
{
    begin();
    kernel_of_blocks(0, "ncclDevKernel_AllReduce", 16, 30);
    kernel_of_blocks(0, "ncclDevKernel_AllReduce", 500, 10);
    kernel_of_blocks(0, "ncclDevKernel_AllReduce", 0, 1000);
    kernel_of_blocks(0, "gemm", 90, 1000);
    CHECK_EQUAL(device_of(0)->sms, 100);
    CHECK_EQUAL(device_of(0)->communication_ns, 40);
    CHECK_EQUAL(device_of(0)->communication_sm_ns, 16 * 30 + 100 * 10);
    CHECK_EQUAL(device_of(0)->communication_most_sms, 100);
    kernel_of_blocks(9, "ncclDevKernel_AllReduce", 500, 10); /* how many there are is not known */
    CHECK_EQUAL(device_of(9)->communication_sm_ns, 500 * 10);
    activity_reset(zero_ns + 700);
    CHECK_EQUAL(device_of(0)->communication_ns + device_of(0)->communication_sm_ns +
                    device_of(0)->communication_most_sms,
                0);
    CHECK_EQUAL(device_of(0)->sms, 100);
}

/* Full tables */

TEST(streams_beyond_the_most_are_one_and_lose_nothing)
{
    begin();
    trace_from(0);
    for (uint32_t stream = 0; stream < 1200; stream++)
        kernel_on(0, stream, "gemm", stream * 10, stream * 10 + 5);
    trace_until(20000);
    CHECK_EQUAL(streams_in_ledger(), LEDGER_STREAM_OTHER);
    CHECK_EQUAL(count_of(activity_of(LEDGER_ACTIVITY_KERNEL, 1, LEDGER_STREAM_OTHER, 0)),
                1200 - 1022);
    CHECK_EQUAL(the_ledger.header->gpu_unattributed_records, 1200 - 1022);
    CHECK_EQUAL(busy_ns(LEDGER_COMPUTING), 1200 * 5);
    FOR_EACH_ENTRY(struct ledger_stream, stream, LEDGER_STREAMS)
        CHECK_EQUAL(stream->sampled_since_ticks,
                    stream->stream == LEDGER_STREAM_OTHER ? UINT64_MAX : 0);
    CHECK(sample_of(1022, 0) != NULL);
    CHECK(sample_of(LEDGER_STREAM_OTHER, 0) == NULL);
}

TEST(activities_beyond_the_most_are_counted_by_kind)
{
    begin();
    char name[32];
    for (int i = 0; i < 6000; i++) {
        snprintf(name, sizeof name, "kernel_%d", i % 2000);
        kernel_on(0, 1 + (uint32_t)i / 2000, name, i, i + 3);
    }
    copy(LEDGER_COPY_TO_HOST, 100, 0, 10);
    copy(LEDGER_COPY_TO_PEER, 1 << 20, 0, 10);
    set(5, 0, 10);
    struct totals all = totals();
    CHECK_EQUAL(all.count, 6003);
    CHECK_EQUAL(all.total_ns, 6000 * 3 + 30);
    CHECK(all.entries > 4000);
    CHECK(all.entries <= ACTIVITY_MOST);
    CHECK_EQUAL(
        count_of(activity_of(LEDGER_ACTIVITY_KERNEL, LEDGER_KERNEL_OTHER, LEDGER_STREAM_OTHER, 0)),
        6003 - all.entries);
    CHECK_EQUAL(activity_of(LEDGER_ACTIVITY_COPY, 0, LEDGER_STREAM_OTHER, UINT64_MAX)->volume_bytes,
                (1 << 20) + 100);
    CHECK_EQUAL(activity_of(LEDGER_ACTIVITY_SET, 0, LEDGER_STREAM_OTHER, UINT64_MAX)->volume_bytes,
                5);
    CHECK_EQUAL(the_ledger.header->gpu_unattributed_records, 6003 - (all.entries - 3));
}

TEST(kernels_beyond_the_limit_are_still_distinguished_from_communication)
{
    begin();
    trace_from(0);
    char name[32];
    for (int i = 0; i < KERNELS_MOST; i++) {
        snprintf(name, sizeof name, "kernel_%d", i);
        kernel(name, 0, 0);
    }
    kernel("gemm", 100, 150);
    kernel("ncclDevKernel_SendRecv", 200, 270);
    trace_until(1000);
    CHECK_EQUAL(busy_ns(LEDGER_COMPUTING), 50);
    CHECK_EQUAL(busy_ns(LEDGER_COMMUNICATING), 70);
    CHECK_EQUAL(told.count, 1);
    CHECK_TEXT(told.name, "");
    CHECK(the_ledger.header->gpu_unattributed_records >= 2);
}

TEST(a_ledger_that_fills_up_loses_no_activity)
{
    begin_with(1, 0); /* eight chunks: devices, streams, kernels, activities, facts */
    trace_from(0);
    kernel("gemm", 0, 10);
    while (ledger_chunk(LEDGER_FACTS, 1, 0)) {
    }
    char name[32];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "its_name_%d", i);
        kernel_on((uint32_t)i % 70, (uint32_t)i, name, i, i + 3);
    }
    trace_until(10000);
    CHECK_EQUAL(totals().count, 5001);
    CHECK(the_ledger.header->gpu_unattributed_records > 0);
    CHECK_EQUAL(traced_ns(0), 10000);
}

TEST(a_ledger_without_room_records_nothing_and_says_so)
{
    begin_with(1, 0);
    while (ledger_chunk(LEDGER_FACTS, 1, 0)) {
    }
    trace_from(0);
    for (int i = 0; i < 100; i++)
        kernel("gemm", i, i + 3);
    trace_until(1000);
    CHECK_EQUAL(the_ledger.header->gpu_unattributed_records, 100);
    CHECK(facts_asked <= 1); /* the driver is not asked for each event */
}

/* Overlap sums */

TEST(a_late_event_is_counted_but_in_no_overlap_sum)
{
    begin();
    trace_from(0);
    kernel("gemm", 600, 700);
    settle(1000);
    kernel("gemm", 900, 2000);
    kernel("ncclDevKernel_SendRecv", 999, 2000);
    kernel("gemm", 1000, 1010); /* just in time */
    trace_until(3000);
    CHECK_EQUAL(the_ledger.header->gpu_late_records, 2);
    CHECK_EQUAL(the_ledger.header->gpu_late_ns, 1100 + 1001);
    CHECK_EQUAL(totals().count, 4);
    CHECK_EQUAL(busy_ns(LEDGER_COMPUTING), 110);
    CHECK_EQUAL(busy_ns(LEDGER_COMMUNICATING), 0);
    CHECK_EQUAL(told.count, 0);
    CHECK_EQUAL(sample_of(1, 1)->start_ticks, zero_ns + 1000);
    CHECK(sample_of(1, 2) == NULL);
}

/* One event more than the queue holds, then one before the earliest, then one that arrives too
 * late. */
TEST(what_finds_no_room_to_wait_is_settled_before_its_time)
{
    begin();
    trace_from(0);
    for (int64_t i = 0; i <= ACTIVITY_MOST_WAITING; i++)
        kernel("gemm", 1000 + 10 * i, 1005 + 10 * i);
    kernel("gemm", 1000 + 3, 1000 + 8);
    kernel("gemm", 500, 505);
    trace_until(1000 + 10ll * ACTIVITY_MOST_WAITING + 100);
    CHECK_EQUAL(the_ledger.header->gpu_late_records, 1);
    CHECK_EQUAL(the_ledger.header->gpu_late_ns, 5);
    CHECK_EQUAL(busy_ns(LEDGER_COMPUTING), 5ull * ACTIVITY_MOST_WAITING + 5 + 3);
    CHECK_EQUAL(traced_ns(0), 1000 + 10ull * ACTIVITY_MOST_WAITING + 100);
    CHECK_EQUAL(totals().count, ACTIVITY_MOST_WAITING + 3ull);
}

/* Comparison with a reference that counts every nanosecond. Activities come in any order and run
 * through windows; the last device is first seen in the middle of the third window. */

enum { DEVICES = 3, WINDOWS = 6, WINDOW_NS = 400, ON_NS = 300, SPAN_NS = WINDOWS * WINDOW_NS };

static uint8_t reference[DEVICES][SPAN_NS]; /* states */

static void mark(uint32_t device, enum ledger_busy state, int64_t start_ns, int64_t end_ns)
{
    for (int64_t ns = start_ns; ns < end_ns && ns < SPAN_NS; ns++)
        reference[device][ns] |= state;
}

static void something_at(int64_t start_ns)
{
    int64_t end_ns = start_ns + (int64_t)unit_random_below(unit_random_below(4) ? 20 : 500);
    uint32_t known = start_ns < 2 * WINDOW_NS + 130 ? DEVICES - 1 : DEVICES;
    uint32_t device = (uint32_t)unit_random_below(known), stream = (uint32_t)unit_random_below(4);
    struct gpu_event copied = on(device, stream, start_ns, end_ns);
    switch (unit_random_below(4)) {
    case 0:
        kernel_on(device, stream, "gemm", start_ns, end_ns);
        mark(device, LEDGER_COMPUTING, start_ns, end_ns);
        break;
    case 1:
        kernel_on(device, stream, "ncclDevKernel_SendRecv", start_ns, end_ns);
        mark(device, LEDGER_COMMUNICATING, start_ns, end_ns);
        break;
    case 2:
        copied.kind = LEDGER_ACTIVITY_COPY;
        copied.copy = LEDGER_COPY_TO_HOST;
        activity_take(&copied);
        mark(device, LEDGER_COPYING, start_ns, end_ns);
        break;
    default:
        in_mpi(start_ns, end_ns);
        for (device = 0; device < DEVICES; device++)
            mark(device, LEDGER_IN_MPI, start_ns, end_ns);
    }
}

static void check_reference(uint32_t device)
{
    uint64_t expected[LEDGER_BUSY_STATES] = {0};
    for (int64_t ns = 0; ns < SPAN_NS; ns++)
        if (ns % WINDOW_NS < ON_NS)
            expected[reference[device][ns]]++;
    for (unsigned state = 0; state < LEDGER_BUSY_STATES; state++)
        CHECK_EQUAL(device_of(device)->state_ns[state], expected[state]);
}

TEST(any_activities_add_up_as_the_reference_does)
{
    enum { LATEST_NS = 60 };
    begin();
    for (int64_t window_ns = 0; window_ns < SPAN_NS; window_ns += WINDOW_NS) {
        trace_from(window_ns);
        for (int64_t ns = window_ns; ns < window_ns + ON_NS; ns += 20) {
            settle(ns);
            for (int i = 0; i < 6; i++)
                something_at(ns + (int64_t)unit_random_below(LATEST_NS));
        }
        trace_until(window_ns + ON_NS);
    }
    for (uint32_t device = 0; device < DEVICES; device++) {
        check_reference(device);
        CHECK_EQUAL(traced_ns(device), WINDOWS * ON_NS);
    }
    CHECK_EQUAL(the_ledger.header->gpu_late_records, 0);
    CHECK(told.is_in_order);
}

/* The observer and samples */

TEST(samples_say_what_the_activity_was)
{
    begin();
    struct gpu_event event = on(0, 7, 300, 400);
    event.kind = LEDGER_ACTIVITY_COPY;
    event.copy = LEDGER_COPY_TO_PEER;
    event.bytes = 4097;
    event.flags = LEDGER_ACTIVITY_PAGEABLE;
    activity_take(&event);
    kernel("gemm", 100, 150);
    kernel("ncclDevKernel_AllReduce", 200, 250);
    CHECK(sample_of(1, 0) == NULL);
    settle(1000);
    const struct ledger_activity_sample *gemm = sample_of(1, 0), *nccl = sample_of(1, 1),
                                        *sent = sample_of(1, 2);
    CHECK_EQUAL(gemm->start_ticks, zero_ns + 100);
    CHECK_EQUAL(gemm->end_ticks, zero_ns + 150);
    CHECK_EQUAL(gemm->kernel, 1);
    CHECK_EQUAL(gemm->kind, LEDGER_ACTIVITY_KERNEL);
    CHECK_EQUAL(gemm->communicator, 0);
    CHECK_EQUAL(nccl->kernel, 2);
    CHECK_EQUAL(nccl->communicator, 7);
    CHECK_EQUAL(sent->kernel, 0);
    CHECK_EQUAL(sent->bytes, 4097);
    CHECK_EQUAL(sent->kind, LEDGER_ACTIVITY_COPY);
    CHECK_EQUAL(sent->copy, LEDGER_COPY_TO_PEER);
    CHECK_EQUAL(sent->flags, LEDGER_ACTIVITY_PAGEABLE);
    CHECK_EQUAL(sent->stream, 1);
    CHECK(sample_of(1, 3) == NULL);
}

/* Resets */

static void reset_at(int64_t ns)
{
    the_ledger.header->reset_ticks = (uint64_t)(zero_ns + ns);
    the_ledger.header->epoch++;
    activity_reset(clock_ns_of_late(the_ledger.header->reset_ticks));
}

TEST(resets_use_the_same_room_again)
{
    begin();
    kernel("gemm", 0, 10);
    uint32_t chunks = the_ledger.header->chunk_count;
    for (int i = 0; i < 100; i++) {
        kernel("gemm", 100, 110);
        copy(LEDGER_COPY_TO_HOST, 64, 100, 110);
        CHECK_EQUAL(totals().count, 2 + (i == 0));
        reset_at(100);
    }
    CHECK_EQUAL(the_ledger.header->chunk_count, chunks);
    CHECK_EQUAL(the_ledger.header->gpu_unattributed_records, 0);
}

TEST(a_device_that_is_first_seen_after_a_reset_has_no_time_before_it)
{
    begin();
    trace_from(0);
    in_mpi(100, 200);
    settle(500);
    reset_at(600);
    kernel_on(1, 7, "gemm", 700, 800);
    trace_until(1000);
    CHECK_EQUAL(traced_ns(1), 400);
    CHECK_EQUAL(device_of(1)->state_ns[LEDGER_IN_MPI], 0);
}

/* Kills */

static volatile struct {
    uint64_t begun, done; /* events */
    bool is_resetting;
} * truth;

static void take_and_settle(void)
{
    trace_from(0);
    for (int64_t i = 0; i < 6; i++) {
        truth->begun++;
        kernel_on((uint32_t)i % 2, (uint32_t)i % 3, i % 4 ? "gemm" : "ncclDevKernel_SendRecv",
                  100 * i, 100 * i + 130);
        truth->done++;
        in_mpi(100 * i + 20, 100 * i + 60);
        settle(100 * i);
    }
    trace_until(2000);
    truth->is_resetting = true;
    truth->done = 0;
    truth->begun = 0;
    reset_at(2000);
    truth->is_resetting = false;
    truth->begun++;
    kernel("gemm", 2100, 2200);
    truth->done++;
}

static void check_devices(void)
{
    FOR_EACH_ENTRY(struct ledger_device, device, LEDGER_DEVICES) {
        CHECK(device->device && *device->name && *device->uuid);
        CHECK(traced_ns(device->number) <= 2000);
    }
}

static void check_streams(void)
{
    FOR_EACH_ENTRY(struct ledger_stream, stream, LEDGER_STREAMS)
        CHECK(stream->stream && stream->device && stream->context);
}

static void check_activities(void)
{
    struct totals now = totals();
    CHECK(truth->done <= now.count && now.count <= truth->begun);
    FOR_EACH_ENTRY(struct ledger_activity, activity, LEDGER_ACTIVITIES)
        if (activity->live && count_of(activity)) {
            CHECK(activity->kernel == 1 || activity->kernel == 2);
            CHECK(activity->stream && activity->kind == LEDGER_ACTIVITY_KERNEL);
            CHECK(activity->min_ns <= activity->max_ns);
        }
}

static void check_samples(void)
{
    for (unsigned stream = 1; stream <= 6; stream++)
        for (unsigned i = 0; sample_of(stream, i); i++) {
            const struct ledger_activity_sample *sample = sample_of(stream, i);
            CHECK(sample->end_ticks >= sample->start_ticks);
            CHECK(sample->kernel && sample->kind == LEDGER_ACTIVITY_KERNEL &&
                  sample->stream == stream);
        }
}

static void look(pid_t child)
{
    static unsigned looks;
    (void)child;
    if (the_ledger.header->gpu_epoch != the_ledger.header->epoch)
        return; /* no GPU counter is valid */
    if (!truth->is_resetting)
        check_activities();
    check_devices();
    check_streams();
    if (looks++ % 16 == 0)
        check_samples();
}

TEST(a_kill_at_any_instruction_leaves_the_ledger_whole)
{
    truth = unit_shared(sizeof *truth);
    begin_with(1 << 20, 1 << 17);
    CHECK(stepping(PTRACE_SINGLESTEP, take_and_settle, look) > 1000);
    CHECK_EQUAL(totals().count, 1);
}
