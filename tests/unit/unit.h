/* A test is a function whose name is a sentence. The tests of a file are listed in a table at its end:
 *
 *     static void a_new_ledger_is_empty(void)
 *     {
 *         ledger_open("ledger", 1 << 20);
 *         CHECK_EQUAL(the_ledger.header->chunk_count, 0);
 *     }
 *
 *     static const struct unit_test TESTS[] = {
 *         TEST(a_new_ledger_is_empty),
 *     };
 *
 *     int main(void)
 *     {
 *         return UNIT_RUN(TESTS);
 *     }
 *
 * Each test runs in its own process, because the library's state is global, and in its own empty folder. The first failed check ends
 * the test. The last line printed is `N passed, N failed, N skipped`. */
#ifndef UNIT_H
#define UNIT_H

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* With a sanitizer, tests of some seconds would take minutes: they do less, or run in the plain variant only. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNIT_SANITIZED true
#else
#define UNIT_SANITIZED false
#endif

enum { UNIT_SKIPPED = 77, UNIT_SECONDS = 600 };

struct unit_test {
    const char *name;
    void (*run)(void);
};

/* Printed before the message of a failed check, in tests that repeat a check. */
static const char *unit_context = "";

#define CHECK(CONDITION) unit_check((CONDITION), #CONDITION, __FILE__, __LINE__)
#define CHECK_EQUAL(ACTUAL, EXPECTED) unit_check_equal((long long)(ACTUAL), (long long)(EXPECTED), #ACTUAL, __FILE__, __LINE__)
#define CHECK_TEXT(ACTUAL, EXPECTED) unit_check_text((ACTUAL), (EXPECTED), #ACTUAL, __FILE__, __LINE__)

static inline void unit_check(bool holds, const char *condition, const char *file, int line)
{
    if (holds)
        return;
    fprintf(stderr, "%s%s:%d: not so: %s\n", unit_context, file, line, condition);
    _exit(EXIT_FAILURE);
}

static inline void unit_check_equal(long long actual, long long expected, const char *what, const char *file, int line)
{
    if (actual == expected)
        return;
    fprintf(stderr, "%s%s:%d: %s is %lld (%#llx), not %lld (%#llx)\n", unit_context, file, line, what, actual, (unsigned long long)actual,
            expected, (unsigned long long)expected);
    _exit(EXIT_FAILURE);
}

static inline void unit_check_text(const char *actual, const char *expected, const char *what, const char *file, int line)
{
    if (actual && strcmp(actual, expected) == 0)
        return;
    fprintf(stderr, "%s%s:%d: %s is \"%s\", not \"%s\"\n", unit_context, file, line, what, actual ? actual : "(null)", expected);
    _exit(EXIT_FAILURE);
}

/* A user-mode emulator does not pass everything on to the kernel (limits, signal masks). */
static inline bool unit_is_emulated(void)
{
    return getenv("UNIT_EMULATED") != NULL;
}

/* The number of threads of this process, all or those with a name: sanitizers have their own. */
static inline unsigned unit_threads(const char *name)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks));) {
        char path[512], line[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        count += fgets(line, sizeof line, file) && (!name || strcmp(line, name) == 0);
        fclose(file);
    }
    closedir(tasks);
    return count;
}

/* Random numbers, the same in each run. */
static inline uint64_t unit_random_below(uint64_t limit)
{
    static uint64_t state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

/* Ends a test that is impossible on this machine. */
static inline void unit_skip(const char *why)
{
    fprintf(stderr, "%s\n", why);
    _exit(UNIT_SKIPPED);
}

/* Zeroed memory, shared with the processes that a test forks. */
static inline void *unit_shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

/* Runs a function in a child process and waits for it. If a check fails there, the test fails. */
static inline void unit_elsewhere(void (*run)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        run();
        _exit(EXIT_SUCCESS);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQUAL(status, 0);
}

/* Uses rm, because some tests create folders whose path is longer than PATH_MAX. */
static inline void unit_remove(const char *folder)
{
    pid_t child = fork();
    if (child == 0) {
        execlp("rm", "rm", "-rf", folder, (char *)NULL);
        _exit(EXIT_FAILURE);
    }
    waitpid(child, NULL, 0);
}

/* The wait status of a test that was run in its own process, session and folder. */
static inline int unit_run_one(const struct unit_test *test)
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

static inline int unit_run(const struct unit_test *tests, size_t count)
{
    unsigned passed = 0, failed = 0, skipped = 0;
    for (size_t i = 0; i < count; i++) {
        int status = unit_run_one(&tests[i]);
        if (status == 0)
            passed++;
        else if (WIFEXITED(status) && WEXITSTATUS(status) == UNIT_SKIPPED) {
            skipped++;
            printf("SKIPPED %s\n", tests[i].name);
        } else {
            failed++;
            printf("FAILED %s%s%s\n", tests[i].name, WIFSIGNALED(status) ? ": " : "",
                   WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "");
        }
    }
    printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define TEST(NAME)  \
    {               \
#NAME, NAME \
    }
#define UNIT_RUN(TESTS) unit_run(TESTS, sizeof TESTS / sizeof TESTS[0])

#endif
