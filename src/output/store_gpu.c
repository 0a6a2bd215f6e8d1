/* What GPUs did: devices and what they were busy with, streams, kernels, activities, and when all of it was traced. The GPU
 * thread alone has written it, so nothing has to be added up. And how NCCL carried out its collectives. */
#include "rows.h"

#include "ledger/histogram.h"

#include <stdio.h>
#include <string.h>

static const char *kind_name(unsigned kind)
{
    static const char *const NAMES[] = {
        [LEDGER_ACTIVITY_KERNEL] = "kernel", [LEDGER_ACTIVITY_COPY] = "copy", [LEDGER_ACTIVITY_SET] = "memset"};
    return kind >= LEDGER_ACTIVITY_KERNEL && kind <= LEDGER_ACTIVITY_SET ? NAMES[kind] : "kernel";
}

static const char *copy_name(unsigned copy)
{
    static const char *const NAMES[] = {"", "to device", "to host", "on device", "on host", "to peer", "other"};
    return copy <= LEDGER_COPY_OTHER ? NAMES[copy] : "other";
}

/* A moment of the monotonic clock, since the rank's start. */
static int64_t since_start_ns(const struct store *store, int64_t monotonic_ns)
{
    int64_t ns = monotonic_ns - store->ledger->start_ns;
    return ns > 0 ? ns : 0;
}

/* It does not while the GPU side has not heard of a reset. */
static bool what_is_counted_counts(const struct store *store)
{
    return store->ledger->gpu_epoch == store->ledger->epoch;
}

/* What the device is, and nothing that it did. */
static struct ledger_device device_alone(const struct ledger_device *device)
{
    struct ledger_device alone = {.device = device->device, .number = device->number};
    memcpy(alone.name, device->name, sizeof alone.name);
    memcpy(alone.uuid, device->uuid, sizeof alone.uuid);
    return alone;
}

static void store_busy(struct store *store, sqlite3_stmt *statement, const struct ledger_device *device)
{
    for (int64_t state = 0; state < LEDGER_BUSY_STATES; state++)
        if (device->state_ns[state])
            rows_insert(store, statement, "iiiiiii", (int64_t)store->ledger->world_rank, (int64_t)device->device,
                        (int64_t) !!(state & LEDGER_COMPUTING), (int64_t) !!(state & LEDGER_COMMUNICATING),
                        (int64_t) !!(state & LEDGER_COPYING), (int64_t) !!(state & LEDGER_IN_MPI), (int64_t)device->state_ns[state]);
}

static void store_devices(struct store *store)
{
    struct ledger_chunk *chunk;
    sqlite3_stmt *statement = rows_prepare(store, "INSERT OR REPLACE INTO gpu_device VALUES (?,?,?,?,?,?,?,?,?,?)");
    sqlite3_stmt *busy = rows_prepare(store, "INSERT OR REPLACE INTO gpu_busy VALUES (?,?,?,?,?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_DEVICES)
        for (uint32_t i = 0; i < chunk->used; i++) {
            const struct ledger_device *device = ledger_entry(chunk, i), alone = device_alone(device);
            device = what_is_counted_counts(store) ? device : &alone;
            int64_t first_ns = since_start_ns(store, device->first_ns), last_ns = since_start_ns(store, device->last_ns);
            rows_insert(store, statement, "iiittooiii", (int64_t)store->ledger->world_rank, (int64_t)device->device,
                        (int64_t)device->number, device->name, device->uuid, device->first_ns ? &first_ns : NULL,
                        device->last_ns ? &last_ns : NULL, (int64_t)device->kernels, (int64_t)device->copies, (int64_t)device->sets);
            store_busy(store, busy, device);
        }
    sqlite.finalize(statement);
    sqlite.finalize(busy);
}

static void store_streams(struct store *store)
{
    struct ledger_chunk *chunk;
    sqlite3_stmt *statement = rows_prepare(store, "INSERT OR REPLACE INTO gpu_stream VALUES (?,?,?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_STREAMS)
        for (uint32_t i = 0; i < chunk->used; i++) {
            const struct ledger_stream *stream = ledger_entry(chunk, i);
            rows_insert(store, statement, "iiiii", (int64_t)store->ledger->world_rank, (int64_t)stream->stream, (int64_t)stream->device,
                        (int64_t)stream->context, (int64_t)stream->number);
        }
    sqlite.finalize(statement);
}

static void store_kernels(struct store *store)
{
    static char name[LEDGER_CHUNK_BYTES];
    struct ledger_chunk *chunk;
    sqlite3_stmt *statement = rows_prepare(store, "INSERT OR REPLACE INTO gpu_kernel VALUES (?,?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_KERNELS)
        for (uint32_t at = 0; at < chunk->used;) {
            const struct ledger_kernel *kernel = ledger_entry(chunk, at);
            snprintf(name, sizeof name, "%.*s", (int)kernel->name_bytes, (const char *)(kernel + 1));
            rows_insert(store, statement, "iiti", (int64_t)store->ledger->world_rank, (int64_t)kernel->kernel, name,
                        (int64_t) !!kernel->is_communication);
            at += (uint32_t)((sizeof *kernel + kernel->name_bytes + 7) & ~7u);
        }
    sqlite.finalize(statement);
}

static void store_activity(struct store *store, sqlite3_stmt *activities, sqlite3_stmt *buckets, int64_t number,
                           const struct ledger_activity *activity)
{
    int64_t count = (int64_t)histogram_count(activity->buckets);
    rows_insert(store, activities, "iiititiiiiiiiii", number, (int64_t)store->ledger->world_rank, (int64_t)activity->stream,
                kind_name(activity->kind), (int64_t)activity->kernel, copy_name(activity->copy),
                (int64_t) !!(activity->flags & LEDGER_ACTIVITY_GRAPH), (int64_t) !!(activity->flags & LEDGER_ACTIVITY_PAGEABLE),
                (int64_t) !!(activity->flags & LEDGER_ACTIVITY_MANAGED), (int64_t)activity->bytes, count, (int64_t)activity->volume_bytes,
                (int64_t)activity->total_ns, (int64_t)activity->min_ns, (int64_t)activity->max_ns);
    rows_insert_buckets(store, buckets, number, activity->buckets);
}

static bool is_counted(const struct ledger_activity *activity)
{
    return activity->live && histogram_count(activity->buckets);
}

static void store_activities(struct store *store)
{
    struct ledger_chunk *chunk;
    int64_t number = 0;
    sqlite3_stmt *activities = rows_prepare(store, "INSERT INTO gpu_activity VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    sqlite3_stmt *buckets = rows_prepare(store, "INSERT INTO gpu_bucket VALUES (?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_ACTIVITIES)
        for (uint32_t i = 0; i < chunk->used; i++)
            if (what_is_counted_counts(store) && is_counted(ledger_entry(chunk, i)))
                store_activity(store, activities, buckets, ++number, ledger_entry(chunk, i));
    sqlite.finalize(activities);
    sqlite.finalize(buckets);
}

static const char *tracing_ended_name(uint32_t ended)
{
    static const char *const NAMES[] = {"goes on", "duty", "yielded", "off", "stopped", "lost"};
    return ended <= LEDGER_TRACING_LOST ? NAMES[ended] : "goes on";
}

/* What lies before a reset does not count. */
static void store_tracings(struct store *store)
{
    struct ledger_chunk *chunk;
    uint64_t reset_ticks = store->ledger->reset_ticks;
    int64_t reset_ns = reset_ticks ? rows_moment_ns(store, reset_ticks) : 0;
    sqlite3_stmt *statement = rows_prepare(store, "INSERT INTO gpu_tracing VALUES (?,?,?,?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_TRACINGS)
        for (uint32_t i = 0; i < chunk->used; i++) {
            const struct ledger_tracing *tracing = ledger_entry(chunk, i);
            int64_t begin_ns = since_start_ns(store, tracing->begin_ns), clock_error_ns = tracing->clock_error_ns;
            int64_t end_ns = tracing->end_ns ? since_start_ns(store, tracing->end_ns) : rows_wall_ns(store->ledger);
            begin_ns = begin_ns > reset_ns ? begin_ns : reset_ns;
            if (end_ns >= begin_ns)
                rows_insert(store, statement, "iiitoi", (int64_t)store->ledger->world_rank, begin_ns, end_ns,
                            tracing_ended_name(tracing->ended), tracing->clock_error_ns != UINT32_MAX ? &clock_error_ns : NULL,
                            (int64_t)tracing->records);
        }
    sqlite.finalize(statement);
}

static void store_algorithms(struct store *store)
{
    struct ledger_chunk *chunk;
    sqlite3_stmt *statement = rows_prepare(store, "INSERT OR REPLACE INTO nccl_algorithm VALUES (?,?,?,?,?,?,?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_ALGORITHMS)
        for (uint32_t i = 0; i < chunk->used; i++) {
            const struct ledger_algorithm *entry = ledger_entry(chunk, i);
            if (entry->count && entry->epoch == store->ledger->epoch)
                rows_insert(store, statement, "itiiittii", (int64_t)store->ledger->world_rank, rows_call_name(store, entry->call),
                            (int64_t)entry->communicator, (int64_t)entry->bytes, (int64_t) !!entry->is_folded, entry->algorithm,
                            entry->protocol, (int64_t)entry->channels, (int64_t)entry->count);
        }
    sqlite.finalize(statement);
}

void store_gpu(struct store *store)
{
    store_algorithms(store);
    store_devices(store);
    store_streams(store);
    store_kernels(store);
    store_activities(store);
    store_tracings(store);
}

void store_activity_sample(struct store *store, sqlite3_stmt *statement, const struct ledger_sample *sample)
{
    struct ledger_activity_sample activity;
    memcpy(&activity, sample, sizeof activity);
    int64_t start_ns = rows_moment_ns(store, activity.start_ticks);
    store->settled_ns = store->settled_ns > start_ns ? store->settled_ns : start_ns;
    rows_insert(store, statement, "iititiiiii", (int64_t)store->ledger->world_rank, (int64_t)activity.stream, kind_name(activity.kind),
                (int64_t)activity.kernel, copy_name(activity.copy), (int64_t) !!(activity.flags & LEDGER_ACTIVITY_GRAPH),
                (int64_t)activity.communicator, (int64_t)activity.bytes, start_ns, rows_moment_ns(store, activity.end_ticks));
}
