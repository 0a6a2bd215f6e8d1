/* NVIDIA's GPUs, traced by CUPTI's Activity API: the GPU writes begin and end of each activity into
 * CUPTI's memory, and CUPTI converts these to records in our buffers.
 *
 * CUPTI is shared, so we use only what cannot disturb another client: functions that all versions
 * have; no subscription, because the process has only one and PyTorch's profiler needs it; no
 * attribute and no timestamp callback that would remain set after us; never cuptiFinalize, which is
 * reported to crash programs (docs/GPU.md). Kernels are traced as CONCURRENT_KERNEL, because
 * CUPTI's KERNEL serializes them. */
#include "base/clock.h"
#include "base/settings.h"
#include "buffers.h"
#include "clients.h"
#include "cuda_driver.h"
#include "cupti_backend.h"
#include "cupti_clock.h"
#include "cupti_library.h"
#include "dump.h"
#include "graph_launches.h"
#include "interpose.h"
#include "ledger/ledger.h"
#include "nvml.h"
#include "records.h"
#include "walk.h"

#include <stdio.h>

#define MS_NS INT64_C(1000000)
#define SECOND_NS (1000 * MS_NS)

enum {
    TRIES = 10,      /* attempts to arm, until a framework's libcupti is no longer expected */
    MOST_LOSSES = 1, /* to a client that is not seen; the next loss ends tracing */
};

static const int KINDS[] = {CUPTI_CONCURRENT_KERNEL, CUPTI_MEMCPY, CUPTI_MEMCPY2, CUPTI_MEMSET};
enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

static struct {
    struct cupti cupti;
    struct walk walk;
    unsigned tries;
    unsigned losses;
    int64_t flushed_ns; /* begin of the last flush */
    int64_t complete_until_ns;
    size_t their_limit, our_limit; /* limits of device buffers; ours is 0 if theirs is in force */
} tracing;

/* Arming */

static void note_facts(void)
{
    char text[sizeof tracing.cupti.path + 64];
    int driver = cuda_driver_version();
    snprintf(text, sizeof text, "%s, version %u", tracing.cupti.path, tracing.cupti.version);
    ledger_fact("gpu.tracing_library", text);
    snprintf(text, sizeof text, "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    ledger_fact("gpu.driver", text);
}

static enum gpu_armed open_library(char *reason, size_t reason_bytes)
{
    enum gpu_armed armed = cupti_open(&tracing.cupti, reason, reason_bytes);
    bool waits_no_more = armed == GPU_ARM_LATER && ++tracing.tries >= TRIES;
    return waits_no_more ? GPU_ARM_REFUSED : armed;
}

/* A subscription held by a client that is seen is not a reason to stop: we yield to it. */
static bool is_held(char *reason, size_t reason_bytes)
{
    return !interpose_has_seen_a_client() &&
           clients_hold_cupti(&tracing.cupti, reason, reason_bytes);
}

static enum gpu_armed arm(char *reason, size_t reason_bytes)
{
    if (clients_are_seen(reason, reason_bytes))
        return GPU_ARM_REFUSED;
    cuda_driver_spare_captures();
    enum gpu_armed armed = open_library(reason, reason_bytes);
    if (armed != GPU_ARMED)
        return armed;
    note_facts();
    if (is_held(reason, reason_bytes))
        return GPU_ARM_REFUSED;
    if (!buffers_begin(tracing.cupti.version >= CUPTI_FIRST_TO_BE_REFUSED)) {
        snprintf(reason, reason_bytes, "no memory for CUPTI's buffers");
        return GPU_ARM_REFUSED;
    }
    tracing.walk = (struct walk){.next = tracing.cupti.cuptiActivityGetNextRecord,
                                 .version = tracing.cupti.version,
                                 .devices = cuda_driver_devices(),
                                 .from_ns = clock_monotonic_ns() - SECOND_NS};
    cupti_clock_begin(tracing.cupti.cuptiGetTimestamp);
    cupti_clock_pair();
    return GPU_ARMED;
}

/* Device memory
 *
 * The GPU writes the times of activities to buffers that CUPTI allocates in device memory: a few
 * per context when tracing begins, and another one whenever all are full and unread. A job that has
 * planned its memory to the last byte must not run out of it, so we limit their number while we
 * trace. The previous limit is restored when we pause, because it applies to every client, unless
 * another client has set its own meanwhile. Times that find no room are 0 and are counted as
 * implausible. */

static bool read_size(int attribute, size_t *value)
{
    size_t bytes = sizeof *value;
    return tracing.cupti.cuptiActivityGetAttribute(attribute, &bytes, value) == CUPTI_SUCCESS;
}

static bool write_limit(size_t limit)
{
    size_t bytes = sizeof limit;
    return tracing.cupti.cuptiActivitySetAttribute(CUPTI_DEVICE_BUFFER_LIMIT, &bytes, &limit) ==
           CUPTI_SUCCESS;
}

/* CUPTI requires the limit to exceed the number of buffers that it allocates at first. */
static void limit_device_buffers(void)
{
    size_t wanted = settings.gpu_device_buffers, at_first = 0;
    if (!wanted || !read_size(CUPTI_DEVICE_BUFFER_LIMIT, &tracing.their_limit) ||
        !read_size(CUPTI_DEVICE_BUFFERS_AT_FIRST, &at_first))
        return;
    wanted = wanted > at_first ? wanted : at_first + 1;
    if (wanted < tracing.their_limit && write_limit(wanted))
        tracing.our_limit = wanted;
}

static void put_limit_back(void)
{
    size_t limit = 0;
    if (tracing.our_limit && read_size(CUPTI_DEVICE_BUFFER_LIMIT, &limit) &&
        limit == tracing.our_limit)
        write_limit(tracing.their_limit);
    tracing.our_limit = 0;
}

static void note_device_memory(void)
{
    size_t bytes = 0, at_first = 0, limit = 0;
    char text[128];
    static bool is_noted;
    if (is_noted || !read_size(CUPTI_DEVICE_BUFFER_SIZE, &bytes) ||
        !read_size(CUPTI_DEVICE_BUFFERS_AT_FIRST, &at_first) ||
        !read_size(CUPTI_DEVICE_BUFFER_LIMIT, &limit))
        return;
    double mb = (double)bytes / 1e6;
    snprintf(text, sizeof text, "%.1f MB at first, at most %.0f MB a context",
             (double)at_first * mb, (double)limit * mb);
    ledger_fact("gpu.device_memory", text);
    is_noted = true;
}

/* Tracing */

static bool refuse(const char *what, int result, char *reason, size_t reason_bytes)
{
    snprintf(reason, reason_bytes, "CUPTI refused %s: %s (%d)", what,
             cupti_result_name(&tracing.cupti, result), result);
    return false;
}

/* Another client may have replaced our callbacks, and then received our buffers. */
static int register_ours(void)
{
    if (interpose_callbacks_are_ours())
        return CUPTI_SUCCESS;
    buffers_abandon();
    int result = tracing.cupti.cuptiActivityRegisterCallbacks(buffers_request, buffers_complete);
    if (result == CUPTI_SUCCESS)
        interpose_callbacks_become_ours();
    return result;
}

static void disable(unsigned count)
{
    while (count-- > 0)
        tracing.cupti.cuptiActivityDisable(KINDS[count]);
}

static bool can_go_on(char *reason, size_t reason_bytes)
{
    if (tracing.walk.layout_is_wrong)
        snprintf(reason, reason_bytes,
                 "records of this CUPTI (version %u) look otherwise than those that are known",
                 tracing.walk.version);
    else if (tracing.losses > MOST_LOSSES)
        snprintf(reason, reason_bytes, "another client of CUPTI takes its buffers");
    else
        return tracing.losses == 0 || !is_held(reason, reason_bytes);
    return false;
}

static bool resume(char *reason, size_t reason_bytes)
{
    if (!can_go_on(reason, reason_bytes))
        return false;
    int result = register_ours();
    if (result != CUPTI_SUCCESS)
        return refuse("our callbacks", result, reason, reason_bytes);
    cupti_clock_pair();
    limit_device_buffers();
    note_device_memory();
    for (unsigned i = 0; i < KIND_COUNT; i++) {
        result = tracing.cupti.cuptiActivityEnable(KINDS[i]);
        if (result == CUPTI_SUCCESS)
            continue;
        disable(i);
        put_limit_back();
        return refuse(KINDS[i] == CUPTI_CONCURRENT_KERNEL ? "to trace kernels" : "to trace copies",
                      result, reason, reason_bytes);
    }
    graph_launches_follow(true);
    return true;
}

static void pause_tracing(void)
{
    graph_launches_follow(false);
    disable(KIND_COUNT);
    put_limit_back();
}

/* Collecting */

/* How far back activities may have begun whose records have not arrived yet.
 *
 * A flush returns the buffers whose records are all finished. According to its documentation
 * ("incomplete records"), CUPTI creates the record of a kernel at its launch, in the buffer in use
 * then. So a missing record is in a buffer that is still lent, and its activity began after that
 * buffer was lent: however long ago that is, as a device that never idles gives a buffer back only
 * when it is full. If CUPTI writes records only when they are finished, as newer versions may, a
 * running kernel is in no buffer; it began at most one kernel duration ago, estimated by the
 * longest recent kernel. We allow for both. A kernel that lasts longer than all before and is in no
 * buffer arrives late and is counted as late; the next one like it does not. */
enum { LEAST_HOLD_MS = 500, MOST_HOLD_S = 10, CLOCKS_APART_MS = 1 };

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t complete_until(void)
{
    int64_t hold_ns = at_most(
        at_least(tracing.walk.longest_ns + tracing.walk.longest_ns / 4, LEAST_HOLD_MS * MS_NS),
        MOST_HOLD_S * SECOND_NS);
    return at_most(tracing.flushed_ns - hold_ns, buffers_lent_since_ns() - CLOCKS_APART_MS * MS_NS);
}

/* The longest kernel decays: by half in 44 collections. */
static void forget_the_longest(void)
{
    tracing.walk.longest_ns -= tracing.walk.longest_ns / 64;
}

static void walk_one(uint8_t *buffer, size_t valid_bytes)
{
    walk_buffer(&tracing.walk, buffer, valid_bytes);
}

static void pair_clocks(void)
{
    uint64_t theirs;
    int64_t ours_ns;
    cupti_clock_pair();
    if (cupti_clock_last(&theirs, &ours_ns))
        dump_pair(theirs, ours_ns);
}

static void flush(bool everything)
{
    int64_t now_ns = clock_monotonic_ns();
    if (!everything && now_ns - tracing.flushed_ns < tracing.cupti.least_flush_ns)
        return;
    if (tracing.cupti.cuptiActivityFlushAll(everything ? CUPTI_FLUSH_FORCED : 0) == CUPTI_SUCCESS)
        tracing.flushed_ns = now_ns;
}

static uint64_t dropped_records(void)
{
    size_t dropped = 0;
    tracing.cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
    return dropped + buffers_sunk_records();
}

static struct gpu_collected collect(gpu_take take, bool everything)
{
    struct walk *walk = &tracing.walk;
    uint64_t records_before = walk->records, implausible_before = walk->implausible;
    int64_t lent_before_ns = buffers_lent_since_ns();

    dump_open(walk->version);
    pair_clocks();
    flush(everything);
    pair_clocks();
    forget_the_longest();
    walk->take = take;
    walk->until_ns = clock_monotonic_ns() + SECOND_NS;
    unsigned came = buffers_collect(walk_one);
    dump_close();

    /* A forced flush returns every buffer to the registered callbacks: if none has reached ours,
     * other callbacks are registered. */
    bool is_lost = everything && lent_before_ns != INT64_MAX &&
                   lent_before_ns == buffers_lent_since_ns() && came == 0;
    if (is_lost) {
        tracing.losses++;
        interpose_callbacks_become_another_s();
    }
    tracing.complete_until_ns = at_least(tracing.complete_until_ns, complete_until());
    return (struct gpu_collected){.records = walk->records - records_before,
                                  .dropped = dropped_records(),
                                  .implausible = walk->implausible - implausible_before,
                                  .clock_error_ns = cupti_clock_error_ns(),
                                  .complete_until_ns = tracing.complete_until_ns,
                                  .graph_launches = graph_launches_taken(),
                                  .is_foreign = is_lost || walk->layout_is_wrong};
}

/* If another client's callback has received our buffers, it may have freed them. */
static uint64_t unread(void)
{
    return interpose_callbacks_are_ours() ? buffers_unread_records() : 0;
}

/* Streams */

static const uintptr_t
    LEGACY = 1,
    PER_THREAD = 2; /* handles of the default streams: CU_STREAM_LEGACY, CU_STREAM_PER_THREAD */

static bool ask_for_stream(void *handle, struct gpu_stream *stream)
{
    bool is_per_thread = (uintptr_t)handle == PER_THREAD,
         is_default = is_per_thread || (uintptr_t)handle == LEGACY;
    void *context = cuda_driver_context_of(handle);
    return context && tracing.cupti.cuptiGetContextId && tracing.cupti.cuptiGetStreamIdEx &&
           tracing.cupti.cuptiGetContextId(context, &stream->context) == CUPTI_SUCCESS &&
           tracing.cupti.cuptiGetStreamIdEx(context, is_default ? NULL : handle, is_per_thread,
                                            &stream->number) == CUPTI_SUCCESS;
}

/* Each thread caches its last streams by the driver's ids. A default stream belongs to the context
 * or to the thread, so it is looked up each time, as are all streams if the driver has no ids. */
static bool find_stream(void *handle, struct gpu_stream *stream)
{
    enum { REMEMBERED = 8 };
    static _Thread_local struct {
        uint64_t id;
        struct gpu_stream stream;
        bool is_known;
    } remembered[REMEMBERED] __attribute__((tls_model("initial-exec")));
    uint64_t id;
    if ((uintptr_t)handle <= PER_THREAD || !cuda_driver_stream_id(handle, &id))
        return ask_for_stream(handle, stream);
    unsigned at = (unsigned)(id % REMEMBERED);
    if (!remembered[at].is_known || remembered[at].id != id) {
        remembered[at].id = id;
        remembered[at].is_known = ask_for_stream(handle, &remembered[at].stream);
    }
    *stream = remembered[at].stream;
    return remembered[at].is_known;
}

const struct gpu_backend cupti_backend = {
    .name = "CUDA",
    .look = cuda_driver_look,
    .arm = arm,
    .resume = resume,
    .pause = pause_tracing,
    .collect = collect,
    .uncollected_since_ns = buffers_lent_since_ns,
    .unread = unread,
    .device_facts = cuda_driver_device_facts,
    .find_sensors = nvml_find_sensors,
    .read_sensors = nvml_read_sensors,
    .memory_kind = cuda_driver_memory_kind,
    .find_stream = find_stream,
    .is_capturing = cuda_driver_is_capturing,
};
