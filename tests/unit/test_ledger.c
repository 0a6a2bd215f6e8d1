#include "ledger/ledger.h"

#include "base/say.h"
#include "files.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>

static off_t size_of(const char *path)
{
    struct stat about;
    CHECK(stat(path, &about) == 0);
    return about.st_size;
}

static uint32_t chunks_until_full(void)
{
    uint32_t count = 0;
    while (ledger_chunk(LEDGER_CELLS, sizeof(struct ledger_cell), 0))
        count++;
    return count;
}

TEST(a_file_that_exists_is_refused_and_left_alone)
{
    write_file("ledger", "precious");
    CHECK_EQUAL(ledger_open("ledger", 1 << 20), EEXIST);
    CHECK(the_ledger.header == NULL);
    CHECK_TEXT(content_of("ledger"), "precious");
}

TEST(the_file_grows_to_its_limit_and_not_beyond)
{
    ledger_open("ledger", LEDGER_HEADER_BYTES + 40 * LEDGER_CHUNK_BYTES);
    off_t at_first = size_of("ledger");
    CHECK(at_first < 10 * LEDGER_CHUNK_BYTES);
    CHECK_EQUAL(chunks_until_full(), 40);
    CHECK_EQUAL(size_of("ledger"), LEDGER_HEADER_BYTES + 40 * LEDGER_CHUNK_BYTES);
    CHECK_EQUAL(the_ledger.header->chunk_count, 40);
}

/* Memory behind the end of a file is a bus error. */
TEST(nothing_behind_the_end_of_the_file_is_touched)
{
    ledger_open("ledger", 32 << 20);
    size_t chunks = (the_ledger.file_bytes - LEDGER_HEADER_BYTES) / LEDGER_CHUNK_BYTES;
    for (size_t i = 0; i < chunks; i++)
        CHECK(ledger_chunk(LEDGER_CELLS, sizeof(struct ledger_cell), 0));
    CHECK_EQUAL(size_of("ledger"), LEDGER_HEADER_BYTES + chunks * LEDGER_CHUNK_BYTES);
    ledger_touch();
}

/* Ends */

TEST(a_file_that_took_the_ledgers_place_is_not_removed)
{
    ledger_open("ledger", 1 << 20);
    rename("ledger", "moved-aside");
    write_file("ledger", "a newer run's");
    ledger_remove();
    CHECK(is_there("ledger"));
    CHECK(is_there("moved-aside"));
}

TEST(a_ledger_that_was_moved_grows_and_the_file_that_took_its_place_does_not)
{
    ledger_open("ledger", 4 << 20);
    rename("ledger", "moved-aside");
    write_file("ledger", "a newer run's");
    CHECK_EQUAL(chunks_until_full(), 63);
    CHECK_EQUAL(size_of("moved-aside"), LEDGER_HEADER_BYTES + 63 * LEDGER_CHUNK_BYTES);
    CHECK_EQUAL(size_of("ledger"), 13);
}

static const char *absolute(const char *path)
{
    static char whole[2 * PATH_MAX], directory[PATH_MAX];
    CHECK(getcwd(directory, sizeof directory) != NULL);
    snprintf(whole, sizeof whole, "%s/%s", directory, path);
    return whole;
}

static void open_in_folder(void)
{
    CHECK_EQUAL(mkdir("folder", 0700), 0);
    CHECK_EQUAL(ledger_open(absolute("folder/ledger"), 1 << 20), 0);
}

static void check_place(enum ledger_place place, const char *path, const char *words)
{
    char found[PATH_MAX], said[2 * PATH_MAX], expected[2 * PATH_MAX];
    CHECK_EQUAL(ledger_find(found), place);
    CHECK_TEXT(found, path);
    CHECK_EQUAL(ledger_describe(said, sizeof said), place != LEDGER_REMOVED);
    snprintf(expected, sizeof expected, "the ledger %s %s", path, words);
    CHECK_TEXT(said, expected);
}

TEST(a_ledger_that_was_removed_is_not_said_to_be_there)
{
    open_in_folder();
    CHECK_EQUAL(unlink("folder/ledger"), 0);
    check_place(LEDGER_REMOVED, absolute("folder/ledger"), "was removed, too");
    write_file("folder/ledger", "a newer run's");
    check_place(LEDGER_REMOVED, absolute("folder/ledger"), "was removed, too");
}

TEST(a_ledger_that_a_process_may_no_longer_see_stays)
{
    open_in_folder();
    const char *path = strdup(absolute("folder/ledger"));
    CHECK(chmod("folder", 0) == 0);
    if (geteuid() == 0)
        CHECK(setresuid(65533, 65533, 65533) == 0);
    check_place(LEDGER_HIDDEN, path, "stays and can be read as well, though not by this process");
}

TEST(a_ledger_on_a_disk_that_was_unmounted_is_not_said_to_be_there)
{
    mount_here("disk", "tmpfs", "size=4m");
    const char *path = strdup(absolute("disk/ledger"));
    CHECK_EQUAL(ledger_open(path, 1), 0);
    CHECK_EQUAL(umount2("disk", MNT_DETACH), 0);
    check_place(LEDGER_UNKNOWN, path,
                "cannot be seen from this process; it can be read as well if it is still there");
}

static int lowest_free_descriptor(void)
{
    int file = open("/dev/null", O_RDONLY);
    CHECK(file >= 0);
    close(file);
    return file;
}

TEST(the_job_does_not_see_a_file_descriptor)
{
    int before = lowest_free_descriptor();
    ledger_open("ledger", 4 << 20);
    CHECK_EQUAL(lowest_free_descriptor(), before);
    chunks_until_full();
    CHECK_EQUAL(lowest_free_descriptor(), before);
}

static void *grow_though_cancelled(void *unused)
{
    pthread_cancel(pthread_self());
    chunks_until_full();
    return unused;
}

TEST(a_thread_that_is_cancelled_keeps_no_lock)
{
    pthread_t cancelled;
    CHECK_EQUAL(ledger_open("ledger", 2 << 20), 0);
    CHECK_EQUAL(pthread_create(&cancelled, NULL, grow_though_cancelled, NULL), 0);
    CHECK_EQUAL(pthread_join(cancelled, NULL), 0);
    CHECK_EQUAL(the_ledger.header->chunk_count, 31);
    CHECK(ledger_chunk(LEDGER_FACTS, 1, 0) == NULL);
}

/* Full disks: a private file system in a mount namespace that ends with this process. */

static void touch_every_byte(uint32_t chunks)
{
    for (uint32_t i = 0; i < chunks; i++)
        memset(ledger_entry(ledger_chunk_at(the_ledger.header, i), 0), 1,
               LEDGER_CHUNK_BYTES - LEDGER_CHUNK_HEADER_BYTES);
}

/* `ulimit -f`: beyond it the kernel sends SIGXFSZ, which by default ends the job. */
static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit = {bytes, bytes};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

TEST(a_limit_on_file_sizes_ends_the_growth_without_a_signal)
{
    limit_file_size(1 << 20);
    CHECK_EQUAL(ledger_open("ledger", 64 << 20), 0);
    uint32_t chunks = chunks_until_full();
    CHECK(chunks >= 8);
    CHECK(chunks <= 15);
}

static char said[PATH_MAX + 512];
static int said_times;

static void hear(const char *line)
{
    snprintf(said, sizeof said, "%s", line);
    said_times++;
}

TEST(a_disk_that_fills_ends_the_growth_without_a_signal_and_that_is_said_once)
{
    mount_here("disk", "tmpfs", "size=1m");
    CHECK_EQUAL(ledger_open("disk/ledger", 64 << 20), 0);
    the_ledger.complain = hear;
    uint32_t chunks = chunks_until_full();
    CHECK(chunks >= 8 && chunks <= 15);
    touch_every_byte(chunks);
    CHECK_EQUAL(chunks_until_full(), 0);
    CHECK_TEXT(said, "cannot grow disk/ledger beyond 516 kB: No space left on device; the rarest "
                     "message sizes fold");
    CHECK_EQUAL(said_times, 1);
}

/* Exhausted file descriptors: `ulimit -n`. */
static void *grow_while_it_can(void *unused)
{
    while (ledger_chunk(LEDGER_CELLS, sizeof(struct ledger_cell), 0))
        ;
    return unused;
}

static void *do_nothing(void *unused)
{
    return unused;
}

/* The stack that a thread uses for it, including what every thread uses. */
static size_t stack_bytes_of(void *(*run)(void *))
{
    enum { STACK_BYTES = 256 << 10, UNTOUCHED = 0xa5 };
    pthread_t thread;
    pthread_attr_t attributes;
    unsigned char *stack = unit_shared(STACK_BYTES);
    memset(stack, UNTOUCHED, STACK_BYTES);
    pthread_attr_init(&attributes);
    CHECK_EQUAL(pthread_attr_setstack(&attributes, stack, STACK_BYTES), 0);
    CHECK_EQUAL(pthread_create(&thread, &attributes, run, NULL), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    size_t untouched = 0;
    while (stack[untouched] == UNTOUCHED)
        untouched++;
    return STACK_BYTES - untouched;
}

TEST(what_it_says_needs_little_stack)
{
    if (UNIT_SANITIZED || unit_is_emulated())
        unit_skip("sanitizers and emulators have frames of their own");
    int ends[2];
    CHECK_EQUAL(pipe(ends), 0);
    int stderr_was = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    say_begin();
    CHECK_EQUAL(ledger_open("ledger", 8 << 20), 0);
    unlink("ledger");
    the_ledger.complain = say_text;
    size_t used_bytes = stack_bytes_of(grow_while_it_can);
    dup2(stderr_was, STDERR_FILENO);
    char line[512] = "";
    CHECK(read(ends[0], line, sizeof line - 1) > 0);
    CHECK(strstr(line, "cannot grow ledger beyond"));
    CHECK(used_bytes - stack_bytes_of(do_nothing) <= 3 << 10);
}

TEST(without_a_file_descriptor_it_does_not_grow)
{
    CHECK_EQUAL(ledger_open("ledger", 64 << 20), 0);
    the_ledger.complain = hear;
    struct rlimit none = {0, 0};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK_EQUAL(chunks_until_full(), 4);
    CHECK(strstr(said, "Too many open files"));
    CHECK_EQUAL(ledger_open("another", 64 << 20), EMFILE);
}

/* `ulimit -v` */
TEST(little_address_space_makes_a_smaller_ledger)
{
    if (UNIT_SANITIZED)
        unit_skip("the sanitizer itself needs more address space");
    if (unit_is_emulated())
        unit_skip("the emulator does not limit address space");
    struct rlimit limit = {256 << 20, 256 << 20};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK_EQUAL(ledger_open("ledger", (size_t)1 << 40), 0);
    CHECK(the_ledger.limit_bytes < 256 << 20);
    CHECK(the_ledger.limit_bytes >= 64 << 20);
    CHECK_EQUAL((the_ledger.limit_bytes - LEDGER_HEADER_BYTES) % LEDGER_CHUNK_BYTES, 0);
    uint32_t chunks = chunks_until_full();
    CHECK_EQUAL(chunks, (the_ledger.limit_bytes - LEDGER_HEADER_BYTES) / LEDGER_CHUNK_BYTES);
    touch_every_byte(chunks);
}

TEST(without_address_space_there_is_no_ledger)
{
    if (UNIT_SANITIZED)
        unit_skip("the sanitizer itself needs more address space");
    if (unit_is_emulated())
        unit_skip("the emulator does not limit address space");
    struct rlimit limit = {1 << 16, 1 << 16};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK_EQUAL(ledger_open("ledger", 1 << 20), ENOMEM);
    CHECK(access("ledger", F_OK) != 0);
}

TEST(what_moves_a_ledger_is_seen)
{
    ledger_open("ledger", 1 << 20);
    struct ledger_header *header = the_ledger.header;
    struct ledger_look look = ledger_look();
    CHECK(!ledger_moved_since(look));
    uint64_t *const moved[] = {&header->folds_begun, &header->window_mask, &header->step_mask,
                               &header->device_mask, &header->record_last};
    for (size_t i = 0; i < sizeof moved / sizeof *moved; i++) {
        ++*moved[i];
        CHECK(ledger_moved_since(look));
        --*moved[i];
    }
    header->epoch++;
    CHECK(ledger_moved_since(look));
    CHECK(!ledger_moved_since(ledger_look()));
}

static long page_faults(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_minflt;
}

TEST(the_first_cells_and_samples_cause_no_page_fault)
{
    if (UNIT_SANITIZED || unit_is_emulated())
        unit_skip("sanitizers and emulators have memory of their own for each page");
    CHECK_EQUAL(ledger_open("ledger", 4 << 20), 0);
    char *cells = (char *)ledger_chunk(LEDGER_CELLS, sizeof(struct ledger_cell), 0);
    char *samples = (char *)ledger_chunk(LEDGER_SAMPLES, sizeof(struct ledger_page), 0);
    page_faults();
    ledger_touch();
    long before = page_faults();
    for (size_t at = LEDGER_CHUNK_HEADER_BYTES; at < LEDGER_CHUNK_BYTES; at += 1024)
        cells[at] = samples[at] = 1;
    CHECK_EQUAL(page_faults() - before, 0);
}

TEST(touching_changes_nothing)
{
    CHECK_EQUAL(ledger_open("ledger", 4 << 20), 0);
    uint64_t *word = ledger_entry(ledger_chunk(LEDGER_CELLS, sizeof(struct ledger_cell), 0), 0);
    *word = 0x0123456789abcdef;
    ledger_touch();
    CHECK_EQUAL(*word, 0x0123456789abcdef);
    CHECK_EQUAL(the_ledger.header->chunk_count, 1);
}
