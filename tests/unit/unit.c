/* Runs the tests that are linked into this program, all or those of the named files, after each
 * other:
 *
 *     unit [NAME...]     unit test_ledger test_cells
 *
 * UNIT_LAYER chooses among them: `first` those of `make check`, `rest` the others, else all. The
 * last line is `N passed, N failed, N skipped`. */
#include "unit.h"

enum { MOST_TESTS = 4096 };

static const struct unit_test *tests[MOST_TESTS];
static unsigned test_count;

static unsigned passed, failed, skipped;

void unit_register(const struct unit_test *test)
{
    tests[test_count++ % MOST_TESTS] = test;
}

/* By file, and in the order of its lines: constructors run in any. */
static int compare(const void *left, const void *right)
{
    const struct unit_test *one = *(const struct unit_test *const *)left;
    const struct unit_test *other = *(const struct unit_test *const *)right;
    int by_file = strcmp(one->file, other->file);
    return by_file ? by_file : one->line - other->line;
}

/* Whether it is in the file of this name: `test_ledger` is tests/unit/test_ledger.c. */
static bool is_of(const struct unit_test *test, const char *name)
{
    const char *slash = strrchr(test->file, '/'), *own = slash ? slash + 1 : test->file;
    size_t length = strcspn(own, ".");
    return strlen(name) == length && strncmp(own, name, length) == 0;
}

/* The wait status of a test that was run in its own process, session and folder. */
static int run_one(const struct unit_test *test)
{
    int status = -1;
    char folder[] = "/tmp/commprof-unit-XXXXXX";
    if (!mkdtemp(folder)) {
        perror(folder);
        return -1;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        alarm(UNIT_SECONDS);
        if (chdir(folder) != 0)
            _exit(EXIT_FAILURE);
        test->run();
        fflush(NULL);
        _exit(EXIT_SUCCESS); /* no exit(): the library's destructor is not tested here */
    }
    if (child > 0) {
        waitpid(child, &status, 0);
        kill(-child, SIGKILL);
    }
    unit_remove(folder);
    return status;
}

static void count(const struct unit_test *test, int status)
{
    if (status == 0)
        passed++;
    else if (WIFEXITED(status) && WEXITSTATUS(status) == UNIT_SKIPPED) {
        skipped++;
        printf("SKIPPED %s\n", test->name);
    } else {
        failed++;
        printf("FAILED %s%s%s\n", test->name, WIFSIGNALED(status) ? ": " : "",
               WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "");
    }
}

static bool is_in_layer(const struct unit_test *test)
{
    const char *layer = getenv("UNIT_LAYER");
    if (layer && strcmp(layer, "first") == 0)
        return !test->is_slow;
    if (layer && strcmp(layer, "rest") == 0)
        return test->is_slow;
    return true;
}

/* All tests, or those of a file. */
static void run(const char *name)
{
    bool is_known = !name;
    for (unsigned i = 0; i < test_count; i++) {
        bool is_asked = !name || is_of(tests[i], name);
        is_known |= is_asked;
        if (is_asked && is_in_layer(tests[i]))
            count(tests[i], run_one(tests[i]));
    }
    if (!is_known) {
        printf("FAILED %s: this program has no such file of tests\n", name);
        failed++;
    }
}

int main(int argc, char **argv)
{
    if (test_count > MOST_TESTS) {
        fprintf(stderr, "unit: more than %d tests\n", MOST_TESTS);
        return EXIT_FAILURE;
    }
    qsort(tests, test_count, sizeof *tests, compare);
    if (argc == 1)
        run(NULL);
    for (int i = 1; i < argc; i++)
        run(argv[i]);
    printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
