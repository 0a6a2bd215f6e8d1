#include "output/store.h"

#include "base/clock.h"
#include "base/settings.h"
#include "ledger/cells.h"
#include "ledger/peers.h"
#include "output/sqlite.h"
#include "files.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

UNIT_ALONE;

enum { SEND = 1, WAIT = 2, ALLREDUCE = 3, BCAST = 4, NCCL_ALL_REDUCE = 700 };

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

/* Contents. tests/report/test_stored.py compares the rows of all tables with those that the
 * reporter reads of the same ledger. */

TEST(storing_is_part_of_what_finalizing_cost)
{
    begin();
    the_ledger.header->cost_finalize_ns = 1000000000000;
    store();
    CHECK_TEXT(
        ask("SELECT cost_finalize_ns > 1000000000000, cost_finalize_ns < 1100000000000 FROM rank"),
        "1|1");
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

TEST(what_is_empty_folded_away_or_from_before_a_reset_is_not_stored)
{
    struct ledger_device device = {.device = 1, .name = "H100", .kernels = 7};
    struct ledger_activity kernel = {
        .kernel = 300, .stream = 6, .kind = LEDGER_ACTIVITY_KERNEL, .live = 1};
    begin();
    send(0, 64, 100, 1);
    send(1, 64, 100, 1);
    send(1, 128, 100, 1);
    cell(1, SEND, 2, 128, LEDGER_CALL)->live = 0;
    cell(1, SEND, 2, 256, LEDGER_CALL);
    peers_find(&peers[1], peer_key(5, SEND, LEDGER_SENT));
    device.state_ns[LEDGER_COMPUTING] = 60;
    kernel.buckets[21] = 2;
    ledger_append(LEDGER_DEVICES, &device, sizeof device);
    ledger_append(LEDGER_ACTIVITIES, &kernel, sizeof kernel);
    the_ledger.header->epoch = cells[1].record->epoch = 2; /* thread 0 has not heard of it */
    store();
    CHECK_TEXT(ask("SELECT thread, bytes FROM cell"), "1|64");
    CHECK_TEXT(ask("SELECT count(*) FROM bucket"), "1");
    CHECK_TEXT(ask("SELECT peer, count, bytes FROM peer"), "1|2|192");
    CHECK_TEXT(ask("SELECT name, kernels FROM gpu_device"), "H100|0");
    CHECK_TEXT(ask("SELECT count(*) FROM gpu_busy"), "0");
    CHECK_TEXT(ask("SELECT count(*) FROM gpu_activity"), "0");
    CHECK_TEXT(ask("SELECT count(*) FROM gpu_bucket"), "0");
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

/* Samples. Two ticks are a nanosecond; the rank begins half a second into second 4 (of 2^30 ns) and
 * runs for ten seconds. */

#define SECOND_NS (1ll << LEDGER_GAP_NS_LOG2)
#define SECOND_BIT (LEDGER_GAP_NS_LOG2 - LEDGER_WINDOW_NS_LOG2)
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
}

static struct ledger_page *begin_page(enum ledger_owner owner, uint64_t number, uint64_t first)
{
    struct ledger_page page = {.owner = (uint64_t)owner | number << 8, .first = first};
    return ledger_append(LEDGER_SAMPLES, &page, sizeof page);
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

TEST(a_gap_counts_in_each_stretch_that_it_touches)
{
    begin_sampled();
    the_ledger.header->window_mask =
        1 << (SECOND_BIT - 2); /* the first and third quarter of each second */
    the_ledger.header->start_unix_ns = 4 * SECOND_NS;
    the_ledger.header->end_ns = the_ledger.header->start_ns + 3 * SECOND_NS;
    struct ledger_page *page = begin_page(LEDGER_OF_THREAD, 1, 5 << SECOND_BIT);
    page->until_ticks = ticks_at(SECOND_NS + 100); /* for the rest of the second is no room */
    page->last = (6ull << SECOND_BIT) - 1;
    store();
    CHECK_TEXT(ask("SELECT begin_ns * 4 / (1 << 30), (end_ns - begin_ns) * 4 / (1 << 30) FROM "
                   "sample_window WHERE thread = 0"),
               "0|1 2|1 4|1 6|1 8|1 10|1");
    CHECK_TEXT(ask("SELECT begin_ns * 4 / (1 << 30), end_ns - begin_ns FROM sample_window WHERE "
                   "thread = 1"),
               "0|268435456 2|268435456 4|100 8|268435456 10|268435456");
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

/* Complete or absent */

static bool store_at(const char *path)
{
    why[0] = '\0';
    return store_write(the_ledger.header, path, NULL, clock_monotonic_ns(), why, sizeof why);
}

TEST(a_folder_that_is_gone_is_said)
{
    begin();
    CHECK(!store_at("gone/rank-3.db"));
    CHECK(strlen(why) > 0);
    CHECK(!is_there("gone"));
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
    mount_here("disk", "tmpfs", "size=64k");
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
    write_file("precious", "data");
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
    write_file("rank-3.db", "data");
    CHECK(!store_at("rank-3.db"));
    CHECK_TEXT(why, "File exists");
    struct stat about;
    CHECK(stat("rank-3.db", &about) == 0);
    CHECK_EQUAL(about.st_size, 4);
    CHECK(!is_there("rank-3.db.tmp"));
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
