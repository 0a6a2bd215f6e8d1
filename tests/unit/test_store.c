#include "output/store.h"

#include "base/clock.h"
#include "base/settings.h"
#include "ledger/cells.h"
#include "ledger/peers.h"
#include "output/sqlite.h"
#include "unit.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

UNIT_ALONE;

enum { SEND = 1, WAIT = 2, ALLREDUCE = 3, BCAST = 4, IALLREDUCE = 5, NCCL_ALL_REDUCE = 700 };

static char why[512];

/* A ledger with known contents. */

static struct cells cells[2];
static struct peers peers[2];

static void name_call(uint32_t number, const char *name, const char *family)
{
    struct ledger_call call = {.call = number,
                               .library = "mpi",
                               .form = "blocking",
                               .bandwidth = "one-way",
                               .waits_for = "nobody"};
    snprintf(call.name, sizeof call.name, "%s", name);
    snprintf(call.family, sizeof call.family, "%s", family);
    ledger_append(LEDGER_CALLS, &call, sizeof call);
}

static void begin_thread(uint32_t number, const char *name)
{
    struct ledger_thread entry = {
        .thread = number, .tid = 100 + number, .is_main = number == 0, .epoch = 1};
    snprintf(entry.name, sizeof entry.name, "%s", name);
    CHECK(cells_create(&cells[number], ledger_append(LEDGER_THREADS, &entry, sizeof entry)));
    CHECK(peers_create(&peers[number], number));
}

static void begin(void)
{
    CHECK_EQUAL(ledger_open("rank-3.ledger", 4 << 20), 0);
    the_ledger.header->gpu_epoch = the_ledger.header->epoch;
    struct ledger_header *header = the_ledger.header;
    header->world_rank = 3;
    header->world_size = 8;
    header->pid = 4711;
    header->thread_level = 3;
    header->start_unix_ns = 1700000000000000001;
    header->end_unix_ns = 1700000000000000501;
    header->start_ns = 1000;
    header->end_ns = 1500;
    header->ended = LEDGER_FINALIZED;
    ledger_fact("run_id", "job-17");
    name_call(SEND, "MPI_Send", "point-to-point");
    name_call(WAIT, "MPI_Wait", "completion");
    begin_thread(0, "main");
    begin_thread(1, "helper");
}

static struct ledger_cell *cell(unsigned thread, unsigned call, unsigned communicator,
                                uint64_t bytes, enum ledger_measure measure)
{
    return cells_find(&cells[thread], bytes, cell_key(call, communicator, measure));
}

static void add(unsigned thread, struct ledger_cell *cell, uint64_t duration_ns,
                uint64_t volume_bytes)
{
    CHECK(cells_count(&cells[thread], cell, duration_ns, volume_bytes, 0));
}

static void send(unsigned thread, uint64_t bytes, uint64_t duration_ns, int32_t to)
{
    add(thread, cell(thread, SEND, 2, bytes, LEDGER_CALL), duration_ns, bytes);
    peer_add(peers_find(&peers[thread], peer_key(to, SEND, LEDGER_SENT)), bytes, duration_ns);
}

static void store(void)
{
    unlink("rank-3.db");
    bool stored =
        store_write(the_ledger.header, "rank-3.db", NULL, clock_monotonic_ns(), why, sizeof why);
    unit_context = why;
    CHECK(stored);
    unit_context = "";
}

/* The result of a query: columns separated by |, rows by a space. */

static int add_row(void *answer, int columns, char **values, char **names)
{
    (void)names;
    char *text = answer;
    for (int i = 0; i < columns; i++) {
        size_t used = strlen(text);
        snprintf(text + used, 4096 - used, "%s%s",
                 i      ? "|"
                 : used ? " "
                        : "",
                 values[i] ? values[i] : "null");
    }
    return 0;
}

static const char *ask(const char *sql)
{
    static char answer[4096];
    sqlite3 *database;
    answer[0] = '\0';
    CHECK(sqlite_load());
    CHECK(sqlite.open_v2("rank-3.db", &database, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
    CHECK(sqlite.exec(database, sql, add_row, answer, NULL) == SQLITE_OK);
    sqlite.close(database);
    return answer;
}

static bool is_there(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

/* Contents */

TEST(a_rank_has_one_row_with_all_that_the_header_says)
{
    begin();
    the_ledger.header->abort_code = 0;
    the_ledger.header->dropped_calls = 1;
    the_ledger.header->dropped_messages = 5;
    the_ledger.header->dropped_completions = 6;
    the_ledger.header->untracked_requests = 2;
    the_ledger.header->interrupted_calls = 3;
    the_ledger.header->folded_cells = 4;
    the_ledger.header->folded_communicators = 5;
    the_ledger.header->cost_init_ns = 6;
    the_ledger.header->cost_per_call_ps = 7;
    the_ledger.header->clock_error_ppb = -8;
    store();
    CHECK_TEXT(ask("SELECT world_rank, world_size, run_id, pid, thread_level FROM rank"),
               "3|8|job-17|4711|3");
    CHECK_TEXT(ask("SELECT start_unix_ns, end_unix_ns, wall_ns, ended FROM rank"),
               "1700000000000000001|1700000000000000501|500|finalize");
    CHECK_TEXT(ask("SELECT start_monotonic_ns FROM rank"), "1000");
    CHECK_TEXT(ask("SELECT abort_code, dropped_calls, dropped_messages, dropped_completions, "
                   "interrupted_calls, untracked_requests, folded_cells FROM rank"),
               "0|1|5|6|3|2|4");
    CHECK_TEXT(ask("SELECT cost_init_ns, cost_per_call_ps, clock_error_ppb FROM rank"), "6|7|-8");
}

TEST(a_rank_says_how_its_gpu_side_fared)
{
    begin();
    store();
    CHECK_TEXT(ask("SELECT gpu_state, gpu_records, cost_gpu_end_ns FROM rank"), "none|0|0");
    struct ledger_header *header = the_ledger.header;
    header->gpu_state = LEDGER_GPU_YIELDED;
    uint64_t *const counts[] = {&header->gpu_records,
                                &header->gpu_dropped_records,
                                &header->gpu_implausible_records,
                                &header->gpu_late_records,
                                &header->gpu_unattributed_records,
                                &header->gpu_lost_intervals,
                                &header->gpu_unmatched_operations,
                                &header->gpu_memory_kind_queries,
                                &header->gpu_memory_kind_changes,
                                &header->cost_gpu_begin_ns,
                                &header->cost_gpu_end_ns};
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++)
        *counts[i] = 11 + i;
    store();
    CHECK_TEXT(ask("SELECT gpu_state, gpu_records, gpu_dropped_records, gpu_implausible_records, "
                   "gpu_late_records, gpu_unattributed_records FROM"
                   " rank"),
               "yielded|11|12|13|14|15");
    CHECK_TEXT(ask("SELECT gpu_lost_intervals, gpu_unmatched_operations, gpu_memory_kind_queries, "
                   "gpu_memory_kind_changes, cost_gpu_begin_ns,"
                   " cost_gpu_end_ns FROM rank"),
               "16|17|18|19|20|21");
}

TEST(storing_is_part_of_what_finalizing_cost)
{
    begin();
    the_ledger.header->cost_finalize_ns = 1000000000000;
    store();
    CHECK_TEXT(
        ask("SELECT cost_finalize_ns > 1000000000000, cost_finalize_ns < 1100000000000 FROM rank"),
        "1|1");
}

TEST(an_abort_has_its_code)
{
    begin();
    the_ledger.header->ended = LEDGER_ABORTED;
    the_ledger.header->abort_code = 9;
    store();
    CHECK_TEXT(ask("SELECT ended, abort_code FROM rank"), "abort|9");
}

TEST(what_the_process_used_is_stored_as_facts)
{
    begin();
    the_ledger.header->usage_begin = (struct ledger_usage){.since_start_ns = 40,
                                                           .cpu_user_ns = 7000,
                                                           .involuntary_switches = 23118,
                                                           .core = 2,
                                                           .affinity = {0x10f, 3}};
    store();
    CHECK_TEXT(ask("SELECT value FROM fact WHERE key = 'begin.involuntary_switches'"), "23118");
    CHECK_TEXT(ask("SELECT value FROM fact WHERE key = 'begin.cpu_user_ns'"), "7000");
    CHECK_TEXT(ask("SELECT value FROM fact WHERE key = 'begin.core'"), "2");
    CHECK_TEXT(ask("SELECT value FROM fact WHERE key = 'begin.affinity'"), "0-3,8,64-65");
}

/* A process that was killed has no last reading; a thread of ours that took one says nothing of the
 * main thread's place. */
TEST(what_was_not_read_is_no_fact)
{
    begin();
    the_ledger.header->usage_begin =
        (struct ledger_usage){.since_start_ns = 40, .core = -1, .numa_node = -1};
    store();
    CHECK_TEXT(ask("SELECT count(*) FROM fact WHERE key LIKE 'last.%'"), "0");
    CHECK_TEXT(ask("SELECT count(*) FROM fact WHERE key IN ('begin.core', 'begin.numa_node', "
                   "'begin.affinity')"),
               "0");
}

TEST(how_long_late_activities_were_is_stored_as_a_fact)
{
    begin();
    store();
    CHECK_TEXT(ask("SELECT value FROM fact WHERE key = 'gpu.late_ns'"), "");
    the_ledger.header->gpu_late_ns = 2101;
    store();
    CHECK_TEXT(ask("SELECT value FROM fact WHERE key = 'gpu.late_ns'"), "2101");
}

TEST(facts_keep_their_text_and_the_last_of_a_key_counts)
{
    begin();
    ledger_fact("program", "tr'ain; DROP TABLE fact; -- \n \xc3\xa4");
    ledger_fact("program_2", "");
    ledger_fact("run_id", "job-18");
    store();
    CHECK_TEXT(ask("SELECT value FROM fact WHERE key = 'program'"),
               "tr'ain; DROP TABLE fact; -- \n \xc3\xa4");
    CHECK_TEXT(ask("SELECT value = '' FROM fact WHERE key = 'program_2'"), "1");
    CHECK_TEXT(ask("SELECT world_rank, key, value FROM fact WHERE key = 'run_id'"),
               "3|run_id|job-18");
    CHECK_TEXT(ask("SELECT run_id FROM rank"), "job-18");
}

TEST(calls_that_a_row_names_are_described_and_no_others)
{
    begin();
    store();
    CHECK_TEXT(ask("SELECT name FROM call"), "");
    struct ledger_call nccl = {NCCL_ALL_REDUCE, "ncclAllReduce", "collective", "nccl",
                               "blocking",      "allreduce",     "all"};
    ledger_append(LEDGER_CALLS, &nccl, sizeof nccl);
    add(0, cell(0, NCCL_ALL_REDUCE, 2, 8, LEDGER_CALL), 100, 8);
    send(1, 8, 100, 5);
    store();
    CHECK_TEXT(ask("SELECT * FROM call ORDER BY name"),
               "MPI_Send|point-to-point|mpi|blocking|one-way|nobody "
               "ncclAllReduce|collective|nccl|blocking|allreduce|all");
}

TEST(threads_have_their_names)
{
    begin();
    store();
    CHECK_TEXT(ask("SELECT world_rank, thread, tid, name, is_main FROM thread ORDER BY thread"),
               "3|0|100|main|1 3|1|101|helper|0");
}

#define DOING                                                                               \
    "SELECT doing_call, doing_communicator, doing_is_inside, doing_since_ns, doing_bytes, " \
    "doing_peer, doing_tag, doing_request_call "

TEST(a_thread_says_what_it_was_doing)
{
    begin();
    the_ledger.header->clock_ticks = 5000;
    the_ledger.header->clock_ns = 1000; /* the start as well */
    the_ledger.header->clock_scale = 2ull << 32;
    struct ledger_thread *thread = cells[0].record;
    thread->doing = WAIT | 5ull << LEDGER_DOING_SLOT_BIT | LEDGER_DOING_INSIDE |
                    (uint64_t)SEND << LEDGER_DOING_REQUEST_CALL_BIT;
    thread->since_ticks = 5100;
    thread->bytes = 64;
    thread->peer = 7;
    thread->tag = LEDGER_NO_TAG;
    cells[1].record->doing = SEND; /* on an unknown communicator: no details are stored */
    cells[1].record->bytes = 99;
    cells[1].record->since_ticks = 5200;
    store();
    CHECK_TEXT(ask(DOING "FROM thread WHERE thread = 0"), "MPI_Wait|5|1|200|64|7|null|MPI_Send");
    CHECK_TEXT(ask(DOING "FROM thread WHERE thread = 1"), "MPI_Send|0|0|400|null|null|null|");
}

TEST(the_last_collectives_of_a_communicator_are_numbered)
{
    begin();
    struct ledger_communicator world = {.identity = 1, .communicator = 2, .collectives = 18};
    for (unsigned i = 0; i < LEDGER_RECENT_COLLECTIVES; i++)
        world.recent[i] =
            (struct ledger_collective){.bytes = i, .call = SEND, .root = LEDGER_NO_RANK};
    world.recent[17 % LEDGER_RECENT_COLLECTIVES] =
        (struct ledger_collective){.bytes = LEDGER_BYTES_UNKNOWN, .call = WAIT, .root = 3};
    ledger_append(LEDGER_COMMUNICATORS, &world, sizeof world);
    store();
    CHECK_TEXT(ask("SELECT collectives FROM communicator"), "18");
    CHECK_TEXT(ask("SELECT count(*), min(sequence), max(sequence) FROM recent_collective"),
               "16|3|18");
    CHECK_TEXT(ask("SELECT call, bytes, root FROM recent_collective WHERE sequence IN (3, 18) "
                   "ORDER BY sequence"),
               "MPI_Send|2|null MPI_Wait|null|3");
}

TEST(a_thread_that_has_not_heard_of_a_reset_counts_for_nothing)
{
    begin();
    send(0, 64, 100, 1);
    send(1, 64, 100, 1);
    the_ledger.header->epoch = cells[1].record->epoch = 2;
    store();
    CHECK_TEXT(ask("SELECT thread FROM cell"), "1");
}

TEST(communicators_have_all_that_is_known_of_them)
{
    begin();
    struct ledger_communicator world = {
        .identity = 1, .communicator = 2, .size = 8, .comm_rank = 3};
    struct ledger_communicator split = {.identity = 0xfedcba9876543210,
                                        .parent_identity = 1,
                                        .communicator = 3,
                                        .flags =
                                            LEDGER_COMMUNICATOR_FREED | LEDGER_COMMUNICATOR_INTER,
                                        .size = 2,
                                        .remote_size = 5,
                                        .comm_rank = 1,
                                        .constructor = WAIT,
                                        .ordinal = 4};
    snprintf(world.name, sizeof world.name, "MPI_COMM_WORLD");
    snprintf(world.members, sizeof world.members, "0-7");
    snprintf(split.members, sizeof split.members, "1,3");
    ledger_append(LEDGER_COMMUNICATORS, &world, sizeof world);
    ledger_append(LEDGER_COMMUNICATORS, &split, sizeof split);
    store();
    CHECK_TEXT(ask("SELECT * FROM communicator WHERE communicator = 2"),
               "3|2|0000000000000001|null|MPI_COMM_WORLD||0|8|0|3|0-7|0|0|0|mpi");
    CHECK_TEXT(ask("SELECT * FROM communicator WHERE communicator = 3"),
               "3|3|fedcba9876543210|0000000000000001||MPI_Wait|4|2|5|1|1,3|1|1|0|mpi");
    struct ledger_communicator nccl = {.identity = 7,
                                       .communicator = 4,
                                       .flags = LEDGER_COMMUNICATOR_NCCL,
                                       .size = 8,
                                       .comm_rank = 3};
    ledger_append(LEDGER_COMMUNICATORS, &nccl, sizeof nccl);
    store();
    CHECK_TEXT(ask("SELECT identity, size, comm_rank, members, library FROM communicator WHERE "
                   "communicator = 4"),
               "0000000000000007|8|3||nccl");
}

TEST(a_cell_has_its_key_and_its_sums)
{
    begin();
    send(0, 64, 100, 1);
    send(0, 64, 300, 1);
    struct ledger_cell *completion = cell(1, SEND, 5, 9ll << 30, LEDGER_COMPLETION);
    add(1, completion, 7777, 0);
    completion->blocked_ns = 555;
    add(1, cell(1, WAIT, 0, 0, LEDGER_POLL), 20, 0);
    store();
    CHECK_TEXT(ask("SELECT world_rank, thread, call, communicator, bytes, measure, memory_kind, "
                   "region, is_folded, count, volume_bytes, total_ns,"
                   " min_ns, max_ns, blocked_ns FROM cell ORDER BY total_ns"),
               "3|1|MPI_Wait|0|0|poll|host|0|0|1|0|20|20|20|0 "
               "3|0|MPI_Send|2|64|call|host|0|0|2|128|400|100|300|0 "
               "3|1|MPI_Send|5|9663676416|completion|host|0|0|1|0|7777|7777|7777|555");
}

TEST(measures_and_memory_kinds_have_their_names)
{
    static const char *const KINDS[] = {"host", "device", "managed", "pinned"};
    static const char *const MEASURES[] = {"call", "completion", "poll", "device", "captured"};
    begin();
    for (unsigned kind = 0; kind < LEDGER_MEMORY_KINDS * LEDGER_MEMORY_KINDS; kind++)
        for (unsigned measure = LEDGER_CALL; measure <= LEDGER_CAPTURED; measure++) {
            struct ledger_cell *one =
                cell(0, SEND, 2, 1 + 10 * kind + measure, (enum ledger_measure)measure);
            add(0, one, 100, 0);
            one->memory_kind = (uint8_t)(kind / LEDGER_MEMORY_KINDS |
                                         kind % LEDGER_MEMORY_KINDS << LEDGER_MEMORY_KIND_TO_BIT);
        }
    store();
    for (unsigned kind = 0; kind < LEDGER_MEMORY_KINDS * LEDGER_MEMORY_KINDS; kind++)
        for (unsigned measure = LEDGER_CALL; measure <= LEDGER_CAPTURED; measure++) {
            char sql[128], expected[64];
            const char *from = KINDS[kind / LEDGER_MEMORY_KINDS],
                       *to = KINDS[kind % LEDGER_MEMORY_KINDS];
            snprintf(sql, sizeof sql, "SELECT measure, memory_kind FROM cell WHERE bytes = %u",
                     1 + 10 * kind + measure);
            snprintf(expected, sizeof expected, "%s|%s%s%s", MEASURES[measure], from,
                     from == to ? "" : ">", from == to ? "" : to);
            CHECK_TEXT(ask(sql), expected);
        }
}

TEST(threads_keep_cells_of_their_own)
{
    begin();
    send(0, 64, 100, 1);
    send(1, 64, 100, 1);
    send(1, 64, 100, 1);
    store();
    CHECK_TEXT(ask("SELECT thread, count FROM cell ORDER BY thread"), "0|1 1|2");
}

TEST(a_histogram_has_rows_for_the_buckets_in_use)
{
    begin();
    send(0, 64, 100, 1);
    send(0, 64, 101, 1);
    send(0, 64, 3, 1);
    send(0, 64, 5ull << 47, 1);
    store();
    CHECK_TEXT(
        ask("SELECT bucket, bucket.count FROM bucket JOIN cell USING (cell) ORDER BY bucket"),
        "0|1 21|2 345|1");
    CHECK_TEXT(ask("SELECT low_ns, high_ns FROM bucket_bound WHERE bucket = 21"), "96|104");
}

TEST(the_bounds_in_the_database_are_those_of_the_histogram)
{
    char sql[128], bounds[64];
    begin();
    store();
    for (unsigned bucket = 0; bucket + 1 < HISTOGRAM_BUCKETS; bucket++) {
        snprintf(sql, sizeof sql, "SELECT low_ns, high_ns FROM bucket_bound WHERE bucket = %u",
                 bucket);
        snprintf(bounds, sizeof bounds, "%llu|%llu", (unsigned long long)histogram_low_ns(bucket),
                 (unsigned long long)histogram_low_ns(bucket + 1));
        CHECK_TEXT(ask(sql), bounds);
    }
    CHECK_TEXT(ask("SELECT bucket, low_ns, high_ns FROM bucket_bound WHERE bucket >= 345"),
               "345|140737488355328|null");
}

TEST(a_cell_that_was_folded_away_or_never_used_is_not_stored)
{
    begin();
    send(0, 64, 100, 1);
    send(0, 128, 100, 1);
    cell(0, SEND, 2, 128, LEDGER_CALL)->live = 0;
    cell(0, SEND, 2, 256, LEDGER_CALL);
    store();
    CHECK_TEXT(ask("SELECT bytes FROM cell"), "64");
    CHECK_TEXT(ask("SELECT count(*) FROM bucket"), "1");
}

TEST(a_folded_cell_says_so)
{
    begin();
    add(0, cells_find(&cells[0], 128, cell_key(SEND, 2, LEDGER_CALL) | CELL_KEY_FOLDED), 100, 70);
    add(0, cell(0, SEND, 2, 128, LEDGER_CALL), 100, 128);
    store();
    CHECK_TEXT(ask("SELECT bytes, is_folded, volume_bytes FROM cell ORDER BY is_folded"),
               "128|0|128 128|1|70");
}

TEST(peers_of_all_threads_add_up)
{
    begin();
    send(0, 64, 100, 1);
    send(1, 64, 200, 1);
    send(1, 8, 50, -1);
    peer_add(peers_find(&peers[0], peer_key(1, SEND, LEDGER_RECEIVED)), 10, 20);
    peer_add(peers_find(&peers[1], peer_key_in(17, 1, SEND, LEDGER_RECEIVED)), 30, 40);
    peers_find(&peers[0], peer_key(5, SEND, LEDGER_SENT)); /* a row in which nothing was counted */
    store();
    CHECK_TEXT(ask("SELECT world_rank, call, direction, communicator, peer, count, bytes, time_ns "
                   "FROM peer ORDER BY direction, communicator, "
                   "peer"),
               "3|MPI_Send|received|0|1|1|10|20 3|MPI_Send|received|17|1|1|30|40 "
               "3|MPI_Send|sent|0|-1|1|8|50 3|MPI_Send|sent|0|1|2|128|300");
}

TEST(many_cells_are_all_stored)
{
    begin();
    for (uint64_t bytes = 1; bytes <= 1000; bytes++)
        send(bytes % 2, bytes, bytes, (int32_t)bytes);
    store();
    CHECK_TEXT(ask("SELECT count(*), sum(count), sum(volume_bytes), sum(total_ns) FROM cell"),
               "1000|1000|500500|500500");
    CHECK_TEXT(ask("SELECT sum(count) FROM bucket"), "1000");
    CHECK_TEXT(ask("SELECT count(*), sum(bytes) FROM peer"), "1000|500500");
}

TEST(the_file_says_what_it_is)
{
    begin();
    store();
    CHECK_TEXT(ask("PRAGMA application_id"), "1668116582");
    CHECK_TEXT(ask("PRAGMA user_version"), "10");
    CHECK_TEXT(ask("PRAGMA integrity_check"), "ok");
}

/* Samples. Two ticks are a nanosecond; the rank begins half a second into second 4 (of 2^30 ns) and
 * runs for ten seconds. */

#define SECOND_NS (1ll << LEDGER_GAP_NS_LOG2)
#define SECOND_BIT (LEDGER_GAP_NS_LOG2 - LEDGER_WINDOW_NS_LOG2)
#define ALL_OF_SAMPLE                                                                           \
    "thread, call, communicator, sequence, start_ns, end_ns, completed_ns, bytes, peer, root, " \
    "request_call, region"

static uint64_t ticks_at(int64_t ns)
{
    return 1000000 + 2 * (uint64_t)ns;
}

static void begin_sampled(void)
{
    begin();
    struct ledger_header *header = the_ledger.header;
    header->clock_ticks = 1000000;
    header->clock_ns = header->start_ns;
    header->clock_scale = 1ull << 31;
    header->start_unix_ns = 4 * SECOND_NS + 500000000;
    header->end_ns = header->start_ns + 10 * SECOND_NS;
    name_call(ALLREDUCE, "MPI_Allreduce", "collective");
    name_call(BCAST, "MPI_Bcast", "collective");
    name_call(IALLREDUCE, "MPI_Iallreduce", "collective");
}

static struct ledger_page *begin_page(enum ledger_owner owner, uint64_t number, uint64_t first)
{
    struct ledger_page page = {.owner = (uint64_t)owner | number << 8, .first = first};
    return ledger_append(LEDGER_SAMPLES, &page, sizeof page);
}

/* For the rest of a second there was no room. */
static void no_room_from(struct ledger_page *page, int64_t ns)
{
    page->until_ticks = ticks_at(ns);
    page->last = (uint64_t)(the_ledger.header->start_unix_ns + ns) >> LEDGER_WINDOW_NS_LOG2 |
                 ((1 << SECOND_BIT) - 1);
}

static struct ledger_sample *put(struct ledger_page *page, unsigned place, unsigned call,
                                 int64_t start_ns, int64_t end_ns)
{
    page->samples[place] = (struct ledger_sample){.start_ticks = ticks_at(start_ns),
                                                  .end_ticks = ticks_at(end_ns),
                                                  .bytes = 64,
                                                  .peer = LEDGER_NO_RANK,
                                                  .call = (uint16_t)call,
                                                  .communicator = 2};
    return &page->samples[place];
}

static struct ledger_sample *put_collective(struct ledger_page *page, unsigned place, unsigned call,
                                            uint64_t sequence)
{
    struct ledger_sample *sample =
        put(page, place, call, (int64_t)sequence * 1000, (int64_t)sequence * 1000 + 100);
    sample->sequence = sequence;
    return sample;
}

static struct ledger_thread *sampled_since(unsigned thread, int64_t ns)
{
    cells[thread].record->sampled_since_ticks = ticks_at(ns);
    return cells[thread].record;
}

TEST(a_collective_has_its_number_and_its_root)
{
    begin_sampled();
    struct ledger_page *page = begin_page(LEDGER_OF_THREAD, 1, 4);
    put_collective(page, 0, ALLREDUCE, 1)->thread = 1;
    put_collective(page, 1, BCAST, 3)->peer = 7;
    struct ledger_sample *unlike = put_collective(page, 63, IALLREDUCE, 5000000000);
    unlike->start_ticks = ticks_at(4000);
    unlike->end_ticks = ticks_at(4010);
    unlike->bytes = LEDGER_SAMPLE_BYTES_UNKNOWN;
    unlike->completed_ticks = ticks_at(9000);
    unlike->region = 9;
    store();
    CHECK_TEXT(ask("SELECT " ALL_OF_SAMPLE " FROM sample ORDER BY sequence"),
               "1|MPI_Allreduce|2|1|1000|1100|null|64|null|null||0 "
               "0|MPI_Bcast|2|3|3000|3100|null|64|null|7||0 "
               "0|MPI_Iallreduce|2|5000000000|4000|4010|9000|null|null|null||9");
    CHECK_TEXT(ask("SELECT DISTINCT world_rank FROM sample"), "3");
}

TEST(a_collective_on_a_window_or_a_file_has_the_object_and_its_number_on_that)
{
    begin_sampled();
    struct ledger_page *page = begin_page(LEDGER_OF_THREAD, 1, 4);
    put_collective(page, 0, ALLREDUCE, 1);
    struct ledger_sample *on_object = put(page, 1, BCAST, 2000, 2100);
    on_object->sequence = LEDGER_ON_OBJECT | 3ull << LEDGER_OBJECT_BIT | 7;
    store();
    CHECK_TEXT(ask("SELECT sequence, object, object_sequence, peer FROM sample ORDER BY start_ns"),
               "1|null|null|null null|3|7|null");
}

TEST(a_call_without_a_sequence_has_its_peer_and_the_call_of_its_request)
{
    begin_sampled();
    struct ledger_page *page = begin_page(LEDGER_OF_THREAD, 1, 4);
    struct ledger_sample *sample = put(page, 0, WAIT, 100, 200);
    sample->peer = LEDGER_PEER_ANY;
    sample->request_call = SEND;
    sample->thread = 1;
    store();
    CHECK_TEXT(ask("SELECT " ALL_OF_SAMPLE " FROM sample"),
               "1|MPI_Wait|2|null|100|200|null|64|-2|null|MPI_Send|0");
}

static struct ledger_sample *put_message(struct ledger_page *page, unsigned place, unsigned flags,
                                         int64_t start_ns)
{
    struct ledger_sample *sample = put(page, place, SEND, start_ns, start_ns + 50);
    sample->flags = (uint16_t)(LEDGER_SAMPLE_MESSAGE | flags) & 0xf;
    sample->peer = 5;
    sample->tag = -7;
    sample->number = UINT16_MAX;
    return sample;
}

TEST(a_message_has_its_tag_and_number)
{
    begin_sampled();
    struct ledger_page *page = begin_page(LEDGER_OF_THREAD, 1, 4);
    put_message(page, 0, 0, 100)->completed_ticks = ticks_at(900);
    put_message(page, 1, 0, 200)->tag = LEDGER_NO_TAG;
    put_message(page, 2, 0, 300)->number = 0;
    store();
    CHECK_TEXT(ask("SELECT " ALL_OF_SAMPLE ", tag, number FROM sample"),
               "1|MPI_Send|2|null|100|150|900|64|5|null||0|-7|65535 "
               "1|MPI_Send|2|null|200|250|null|64|5|null||0|null|65535 "
               "1|MPI_Send|2|null|300|350|null|64|5|null||0|-7|null");
}

TEST(further_messages_have_a_table_of_their_own)
{
    begin_sampled();
    struct ledger_page *page = begin_page(LEDGER_OF_THREAD, 1, 4);
    put_message(page, 0, LEDGER_SAMPLE_FURTHER | LEDGER_SAMPLE_RECEIVED, 100);
    put_message(page, 1, LEDGER_SAMPLE_FURTHER, 200)->completed_ticks = ticks_at(900);
    store();
    CHECK_TEXT(ask("SELECT count(*) FROM sample"), "0");
    CHECK_TEXT(ask("SELECT * FROM sample_message"),
               "3|1|MPI_Send|2|received|5|-7|65535|64|100|150|null "
               "3|1|MPI_Send|2|sent|5|-7|65535|64|200|250|900");
    CHECK_TEXT(ask("SELECT thread, direction FROM message"), "1|received 1|sent");
}

TEST(a_started_collective_has_a_table_of_its_own)
{
    begin_sampled();
    struct ledger_page *page = begin_page(LEDGER_OF_THREAD, 1, 4);
    for (unsigned i = 0; i < 2; i++) {
        struct ledger_sample *sample = put(page, i, BCAST, 100 * (i + 1), 100 * (i + 1) + 50);
        sample->flags = LEDGER_SAMPLE_FURTHER;
        sample->operation = UINT16_MAX;
        sample->starts = INT32_MAX;
        sample->peer = i ? 7 : LEDGER_NO_RANK;
        sample->completed_ticks = i ? ticks_at(900) : 0;
    }
    store();
    CHECK_TEXT(ask("SELECT (SELECT count(*) FROM sample), (SELECT count(*) FROM sample_message)"),
               "0|0");
    CHECK_TEXT(ask("SELECT * FROM sample_start"),
               "3|1|MPI_Bcast|2|65535|2147483647|null|64|100|150|null "
               "3|1|MPI_Bcast|2|65535|2147483647|7|64|200|250|900");
}

TEST(a_partner_of_an_epoch_has_a_table_of_its_own)
{
    begin_sampled();
    struct ledger_page *page = begin_page(LEDGER_OF_THREAD, 1, 4);
    for (unsigned i = 0; i < 2; i++) {
        struct ledger_sample *sample = put(page, i, BCAST, 100 * (i + 1), 100 * (i + 1) + 50);
        sample->flags = LEDGER_SAMPLE_EPOCH;
        sample->partners = UINT16_MAX;
        sample->epoch = i ? INT32_MAX : 0;
        sample->peer = i ? 7 : LEDGER_NO_RANK;
        sample->sequence = 9;
    }
    store();
    CHECK_TEXT(ask("SELECT (SELECT count(*) FROM sample), (SELECT count(*) FROM sample_start)"),
               "0|0");
    CHECK_TEXT(ask("SELECT * FROM sample_epoch"), "3|1|MPI_Bcast|2|9|null|null|65535|100|150 "
                                                  "3|1|MPI_Bcast|2|9|7|2147483647|65535|200|250");
}

TEST(a_sample_has_its_signature)
{
    begin_sampled();
    struct ledger_signature sum = {.signature = 1,
                                   .flags =
                                       LEDGER_SIGNATURE_COMMUTATIVE | LEDGER_SIGNATURE_IN_PLACE,
                                   .count = 10};
    struct ledger_signature vector = {.signature = 65535,
                                      .memory_kind = LEDGER_DEVICE,
                                      .count = 2,
                                      .datatype = "vector",
                                      .buffer_at = 4096};
    struct ledger_signature many = {
        .signature = 3, .flags = LEDGER_SIGNATURE_COUNTS, .counts_hash = 255, .op = "user"};
    memcpy(sum.datatype, "MPI_FLOAT", sizeof "MPI_FLOAT");
    memcpy(sum.op, "MPI_SUM", sizeof "MPI_SUM");
    sum.type_bytes = sum.blocks = 1;
    vector.extent = -8;
    ledger_append(LEDGER_SIGNATURES, &sum, sizeof sum);
    ledger_append(LEDGER_SIGNATURES, &vector, sizeof vector);
    ledger_append(LEDGER_SIGNATURES, &many, sizeof many);
    struct ledger_page *page = begin_page(LEDGER_OF_THREAD, 0, 4);
    put(page, 0, ALLREDUCE, 100, 200)->signature = 65535;
    put(page, 1, ALLREDUCE, 300, 400);
    store();
    CHECK_TEXT(ask("SELECT * FROM signature"),
               "3|1|MPI_FLOAT|1|0|1|10|MPI_SUM|1|1|null|host|null|null "
               "3|3||null|null|null|null|user|0|0|00000000000000ff|host|null|null "
               "3|65535|vector|0|-8|null|2||null|0|null|device>host|4096|null");
    CHECK_TEXT(ask("SELECT bytes, signature FROM sample ORDER BY start_ns"), "64|65535 64|null");
    CHECK_TEXT(ask("SELECT start_ns, datatype FROM signed_sample"), "100|vector");
}

TEST(a_sample_that_is_not_there_yet_is_not_stored)
{
    begin_sampled();
    put(begin_page(LEDGER_OF_THREAD, 0, 4), 5, ALLREDUCE, 100, 200)->end_ticks = 0;
    put(begin_page(LEDGER_NOBODY, 0, 4), 0, ALLREDUCE, 100, 200);
    store();
    CHECK_TEXT(ask("SELECT count(*) FROM sample"), "0");
}

TEST(samples_and_steps_that_a_mask_leaves_out_are_not_stored)
{
    begin_sampled();
    the_ledger.header->window_mask = 1 << (SECOND_BIT + 1); /* 4, 5, 8, 9 */
    the_ledger.header->step_mask = 1 << 4;
    struct ledger_page *page = begin_page(LEDGER_OF_THREAD, 0, 4 << SECOND_BIT);
    for (unsigned second = 0; second < 6; second++)
        put(page, second, SEND, second * SECOND_NS, second * SECOND_NS + 10);
    put(page, 6, SEND, 3 * SECOND_NS,
        4 * SECOND_NS); /* a call belongs to the window in which it returns */
    put(page, 7, SEND, 4 * SECOND_NS, 6 * SECOND_NS);
    put(begin_page(LEDGER_OF_STEPS, 0, 15), 63, 0, 100, 200);
    put(begin_page(LEDGER_OF_STEPS, 0, 16), 0, 0, 200, 300);
    put(begin_page(LEDGER_OF_STEPS, 0, 32), 1, 0, 300, 400);
    store();
    CHECK_TEXT(ask("SELECT start_ns >> 30, end_ns >> 30 FROM sample"), "0|0 1|1 4|4 5|5 3|4");
    CHECK_TEXT(ask("SELECT step FROM step"), "1024 2050");
}

static void begin_record(uint64_t begin_second, uint64_t end_second)
{
    begin_sampled();
    the_ledger.header->record_first = begin_second << SECOND_BIT;
    the_ledger.header->record_last = (end_second << SECOND_BIT) - 1;
    the_ledger.header->record_asked_ns = 3 * SECOND_NS;
}

TEST(samples_of_the_record_are_stored_though_the_mask_leaves_them_out)
{
    begin_record(6, 8);
    the_ledger.header->window_mask = the_ledger.header->device_mask = 15 << SECOND_BIT;
    the_ledger.header->record_is_full = 1;
    struct ledger_page *page = begin_page(LEDGER_OF_THREAD, 0, 4 << SECOND_BIT);
    for (unsigned second = 0; second < 6; second++)
        put(page, second, SEND, second * SECOND_NS, second * SECOND_NS + 10);
    struct ledger_page *gpu_page = begin_page(LEDGER_OF_STREAM, 1, 4 << SECOND_BIT);
    put(gpu_page, 0, 0, 2 * SECOND_NS, 2 * SECOND_NS + 10);
    store();
    CHECK_TEXT(ask("SELECT start_ns >> 30 FROM sample"), "2 3");
    CHECK_TEXT(ask("SELECT count(*) FROM gpu_sample"), "0");
    CHECK_TEXT(ask("SELECT count(*) FROM sample_window"), "0");
    CHECK_TEXT(ask("SELECT record_begin_ns + 500000000, record_end_ns + 500000000,"
                   " record_asked_ns >> 30, record_is_full, window_mask >> 10 FROM rank"),
               "2147483648|4294967296|3|1|15");
}

TEST(a_record_ends_with_the_job)
{
    begin_record(10, 90);
    store();
    CHECK_TEXT(ask("SELECT record_end_ns = wall_ns, record_is_full FROM rank"), "1|0");
}

TEST(a_record_that_had_not_begun_is_empty)
{
    begin_record(80, 90);
    store();
    CHECK_TEXT(ask("SELECT record_begin_ns > wall_ns, record_end_ns = record_begin_ns FROM rank"),
               "1|1");
}

TEST(without_a_record_its_times_are_unknown)
{
    begin_sampled();
    store();
    CHECK_TEXT(ask("SELECT record_begin_ns, record_end_ns, record_asked_ns FROM rank"),
               "null|null|null");
}

TEST(samples_from_before_a_reset_are_not_stored)
{
    begin_sampled();
    the_ledger.header->reset_ticks = ticks_at(5000);
    sampled_since(0, 100);
    struct ledger_page *page = begin_page(LEDGER_OF_THREAD, 0, 4);
    put(page, 0, SEND, 4999, 6000);
    put(page, 1, SEND, 5000, 6000);
    store();
    CHECK_TEXT(ask("SELECT start_ns FROM sample"), "5000");
    CHECK_TEXT(ask("SELECT begin_ns FROM sample_window"), "5000 5000");
}

TEST(windows_that_touch_are_one_row)
{
    begin_sampled();
    begin_page(LEDGER_OF_THREAD, 0, 4);
    sampled_since(1, 700);
    store();
    CHECK_TEXT(ask("SELECT * FROM sample_window"), "3|0|0|10737418240 3|1|700|10737418240");
}

TEST(windows_between_sampled_ones_are_not_covered)
{
    begin_sampled();
    the_ledger.header->window_mask = 3 << SECOND_BIT;
    begin_page(LEDGER_OF_THREAD, 0, 4);
    sampled_since(0, 700);
    store();
    CHECK_TEXT(ask("SELECT begin_ns, end_ns FROM sample_window WHERE thread = 0"),
               "700|573741824 3794967296|4868709120 8089934592|9163676416");
}

/* There is no room for the rest of a second (of 2^30 ns on the wall clock). */
TEST(a_gap_is_not_covered)
{
    begin_sampled();
    no_room_from(begin_page(LEDGER_OF_THREAD, 1, 9 << SECOND_BIT), 5 * SECOND_NS);
    no_room_from(begin_page(LEDGER_OF_THREAD, 1, 6 << SECOND_BIT), 2 * SECOND_NS);
    begin_page(LEDGER_OF_THREAD, 1, 6 << SECOND_BIT);
    store();
    CHECK_TEXT(ask("SELECT begin_ns, end_ns FROM sample_window WHERE thread = 0"), "0|10737418240");
    CHECK_TEXT(ask("SELECT begin_ns, end_ns FROM sample_window WHERE thread = 1"),
               "0|2147483648 2721225472|5368709120 5942450944|10737418240");
}

TEST(a_gap_counts_in_each_stretch_that_it_touches)
{
    begin_sampled();
    the_ledger.header->window_mask =
        1 << (SECOND_BIT - 2); /* the first and third quarter of each second */
    the_ledger.header->start_unix_ns = 4 * SECOND_NS;
    the_ledger.header->end_ns = the_ledger.header->start_ns + 3 * SECOND_NS;
    no_room_from(begin_page(LEDGER_OF_THREAD, 1, 5 << SECOND_BIT), SECOND_NS + 100);
    store();
    CHECK_TEXT(ask("SELECT begin_ns * 4 / (1 << 30), (end_ns - begin_ns) * 4 / (1 << 30) FROM "
                   "sample_window WHERE thread = 0"),
               "0|1 2|1 4|1 6|1 8|1 10|1");
    CHECK_TEXT(ask("SELECT begin_ns * 4 / (1 << 30), end_ns - begin_ns FROM sample_window WHERE "
                   "thread = 1"),
               "0|268435456 2|268435456 4|100 8|268435456 10|268435456");
}

TEST(stretches_of_windows_are_a_row_each)
{
    begin_sampled();
    the_ledger.header->window_mask = (1 << 1 | 1 << 3) << SECOND_BIT; /* 4 and 5, then 16 and 17 */
    the_ledger.header->end_ns = the_ledger.header->start_ns + 14 * SECOND_NS;
    begin_page(LEDGER_OF_THREAD, 0, 4);
    store();
    CHECK_TEXT(ask("SELECT begin_ns, end_ns FROM sample_window WHERE thread = 0"),
               "0|1647483648 12384901888|14532385536");
}

TEST(of_very_many_stretches_a_part_is_covered)
{
    begin_sampled();
    the_ledger.header->window_mask = 1;
    the_ledger.header->start_unix_ns = 4 * SECOND_NS;
    the_ledger.header->end_ns = the_ledger.header->start_ns + (1ll << (LEDGER_WINDOW_NS_LOG2 + 18));
    begin_page(LEDGER_OF_THREAD, 0, 4 << SECOND_BIT);
    store();
    CHECK_TEXT(
        ask("SELECT count(*), sum(end_ns - begin_ns) >> 20 FROM sample_window WHERE thread = 0"),
        "65536|65536");
    CHECK_TEXT(ask("SELECT count(*) FROM sample_window WHERE begin_ns >> 20 & 3 > 0 OR (end_ns - "
                   "1) >> 20 & 3 > 0"),
               "0");
}

TEST(without_a_log_no_window_is_covered)
{
    begin_sampled();
    store();
    CHECK_TEXT(ask("SELECT count(*) FROM sample_window"), "0");
}

TEST(the_last_step_goes_on_until_the_end)
{
    begin_sampled();
    struct ledger_page *page = begin_page(LEDGER_OF_STEPS, 0, 0);
    put(page, 0, 0, 100, 200);
    put(page, 1, 0, 200, 200)->thread = 1;
    store();
    CHECK_TEXT(ask("SELECT * FROM step"), "3|1|0|100|200 3|2|1|200|10737418240");
}

TEST(regions_have_names_and_spans)
{
    begin_sampled();
    struct ledger_region region = {.region = 4, .name = "epoch/forward"};
    ledger_append(LEDGER_REGIONS, &region, sizeof region);
    put(begin_page(LEDGER_OF_THREAD, 0, 4), 0, 0, 100, 200)->region = 4;
    store();
    CHECK_TEXT(ask("SELECT * FROM region"), "3|4|epoch/forward");
    CHECK_TEXT(ask("SELECT * FROM region_span"), "3|0|4|100|200");
    CHECK_TEXT(ask("SELECT count(*) FROM sample"), "0");
}

/* Calls of two kinds in turn, one of them without a completion; the last place is empty. */
TEST(a_full_log_is_all_stored)
{
    begin_sampled();
    for (uint64_t window = 4; begin_page(LEDGER_OF_THREAD, 0, window); window++)
        ;
    struct ledger_chunk *chunk;
    struct ledger_sample *sample = NULL;
    int64_t samples = 0;
    for (uint32_t at = 0; at < the_ledger.header->chunk_count; at++)
        if ((chunk = ledger_chunk_at(the_ledger.header, at))->kind == LEDGER_SAMPLES)
            for (uint32_t i = 0; i < chunk->used; i++)
                for (unsigned place = 0; place < LEDGER_PAGE_SAMPLES; place++) {
                    bool completes = samples++ % 3 == 0;
                    sample = put(ledger_entry(chunk, i), place, completes ? ALLREDUCE : SEND,
                                 samples, 2 * samples);
                    sample->sequence = (uint64_t)samples;
                    sample->completed_ticks = completes ? ticks_at(3 * samples) : 0;
                }
    CHECK(samples > 65000);
    sample->end_ticks = 0;
    samples--;
    store();
    char expected[64];
    snprintf(expected, sizeof expected, "%lld|%lld|%lld", (long long)samples, (long long)samples,
             (long long)samples);
    CHECK_TEXT(ask("SELECT count(*), max(sequence), count(DISTINCT sequence) FROM sample"),
               expected);
    CHECK_TEXT(ask("SELECT call, completed_ns IS NULL, min(end_ns - 2 * start_ns), "
                   "max(end_ns - 2 * start_ns), min(completed_ns - 3 * start_ns), "
                   "max(completed_ns - 3 * start_ns) FROM sample GROUP BY sequence % 3 = 1, 1, 2"),
               "MPI_Send|1|0|0|null|null MPI_Allreduce|0|0|0|0|0");
}

TEST(an_nccl_operation_has_the_time_of_its_kernel)
{
    begin_sampled();
    struct ledger_call nccl = {.call = NCCL_ALL_REDUCE,
                               .name = "ncclAllReduce",
                               .family = "collective",
                               .library = "nccl"};
    ledger_append(LEDGER_CALLS, &nccl, sizeof nccl);
    struct ledger_page *page = begin_page(LEDGER_OF_THREAD, 0, 4);
    struct ledger_sample *own = put(page, 0, NCCL_ALL_REDUCE, 1000, 1100),
                         *shared = put(page, 1, NCCL_ALL_REDUCE, 2000, 2100);
    own->completed_ticks = ticks_at(9000);
    own->device_span = WAIT;                  /* 16 ns; not the call of a request */
    shared->completed_ticks = ticks_at(1990); /* by an inaccurate clock */
    shared->device_span = 32000 / 16 << 1 | LEDGER_DEVICE_SPAN_SHARED;
    put(page, 2, NCCL_ALL_REDUCE, 3000, 3100); /* has no time on the device (yet) */
    put(page, 3, ALLREDUCE, 4000, 4100)->completed_ticks = ticks_at(4200);
    store();
    CHECK_TEXT(ask("SELECT start_ns, completed_ns, device_start_ns, device_end_ns, is_shared, "
                   "request_call FROM sample ORDER BY start_ns"),
               "1000|9000|8984|9000|0| 2000|2000|0|1990|1| 3000|null|null|null|null| "
               "4000|4200|null|null|null|");
}

/* GPU activities */

TEST(a_device_has_the_times_of_its_states)
{
    begin();
    struct ledger_device device = {.device = 1,
                                   .number = 4,
                                   .name = "H100",
                                   .uuid = "GPU-1",
                                   .first_ns = 1100,
                                   .last_ns = 1400};
    device.kernels = 7, device.copies = 8, device.sets = 9;
    device.state_ns[0] = 50;
    device.state_ns[LEDGER_COMPUTING | LEDGER_IN_MPI] = 60;
    device.state_ns[LEDGER_COMMUNICATING] = 70;
    device.state_ns[LEDGER_COPYING] = 80;
    struct ledger_device unused = {.device = 2};
    device.sms = 132, device.memory_bytes = 80;
    device.communication_ns = 10, device.communication_sm_ns = 160,
    device.communication_most_sms = 16;
    ledger_append(LEDGER_DEVICES, &device, sizeof device);
    ledger_append(LEDGER_DEVICES, &unused, sizeof unused);
    store();
    CHECK_TEXT(
        ask("SELECT * FROM gpu_device"),
        "3|1|4|H100|GPU-1|100|400|7|8|9|132|10|160|16|80 3|2|0|||null|null|0|0|0|null|0|0|0|null");
    CHECK_TEXT(ask("SELECT * FROM gpu_busy ORDER BY ns"),
               "3|1|0|0|0|0|50 3|1|1|0|0|1|60 3|1|0|1|0|0|70 3|1|0|0|1|0|80");
}

static void append_kernel(uint32_t number, bool is_communication, const char *name)
{
    char place[256] = "";
    struct ledger_kernel kernel = {.kernel = number,
                                   .name_bytes = (uint32_t)strlen(name),
                                   .is_communication = is_communication};
    memcpy(place, &kernel, sizeof kernel);
    snprintf(place + sizeof kernel, sizeof place - sizeof kernel, "%s", name);
    struct ledger_chunk *chunk =
        ledger_chunk_at(the_ledger.header, the_ledger.header->chunk_count - 1);
    size_t bytes = (sizeof kernel + strlen(name) + 7) & ~7u;
    memcpy(ledger_entry(chunk, chunk->used), place, bytes);
    chunk->used += (uint32_t)bytes;
}

TEST(kernels_and_streams_have_their_names_and_numbers)
{
    begin();
    ledger_chunk(LEDGER_KERNELS, 1, 0);
    append_kernel(1, false, "_Z4gemmv");
    append_kernel(2, true,
                  "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
    append_kernel(LEDGER_KERNEL_OTHER, false, "");
    struct ledger_stream stream = {.stream = 6, .device = 1, .context = 2, .number = 13};
    ledger_append(LEDGER_STREAMS, &stream, sizeof stream);
    store();
    CHECK_TEXT(ask("SELECT * FROM gpu_kernel"), "3|1|_Z4gemmv|0 "
                                                "3|2|ncclDevKernel_AllReduce_Sum_f32_RING_LL("
                                                "ncclDevKernelArgsStorage<4096ul>)|1 3|65535||0");
    CHECK_TEXT(ask("SELECT * FROM gpu_stream"), "3|6|1|2|13");
}

TEST(activities_have_their_keys_sums_and_buckets)
{
    begin();
    struct ledger_activity kernel = {.kernel = 300,
                                     .stream = 6,
                                     .kind = LEDGER_ACTIVITY_KERNEL,
                                     .flags = LEDGER_ACTIVITY_GRAPH,
                                     .live = 1};
    kernel.total_ns = 500, kernel.min_ns = 100, kernel.max_ns = 300;
    kernel.buckets[21] = 2, kernel.buckets[30] = 1;
    struct ledger_activity copy = {.bytes = 64,
                                   .stream = 6,
                                   .kind = LEDGER_ACTIVITY_COPY,
                                   .copy = LEDGER_COPY_TO_PEER,
                                   .live = 1};
    copy.flags = LEDGER_ACTIVITY_PAGEABLE | LEDGER_ACTIVITY_MANAGED;
    copy.volume_bytes = 50;
    copy.buckets[0] = 1;
    struct ledger_activity set = {.stream = 6, .kind = LEDGER_ACTIVITY_SET, .live = 1},
                           gone = kernel;
    gone.live = 0;
    ledger_append(LEDGER_ACTIVITIES, &set, sizeof set); /* nothing was counted */
    ledger_append(LEDGER_ACTIVITIES, &kernel, sizeof kernel);
    ledger_append(LEDGER_ACTIVITIES, &gone, sizeof gone);
    ledger_append(LEDGER_ACTIVITIES, &copy, sizeof copy);
    store();
    CHECK_TEXT(
        ask("SELECT * FROM gpu_activity"),
        "1|3|6|kernel|300||1|0|0|0|3|0|500|100|300 2|3|6|copy|0|to peer|0|1|1|64|1|50|0|0|0");
    CHECK_TEXT(ask("SELECT * FROM gpu_bucket"), "1|21|2 1|30|1 2|0|1");
}

TEST(what_gpus_did_before_a_reset_does_not_count)
{
    begin();
    struct ledger_device device = {.device = 1,
                                   .name = "H100",
                                   .uuid = "GPU-1",
                                   .first_ns = 1100,
                                   .last_ns = 1400,
                                   .kernels = 7};
    struct ledger_activity kernel = {
        .kernel = 300, .stream = 6, .kind = LEDGER_ACTIVITY_KERNEL, .live = 1};
    device.sms = 132, device.memory_bytes = 80;
    device.communication_ns = 10, device.communication_sm_ns = 160,
    device.communication_most_sms = 16;
    device.state_ns[LEDGER_COMPUTING] = 60;
    kernel.buckets[21] = 2;
    ledger_append(LEDGER_DEVICES, &device, sizeof device);
    ledger_append(LEDGER_ACTIVITIES, &kernel, sizeof kernel);
    the_ledger.header->epoch++;
    store();
    CHECK_TEXT(ask("SELECT * FROM gpu_device"), "3|1|0|H100|GPU-1|null|null|0|0|0|132|0|0|0|80");
    CHECK_TEXT(ask("SELECT count(*) FROM gpu_busy"), "0");
    CHECK_TEXT(ask("SELECT count(*) FROM gpu_activity"), "0");
    CHECK_TEXT(ask("SELECT count(*) FROM gpu_bucket"), "0");
}

static void append_tracing(int64_t begin_ns, int64_t end_ns, enum ledger_tracing_end ended,
                           uint32_t clock_error_ns)
{
    int64_t start_ns = the_ledger.header->start_ns;
    struct ledger_tracing tracing = {
        .begin_ns = start_ns + begin_ns, .end_ns = end_ns ? start_ns + end_ns : 0, .ended = ended};
    tracing.clock_error_ns = clock_error_ns;
    tracing.records = 5;
    ledger_append(LEDGER_TRACINGS, &tracing, sizeof tracing);
}

TEST(times_of_tracing_count_from_the_start)
{
    begin();
    append_tracing(-50, 100, LEDGER_TRACING_DUTY, 40);
    append_tracing(200, 300, LEDGER_TRACING_LOST, UINT32_MAX);
    append_tracing(400, 0, LEDGER_TRACING_GOES_ON, 0);
    store();
    CHECK_TEXT(ask("SELECT * FROM gpu_tracing"),
               "3|0|100|duty|40|5 3|200|300|lost|null|5 3|400|500|goes on|0|5");
}

TEST(windows_that_a_better_one_replaces_have_no_row)
{
    begin();
    static const enum ledger_tracing_part PARTS[] = {LEDGER_PART_FIRST_USE, LEDGER_PART_STEPS,
                                                     LEDGER_PART_ANY, LEDGER_PART_STEPS};
    for (unsigned i = 0; i < 4; i++) {
        int64_t begin_ns = the_ledger.header->start_ns + 10 * (int64_t)(i + 1);
        struct ledger_tracing tracing = {
            .begin_ns = begin_ns, .end_ns = begin_ns + 5, .part = PARTS[i]};
        ledger_append(LEDGER_TRACINGS, &tracing, sizeof tracing);
    }
    store();
    CHECK_TEXT(ask("SELECT begin_ns, end_ns FROM gpu_tracing"), "20|25 40|45");
}

static void append_reading(int64_t at_ns, uint64_t bytes, uint16_t limits, uint16_t live)
{
    struct ledger_reading reading = {
        .at_ns = the_ledger.header->start_ns + at_ns, .device = 1, .limits = limits, .live = live};
    reading.nvlink_sent_bytes = reading.nvlink_received_bytes = reading.pcie_sent_bytes =
        reading.pcie_received_bytes = bytes;
    reading.memory_used_bytes = 61;
    reading.clock_mhz = bytes == LEDGER_BYTES_UNKNOWN ? 0 : 1980;
    ledger_append(LEDGER_READINGS, &reading, sizeof reading);
}

TEST(readings_say_what_is_known)
{
    begin();
    append_reading(100, 5, LEDGER_READING_KNOWN | LEDGER_READING_POWER | LEDGER_READING_HARDWARE,
                   1);
    append_reading(150, 5, LEDGER_READING_KNOWN, 0);
    append_reading(200, LEDGER_BYTES_UNKNOWN, LEDGER_READING_IDLE, 1);
    store();
    CHECK_TEXT(
        ask("SELECT * FROM gpu_reading"),
        "3|1|100|1980|61|5|5|5|5|0|1|0|1 3|1|200|null|61|null|null|null|null|null|null|null|null");
}

TEST(readings_from_before_a_reset_do_not_count)
{
    begin_sampled();
    append_reading(2000, 5, 0, 1);
    append_reading(6000, 5, 0, 1);
    the_ledger.header->reset_ticks = ticks_at(5000);
    store();
    CHECK_TEXT(ask("SELECT at_ns FROM gpu_reading"), "6000");
}

static void append_cpu_time(int64_t at_ns, uint64_t waiting_ns, uint16_t live)
{
    struct ledger_cpu_time entry = {.at_ns = the_ledger.header->start_ns + at_ns,
                                    .core_ns = 70,
                                    .waiting_ns = waiting_ns,
                                    .outside_ready = 1,
                                    .outside_asleep = 2,
                                    .outside_disk = 3,
                                    .inside_ready = 4,
                                    .inside_asleep = 5,
                                    .inside_disk = 6,
                                    .thread = 1,
                                    .live = live};
    ledger_append(LEDGER_CPU_TIMES, &entry, sizeof entry);
}

TEST(cpu_times_say_what_is_known)
{
    begin();
    append_cpu_time(100, 30, 1);
    append_cpu_time(150, 30, 0);
    append_cpu_time(200, LEDGER_BYTES_UNKNOWN, 1);
    store();
    CHECK_TEXT(ask("SELECT * FROM cpu_time"),
               "3|1|100|70|30|1|2|3|4|5|6 3|1|200|70|null|1|2|3|4|5|6");
}

TEST(cpu_times_from_before_a_reset_do_not_count)
{
    begin_sampled();
    append_cpu_time(2000, 30, 1);
    append_cpu_time(6000, 30, 1);
    the_ledger.header->reset_ticks = ticks_at(5000);
    store();
    CHECK_TEXT(ask("SELECT at_ns FROM cpu_time"), "6000");
}

TEST(what_was_traced_before_a_reset_does_not_count)
{
    begin_sampled();
    append_tracing(1000, 2000, LEDGER_TRACING_DUTY, 0);
    append_tracing(3000, 7000, LEDGER_TRACING_DUTY, 0);
    the_ledger.header->reset_ticks = ticks_at(5000);
    store();
    CHECK_TEXT(ask("SELECT begin_ns, end_ns FROM gpu_tracing"), "5000|7000");
}

static void put_activity(struct ledger_page *page, unsigned place, uint16_t stream,
                         int64_t start_ns, int64_t end_ns)
{
    struct ledger_activity_sample sample = {.start_ticks = ticks_at(start_ns),
                                            .end_ticks = ticks_at(end_ns),
                                            .bytes = 4096,
                                            .kernel = 70000};
    sample.communicator = 2, sample.stream = stream;
    sample.kind = LEDGER_ACTIVITY_COPY, sample.copy = LEDGER_COPY_ON_DEVICE,
    sample.flags = LEDGER_ACTIVITY_GRAPH;
    memcpy(&page->samples[place], &sample, sizeof sample);
}

static void begin_stream(uint32_t number, int64_t since_ns)
{
    struct ledger_stream stream = {.stream = number,
                                   .sampled_since_ticks = since_ns ? ticks_at(since_ns) : 0};
    ledger_append(LEDGER_STREAMS, &stream, sizeof stream);
}

TEST(single_activities_are_sampled_in_windows_of_the_devices_mask)
{
    begin_sampled();
    begin_stream(1, 0);
    begin_stream(300, 700);
    the_ledger.header->device_mask = 3 << SECOND_BIT;
    struct ledger_page *page = begin_page(LEDGER_OF_STREAM, 300, 4 << SECOND_BIT);
    for (unsigned second = 0; second < 6; second++)
        put_activity(page, second, 300, second * SECOND_NS + 400, second * SECOND_NS + 410);
    put_activity(page, 6, 300, 3 * SECOND_NS,
                 4 * SECOND_NS); /* an activity belongs to the window in which it starts */
    no_room_from(begin_page(LEDGER_OF_STREAM, 300, 8 << SECOND_BIT),
                 8 * SECOND_NS - the_ledger.header->start_unix_ns + 900);
    struct ledger_page *unfinished = begin_page(LEDGER_OF_STREAM, 300, 12 << SECOND_BIT);
    put_activity(unfinished, 0, 300, 5000, 6000);
    unfinished->samples[0].end_ticks = 0;
    store();
    CHECK_TEXT(ask("SELECT * FROM gpu_sample"),
               "3|300|copy|70000|on device|1|2|4096|400|410 "
               "3|300|copy|70000|on device|1|2|4096|4294967696|4294967706");
    CHECK_TEXT(ask("SELECT * FROM gpu_sample_window WHERE stream = 1"),
               "3|1|0|573741824 3|1|3794967296|4868709120 3|1|8089934592|9163676416");
    CHECK_TEXT(ask("SELECT * FROM gpu_sample_window WHERE stream = 300"),
               "3|300|700|573741824 3|300|3794967296|3794968196 3|300|8089934592|9163676416");
    CHECK_TEXT(ask("SELECT count(*) FROM sample"), "0");
    CHECK_TEXT(ask("SELECT count(*) FROM sample_window"),
               "2"); /* the threads' windows, by their own mask */
}

TEST(while_tracing_goes_on_nothing_is_known_of_the_time_since_the_last_activity)
{
    begin_sampled();
    begin_stream(1, 0);
    begin_stream(2, 0);
    put_activity(begin_page(LEDGER_OF_STREAM, 2, 4), 0, 2, 5000, 9000);
    append_tracing(0, 100, LEDGER_TRACING_DUTY, 0);
    store();
    CHECK_TEXT(ask("SELECT DISTINCT begin_ns, end_ns FROM gpu_sample_window"), "0|10737418240");
    append_tracing(200, 0, LEDGER_TRACING_GOES_ON, 0);
    store();
    CHECK_TEXT(ask("SELECT * FROM gpu_sample_window"), "3|1|0|5000 3|2|0|5000");
}

/* Complete or absent */

static bool store_at(const char *path)
{
    why[0] = '\0';
    return store_write(the_ledger.header, path, NULL, clock_monotonic_ns(), why, sizeof why);
}

TEST(nothing_but_the_database_is_left)
{
    begin();
    store();
    CHECK(!is_there("rank-3.db.tmp"));
    CHECK(!is_there("rank-3.db-journal"));
    CHECK(!is_there("rank-3.db.tmp-journal"));
}

TEST(what_an_interrupted_run_left_is_replaced)
{
    begin();
    FILE *file = fopen("rank-3.db.tmp", "w");
    fputs("half of a database", file);
    fclose(file);
    store();
    CHECK_TEXT(ask("SELECT world_rank FROM rank"), "3");
    CHECK(!is_there("rank-3.db.tmp"));
}

TEST(a_folder_that_is_gone_is_said)
{
    begin();
    CHECK(!store_at("gone/rank-3.db"));
    CHECK(strlen(why) > 0);
    CHECK(!is_there("gone"));
}

TEST(a_database_that_cannot_take_its_place_leaves_nothing)
{
    begin();
    CHECK(mkdir("rank-3.db", 0700) == 0);
    CHECK(!store_at("rank-3.db"));
    CHECK(strlen(why) > 0);
    CHECK(!is_there("rank-3.db.tmp"));
}

TEST(a_failure_leaves_an_earlier_database_as_it_was)
{
    begin();
    store();
    CHECK(mkdir("rank-3.db.tmp", 0700) == 0);
    the_ledger.header->world_size = 99;
    CHECK(!store_at("rank-3.db"));
    CHECK_TEXT(ask("SELECT world_size FROM rank"), "8");
}

TEST(a_full_disk_is_said_and_leaves_nothing)
{
    begin();
    for (uint64_t bytes = 1; bytes <= 1000; bytes++)
        send(0, bytes, bytes, 1);
    CHECK(mkdir("disk", 0700) == 0);
    bool alone = unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    if (!alone || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", "disk", "tmpfs", 0, "size=64k") != 0)
        unit_skip("cannot mount a small tmpfs here: needs root or user namespaces");
    CHECK(!store_at("disk/rank-3.db"));
    CHECK(strlen(why) > 0);
    CHECK(!is_there("disk/rank-3.db"));
    CHECK(!is_there("disk/rank-3.db.tmp"));
}

/* The order of syncs: f fsync of a file, d of a folder; n once the database has its name. */
static char order[64];
static int fsync_error;

int fsync(int file)
{
    struct stat about;
    CHECK(fstat(file, &about) == 0);
    strcat(order, is_there("rank-3.db") ? "n" : "");
    strcat(order, S_ISDIR(about.st_mode) ? "d" : "f");
    errno = fsync_error;
    return fsync_error ? -1 : 0;
}

TEST(a_database_is_on_the_disk_before_it_has_its_name_and_the_name_before_the_ledger_goes)
{
    begin();
    store();
    CHECK_TEXT(order, "fnd");
}

TEST(a_disk_that_fails_is_said)
{
    begin();
    fsync_error = EIO;
    CHECK(!store_at("rank-3.db"));
    CHECK_TEXT(why, "Input/output error");
    CHECK_TEXT(order, "f");
    CHECK(!is_there("rank-3.db"));
    CHECK(!is_there("rank-3.db.tmp"));
}

TEST(a_link_that_somebody_has_put_there_is_not_written_through)
{
    begin();
    FILE *file = fopen("precious", "w");
    fputs("data", file);
    fclose(file);
    CHECK(symlink("precious", "rank-3.db.tmp") == 0);
    store();
    struct stat about;
    CHECK(stat("precious", &about) == 0);
    CHECK_EQUAL(about.st_size, 4);
    CHECK(lstat("rank-3.db", &about) == 0 && S_ISREG(about.st_mode));
}

TEST(a_database_that_somebody_else_has_put_there_is_not_replaced)
{
    begin();
    FILE *file = fopen("rank-3.db", "w");
    fputs("data", file);
    fclose(file);
    CHECK(!store_at("rank-3.db"));
    CHECK_TEXT(why, "File exists");
    struct stat about;
    CHECK(stat("rank-3.db", &about) == 0);
    CHECK_EQUAL(about.st_size, 4);
    CHECK(!is_there("rank-3.db.tmp"));
}

TEST(what_cannot_be_put_out_of_the_way_is_said)
{
    begin();
    CHECK(mkdir("rank-3.db.tmp", 0777) == 0);
    CHECK(!store_at("rank-3.db"));
    CHECK_TEXT(why, "File exists");
}

/* Network file systems without a lock daemon return ENOLCK. */
static void refuse_locks(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETLK, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETLKW, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_GETLK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        unit_skip("no system call can be made to fail here");
    struct flock lock = {.l_type = F_WRLCK};
    int file = open("rank-3.ledger", O_RDWR);
    CHECK(fcntl(file, F_SETLK, &lock) == -1 && errno == ENOLCK);
    close(file);
}

TEST(a_file_system_without_locks_takes_a_database)
{
    begin();
    refuse_locks();
    CHECK(store_at("rank-3.db"));
}

TEST(the_user_s_umask_is_respected)
{
    struct stat about;
    begin();
    umask(027);
    store();
    CHECK(stat("rank-3.db", &about) == 0);
    CHECK_EQUAL(about.st_mode & 0777, 0640);
    settings.umask = 077;
    store();
    CHECK(stat("rank-3.db", &about) == 0);
    CHECK_EQUAL(about.st_mode & 0777, 0600);
}

/* Exhausted file descriptors: `ulimit -n`. */
TEST(without_a_file_descriptor_it_is_said)
{
    begin();
    CHECK(sqlite_load());
    struct rlimit none = {0, 0};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK(!store_at("rank-3.db"));
    CHECK(strlen(why) > 0);
}

/* `ulimit -f`: beyond it the kernel sends SIGXFSZ, which by default ends the job. */
TEST(a_limit_on_file_sizes_is_said_without_a_signal)
{
    begin();
    for (uint64_t bytes = 1; bytes <= 1000; bytes++)
        send(0, bytes, bytes, 1);
    struct rlimit limit = {65536, 65536};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(!store_at("rank-3.db"));
    CHECK(strlen(why) > 0);
    CHECK(!is_there("rank-3.db"));
    CHECK(!is_there("rank-3.db.tmp"));
}
