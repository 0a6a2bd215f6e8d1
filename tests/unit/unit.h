/* A test is a function whose name is a sentence:
 *
 *     TEST(a_new_ledger_is_empty)
 *     {
 *         ledger_open("ledger", 1 << 20);
 *         CHECK_EQUAL(the_ledger.header->chunk_count, 0);
 *     }
 *
 * All files are linked into one program, `unit` (unit.c), which runs each test in a process of its
 * own, because the library's state is global, and in an empty folder of its own. The first failed
 * check ends the test. A file that replaces a function of the C library says UNIT_ALONE and is a
 * program of its own. SLOW instead of TEST marks a test that `make check` leaves to `make
 * check-all`. */
#ifndef UNIT_H
#define UNIT_H

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
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

/* With a sanitizer, tests of some seconds would take minutes: they do less, or run in the plain
 * variant only. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNIT_SANITIZED true
#else
#define UNIT_SANITIZED false
#endif

enum { UNIT_SKIPPED = 77, UNIT_SECONDS = 600 };

struct unit_test {
    const char *file;
    int line;
    const char *name;
    void (*run)(void);
    bool is_slow;
};

void unit_register(const struct unit_test *test); /* unit.c */

#define TEST(NAME) UNIT_TEST(NAME, false)
#define SLOW(NAME) UNIT_TEST(NAME, true)
#define UNIT_TEST(NAME, IS_SLOW)                                                         \
    static void NAME(void);                                                              \
    __attribute__((constructor)) static void register_##NAME(void)                       \
    {                                                                                    \
        static const struct unit_test test = {__FILE__, __LINE__, #NAME, NAME, IS_SLOW}; \
        unit_register(&test);                                                            \
    }                                                                                    \
    static void NAME(void)
#define UNIT_ALONE struct unit_test /* the Makefile searches for it */

/* Printed before the message of a failed check, in tests that repeat a check. */
static const char *unit_context = "";

#define CHECK(CONDITION) unit_check((CONDITION), #CONDITION, __FILE__, __LINE__)
#define CHECK_EQUAL(ACTUAL, EXPECTED) \
    unit_check_equal((long long)(ACTUAL), (long long)(EXPECTED), #ACTUAL, __FILE__, __LINE__)
#define CHECK_TEXT(ACTUAL, EXPECTED) \
    unit_check_text((ACTUAL), (EXPECTED), #ACTUAL, __FILE__, __LINE__)

static inline void unit_check(bool holds, const char *condition, const char *file, int line)
{
    if (holds)
        return;
    fprintf(stderr, "%s%s:%d: not so: %s\n", unit_context, file, line, condition);
    _exit(EXIT_FAILURE);
}

static inline void unit_check_equal(long long actual, long long expected, const char *what,
                                    const char *file, int line)
{
    if (actual == expected)
        return;
    fprintf(stderr, "%s%s:%d: %s is %lld (%#llx), not %lld (%#llx)\n", unit_context, file, line,
            what, actual, (unsigned long long)actual, expected, (unsigned long long)expected);
    _exit(EXIT_FAILURE);
}

static inline void unit_check_text(const char *actual, const char *expected, const char *what,
                                   const char *file, int line)
{
    if (actual && strcmp(actual, expected) == 0)
        return;
    fprintf(stderr, "%s%s:%d: %s is \"%s\", not \"%s\"\n", unit_context, file, line, what,
            actual ? actual : "(null)", expected);
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

/* The same in so many processes at once. */
static inline void unit_at_once(int count, void (*run)(void))
{
    for (int i = 0; i < count; i++)
        if (fork() == 0) {
            run();
            _exit(EXIT_SUCCESS);
        }
    for (int i = 0; i < count; i++) {
        int status;
        CHECK(wait(&status) > 0);
        CHECK_EQUAL(status, 0);
    }
}

/* Runs a function in so many threads, which get their number; `results` may be NULL. */
static inline void unit_together(uintptr_t count, void *(*run)(void *), void **results)
{
    pthread_t threads[16];
    CHECK(count <= 16);
    for (uintptr_t i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, run, (void *)i) == 0);
    for (uintptr_t i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], results ? &results[i] : NULL) == 0);
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

#endif
