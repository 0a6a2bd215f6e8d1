/* A node that fails at any time loses nothing: the database is on the disk before it gets its name,
 * and the name is on the disk before the ledger is removed.
 *
 *     write rank-0.db.tmp, fsync it -> rename it to rank-0.db, which must be free -> fsync the
 *     folder -> the caller removes rank-0.ledger
 *
 * With one file per node, the database is written beside the ledger and appended to the node's
 * archive (archive.h) in place of the rename.
 *
 * Peers are stored for the process, not for each thread: rows of several threads add up on
 * insertion. The ledger is trusted here, it is our own process's. Whoever reads it from a file
 * checks it first. */
#include "store.h"

#include "archive.h"
#include "base/clock.h"
#include "base/filesystems.h"
#include "ledger/cells.h"
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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

enum { SMALL_CHUNKS = (2 << 20) / LEDGER_CHUNK_BYTES };

/* Whether the entries of a thread's chunk count: not if they are from before the last reset. */
static bool counts(const struct store *store, const struct ledger_chunk *of_thread)
{
    const struct ledger_thread *thread;
    FOR_EACH_ENTRY(thread, store, LEDGER_THREADS)
        if (thread->thread == of_thread->thread)
            return thread->epoch == store->ledger->epoch;
    return true;
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

static int64_t time_counted_ns(const struct ledger_header *ledger)
{
    int64_t until_ns = ledger->start_ns + rows_wall_ns(ledger);
    return ledger->counted_ns +
           (ledger->counting_since_ns ? until_ns - ledger->counting_since_ns : 0);
}

/* The end of a window, since the rank's start. */
static int64_t end_of_window(const struct ledger_header *ledger, uint64_t window)
{
    return (int64_t)((window + 1) << LEDGER_WINDOW_NS_LOG2) - ledger->start_unix_ns;
}

static struct span recorded(const struct ledger_header *ledger)
{
    int64_t begin_ns = end_of_window(ledger, ledger->record_first - 1),
            end_ns = end_of_window(ledger, ledger->record_last), wall_ns = rows_wall_ns(ledger);
    end_ns = end_ns < wall_ns ? end_ns : wall_ns;
    return (struct span){begin_ns, end_ns > begin_ns ? end_ns : begin_ns};
}

static void store_rank(struct store *store, int64_t began_ns)
{
    const struct ledger_header *ledger = store->ledger;
    struct ledger_header header = *ledger, *entry = &header;
    char found[512];
    find_fact(store, "run_id", found, sizeof found);
    header.cost_finalize_ns += (uint64_t)(clock_monotonic_ns() - began_ns);
    struct value run_id = rows_text(store, found);
    struct value end_unix_ns = rows_number(store, ledger->end_unix_ns);
    struct value wall_ns = rows_number(store, rows_wall_ns(ledger));
    struct value counted_ns = rows_number(store, time_counted_ns(ledger));
    bool has_record = ledger->record_first;
    struct span record = recorded(ledger);
    struct value record_begin_ns = has_record ? rows_number(store, record.begin_ns) : rows_null();
    struct value record_end_ns = has_record ? rows_number(store, record.end_ns) : rows_null();
    const struct column row[] = {
#define ROWS_OF_RANK
#include "rows.def"
    };
    ROWS_INSERT(store, "INSERT INTO rank", row);
}

static void store_fact(struct store *store, const char *key, const char *value)
{
    const struct column row[] = {RANK(world_rank){"key", rows_text(store, key)},
                                 {"value", rows_text(store, value)}};
    ROWS_INSERT(store, "INSERT OR REPLACE INTO fact", row);
}

static void store_number(struct store *store, const char *reading, const char *name, int64_t number)
{
    char key[64], value[24];
    snprintf(key, sizeof key, "%s.%s", reading, name);
    snprintf(value, sizeof value, "%" PRId64, number);
    store_fact(store, key, value);
}

static bool has_core(const struct ledger_usage *usage, int core)
{
    return core < 64 * LEDGER_AFFINITY_WORDS && usage->affinity[core / 64] >> core % 64 & 1;
}

/* The format of the kernel and of taskset: 0-3,8; "" if it is not known. */
static void write_affinity(const struct ledger_usage *usage, char *list, size_t bytes)
{
    size_t used = 0;
    list[0] = '\0';
    for (int low = 0, high; low < 64 * LEDGER_AFFINITY_WORDS && used < bytes; low = high + 1) {
        for (high = low; has_core(usage, high); high++)
            continue;
        if (high > low)
            used += (size_t)snprintf(list + used, bytes - used, high > low + 1 ? "%s%d-%d" : "%s%d",
                                     used ? "," : "", low, high - 1);
    }
}

/* The keys are the names of the fields, as in the reporter's ledger_rows.py. */
static void store_usage(struct store *store, const char *reading, const struct ledger_usage *usage)
{
    char key[64], affinity[8 * 64 * LEDGER_AFFINITY_WORDS / 2];
    if (!usage->since_start_ns)
        return;
#define NUMBER(FIELD) store_number(store, reading, #FIELD, (int64_t)usage->FIELD);
    NUMBER(since_start_ns)
    NUMBER(cpu_user_ns)
    NUMBER(cpu_system_ns)
    NUMBER(voluntary_switches)
    NUMBER(involuntary_switches)
    NUMBER(minor_faults)
    NUMBER(major_faults)
    if (usage->throttled_ns != LEDGER_BYTES_UNKNOWN)
        NUMBER(throttled_ns)
    if (usage->stolen_ns != LEDGER_BYTES_UNKNOWN)
        NUMBER(stolen_ns)
    if (usage->core >= 0) {
        NUMBER(core)
        NUMBER(numa_node)
    }
#undef NUMBER
    write_affinity(usage, affinity, sizeof affinity);
    snprintf(key, sizeof key, "%s.affinity", reading);
    if (*affinity)
        store_fact(store, key, affinity);
}

static void store_facts(struct store *store)
{
    static char value[LEDGER_CHUNK_BYTES];
    struct ledger_chunk *chunk;
    FOR_EACH_CHUNK(chunk, store, LEDGER_FACTS)
        for (uint32_t at = 0; at < chunk->used;) {
            const struct ledger_fact *fact = ledger_entry(chunk, at);
            char key[300];
            snprintf(key, sizeof key, "%.*s", (int)fact->key_bytes, (const char *)(fact + 1));
            snprintf(value, sizeof value, "%.*s", (int)fact->value_bytes,
                     (const char *)(fact + 1) + fact->key_bytes);
            store_fact(store, key, value);
            at += (uint32_t)((sizeof *fact + fact->key_bytes + fact->value_bytes + 7) & ~7u);
        }
    store_usage(store, "begin", &store->ledger->usage_begin);
    store_usage(store, "last", &store->ledger->usage_last);
    if (store->ledger->gpu_late_ns)
        store_number(store, "gpu", "late_ns", (int64_t)store->ledger->gpu_late_ns);
}

static void find_calls(struct store *store)
{
    const struct ledger_call *call;
    FOR_EACH_ENTRY(call, store, LEDGER_CALLS)
        if (call->call < COUNT(store->calls))
            store->calls[call->call] = call;
}

/* Only calls that other rows name: most jobs use a few of the 270 that can be counted. */
static void store_calls(struct store *store)
{
    for (unsigned call = 0; call < COUNT(store->calls); call++) {
        const struct ledger_call *entry = store->calls[call];
        if (!entry || !store->is_named[call])
            continue;
        const struct column row[] = {
#define ROWS_OF_CALL
#include "rows.def"
        };
        ROWS_INSERT(store, "INSERT OR REPLACE INTO call", row);
    }
}

/* The job's other threads may be in MPI while this is written, so a thread's last announcement
 * belongs to its row. */
static void store_thread(struct store *store, const struct ledger_thread *entry)
{
    uint64_t doing = __atomic_load_n(&entry->doing, __ATOMIC_ACQUIRE);
    uint16_t slot = (uint16_t)(doing >> LEDGER_DOING_SLOT_BIT);
    struct value doing_call = rows_call(store, (uint16_t)doing);
    struct value doing_communicator = rows_number(store, slot);
    struct value doing_is_inside = rows_boolean(store, doing & LEDGER_DOING_INSIDE);
    struct value doing_since_ns =
        doing ? rows_ticks(store, entry->since_ticks) : rows_number(store, 0);
    struct value doing_bytes = slot ? rows_bytes(store, entry->bytes) : rows_null();
    struct value doing_peer = slot ? rows_rank(store, entry->peer) : rows_null();
    struct value doing_tag =
        slot && entry->tag != LEDGER_NO_TAG ? rows_number(store, entry->tag) : rows_null();
    struct value doing_request_call =
        rows_call(store, (unsigned)(doing >> LEDGER_DOING_REQUEST_CALL_BIT));
    const struct column row[] = {
#define ROWS_OF_THREAD
#include "rows.def"
    };
    ROWS_INSERT(store, "INSERT INTO thread", row);
}

static void store_threads(struct store *store)
{
    const struct ledger_thread *thread;
    FOR_EACH_ENTRY(thread, store, LEDGER_THREADS)
        store_thread(store, thread);
}

/* Readings from before the last reset do not count. */
static void store_cpu_times(struct store *store)
{
    const struct ledger_cpu_time *entry;
    int64_t reset_ns = rows_reset_ns(store);
    FOR_EACH_ENTRY(entry, store, LEDGER_CPU_TIMES) {
        if (entry->live != 1 || rows_monotonic_since_start_ns(store, entry->at_ns) < reset_ns)
            continue;
        const struct column row[] = {
#define ROWS_OF_CPU_TIME
#include "rows.def"
        };
        ROWS_INSERT(store, "INSERT OR REPLACE INTO cpu_time", row);
    }
}

/* Only of the time since the last reset. */
static void store_negotiations(struct store *store)
{
    const struct ledger_negotiation *entry;
    FOR_EACH_ENTRY(entry, store, LEDGER_NEGOTIATIONS) {
        struct value ahead_since_ns =
            entry->ahead_since_ticks ? rows_ticks(store, entry->ahead_since_ticks) : rows_null();
        const struct column row[] = {
#define ROWS_OF_NEGOTIATION
#include "rows.def"
        };
        if (entry->epoch == store->ledger->epoch && entry->rounds + entry->disbelieved)
            ROWS_INSERT(store, "INSERT OR IGNORE INTO negotiation", row);
    }
}

static void store_places(struct store *store, const struct ledger_places *entry)
{
    for (uint32_t i = 0; i < LEDGER_WORD_PLACES; i++) {
        struct value place = rows_number(store, (int64_t)entry->word * LEDGER_WORD_PLACES + i);
        struct value agreed = rows_number(store, (int64_t)entry->agreed[i]);
        const struct column row[] = {
#define ROWS_OF_NEGOTIATED_PLACE
#include "rows.def"
        };
        if (entry->agreed[i])
            ROWS_INSERT_MANY(store, "INSERT OR IGNORE INTO negotiated_place", row);
    }
}

static void store_agreements(struct store *store)
{
    const struct ledger_places *places;
    FOR_EACH_ENTRY(places, store, LEDGER_PLACES)
        if (places->epoch == store->ledger->epoch)
            store_places(store, places);
    const struct ledger_negotiated_step *entry;
    FOR_EACH_ENTRY(entry, store, LEDGER_NEGOTIATED_STEPS) {
        const struct column row[] = {
#define ROWS_OF_NEGOTIATED_STEP
#include "rows.def"
        };
        if (entry->live == 1 && entry->begin_ticks >= store->ledger->reset_ticks)
            ROWS_INSERT_MANY(store, "INSERT OR IGNORE INTO negotiated_step", row);
    }
}

static void store_recent(struct store *store, const struct ledger_communicator *of)
{
    uint64_t begun = of->collectives;
    uint64_t first = begun > LEDGER_RECENT_COLLECTIVES ? begun - LEDGER_RECENT_COLLECTIVES : 0;
    for (uint64_t i = first; i < begun; i++) {
        const struct ledger_collective *entry = &of->recent[i % LEDGER_RECENT_COLLECTIVES];
        struct value communicator = rows_number(store, of->communicator);
        struct value sequence = rows_number(store, (int64_t)i + 1);
        const struct column row[] = {
#define ROWS_OF_RECENT_COLLECTIVE
#include "rows.def"
        };
        ROWS_INSERT(store, "INSERT INTO recent_collective", row);
    }
}

static void store_communicator(struct store *store, const struct ledger_communicator *entry)
{
    char own_identity[17], its_parent[17];
    snprintf(own_identity, sizeof own_identity, "%016llx", (unsigned long long)entry->identity);
    snprintf(its_parent, sizeof its_parent, "%016llx", (unsigned long long)entry->parent_identity);
    struct value identity = rows_text(store, own_identity);
    struct value parent_identity = rows_text(store, entry->parent_identity ? its_parent : NULL);
    struct value library =
        rows_text(store, entry->flags & LEDGER_COMMUNICATOR_NCCL ? "nccl" : "mpi");
    const struct column row[] = {
#define ROWS_OF_COMMUNICATOR
#include "rows.def"
    };
    ROWS_INSERT(store, "INSERT INTO communicator", row);
    store_recent(store, entry);
}

static void store_communicators(struct store *store)
{
    const struct ledger_communicator *communicator;
    FOR_EACH_ENTRY(communicator, store, LEDGER_COMMUNICATORS)
        store_communicator(store, communicator);
}

static void store_peer(struct store *store, const struct ledger_peer *entry)
{
    struct value direction = rows_text(store, direction_names[entry->direction & LEDGER_RECEIVED]);
    struct value communicator = rows_number(store, entry->direction >> LEDGER_PEER_SLOT_BIT);
    const struct column row[] = {
#define ROWS_OF_PEER
#include "rows.def"
    };
    ROWS_INSERT(store,
                "INSERT INTO peer ON CONFLICT (world_rank, call, direction, communicator, peer) DO "
                "UPDATE SET "
                "count = count + excluded.count, bytes = bytes + excluded.bytes, time_ns = time_ns "
                "+ excluded.time_ns",
                row);
}

static void store_peers(struct store *store)
{
    struct ledger_chunk *chunk;
    FOR_EACH_CHUNK(chunk, store, LEDGER_PEERS)
        for (uint32_t i = 0, used = counts(store, chunk) ? chunk->used : 0; i < used; i++) {
            const struct ledger_peer *entry = ledger_entry(chunk, i);
            if (entry->count)
                store_peer(store, entry);
        }
}

/* 'device>host': the memory kinds of the send and the receive buffer; one word if they are
 * equal. */
static const char *memory_kind_name(unsigned pair)
{
    static char both[32];
    const char *from = memory_kind_names[pair % LEDGER_MEMORY_KINDS],
               *to = memory_kind_names[(pair >> LEDGER_MEMORY_KIND_TO_BIT) % LEDGER_MEMORY_KINDS];
    snprintf(both, sizeof both, "%s>%s", from, to);
    return from == to ? from : both;
}

static void store_cell(struct store *store, int64_t number, uint32_t of_thread,
                       const struct ledger_cell *entry)
{
    struct value cell = rows_number(store, number);
    struct value thread = rows_number(store, of_thread);
    struct value memory_kind = rows_text(store, memory_kind_name(entry->memory_kind));
    uint64_t buckets[HISTOGRAM_BUCKETS];
    struct value count = rows_number(store, (int64_t)cell_buckets(entry, buckets));
    const struct column row[] = {
#define ROWS_OF_CELL
#include "rows.def"
    };
    ROWS_INSERT(store, "INSERT INTO cell", row);
    rows_insert_buckets(store, "INSERT INTO bucket", "cell", number, buckets);
}

static void store_cells(struct store *store)
{
    struct ledger_chunk *chunk;
    int64_t number = 0;
    FOR_EACH_CHUNK(chunk, store, LEDGER_CELLS)
        for (uint32_t i = 0, used = counts(store, chunk) ? chunk->used : 0; i < used; i++) {
            const struct ledger_cell *cell = ledger_entry(chunk, i);
            if (cell->live && cell_count(cell))
                store_cell(store, ++number, chunk->thread, cell);
        }
}

static void store_regions(struct store *store)
{
    const struct ledger_region *entry;
    FOR_EACH_ENTRY(entry, store, LEDGER_REGIONS) {
        const struct column row[] = {
#define ROWS_OF_REGION
#include "rows.def"
        };
        ROWS_INSERT(store, "INSERT OR REPLACE INTO region", row);
    }
}

static void store_signature(struct store *store, const struct ledger_signature *entry)
{
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)entry->counts_hash);
    struct value type_bytes =
        *entry->datatype ? rows_number(store, (int64_t)entry->type_bytes) : rows_null();
    struct value extent = *entry->datatype ? rows_number(store, entry->extent) : rows_null();
    struct value is_commutative =
        *entry->op ? rows_boolean(store, entry->flags & LEDGER_SIGNATURE_COMMUTATIVE) : rows_null();
    struct value counts_hash =
        entry->flags & LEDGER_SIGNATURE_COUNTS ? rows_text(store, hash) : rows_null();
    struct value memory_kind = rows_text(store, memory_kind_name(entry->memory_kind));
    const struct column row[] = {
#define ROWS_OF_SIGNATURE
#include "rows.def"
    };
    ROWS_INSERT(store, "INSERT INTO signature", row);
}

static void store_signatures(struct store *store)
{
    const struct ledger_signature *signature;
    FOR_EACH_ENTRY(signature, store, LEDGER_SIGNATURES)
        store_signature(store, signature);
}

static void store_everything(struct store *store, int64_t began_ns)
{
    find_calls(store);
    store_facts(store);
    store_threads(store);
    store_cpu_times(store);
    store_negotiations(store);
    store_agreements(store);
    store_communicators(store);
    store_peers(store);
    store_cells(store);
    store_samples(store);
    store_signatures(store);
    store_regions(store);
    store_gpu(store);
    store_calls(store);
    store_rank(store, began_ns);
}

static const char *reason(const struct store *store)
{
    int error = store->database && sqlite.system_errno ? sqlite.system_errno(store->database) : 0;
    return error             ? strerror(error)
           : store->database ? sqlite.errmsg(store->database)
                             : "out of memory";
}

/* Each of the 33 tables and indexes takes at least a page, and most are empty. Many small pages
 * take longer to write. */
static const char *page_size(const struct ledger_header *ledger)
{
    return ledger->chunk_count <= SMALL_CHUNKS ? "PRAGMA page_size = 512"
                                               : "PRAGMA page_size = 4096";
}

/* Fills an empty file. Nobody else knows it yet, so it needs no journal and no locks, which some
 * file systems refuse. */
static bool fill(struct store *store, const char *aside, int64_t began_ns, char *why,
                 size_t why_bytes)
{
    /* A value that breaks a constraint is stored: the reporter judges it, and nothing is lost. */
    static const char BEGIN[] =
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
        "PRAGMA ignore_check_constraints = ON; BEGIN";
    store->failed =
        sqlite.open_v2(aside, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                       "unix-none") != SQLITE_OK ||
        sqlite.exec(store->database, page_size(store->ledger), NULL, NULL, NULL) != SQLITE_OK ||
        sqlite.exec(store->database, BEGIN, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite.exec(store->database, store_schema, NULL, NULL, NULL) != SQLITE_OK;
    if (!store->failed)
        store_everything(store, began_ns);
    rows_end(store);
    store->failed =
        store->failed || sqlite.exec(store->database, "COMMIT", NULL, NULL, NULL) != SQLITE_OK;
    if (store->failed)
        snprintf(why, why_bytes, "%s", reason(store));
    if (store->database)
        sqlite.close(store->database);
    return !store->failed;
}

static int give_name(int file, const char *aside, const char *path)
{
    int error = fsync(file) == 0 ? filesystems_rename(aside, path) : errno;
    return error ? error : filesystems_sync_folder_of(path);
}

static bool write_aside(const struct ledger_header *ledger, const char *path, const char *archive,
                        int64_t began_ns, char *why, size_t why_bytes)
{
    char aside[PATH_MAX + 8];
    snprintf(aside, sizeof aside, "%s.tmp", path);
    if (!sqlite_load()) {
        snprintf(why, why_bytes, "libsqlite3.so.0 cannot be loaded");
        return false;
    }
    static struct store store; /* large; a process stores once */
    static bool is_named[COUNT(store.calls)];
    memset(is_named, 0, sizeof is_named);
    store = (struct store){.ledger = ledger, .is_named = is_named};
    unlink(aside);
    int file = open(aside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                    filesystems_file_mode()); /* O_EXCL: do not follow a link */
    if (file < 0) {
        snprintf(why, why_bytes, "%s", strerror(errno));
        return false;
    }
    bool is_there = fill(&store, aside, began_ns, why, why_bytes);
    if (is_there) {
        int error = archive ? archive_append(archive, ledger->world_rank, file)
                            : give_name(file, aside, path);
        is_there = error == 0;
        snprintf(why, why_bytes, "%s", is_there ? "" : strerror(error));
    }
    close(file);
    unlink(aside);
    return is_there;
}

/* A database larger than RLIMIT_FSIZE must be an error and not end the job: SIGXFSZ is blocked in
 * this thread during the write, and removed from the queue if it is pending. */
bool store_write(const struct ledger_header *ledger, const char *path, const char *archive,
                 int64_t began_ns, char *why, size_t why_bytes)
{
    static const struct timespec AT_ONCE;
    sigset_t file_too_large, before, pending;
    sigemptyset(&file_too_large);
    sigaddset(&file_too_large, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &file_too_large, &before);
    sigpending(&pending);
    bool written = write_aside(ledger, path, archive, began_ns, why, why_bytes);
    if (!sigismember(&pending, SIGXFSZ))
        sigtimedwait(&file_too_large, NULL, &AT_ONCE);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return written;
}
