/* NVIDIA's GPUs, traced by CUPTI's Activity API: the GPU writes begin and end of what it runs into memory of CUPTI's, which makes records of
 * them in buffers of ours.
 *
 * We are a guest of CUPTI, too. Only what cannot disturb another client is used: the functions that all versions have; no subscription, for
 * there is one for the whole process and PyTorch's profiler needs it; no attribute, no callback for timestamps, for both would stay; never
 * cuptiFinalize. Kernels are traced as CONCURRENT_KERNEL, for CUPTI's KERNEL would run one after the other. */
#include "buffers.h"
#include "clients.h"
#include "clock.h"
#include "cuda_driver.h"
#include "cupti_backend.h"
#include "cupti_clock.h"
#include "cupti_library.h"
#include "dump.h"
#include "interpose.h"
#include "ledger/ledger.h"
#include "records.h"
#include "walk.h"

#include <stdio.h>

#define MS_NS INT64_C(1000000)
#define SECOND_NS (1000 * MS_NS)

enum {
    TRIES = 10,      /* of arming, until it is clear that a framework's libcupti does not come */
    MOST_LOSSES = 1, /* to a client that is not seen; the next one is the last */
};

static const int KINDS[] = {CUPTI_CONCURRENT_KERNEL, CUPTI_MEMCPY, CUPTI_MEMCPY2, CUPTI_MEMSET};
enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

static struct {
    struct cupti cupti;
    struct walk walk;
    unsigned tries;
    unsigned losses;
    int64_t flushed_ns; /* when the last flush began */
    int64_t complete_until_ns;
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

/* The subscription of a client that is seen is no reason: it is yielded to. */
static bool is_held(char *reason, size_t reason_bytes)
{
    return !interpose_has_seen_a_client() && clients_hold_cupti(&tracing.cupti, reason, reason_bytes);
}

static enum gpu_armed arm(char *reason, size_t reason_bytes)
{
    if (clients_are_seen(reason, reason_bytes))
        return GPU_ARM_REFUSED;
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

/* Tracing */

static bool refuse(const char *what, int result, char *reason, size_t reason_bytes)
{
    snprintf(reason, reason_bytes, "CUPTI refused %s: %s (%d)", what, cupti_result_name(&tracing.cupti, result), result);
    return false;
}

/* Callbacks of another client may have taken the place of ours, and then our buffers. */
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
        snprintf(reason, reason_bytes, "records of this CUPTI (version %u) look otherwise than those that are known", tracing.walk.version);
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
    for (unsigned i = 0; i < KIND_COUNT; i++) {
        result = tracing.cupti.cuptiActivityEnable(KINDS[i]);
        if (result == CUPTI_SUCCESS)
            continue;
        disable(i);
        return refuse(KINDS[i] == CUPTI_CONCURRENT_KERNEL ? "to trace kernels" : "to trace copies", result, reason, reason_bytes);
    }
    return true;
}

static void pause_tracing(void)
{
    disable(KIND_COUNT);
}

/* Collecting */

/* How far back activities may have begun that have not come yet.
 *
 * A flush gives back the buffers whose records are all finished. CUPTI makes the record of a kernel when it is launched, in the buffer that
 * is in use then, as its documentation has it ("incomplete records"): so what has not come lies in a buffer that is not back, and began after
 * that was lent. Should CUPTI write records only when they are finished, as newer ones may, then what still runs lies in no buffer at all; it
 * began at most as long ago as a kernel takes, and the longest one of late says how long that is. Both are allowed for. A kernel that lasts
 * longer than all before and is in no buffer comes late, and is counted as late: the next one like it does not. */
enum { LEAST_HOLD_MS = 500, MOST_HOLD_S = 10, MOST_WAIT_S = 60, CLOCKS_APART_MS = 1 };

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
    int64_t hold_ns =
        at_most(at_least(tracing.walk.longest_ns + tracing.walk.longest_ns / 4, LEAST_HOLD_MS * MS_NS), MOST_HOLD_S * SECOND_NS);
    int64_t lent_ns = at_least(buffers_lent_since_ns(), tracing.flushed_ns - MOST_WAIT_S * SECOND_NS);
    return at_most(tracing.flushed_ns - hold_ns, lent_ns - CLOCKS_APART_MS * MS_NS);
}

/* Forgotten by and by: half of it in 44 collections. */
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

    /* A forced flush gives back every buffer, but to the callbacks that are registered: if none has come to ours, they are not ours. */
    bool is_lost = everything && lent_before_ns != INT64_MAX && lent_before_ns == buffers_lent_since_ns() && came == 0;
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
                                  .is_foreign = is_lost || walk->layout_is_wrong};
}

/* Where another client's callback gets our buffers it may have freed them. */
static uint64_t unread(void)
{
    return interpose_callbacks_are_ours() ? buffers_unread_records() : 0;
}

/* Streams */

static const uintptr_t LEGACY = 1, PER_THREAD = 2; /* handles of the default streams: CU_STREAM_LEGACY, CU_STREAM_PER_THREAD */

static bool ask_for_stream(void *handle, struct gpu_stream *stream)
{
    bool is_per_thread = (uintptr_t)handle == PER_THREAD, is_default = is_per_thread || (uintptr_t)handle == LEGACY;
    void *context = cuda_driver_context_of(handle);
    return context && tracing.cupti.cuptiGetContextId && tracing.cupti.cuptiGetStreamIdEx &&
           tracing.cupti.cuptiGetContextId(context, &stream->context) == CUPTI_SUCCESS &&
           tracing.cupti.cuptiGetStreamIdEx(context, is_default ? NULL : handle, is_per_thread, &stream->number) == CUPTI_SUCCESS;
}

/* A thread remembers its last streams by the driver's ids. Those of default streams are the context's, or the thread's: they are asked for
 * each time, as all are where the driver has no ids. */
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
    .unread = unread,
    .device_facts = cuda_driver_device_facts,
    .place = cuda_driver_place,
    .find_stream = find_stream,
    .is_capturing = cuda_driver_is_capturing,
};
