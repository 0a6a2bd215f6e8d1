/* Runs the tests that are linked into this program, all or those of the named files, after each
 * other:
 *
 *     unit [NAME...]     unit test_ledger test_cells
 *     unit --names       the names, one a line
 *
 * UNIT_LAYER chooses among them: `first` those of `make check`, `rest` the others, else all. The
 * last line is `N passed, N failed, N skipped`. */
#include "unit.h"

enum { MOST_FILES = 256, NAME_BYTES = 64 };

static struct unit_file {
    char name[NAME_BYTES];
    const struct unit_test *tests;
    size_t count;
} files[MOST_FILES];
static unsigned file_count;

static unsigned passed, failed, skipped;

void unit_register(const char *file, const struct unit_test *tests, size_t count)
{
    const char *slash = strrchr(file, '/');
    struct unit_file *registered = &files[file_count++ % MOST_FILES];
    snprintf(registered->name, NAME_BYTES, "%s", slash ? slash + 1 : file);
    registered->name[strcspn(registered->name, ".")] = '\0';
    registered->tests = tests;
    registered->count = count;
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

static void run_file(const struct unit_file *file)
{
    for (size_t i = 0; i < file->count; i++)
        if (is_in_layer(&file->tests[i]))
            count(&file->tests[i], run_one(&file->tests[i]));
}

static void run_named(const char *name)
{
    for (unsigned i = 0; i < file_count; i++)
        if (strcmp(files[i].name, name) == 0) {
            run_file(&files[i]);
            return;
        }
    printf("FAILED %s: this program has no such file of tests\n", name);
    failed++;
}

int main(int argc, char **argv)
{
    bool is_question = argc > 1 && strcmp(argv[1], "--names") == 0;
    if (file_count > MOST_FILES) {
        fprintf(stderr, "unit: more than %d files\n", MOST_FILES);
        return EXIT_FAILURE;
    }
    for (unsigned i = 0; i < file_count && is_question; i++)
        puts(files[i].name);
    if (is_question)
        return EXIT_SUCCESS;
    for (unsigned i = 0; i < file_count && argc == 1; i++)
        run_file(&files[i]);
    for (int i = 1; i < argc; i++)
        run_named(argv[i]);
    printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
