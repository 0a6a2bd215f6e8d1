#include "run/alive.h"

#include "ledger/ledger.h"
#include "unit.h"

#include <fcntl.h>
#include <sys/file.h>

static void write_file(const char *text)
{
    FILE *file = fopen("file", "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* It is created before it is locked. */
static void a_file_without_a_byte_is_that_of_a_process_that_is_beginning(void)
{
    write_file("");
    CHECK_EQUAL(alive_ledger("file"), ALIVE_YES);
}

static void a_file_with_one_byte_that_nobody_has_locked_is_of_nobody(void)
{
    write_file("x");
    CHECK_EQUAL(alive_ledger("file"), ALIVE_NO);
}

static void a_file_that_somebody_has_locked_is_in_use(void)
{
    write_file("x");
    int file = open("file", O_RDWR);
    CHECK(flock(file, LOCK_EX) == 0);
    CHECK_EQUAL(alive_ledger("file"), ALIVE_YES);
}

static void a_file_that_is_not_there_and_a_link_are_of_nobody(void)
{
    CHECK_EQUAL(alive_ledger("file"), ALIVE_NO);
    CHECK(symlink("ledger", "file") == 0);
    CHECK_EQUAL(alive_ledger("file"), ALIVE_NO);
}

static void a_ledger_is_in_use_until_its_process_ends(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(ledger_open("ledger", 1 << 20));
    CHECK(child > 0 && waitpid(child, NULL, 0) == child);
    CHECK_EQUAL(alive_ledger("ledger"), ALIVE_NO);
    CHECK_EQUAL(ledger_open("mine", 1 << 20), 0);
    CHECK_EQUAL(alive_ledger("mine"), ALIVE_YES);
}

static const struct unit_test TESTS[] = {
    TEST(a_file_without_a_byte_is_that_of_a_process_that_is_beginning),
    TEST(a_file_with_one_byte_that_nobody_has_locked_is_of_nobody),
    TEST(a_file_that_somebody_has_locked_is_in_use),
    TEST(a_file_that_is_not_there_and_a_link_are_of_nobody),
    TEST(a_ledger_is_in_use_until_its_process_ends),
};

int main(void)
{
    return UNIT_RUN(TESTS);
}
