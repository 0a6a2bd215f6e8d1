/* Nothing is lost where the node goes down at any moment: the database is on the disk before it takes its name, and the name is before
 * the ledger goes.
 *
 *     write rank-0.db.tmp, fsync it -> rename it to rank-0.db, which must be free -> fsync the folder -> the caller removes rank-0.ledger
 *
 * Peers are stored for the process, not for each thread: rows of several threads add up on insertion. The ledger is trusted
 * here, it is our own process's. Whoever reads it from a file checks it first. */
#include "store.h"

#include "base/clock.h"
#include "base/filesystems.h"
#include "ledger/histogram.h"
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
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

static const char *ended_name(uint32_t ended)
{
    static const char *const NAMES[] = {"running", "finalize", "exit", "abort"};
    return ended < 4 ? NAMES[ended] : "running";
}

static const char *gpu_state_name(uint32_t state)
{
    static const char *const NAMES[] = {"none", "dormant", "tracing", "paused", "yielded", "refused", "stopped"};
    return state <= LEDGER_GPU_STOPPED ? NAMES[state] : "none";
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

static int64_t counted_ns(const struct ledger_header *ledger)
{
    int64_t until_ns = ledger->start_ns + rows_wall_ns(ledger);
    return ledger->counted_ns + (ledger->counting_since_ns ? until_ns - ledger->counting_since_ns : 0);
}

static void store_rank(struct store *store, int64_t began_ns)
{
    const struct ledger_header *ledger = store->ledger;
    char run_id[512];
    find_fact(store, "run_id", run_id, sizeof run_id);
    sqlite3_stmt *statement =
        rows_prepare(store, "INSERT INTO rank VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    bool has_end = ledger->ended != LEDGER_RUNNING;
    int64_t wall_ns = rows_wall_ns(ledger);
    rows_insert(store, statement, "iitiiiiooiotiiiiiiiiitiiiiiiiiiii", (int64_t)ledger->world_rank, (int64_t)ledger->world_size, run_id,
                ledger->pid, (int64_t)ledger->thread_level, ledger->start_unix_ns, ledger->start_ns, has_end ? &ledger->end_unix_ns : NULL,
                &wall_ns, counted_ns(ledger), ledger->reset_unix_ns ? &ledger->reset_unix_ns : NULL, ended_name(ledger->ended),
                (int64_t)ledger->abort_code, (int64_t)ledger->dropped_calls, (int64_t)ledger->untracked_requests,
                (int64_t)ledger->folded_cells, (int64_t)ledger->folded_communicators, (int64_t)ledger->cost_init_ns,
                (int64_t)ledger->cost_finalize_ns + clock_monotonic_ns() - began_ns, (int64_t)ledger->cost_per_call_ps,
                ledger->clock_error_ppb, gpu_state_name(ledger->gpu_state), (int64_t)ledger->gpu_records,
                (int64_t)ledger->gpu_dropped_records, (int64_t)ledger->gpu_implausible_records, (int64_t)ledger->gpu_late_records,
                (int64_t)ledger->gpu_unkept_records, (int64_t)ledger->gpu_lost_intervals, (int64_t)ledger->gpu_unmatched_operations,
                (int64_t)ledger->gpu_memory_kind_queries, (int64_t)ledger->gpu_memory_kind_changes, (int64_t)ledger->cost_gpu_begin_ns,
                (int64_t)ledger->cost_gpu_end_ns);
    sqlite.finalize(statement);
}

static void store_number(struct store *store, sqlite3_stmt *statement, const char *reading, const char *name, int64_t number)
{
    char key[64], value[24];
    snprintf(key, sizeof key, "%s.%s", reading, name);
    snprintf(value, sizeof value, "%" PRId64, number);
    rows_insert(store, statement, "itt", (int64_t)store->ledger->world_rank, key, value);
}

static bool has_core(const struct ledger_usage *usage, int core)
{
    return core < 64 * LEDGER_AFFINITY_WORDS && usage->affinity[core / 64] >> core % 64 & 1;
}

/* As the kernel and taskset write it: 0-3,8; "" where it is not known. */
static void write_affinity(const struct ledger_usage *usage, char *list, size_t bytes)
{
    size_t used = 0;
    list[0] = '\0';
    for (int low = 0, high; low < 64 * LEDGER_AFFINITY_WORDS && used < bytes; low = high + 1) {
        for (high = low; has_core(usage, high); high++)
            continue;
        if (high > low)
            used += (size_t)snprintf(list + used, bytes - used, high > low + 1 ? "%s%d-%d" : "%s%d", used ? "," : "", low, high - 1);
    }
}

/* The keys are the names of the fields, and so they are in the reporter's ledger_rows.py. */
static void store_usage(struct store *store, sqlite3_stmt *statement, const char *reading, const struct ledger_usage *usage)
{
    char key[64], affinity[8 * 64 * LEDGER_AFFINITY_WORDS / 2];
    if (!usage->since_start_ns)
        return;
#define NUMBER(FIELD) store_number(store, statement, reading, #FIELD, (int64_t)usage->FIELD);
    NUMBER(since_start_ns)
    NUMBER(cpu_user_ns)
    NUMBER(cpu_system_ns)
    NUMBER(voluntary_switches)
    NUMBER(involuntary_switches)
    NUMBER(minor_faults)
    NUMBER(major_faults)
    if (usage->core >= 0) {
        NUMBER(core)
        NUMBER(numa_node)
    }
#undef NUMBER
    write_affinity(usage, affinity, sizeof affinity);
    snprintf(key, sizeof key, "%s.affinity", reading);
    if (*affinity)
        rows_insert(store, statement, "itt", (int64_t)store->ledger->world_rank, key, affinity);
}

static void store_facts(struct store *store)
{
    static char value[LEDGER_CHUNK_BYTES];
    struct ledger_chunk *chunk;
    sqlite3_stmt *statement = rows_prepare(store, "INSERT OR REPLACE INTO fact VALUES (?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_FACTS)
        for (uint32_t at = 0; at < chunk->used;) {
            const struct ledger_fact *fact = ledger_entry(chunk, at);
            char key[300];
            snprintf(key, sizeof key, "%.*s", (int)fact->key_bytes, (const char *)(fact + 1));
            snprintf(value, sizeof value, "%.*s", (int)fact->value_bytes, (const char *)(fact + 1) + fact->key_bytes);
            rows_insert(store, statement, "itt", (int64_t)store->ledger->world_rank, key, value);
            at += (uint32_t)((sizeof *fact + fact->key_bytes + fact->value_bytes + 7) & ~7u);
        }
    store_usage(store, statement, "begin", &store->ledger->usage_begin);
    store_usage(store, statement, "last", &store->ledger->usage_last);
    sqlite.finalize(statement);
}

static void store_calls(struct store *store)
{
    struct ledger_chunk *chunk;
    sqlite3_stmt *statement = rows_prepare(store, "INSERT OR REPLACE INTO call VALUES (?,?,?,?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_CALLS)
        for (uint32_t i = 0; i < chunk->used; i++) {
            const struct ledger_call *call = ledger_entry(chunk, i);
            if (call->call < 1024)
                store->calls[call->call] = call;
            rows_insert(store, statement, "tttttt", call->name, call->family, call->library, call->form, call->bandwidth, call->waits_for);
        }
    sqlite.finalize(statement);
}

/* What a thread has announced last is told with it: the other threads of the job may be in MPI while this is written. */
static void store_thread(struct store *store, sqlite3_stmt *statement, const struct ledger_thread *thread)
{
    uint64_t doing = __atomic_load_n(&thread->doing, __ATOMIC_ACQUIRE);
    int64_t slot = (uint16_t)(doing >> LEDGER_DOING_SLOT_BIT), is_inside = doing >> LEDGER_DOING_INSIDE_BIT & 1;
    int64_t since_ns = doing ? rows_since_start_ns(store->ledger, thread->since_ticks) : 0;
    int64_t bytes = (int64_t)thread->bytes, peer = thread->peer, tag = thread->tag;
    rows_insert(store, statement, "iiititiiiooot", (int64_t)store->ledger->world_rank, (int64_t)thread->thread, thread->tid, thread->name,
                (int64_t)thread->is_main, rows_call_name(store, (uint16_t)doing), slot, is_inside, since_ns,
                slot && thread->bytes != LEDGER_BYTES_UNKNOWN ? &bytes : NULL, slot && peer != LEDGER_NO_RANK ? &peer : NULL,
                slot && tag != LEDGER_NO_TAG ? &tag : NULL, rows_call_name(store, (unsigned)(doing >> LEDGER_DOING_AWAITED_BIT)));
}

static void store_threads(struct store *store)
{
    struct ledger_chunk *chunk;
    sqlite3_stmt *statement = rows_prepare(store, "INSERT INTO thread VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)");
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
        rows_insert(store, statement, "iiitoo", (int64_t)store->ledger->world_rank, (int64_t)entry->communicator, (int64_t)i + 1,
                    rows_call_name(store, collective->call), collective->bytes != LEDGER_BYTES_UNKNOWN ? &bytes : NULL,
                    root != LEDGER_NO_RANK ? &root : NULL);
    }
}

static void store_communicators(struct store *store)
{
    struct ledger_chunk *chunk;
    memset(store->levels, LEDGER_SAMPLE_LEVEL_NONE, sizeof store->levels);
    sqlite3_stmt *statement = rows_prepare(store, "INSERT INTO communicator VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    sqlite3_stmt *recent = rows_prepare(store, "INSERT INTO recent_collective VALUES (?,?,?,?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_COMMUNICATORS)
        for (uint32_t i = 0; i < chunk->used; i++) {
            const struct ledger_communicator *entry = ledger_entry(chunk, i);
            char identity[17], parent[17];
            int64_t level = __atomic_load_n(&entry->sample_level, __ATOMIC_RELAXED);
            store->levels[(uint16_t)entry->communicator] = (uint8_t)level;
            snprintf(identity, sizeof identity, "%016llx", (unsigned long long)entry->identity);
            snprintf(parent, sizeof parent, "%016llx", (unsigned long long)entry->parent_identity);
            rows_insert(store, statement, "iittttiiiitiiito", (int64_t)store->ledger->world_rank, (int64_t)entry->communicator, identity,
                        entry->parent_identity ? parent : NULL, entry->name, rows_call_name(store, entry->constructor),
                        (int64_t)entry->ordinal, (int64_t)entry->size, (int64_t)entry->remote_size, (int64_t)entry->comm_rank,
                        entry->members, (int64_t) !!(entry->flags & LEDGER_COMMUNICATOR_INTER),
                        (int64_t) !!(entry->flags & LEDGER_COMMUNICATOR_FREED), (int64_t)entry->collectives,
                        entry->flags & LEDGER_COMMUNICATOR_NCCL ? "nccl" : "mpi", level < LEDGER_SAMPLE_LEVEL_NONE ? &level : NULL);
            store_recent(store, recent, entry);
        }
    sqlite.finalize(statement);
    sqlite.finalize(recent);
}

static void store_peers(struct store *store)
{
    struct ledger_chunk *chunk;
    sqlite3_stmt *statement = rows_prepare(store, "INSERT INTO peer VALUES (?,?,?,?,?,?,?,?) "
                                                  "ON CONFLICT (world_rank, call, direction, communicator, peer) DO UPDATE SET "
                                                  "count = count + excluded.count, bytes = bytes + excluded.bytes, "
                                                  "time_ns = time_ns + excluded.time_ns");
    FOR_EACH_CHUNK(chunk, store, LEDGER_PEERS)
        for (uint32_t i = 0, used = counts(store, chunk) ? chunk->used : 0; i < used; i++) {
            const struct ledger_peer *peer = ledger_entry(chunk, i);
            if (peer->count == 0)
                continue;
            bool is_received = peer->direction & LEDGER_RECEIVED;
            rows_insert(store, statement, "ittiiiii", (int64_t)store->ledger->world_rank, rows_call_name(store, peer->call),
                        is_received ? "received" : "sent", (int64_t)(peer->direction >> LEDGER_PEER_SLOT_BIT), (int64_t)peer->peer,
                        (int64_t)peer->count, (int64_t)peer->bytes, (int64_t)peer->time_ns);
        }
    sqlite.finalize(statement);
}

static const char *measure_name(unsigned measure)
{
    static const char *const NAMES[] = {"call", "completion", "poll", "device", "captured"};
    return measure <= LEDGER_CAPTURED ? NAMES[measure] : "call";
}

/* Of the buffer that is sent and of the one that is received: 'device>host', or one word where both are alike. */
static const char *memory_kind_name(unsigned pair)
{
    static const char *const NAMES[LEDGER_MEMORY_KINDS] = {"host", "device", "managed", "pinned"};
    static char both[32];
    unsigned from = pair % LEDGER_MEMORY_KINDS, to = (pair >> LEDGER_MEMORY_KIND_TO_BIT) % LEDGER_MEMORY_KINDS;
    snprintf(both, sizeof both, "%s>%s", NAMES[from], NAMES[to]);
    return from == to ? NAMES[from] : both;
}

static void store_cells(struct store *store)
{
    struct ledger_chunk *chunk;
    int64_t number = 0;
    sqlite3_stmt *cells = rows_prepare(store, "INSERT INTO cell VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    sqlite3_stmt *buckets = rows_prepare(store, "INSERT INTO bucket VALUES (?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_CELLS)
        for (uint32_t i = 0, used = counts(store, chunk) ? chunk->used : 0; i < used; i++) {
            const struct ledger_cell *cell = ledger_entry(chunk, i);
            int64_t count = cell->live ? (int64_t)histogram_count(cell->buckets) : 0;
            if (count == 0)
                continue;
            number++;
            rows_insert(store, cells, "iiitiittiiiiiiii", number, (int64_t)store->ledger->world_rank, (int64_t)chunk->thread,
                        rows_call_name(store, cell->call), (int64_t)cell->communicator, (int64_t)cell->bytes, measure_name(cell->measure),
                        memory_kind_name(cell->memory_kind), (int64_t)cell->region, (int64_t) !!(cell->flags & LEDGER_CELL_FOLDED), count,
                        (int64_t)cell->volume_bytes, (int64_t)cell->total_ns, (int64_t)cell->min_ns, (int64_t)cell->max_ns,
                        (int64_t)cell->blocked_ns);
            rows_insert_buckets(store, buckets, number, cell->buckets);
        }
    sqlite.finalize(cells);
    sqlite.finalize(buckets);
}

static void store_regions(struct store *store)
{
    struct ledger_chunk *chunk;
    sqlite3_stmt *statement = rows_prepare(store, "INSERT OR REPLACE INTO region VALUES (?,?,?)");
    FOR_EACH_CHUNK(chunk, store, LEDGER_REGIONS)
        for (uint32_t i = 0; i < chunk->used; i++) {
            const struct ledger_region *region = ledger_entry(chunk, i);
            rows_insert(store, statement, "iit", (int64_t)store->ledger->world_rank, (int64_t)region->region, region->name);
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
    store_regions(store);
    store_gpu(store);
    store_rank(store, began_ns);
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
    int file =
        open(aside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, filesystems_file_mode()); /* through no link that somebody has put there */
    if (file < 0) {
        snprintf(why, why_bytes, "%s", strerror(errno));
        return false;
    }
    bool is_there = fill(&store, aside, began_ns, why, why_bytes);
    if (is_there) {
        is_there = fsync(file) == 0 && (errno = filesystems_rename(aside, path)) == 0 && sync_folder_of(path);
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
