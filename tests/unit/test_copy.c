#include "ledger/copy.h"

#include "ledger/ledger.h"
#include "ledger/samples.h"
#include "files.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

UNIT_ALONE;

static char bytes[64 << 20];

static size_t read_copy(void)
{
    int file = open("copy", O_RDONLY);
    CHECK(file >= 0);
    ssize_t got = read(file, bytes, sizeof bytes);
    CHECK(got > 0);
    close(file);
    return (size_t)got;
}

static const struct ledger_header *copied(void)
{
    return (const struct ledger_header *)bytes;
}

static void begin(void)
{
    CHECK_EQUAL(ledger_open("ledger", 8 << 20), 0);
    ledger_fact("run_id", "job-17");
    ledger_chunk(LEDGER_CELLS, sizeof(struct ledger_cell), 0);
}

TEST(a_copy_is_the_ledger_up_to_its_last_chunk_and_says_when_it_was_made)
{
    begin();
    CHECK_EQUAL(ledger_copy("copy"), 0);
    CHECK_EQUAL(read_copy(), LEDGER_HEADER_BYTES + 2 * LEDGER_CHUNK_BYTES);
    CHECK(copied()->copied_unix_ns > 1700000000000000000);
    CHECK_EQUAL(the_ledger.header->copied_unix_ns, 0);
    ((struct ledger_header *)bytes)->copied_unix_ns = 0;
    CHECK(memcmp(bytes, the_ledger.header, LEDGER_HEADER_BYTES + 2 * LEDGER_CHUNK_BYTES) == 0);
    CHECK(!is_there("copy.tmp"));
}

TEST(a_snapshot_has_an_end_though_the_ledger_goes_on_and_replaces_none)
{
    begin();
    CHECK_EQUAL(ledger_snapshot("copy"), 0);
    CHECK_EQUAL(read_copy(), LEDGER_HEADER_BYTES + 2 * LEDGER_CHUNK_BYTES);
    CHECK_EQUAL(copied()->ended, LEDGER_SNAPSHOT);
    CHECK(copied()->end_ns > 0);
    CHECK_EQUAL(copied()->end_unix_ns, 0);
    CHECK_EQUAL(copied()->copied_unix_ns, 0);
    CHECK_EQUAL(the_ledger.header->ended, LEDGER_RUNNING);
    CHECK_EQUAL(ledger_snapshot("copy"), EEXIST);
    CHECK(!is_there("copy.tmp"));
}

TEST(a_copy_follows_no_link)
{
    begin();
    FILE *file = fopen("precious", "w");
    fputs("data", file);
    fclose(file);
    CHECK(symlink("precious", "copy.tmp") == 0);
    CHECK_EQUAL(ledger_copy("copy"), 0);
    struct stat about;
    CHECK(stat("precious", &about) == 0);
    CHECK_EQUAL(about.st_size, 4);
    CHECK(lstat("copy", &about) == 0 && S_ISREG(about.st_mode));
}

TEST(a_file_that_is_none_of_our_copies_is_not_replaced)
{
    begin();
    CHECK(symlink("elsewhere", "copy") == 0);
    CHECK_EQUAL(ledger_copy("copy"), EEXIST);
    CHECK(unlink("copy") == 0);
    CHECK_EQUAL(ledger_copy("copy"), 0);
    CHECK(unlink("copy") == 0 && mkdir("copy", 0700) == 0);
    CHECK_EQUAL(ledger_copy("copy"), EEXIST);
    CHECK(!is_there("copy.tmp"));
}

/* The worst case of a concurrent writer: it folds while the copy grows. */
static int folds_left;
static bool is_folding;
static uint64_t *filling;
static struct ledger_page *changing_hands;

ssize_t pwrite(int file, const void *from, size_t count, off_t at)
{
    if (is_folding && at > 0 && folds_left-- > 0) {
        the_ledger.header->folds_begun++;
        the_ledger.header->folds_ended++;
        the_ledger.header->reset_unix_ns++;
    }
    if (filling && at > 0 && *filling < 2)
        ++*filling;
    bool is_its_chunk = (const char *)changing_hands - (const char *)from < LEDGER_CHUNK_BYTES;
    if (changing_hands && is_its_chunk && count == LEDGER_CHUNK_BYTES) {
        changing_hands->owner =
            changing_hands->owner & LEDGER_OF_STREAM ? changing_hands->owner : LEDGER_OF_THREAD;
        changing_hands->first = 99;
    }
    CHECK_EQUAL(lseek(file, at, SEEK_SET), at);
    return write(file, from, count);
}

TEST(a_fold_meanwhile_is_noticed_and_the_copy_made_again)
{
    begin();
    is_folding = true;
    folds_left = 3;
    CHECK_EQUAL(ledger_copy("copy"), 0);
    read_copy();
    CHECK_EQUAL(copied()->reset_unix_ns, 3);
}

TEST(a_mask_that_grows_meanwhile_is_noticed_and_the_copy_made_again)
{
    begin();
    filling = &the_ledger.header->window_mask;
    CHECK_EQUAL(ledger_copy("copy"), 0);
    filling = &the_ledger.header->device_mask;
    CHECK_EQUAL(ledger_copy("copy"), 0);
    read_copy();
    CHECK_EQUAL(copied()->window_mask, 2);
    CHECK_EQUAL(copied()->device_mask, 2);
}

TEST(where_folds_do_not_end_the_copy_before_stays)
{
    begin();
    CHECK_EQUAL(ledger_copy("copy"), 0);
    is_folding = true;
    folds_left = 1000;
    CHECK_EQUAL(ledger_copy("copy"), EAGAIN);
    CHECK_EQUAL(folds_left, 1000 - 2 * LEDGER_LOOKS); /* the ledger has two chunks */
    read_copy();
    CHECK_EQUAL(copied()->reset_unix_ns, 0);
    CHECK(!is_there("copy.tmp"));
}

TEST(no_copy_is_made_during_a_fold)
{
    begin();
    the_ledger.header->folds_begun = 1;
    CHECK_EQUAL(ledger_copy("copy"), EAGAIN);
}

TEST(a_page_of_samples_that_changes_hands_meanwhile_is_nobody_s_in_the_copy)
{
    struct samples_window stream = {0};
    struct ledger_thread thread = {.thread = 5};
    begin();
    samples_begin(8 * LEDGER_CHUNK_BYTES);
    CHECK(samples_of_window(&stream, &thread, 1));
    changing_hands = stream.page;
    for (int i = 0; i < LEDGER_PAGE_SAMPLES; i++)
        CHECK(samples_of_window(&stream, &thread, 1));
    CHECK_EQUAL(ledger_copy("copy"), 0);
    read_copy();
    const struct ledger_page *copied_pages =
        (const struct ledger_page *)(bytes + ((char *)changing_hands - (char *)the_ledger.header));
    CHECK_EQUAL(copied_pages[0].owner, LEDGER_NOBODY);
    CHECK_EQUAL(copied_pages[1].owner, LEDGER_OF_THREAD | 5 << 8);
}

TEST(a_stream_s_page_that_is_another_window_s_meanwhile_is_nobody_s_in_the_copy)
{
    begin();
    struct ledger_page page = {.owner = LEDGER_OF_STREAM | 5 << 8, .first = 98};
    changing_hands = ledger_append(LEDGER_SAMPLES, &page, sizeof page);
    ledger_append(LEDGER_SAMPLES, &page, sizeof page);
    CHECK_EQUAL(ledger_copy("copy"), 0);
    read_copy();
    const struct ledger_page *copied_pages =
        (const struct ledger_page *)(bytes + ((char *)changing_hands - (char *)the_ledger.header));
    CHECK_EQUAL(copied_pages[0].owner, LEDGER_NOBODY);
    CHECK_EQUAL(copied_pages[1].owner, LEDGER_OF_STREAM | 5 << 8);
    CHECK_EQUAL(copied_pages[1].first, 98);
}

TEST(a_place_that_refuses_is_said)
{
    begin();
    CHECK_EQUAL(ledger_copy("missing/copy"), ENOENT);
    CHECK(!is_there("copy.tmp"));
}

/* Writes a stub of this many bytes. */
static int announce(size_t stub_bytes)
{
    static char path[2 * PATH_MAX];
    size_t path_bytes = stub_bytes - strlen(LEDGER_STUB "process \n");
    memset(path, 'a', path_bytes);
    path[path_bytes] = '\0';
    return ledger_copy_announce("copy", "process", path);
}

TEST(a_stub_has_room_for_its_last_byte)
{
    CHECK_EQUAL(announce(2 * PATH_MAX - 1), 0);
    CHECK_EQUAL(read_copy(), 2 * PATH_MAX - 1);
    CHECK_EQUAL(bytes[2 * PATH_MAX - 2], '\n');
}

TEST(a_limit_on_file_sizes_is_said_without_a_signal)
{
    begin();
    struct rlimit limit = {65536, 65536};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK_EQUAL(ledger_copy("copy"), EFBIG);
    CHECK(!is_there("copy") && !is_there("copy.tmp"));
}
