/* GPU tables: devices and their states, streams, kernels, activities, and the periods in which they
 * were traced. Only the GPU thread writes these entries, so none have to be added up. Also NCCL's
 * choice of algorithms. */
#include "rows.h"

#include "ledger/histogram.h"

#include <stdio.h>
#include <string.h>

/* Sums from before the last reset do not count. */
static bool sums_count(const struct store *store)
{
    return store->ledger->gpu_epoch == store->ledger->epoch;
}

/* The device's description, without its sums. */
static struct ledger_device device_alone(const struct ledger_device *device)
{
    struct ledger_device alone = {.device = device->device, .number = device->number};
    memcpy(alone.name, device->name, sizeof alone.name);
    memcpy(alone.uuid, device->uuid, sizeof alone.uuid);
    alone.sms = device->sms;
    alone.memory_bytes = device->memory_bytes;
    return alone;
}

static void store_busy(struct store *store, const struct ledger_device *device)
{
    for (unsigned state = 0; state < LEDGER_BUSY_STATES; state++)
        if (device->state_ns[state]) {
            const struct column row[] = {
                RANK(world_rank){"device", rows_number(store, device->device)},
                {"is_computing", rows_boolean(store, state & LEDGER_COMPUTING)},
                {"is_communicating", rows_boolean(store, state & LEDGER_COMMUNICATING)},
                {"is_copying", rows_boolean(store, state & LEDGER_COPYING)},
                {"is_in_mpi", rows_boolean(store, state & LEDGER_IN_MPI)},
                {"ns", rows_number(store, (int64_t)device->state_ns[state])}};
            ROWS_INSERT(store, "INSERT OR REPLACE INTO gpu_busy", row);
        }
}

static void store_devices(struct store *store)
{
    const struct ledger_device *entry;
    FOR_EACH_ENTRY(entry, store, LEDGER_DEVICES) {
        struct ledger_device alone = device_alone(entry);
        entry = sums_count(store) ? entry : &alone;
        const struct column row[] = {
#define ROWS_OF_GPU_DEVICE
#include "rows.def"
        };
        ROWS_INSERT(store, "INSERT OR REPLACE INTO gpu_device", row);
        store_busy(store, entry);
    }
}

static void store_streams(struct store *store)
{
    const struct ledger_stream *entry;
    FOR_EACH_ENTRY(entry, store, LEDGER_STREAMS) {
        const struct column row[] = {
#define ROWS_OF_GPU_STREAM
#include "rows.def"
        };
        ROWS_INSERT(store, "INSERT OR REPLACE INTO gpu_stream", row);
    }
}

static void store_kernels(struct store *store)
{
    static char text[LEDGER_CHUNK_BYTES];
    struct ledger_chunk *chunk;
    FOR_EACH_CHUNK(chunk, store, LEDGER_KERNELS)
        for (uint32_t at = 0; at < chunk->used;) {
            const struct ledger_kernel *entry = ledger_entry(chunk, at);
            snprintf(text, sizeof text, "%.*s", (int)entry->name_bytes, (const char *)(entry + 1));
            struct value name = rows_text(store, text);
            const struct column row[] = {
#define ROWS_OF_GPU_KERNEL
#include "rows.def"
            };
            ROWS_INSERT(store, "INSERT OR REPLACE INTO gpu_kernel", row);
            at += (uint32_t)((sizeof *entry + entry->name_bytes + 7) & ~7u);
        }
}

static void store_activity(struct store *store, int64_t number, const struct ledger_activity *entry)
{
    struct value activity = rows_number(store, number);
    struct value count = rows_number(store, (int64_t)histogram_count(entry->buckets));
    const struct column row[] = {
#define ROWS_OF_GPU_ACTIVITY
#include "rows.def"
    };
    ROWS_INSERT(store, "INSERT INTO gpu_activity", row);
    rows_insert_buckets(store, "INSERT INTO gpu_bucket", "activity", number, entry->buckets);
}

static void store_activities(struct store *store)
{
    const struct ledger_activity *activity;
    int64_t number = 0;
    FOR_EACH_ENTRY(activity, store, LEDGER_ACTIVITIES)
        if (sums_count(store) && activity->live && histogram_count(activity->buckets))
            store_activity(store, ++number, activity);
}

static void store_tracing(struct store *store, const struct ledger_tracing *entry, struct span span)
{
    struct value begin_ns = rows_number(store, span.begin_ns),
                 end_ns = rows_number(store, span.end_ns);
    struct value clock_error_ns = entry->clock_error_ns != UINT32_MAX
                                      ? rows_number(store, entry->clock_error_ns)
                                      : rows_null();
    const struct column row[] = {
#define ROWS_OF_GPU_TRACING
#include "rows.def"
    };
    ROWS_INSERT(store, "INSERT INTO gpu_tracing", row);
}

static uint32_t best_part(const struct store *store)
{
    const struct ledger_tracing *tracing;
    uint32_t best = LEDGER_PART_ANY;
    FOR_EACH_ENTRY(tracing, store, LEDGER_TRACINGS)
        best = tracing->part > best ? tracing->part : best;
    return best;
}

/* Only what was traced after the last reset counts, and in the best part of the run that there
 * is. */
static void store_tracings(struct store *store)
{
    const struct ledger_tracing *tracing;
    uint32_t part = best_part(store);
    int64_t reset_ns = rows_reset_ns(store);
    FOR_EACH_ENTRY(tracing, store, LEDGER_TRACINGS) {
        struct span span = {rows_monotonic_since_start_ns(store, tracing->begin_ns),
                            rows_wall_ns(store->ledger)};
        if (tracing->end_ns)
            span.end_ns = rows_monotonic_since_start_ns(store, tracing->end_ns);
        span.begin_ns = span.begin_ns > reset_ns ? span.begin_ns : reset_ns;
        if (span.end_ns >= span.begin_ns && tracing->part == part)
            store_tracing(store, tracing, span);
    }
}

static struct value limit(const struct store *store, const struct ledger_reading *reading,
                          unsigned which)
{
    return reading->limits & LEDGER_READING_KNOWN ? rows_boolean(store, reading->limits & which)
                                                  : rows_null();
}

/* Readings from before the last reset do not count. */
static void store_readings(struct store *store)
{
    const struct ledger_reading *entry;
    int64_t reset_ns = rows_reset_ns(store);
    FOR_EACH_ENTRY(entry, store, LEDGER_READINGS) {
        if (entry->live != 1 || rows_monotonic_since_start_ns(store, entry->at_ns) < reset_ns)
            continue;
        struct value is_idle = limit(store, entry, LEDGER_READING_IDLE),
                     is_power_limited = limit(store, entry, LEDGER_READING_POWER);
        struct value is_heat_limited = limit(store, entry, LEDGER_READING_HEAT);
        struct value is_hardware_limited = limit(store, entry, LEDGER_READING_HARDWARE);
        const struct column row[] = {
#define ROWS_OF_GPU_READING
#include "rows.def"
        };
        ROWS_INSERT(store, "INSERT OR REPLACE INTO gpu_reading", row);
    }
}

static void store_algorithms(struct store *store)
{
    const struct ledger_algorithm *entry;
    FOR_EACH_ENTRY(entry, store, LEDGER_ALGORITHMS) {
        if (!entry->count || entry->epoch != store->ledger->epoch)
            continue;
        const struct column row[] = {
#define ROWS_OF_NCCL_ALGORITHM
#include "rows.def"
        };
        ROWS_INSERT(store, "INSERT OR REPLACE INTO nccl_algorithm", row);
    }
}

void store_gpu(struct store *store)
{
    store_algorithms(store);
    store_devices(store);
    store_streams(store);
    store_kernels(store);
    store_activities(store);
    store_tracings(store);
    store_readings(store);
}

void store_activity_sample(struct store *store, const struct ledger_sample *sample)
{
    struct ledger_activity_sample activity, *entry = &activity;
    memcpy(entry, sample, sizeof *entry);
    int64_t began_ns = rows_since_start_ns(store, entry->start_ticks);
    store->settled_ns = store->settled_ns > began_ns ? store->settled_ns : began_ns;
    const struct column row[] = {
#define ROWS_OF_GPU_SAMPLE
#include "rows.def"
    };
    ROWS_INSERT_MANY(store, "INSERT INTO gpu_sample", row);
}
