/* Nothing is lost where the node goes down at any moment: the database is on the disk before it takes its name, and the name is before
 * the ledger goes.
 *
 *     write rank-0.db.tmp, fsync it -> rename it to rank-0.db -> fsync the folder -> the caller removes rank-0.ledger
 *
 * Peers are stored for the process, not for each thread: rows of several threads add up on insertion. The ledger is trusted
 * here, it is our own process's. Whoever reads it from a file checks it first. */
#include "store.h"

#include "clock.h"
#include "ledger/histogram.h"
#include "ledger/ledger.h"
#include "ledger/samples.h"
#include "sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__asm__(".section .rodata\n"
        ".global store_schema\n.hidden store_schema\n"
        "store_schema:\n.incbin \"src/output/schema.sql\"\n.byte 0\n"
        ".previous\n");
extern const char store_schema[];

/* The rest of a window in which a thread's calls were not kept any more. */
struct gap {
    uint32_t thread;
    uint64_t window;
    int64_t begin_ns;
};

struct store {
    sqlite3 *database;
    const struct ledger_header *ledger;
    const struct ledger_call *calls[1024]; /* by number */
    uint8_t levels[UINT16_MAX + 1];        /* sample_level by a communicator's slot */
    struct gap *gaps;
    size_t gap_count;
    bool failed;
};

static sqlite3_stmt *prepare(struct store *store, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite.prepare_v2(store->database, sql, -1, &statement, NULL) != SQLITE_OK)
        store->failed = true;
    return statement;
}

static void bind_optional(sqlite3_stmt *statement, int index, const int64_t *value)
{
    if (value)
        sqlite.bind_int64(statement, index, *value);
    else
        sqlite.bind_null(statement, index);
}

/* Run a prepared statement with values: i int64_t, o const int64_t *, t text; a null pointer is stored as NULL. */
static void insert(struct store *store, sqlite3_stmt *statement, const char *types, ...)
{
    if (store->failed)
        return;
    va_list values;
    va_start(values, types);
    for (int i = 0; types[i]; i++) {
        if (types[i] == 'i')
            sqlite.bind_int64(statement, i + 1, va_arg(values, int64_t));
        else if (types[i] == 'o')
            bind_optional(statement, i + 1, va_arg(values, const int64_t *));
        else
            sqlite.bind_text(statement, i + 1, va_arg(values, const char *), -1, NULL);
    }
    va_end(values);
    store->failed |= sqlite.step(statement) != SQLITE_DONE;
    sqlite.reset(statement);
}

/* The next chunk of a kind from `*index` on; NULL at the end. */
static struct ledger_chunk *next_chunk(const struct ledger_header *ledger, enum ledger_kind kind, uint32_t *index)
{
    while (*index < ledger->chunk_count) {
        struct ledger_chunk *chunk = ledger_chunk_at(ledger, (*index)++);
        if (chunk->kind == kind)
            return chunk;
    }
    return NULL;
}

#define FOR_EACH_CHUNK(chunk, store, kind) for (uint32_t at_ = 0; (chunk = next_chunk((store)->ledger, kind, &at_));)

/* Whether what a thread's chunk holds counts: it does not while the thread has not heard of a reset. */
static bool counts(const struct store *store, const struct ledger_chunk *of_thread)
{
    struct ledger_chunk *chunk;
    FOR_EACH_CHUNK(chunk, store, LEDGER_THREADS)
        for (uint32_t i = 0; i < chunk->used; i++) {
            const struct ledger_thread *thread = ledger_entry(chunk, i);
            if (thread->thread == of_thread->thread)
                return thread->epoch == store->ledger->epoch;
        }
    return true;
}

static const char *call_name(const struct store *store, unsigned call)
{
    return call < 1024 && store->calls[call] ? store->calls[call]->name : "";
}

static const char *ended_name(uint32_t ended)
{
    static const char *const NAMES[] = {"running", "finalize", "exit", "abort"};
    return ended < 4 ? NAMES[ended] : "running";
}

/* The last value of a fact; "" if there is none. */
static void find_fact(const struct store *store, const char *wanted, char *value, size_t bytes)
{
    struct ledger_chunk *chunk;
    value[0] = '\0';
    FOR_EACH_CHUNK(chunk, store, LEDGER_FACTS)
        for (uint32_t at = 0; at < chunk->used;) {
            const struct ledger_fact *fact = ledger_entry(chunk, at);
            const char *key = (const char *)(fact + 1);
            if (strlen(wanted) == fact->key_bytes && memcmp(key, wanted, fact->key_bytes) == 0)
                snprintf(value, bytes, "%.*s", (int)fact->value_bytes, key + fact->key_bytes);
            at += (uint32_t)((sizeof *fact + fact->key_bytes + fact->value_bytes + 7) & ~7u);
        }
}

static int64_t wall_ns_until_now(const struct ledger_header *ledger)
{
    return (ledger->ended == LEDGER_RUNNING ? clock_monotonic_ns() : ledger->end_ns) - ledger->start_ns;
}

static int64_t counted_ns(const struct ledger_header *ledger)
{
    int64_t until_ns = ledger->start_ns + wall_ns_until_now(ledger);
    return ledger->counted_ns + (ledger->counting_since_ns ? until_ns - ledger->counting_since_ns : 0);
}

static void store_rank(struct store *store, int64_t began_ns)
{
    const struct ledger_header *ledger = store->ledger;
    char run_id[512];
    find_fact(store, "run_id", run_id, sizeof run_id);
    sqlite3_stmt *statement = prepare(store, "INSERT INTO rank VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    bool has_end = ledger->ended != LEDGER_RUNNING;
    int64_t wall_ns = wall_ns_until_now(ledger);
    insert(store, statement, "iitiiiiooiotiiiiiiiii", (int64_t)ledger->world_rank, (int64_t)ledger->world_size, run_id, ledger->pid,
           (int64_t)ledger->thread_level, ledger->start_unix_ns, ledger->start_ns, has_end ? &ledger->end_unix_ns : NULL, &wall_ns,
           counted_ns(ledger), ledger->reset_unix_ns ? &ledger->reset_unix_ns : NULL, ended_name(ledger->ended),
           (int64_t)ledger->abort_code, (int64_t)ledger->dropped_calls, (int64_t)ledger->untracked_requests, (int64_t)ledger->folded_cells,
           (int64_t)ledger->folded_communicators, (int64_t)ledger->cost_init_ns,
           (int64_t)ledger->cost_finalize_ns + clock_monotonic_ns() - began_ns, (int64_t)ledger->cost_per_call_ps, ledger->clock_error_ppb);
    sqlite.finalize(statement);
}

static void store_facts(struct store *store)
{
    static char value[LEDGER_CHUNK_BYTES];
    struct ledger_chunk *chunk;
    sqlite3_stmt *statement = prepare(store, "INSERT OR REPLACE INTO fact VALUES (?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_FACTS)
        for (uint32_t at = 0; at < chunk->used;) {
            const struct ledger_fact *fact = ledger_entry(chunk, at);
            char key[300];
            snprintf(key, sizeof key, "%.*s", (int)fact->key_bytes, (const char *)(fact + 1));
            snprintf(value, sizeof value, "%.*s", (int)fact->value_bytes, (const char *)(fact + 1) + fact->key_bytes);
            insert(store, statement, "itt", (int64_t)store->ledger->world_rank, key, value);
            at += (uint32_t)((sizeof *fact + fact->key_bytes + fact->value_bytes + 7) & ~7u);
        }
    sqlite.finalize(statement);
}

static void store_calls(struct store *store)
{
    struct ledger_chunk *chunk;
    sqlite3_stmt *statement = prepare(store, "INSERT OR REPLACE INTO call VALUES (?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_CALLS)
        for (uint32_t i = 0; i < chunk->used; i++) {
            const struct ledger_call *call = ledger_entry(chunk, i);
            if (call->call < 1024)
                store->calls[call->call] = call;
            insert(store, statement, "tt", call->name, call->family);
        }
    sqlite.finalize(statement);
}

static int64_t ns_since_start(const struct ledger_header *ledger, uint64_t ticks)
{
    int64_t since = (int64_t)(ticks - ledger->clock_ticks);
    return ledger->clock_ns - ledger->start_ns + (int64_t)(((__int128)since * (int64_t)ledger->clock_scale) >> 32);
}

/* What a thread has announced last is told with it: the other threads of the job may be in MPI while this is written. */
static void store_thread(struct store *store, sqlite3_stmt *statement, const struct ledger_thread *thread)
{
    uint64_t doing = __atomic_load_n(&thread->doing, __ATOMIC_ACQUIRE);
    int64_t slot = (uint16_t)(doing >> LEDGER_DOING_SLOT_BIT), is_inside = doing >> LEDGER_DOING_INSIDE_BIT & 1;
    int64_t since_ns = doing ? ns_since_start(store->ledger, thread->since_ticks) : 0;
    int64_t bytes = (int64_t)thread->bytes, peer = thread->peer, tag = thread->tag;
    insert(store, statement, "iiititiiiooot", (int64_t)store->ledger->world_rank, (int64_t)thread->thread, thread->tid, thread->name,
           (int64_t)thread->is_main, call_name(store, (uint16_t)doing), slot, is_inside, since_ns,
           slot && thread->bytes != LEDGER_BYTES_UNKNOWN ? &bytes : NULL, slot && peer != LEDGER_NO_RANK ? &peer : NULL,
           slot && tag != LEDGER_NO_TAG ? &tag : NULL, call_name(store, (unsigned)(doing >> LEDGER_DOING_AWAITED_BIT)));
}

static void store_threads(struct store *store)
{
    struct ledger_chunk *chunk;
    sqlite3_stmt *statement = prepare(store, "INSERT INTO thread VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_THREADS)
        for (uint32_t i = 0; i < chunk->used; i++) {
            const struct ledger_thread *thread = ledger_entry(chunk, i);
            store_thread(store, statement, thread);
        }
    sqlite.finalize(statement);
}

static void store_recent(struct store *store, sqlite3_stmt *statement, const struct ledger_communicator *entry)
{
    uint64_t begun = entry->collectives;
    uint64_t first = begun > LEDGER_RECENT_COLLECTIVES ? begun - LEDGER_RECENT_COLLECTIVES : 0;
    for (uint64_t i = first; i < begun; i++) {
        const struct ledger_collective *collective = &entry->recent[i % LEDGER_RECENT_COLLECTIVES];
        int64_t bytes = (int64_t)collective->bytes, root = collective->root;
        insert(store, statement, "iiitoo", (int64_t)store->ledger->world_rank, (int64_t)entry->communicator, (int64_t)i + 1,
               call_name(store, collective->call), collective->bytes != LEDGER_BYTES_UNKNOWN ? &bytes : NULL,
               root != LEDGER_NO_RANK ? &root : NULL);
    }
}

static void store_communicators(struct store *store)
{
    struct ledger_chunk *chunk;
    memset(store->levels, LEDGER_SAMPLE_LEVEL_NONE, sizeof store->levels);
    sqlite3_stmt *statement = prepare(store, "INSERT INTO communicator VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    sqlite3_stmt *recent = prepare(store, "INSERT INTO recent_collective VALUES (?,?,?,?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_COMMUNICATORS)
        for (uint32_t i = 0; i < chunk->used; i++) {
            const struct ledger_communicator *entry = ledger_entry(chunk, i);
            char identity[17], parent[17];
            int64_t level = __atomic_load_n(&entry->sample_level, __ATOMIC_RELAXED);
            store->levels[(uint16_t)entry->communicator] = (uint8_t)level;
            snprintf(identity, sizeof identity, "%016llx", (unsigned long long)entry->identity);
            snprintf(parent, sizeof parent, "%016llx", (unsigned long long)entry->parent_identity);
            insert(store, statement, "iittttiiiitiiio", (int64_t)store->ledger->world_rank, (int64_t)entry->communicator, identity,
                   entry->parent_identity ? parent : NULL, entry->name, call_name(store, entry->constructor), (int64_t)entry->ordinal,
                   (int64_t)entry->size, (int64_t)entry->remote_size, (int64_t)entry->comm_rank, entry->members,
                   (int64_t) !!(entry->flags & LEDGER_COMMUNICATOR_INTER), (int64_t) !!(entry->flags & LEDGER_COMMUNICATOR_FREED),
                   (int64_t)entry->collectives, level < LEDGER_SAMPLE_LEVEL_NONE ? &level : NULL);
            store_recent(store, recent, entry);
        }
    sqlite.finalize(statement);
    sqlite.finalize(recent);
}

static void store_peers(struct store *store)
{
    struct ledger_chunk *chunk;
    sqlite3_stmt *statement =
        prepare(store, "INSERT INTO peer VALUES (?,?,?,?,?,?,?) ON CONFLICT (world_rank, call, direction, peer) DO UPDATE SET "
                       "count = count + excluded.count, bytes = bytes + excluded.bytes, "
                       "time_ns = time_ns + excluded.time_ns");
    FOR_EACH_CHUNK(chunk, store, LEDGER_PEERS)
        for (uint32_t i = 0, used = counts(store, chunk) ? chunk->used : 0; i < used; i++) {
            const struct ledger_peer *peer = ledger_entry(chunk, i);
            if (peer->count == 0)
                continue;
            insert(store, statement, "ittiiii", (int64_t)store->ledger->world_rank, call_name(store, peer->call),
                   peer->direction == LEDGER_SENT ? "sent" : "received", (int64_t)peer->peer, (int64_t)peer->count, (int64_t)peer->bytes,
                   (int64_t)peer->time_ns);
        }
    sqlite.finalize(statement);
}

static const char *measure_name(unsigned measure)
{
    static const char *const NAMES[] = {"call", "completion", "poll"};
    return measure < 3 ? NAMES[measure] : "call";
}

static void store_cells(struct store *store)
{
    struct ledger_chunk *chunk;
    int64_t number = 0;
    sqlite3_stmt *cells = prepare(store, "INSERT INTO cell VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    sqlite3_stmt *buckets = prepare(store, "INSERT INTO bucket VALUES (?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_CELLS)
        for (uint32_t i = 0, used = counts(store, chunk) ? chunk->used : 0; i < used; i++) {
            const struct ledger_cell *cell = ledger_entry(chunk, i);
            int64_t count = 0;
            for (int b = 0; cell->live && b < HISTOGRAM_BUCKETS; b++)
                count += (int64_t)cell->buckets[b];
            if (count == 0)
                continue;
            number++;
            insert(store, cells, "iiitiittiiiiiiii", number, (int64_t)store->ledger->world_rank, (int64_t)chunk->thread,
                   call_name(store, cell->call), (int64_t)cell->communicator, (int64_t)cell->bytes, measure_name(cell->measure),
                   cell->place == LEDGER_HOST ? "host" : "device", (int64_t)cell->region, (int64_t) !!(cell->flags & LEDGER_CELL_FOLDED),
                   count, (int64_t)cell->volume_bytes, (int64_t)cell->total_ns, (int64_t)cell->min_ns, (int64_t)cell->max_ns,
                   (int64_t)cell->blocked_ns);
            for (int b = 0; b < HISTOGRAM_BUCKETS; b++)
                if (cell->buckets[b])
                    insert(store, buckets, "iii", number, (int64_t)b, (int64_t)cell->buckets[b]);
        }
    sqlite.finalize(cells);
    sqlite.finalize(buckets);
}

/* A page as it is. False: a thread of the job has just taken it for something else. */
static bool take_page(const struct ledger_page *from, struct ledger_page *page)
{
    uint64_t owner = __atomic_load_n(&from->owner, __ATOMIC_ACQUIRE);
    memcpy(page, from, offsetof(struct ledger_page, samples));
    for (int i = 0; i < LEDGER_PAGE_SAMPLES; i++) {
        uint64_t end_ticks = __atomic_load_n(&from->samples[i].end_ticks, __ATOMIC_ACQUIRE);
        page->samples[i] = from->samples[i];
        page->samples[i].end_ticks = end_ticks;
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    uint64_t owner_now = __atomic_load_n(&from->owner, __ATOMIC_RELAXED), first_now = __atomic_load_n(&from->first, __ATOMIC_RELAXED);
    return page->owner == owner && owner_now == owner && page->first == first_now;
}

/* Pages whose block or window is kept no longer wait for another owner. */
static bool page_is_kept(const struct store *store, const struct ledger_page *page)
{
    uint64_t part = samples_part(page->owner, page->first);
    switch ((uint8_t)page->owner) {
    case LEDGER_OF_COMMUNICATOR:
        return samples_level_keeps(part, store->levels[(uint16_t)(page->owner >> 8)]);
    case LEDGER_OF_THREAD:
        return samples_level_keeps(part, store->ledger->window_level);
    case LEDGER_OF_STEPS:
        return samples_level_keeps(part, store->ledger->step_level);
    default:
        return false;
    }
}

/* Rows of samples in all their variety. */
struct sample_statements {
    sqlite3_stmt *sample, *step, *span;
};

static int64_t moment_ns(const struct store *store, uint64_t ticks)
{
    int64_t ns = ns_since_start(store->ledger, ticks);
    return ns > 0 ? ns : 0;
}

static void store_call_sample(struct store *store, sqlite3_stmt *statement, const struct ledger_sample *sample, const int64_t *sequence)
{
    int64_t completed_ns = moment_ns(store, sample->completed_ticks), bytes = (int64_t)sample->bytes, rank = sample->peer;
    const int64_t *peer_or_root = rank != LEDGER_NO_RANK ? &rank : NULL;
    insert(store, statement, "iitioiiooooti", (int64_t)store->ledger->world_rank, (int64_t)sample->thread, call_name(store, sample->call),
           (int64_t)sample->communicator, sequence, moment_ns(store, sample->start_ticks), moment_ns(store, sample->end_ticks),
           sample->completed_ticks ? &completed_ns : NULL, sample->bytes != LEDGER_BYTES_UNKNOWN ? &bytes : NULL,
           sequence ? NULL : peer_or_root, sequence ? peer_or_root : NULL, call_name(store, sample->awaited), (int64_t)sample->region);
}

/* The last step has no length yet: it goes on until the end. */
static void store_step(struct store *store, sqlite3_stmt *statement, const struct ledger_sample *sample, int64_t step)
{
    bool is_open = sample->end_ticks == sample->start_ticks;
    int64_t end_ns = is_open ? wall_ns_until_now(store->ledger) : moment_ns(store, sample->end_ticks);
    insert(store, statement, "iiiii", (int64_t)store->ledger->world_rank, step, (int64_t)sample->thread,
           moment_ns(store, sample->start_ticks), end_ns);
}

static void store_span(struct store *store, sqlite3_stmt *statement, const struct ledger_sample *sample)
{
    insert(store, statement, "iiiii", (int64_t)store->ledger->world_rank, (int64_t)sample->thread, (int64_t)sample->region,
           moment_ns(store, sample->start_ticks), moment_ns(store, sample->end_ticks));
}

static void store_page(struct store *store, const struct sample_statements *statements, const struct ledger_page *page)
{
    for (int i = 0; i < LEDGER_PAGE_SAMPLES; i++) {
        const struct ledger_sample *sample = &page->samples[i];
        int64_t number = (int64_t)page->first + i + 1;
        if (!sample->end_ticks || sample->start_ticks < store->ledger->reset_ticks)
            continue;
        if ((uint8_t)page->owner == LEDGER_OF_STEPS)
            store_step(store, statements->step, sample, number);
        else if (sample->call)
            store_call_sample(store, statements->sample, sample, (uint8_t)page->owner == LEDGER_OF_COMMUNICATOR ? &number : NULL);
        else
            store_span(store, statements->span, sample);
    }
}

/* Where a thread's window is cut off. Without memory the database would say more than is true, and is not written. */
static void note_gap(struct store *store, const struct ledger_page *page)
{
    if ((uint8_t)page->owner != LEDGER_OF_THREAD || !page->until_ticks)
        return;
    struct gap *gaps = realloc(store->gaps, (store->gap_count + 1) * sizeof *gaps);
    store->failed |= !gaps;
    if (!gaps)
        return;
    store->gaps = gaps;
    gaps[store->gap_count++] = (struct gap){(uint32_t)(page->owner >> 8), page->first, moment_ns(store, page->until_ticks)};
}

static void store_samples(struct store *store)
{
    struct ledger_chunk *chunk;
    struct ledger_page page;
    struct sample_statements statements = {prepare(store, "INSERT INTO sample VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"),
                                           prepare(store, "INSERT OR IGNORE INTO step VALUES (?,?,?,?,?)"),
                                           prepare(store, "INSERT INTO region_span VALUES (?,?,?,?,?)")};
    FOR_EACH_CHUNK(chunk, store, LEDGER_SAMPLES)
        for (uint32_t i = 0; i < chunk->used; i++)
            if (take_page(ledger_entry(chunk, i), &page) && page_is_kept(store, &page)) {
                store_page(store, &statements, &page);
                note_gap(store, &page);
            }
    sqlite.finalize(statements.sample);
    sqlite.finalize(statements.step);
    sqlite.finalize(statements.span);
}

static int compare_gaps(const void *left, const void *right)
{
    const struct gap *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->window != b->window)
        return a->window < b->window ? -1 : 1;
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

struct span {
    int64_t begin_ns, end_ns;
};

static void store_window(struct store *store, sqlite3_stmt *statement, uint32_t thread, struct span span)
{
    if (span.end_ns > span.begin_ns)
        insert(store, statement, "iiii", (int64_t)store->ledger->world_rank, (int64_t)thread, span.begin_ns, span.end_ns);
}

/* The windows that are kept in a span of a thread's life, up to their gaps; those that touch are one row. */
static void store_windows_in(struct store *store, sqlite3_stmt *statement, uint32_t thread, struct span life)
{
    const struct gap *gap = store->gaps, *last = store->gaps + store->gap_count;
    uint64_t every = 1ull << store->ledger->window_level, start = (uint64_t)store->ledger->start_unix_ns;
    uint64_t first = (start + (uint64_t)life.begin_ns) >> LEDGER_WINDOW_NS_LOG2;
    struct span known = {0, 0};
    for (uint64_t window = (first + every - 1) / every * every; window << LEDGER_WINDOW_NS_LOG2 < start + (uint64_t)life.end_ns;
         window += every) {
        int64_t window_ns = (int64_t)((window << LEDGER_WINDOW_NS_LOG2) - start);
        struct span span = {window_ns, window_ns + (1ll << LEDGER_WINDOW_NS_LOG2)};
        while (gap < last && (gap->thread < thread || (gap->thread == thread && gap->window < window)))
            gap++;
        if (gap < last && gap->thread == thread && gap->window == window && gap->begin_ns < span.end_ns)
            span.end_ns = gap->begin_ns;
        span.begin_ns = span.begin_ns > life.begin_ns ? span.begin_ns : life.begin_ns;
        span.end_ns = span.end_ns < life.end_ns ? span.end_ns : life.end_ns;
        if (span.begin_ns == known.end_ns)
            span.begin_ns = known.begin_ns;
        else
            store_window(store, statement, thread, known);
        known = span;
    }
    store_window(store, statement, thread, known);
}

/* Where the log has no page, nothing is kept. */
static void store_windows(struct store *store)
{
    struct ledger_chunk *chunk;
    uint32_t at = 0;
    if (!samples_level_keeps(0, store->ledger->window_level) || !next_chunk(store->ledger, LEDGER_SAMPLES, &at))
        return;
    sqlite3_stmt *statement = prepare(store, "INSERT INTO sample_window VALUES (?,?,?,?)");
    if (store->gap_count)
        qsort(store->gaps, store->gap_count, sizeof *store->gaps, compare_gaps);
    FOR_EACH_CHUNK(chunk, store, LEDGER_THREADS)
        for (uint32_t i = 0; i < chunk->used; i++) {
            const struct ledger_thread *thread = ledger_entry(chunk, i);
            uint64_t since_ticks = thread->sampled_since_ticks, reset_ticks = store->ledger->reset_ticks;
            uint64_t begin_ticks = since_ticks > reset_ticks ? since_ticks : reset_ticks;
            int64_t begin_ns = begin_ticks ? moment_ns(store, begin_ticks) : 0;
            store_windows_in(store, statement, thread->thread, (struct span){begin_ns, wall_ns_until_now(store->ledger)});
        }
    sqlite.finalize(statement);
}

static void store_regions(struct store *store)
{
    struct ledger_chunk *chunk;
    sqlite3_stmt *statement = prepare(store, "INSERT OR REPLACE INTO region VALUES (?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_REGIONS)
        for (uint32_t i = 0; i < chunk->used; i++) {
            const struct ledger_region *region = ledger_entry(chunk, i);
            insert(store, statement, "iit", (int64_t)store->ledger->world_rank, (int64_t)region->region, region->name);
        }
    sqlite.finalize(statement);
}

static void store_everything(struct store *store, int64_t began_ns)
{
    store_facts(store);
    store_calls(store);
    store_threads(store);
    store_communicators(store);
    store_peers(store);
    store_cells(store);
    store_samples(store);
    store_windows(store);
    store_regions(store);
    store_rank(store, began_ns);
    free(store->gaps);
}

static const char *reason(const struct store *store)
{
    int error = store->database && sqlite.system_errno ? sqlite.system_errno(store->database) : 0;
    return error ? strerror(error) : store->database ? sqlite.errmsg(store->database) : "out of memory";
}

/* Into an empty file. Written aside it needs no journal, and ours alone no locks, which some file systems refuse. */
static bool fill(struct store *store, const char *aside, int64_t began_ns, char *why, size_t why_bytes)
{
    static const char BEGIN[] = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; BEGIN";
    store->failed = sqlite.open_v2(aside, &store->database, SQLITE_OPEN_READWRITE, "unix-none") != SQLITE_OK ||
                    sqlite.exec(store->database, BEGIN, NULL, NULL, NULL) != SQLITE_OK ||
                    sqlite.exec(store->database, store_schema, NULL, NULL, NULL) != SQLITE_OK;
    if (!store->failed)
        store_everything(store, began_ns);
    store->failed = store->failed || sqlite.exec(store->database, "COMMIT", NULL, NULL, NULL) != SQLITE_OK;
    if (store->failed)
        snprintf(why, why_bytes, "%s", reason(store));
    if (store->database)
        sqlite.close(store->database);
    return !store->failed;
}

static bool sync_folder_of(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    int file = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_synced = file >= 0 && (fsync(file) == 0 || errno == EINVAL); /* EINVAL: not done with folders here */
    int error = errno;
    if (file >= 0)
        close(file);
    errno = error;
    return is_synced;
}

static bool write_aside_and_rename(const struct ledger_header *ledger, const char *path, int64_t began_ns, char *why, size_t why_bytes)
{
    char aside[PATH_MAX + 8];
    snprintf(aside, sizeof aside, "%s.tmp", path);
    if (!sqlite_load()) {
        snprintf(why, why_bytes, "libsqlite3.so.0 was not found");
        return false;
    }
    static struct store store; /* large; a process stores once */
    store = (struct store){.ledger = ledger};
    unlink(aside);
    int file = open(aside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666); /* through no link that somebody has put there */
    if (file < 0) {
        snprintf(why, why_bytes, "%s", strerror(errno));
        return false;
    }
    bool is_there = fill(&store, aside, began_ns, why, why_bytes);
    if (is_there) {
        is_there = fsync(file) == 0 && rename(aside, path) == 0 && sync_folder_of(path);
        snprintf(why, why_bytes, "%s", is_there ? "" : strerror(errno));
    }
    close(file);
    if (!is_there)
        unlink(aside);
    return is_there;
}

/* A database beyond RLIMIT_FSIZE must be an error and not the end of the job: SIGXFSZ is held back from this thread while we
 * write, and taken out of the queue if it came. */
bool store_write(const struct ledger_header *ledger, const char *path, int64_t began_ns, char *why, size_t why_bytes)
{
    static const struct timespec AT_ONCE;
    sigset_t file_too_large, before, pending;
    sigemptyset(&file_too_large);
    sigaddset(&file_too_large, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &file_too_large, &before);
    sigpending(&pending);
    bool written = write_aside_and_rename(ledger, path, began_ns, why, why_bytes);
    if (!sigismember(&pending, SIGXFSZ))
        sigtimedwait(&file_too_large, NULL, &AT_ONCE);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return written;
}
