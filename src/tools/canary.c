/* The processes of a host start at about the same time. The first one that locks the host's file
 * finds it empty and measures; the others wait for the lock, so they neither disturb the
 * measurement nor begin the job during it. */
#include "canary.h"

#include "base/host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Pieces are shorter than a time slice, so the median is that of pieces during which nothing else
 * ran on the core; all copies together exceed a core's part of the cache. */
enum { STEPS = 500000, COPY_BYTES = 4 << 20, COPIES = 8, REPETITIONS = 3 * COPIES };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Each step needs the result of the one before (Knuth's MMIX generator), so the processor's
 * frequency decides. */
static uint64_t arithmetic_ns(void)
{
    uint64_t begin_ns = now_ns(), value = begin_ns;
    for (int i = 0; i < STEPS; i++)
        value = value * 6364136223846793005 + 1442695040888963407;
    volatile uint64_t result = value;
    (void)result;
    return now_ns() - begin_ns;
}

static uint64_t copy_ns(char *memory)
{
    uint64_t begin_ns = now_ns();
    memcpy(memory, memory + COPY_BYTES, COPY_BYTES);
    __asm__ volatile("" : : "r"(memory) : "memory"); /* keeps the copy */
    return now_ns() - begin_ns;
}

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static uint64_t median(uint64_t *values)
{
    qsort(values, REPETITIONS, sizeof *values, compare);
    return values[REPETITIONS / 2];
}

static bool measure(int file)
{
    uint64_t arithmetic[REPETITIONS], copies[REPETITIONS];
    size_t bytes = 2 * (size_t)COPY_BYTES * COPIES;
    char *memory = malloc(bytes);
    if (!memory)
        return false;
    memset(memory, 1, bytes); /* page faults are not measured */
    for (int i = 0; i < REPETITIONS; i++) {
        arithmetic[i] = arithmetic_ns();
        copies[i] = copy_ns(memory + 2 * (size_t)COPY_BYTES * (i % COPIES));
    }
    free(memory);
    int length =
        dprintf(file, "{\"arithmetic_ns\": %llu, \"memory_ns\": %llu}\n",
                (unsigned long long)median(arithmetic), (unsigned long long)median(copies));
    return length > 0;
}

bool canary_run(const char *folder)
{
    char path[PATH_MAX];
    struct stat about;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return false;
    if (snprintf(path, sizeof path, "%s/%s", folder, host_name()) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
        return false;
    bool done = flock(file, LOCK_EX) == 0 && fstat(file, &about) == 0 &&
                (about.st_size > 0 || measure(file));
    int error = errno;
    close(file);
    errno = error;
    return done;
}
