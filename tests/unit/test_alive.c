#include "run/alive.h"

#include "base/host.h"
#include "ledger/ledger.h"
#include "unit.h"

#include <fcntl.h>
#include <sys/file.h>

static void write_file(const char *text)
{
    FILE *file = fopen("file", "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

TEST(a_file_that_is_not_there_and_a_link_are_of_nobody)
{
    CHECK_EQUAL(alive_ledger("file"), ALIVE_NO);
    CHECK(symlink("ledger", "file") == 0);
    CHECK_EQUAL(alive_ledger("file"), ALIVE_NO);
}

TEST(a_ledger_is_in_use_until_its_process_ends)
{
    pid_t child = fork();
    if (child == 0)
        _exit(ledger_open("ledger", 1 << 20));
    CHECK(child > 0 && waitpid(child, NULL, 0) == child);
    CHECK_EQUAL(alive_ledger("ledger"), ALIVE_NO);
    CHECK_EQUAL(ledger_open("mine", 1 << 20), 0);
    CHECK_EQUAL(alive_ledger("mine"), ALIVE_YES);
}

/* A copy is not locked: its facts say whose it is. They end with a process's start, and the last
 * byte of the chunk. */
static void write_copy_of_this_process(void)
{
    enum { CAPACITY = LEDGER_CHUNK_BYTES - LEDGER_CHUNK_HEADER_BYTES };
    static char filling[CAPACITY];
    char boot_id[64], namespace[64], start[24];
    CHECK_EQUAL(ledger_open("ledger", 1 << 20), 0);
    CHECK(ledger_chunk(LEDGER_CELLS, sizeof(struct ledger_cell), 0));
    host_boot_id(boot_id, sizeof boot_id);
    host_link("/proc/self/ns/pid", namespace, sizeof namespace);
    CHECK(host_start_of(getpid(), start));
    ledger_fact("boot_id", boot_id);
    ledger_fact("pid_namespace", namespace);
    size_t last =
        (sizeof(struct ledger_fact) + strlen("process_start") + strlen(start) + 7) & ~(size_t)7;
    size_t left = CAPACITY - ledger_chunk_at(the_ledger.header, 1)->used - last;
    for (size_t fact; left; left -= fact) {
        fact = left > 4096 ? 2048 : left > 2048 ? 1024 : left;
        memset(filling, 'x', sizeof filling);
        filling[fact - sizeof(struct ledger_fact) - 1] = '\0';
        ledger_fact("k", filling);
    }
    ledger_fact("process_start", start);
    CHECK_EQUAL(ledger_chunk_at(the_ledger.header, 1)->used, CAPACITY);
    the_ledger.header->copied_unix_ns = 1;
}

TEST(a_copy_is_of_the_process_that_its_facts_name)
{
    write_copy_of_this_process();
    CHECK_EQUAL(alive_ledger("ledger"), ALIVE_YES);
    the_ledger.header->pid = 1;
    CHECK_EQUAL(alive_ledger("ledger"), ALIVE_NO);
}

TEST(a_stub_without_a_name_is_of_an_unknown_process)
{
    write_file(LEDGER_STUB);
    CHECK_EQUAL(alive_ledger("file"), ALIVE_UNKNOWN);
    write_file("commprof-ledger-at");
    CHECK_EQUAL(alive_ledger("file"), ALIVE_NO);
}

TEST(the_last_copy_is_of_nobody)
{
    write_copy_of_this_process();
    the_ledger.header->ended = LEDGER_RUNNING + 1;
    CHECK_EQUAL(alive_ledger("ledger"), ALIVE_NO);
}

TEST(a_job_may_have_closed_its_standard_input)
{
    write_file("x");
    close(STDIN_FILENO);
    CHECK_EQUAL(alive_ledger("file"), ALIVE_NO);
    CHECK(open("file", O_RDONLY) == STDIN_FILENO);
}

/* It is created before it is locked. */
TEST(a_file_without_a_byte_is_that_of_a_process_that_is_beginning)
{
    write_file("");
    CHECK_EQUAL(alive_ledger("file"), ALIVE_YES);
}
