/* How the bench programs take times: batches of calls, means and percentiles, and two bare readings
 * of the processor's counter as the yardstick. */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static inline double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline void two_clock_reads(int count)
{
    for (int i = 0; i < count; i++) {
#if defined(__x86_64__)
        uint64_t first = __builtin_ia32_rdtsc();
        __asm__ volatile("" : : "r"(first) : "memory");
        uint64_t second = __builtin_ia32_rdtsc();
#else
        uint64_t first, second;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(first) : : "memory");
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(second) : : "memory");
#endif
        __asm__ volatile("" : : "r"(second) : "memory");
    }
}

static inline int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static inline double percentile(double *values, int count, int percent)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values[(long)count * percent / 100];
}

static inline double mean(const double *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum / count;
}

/* Nanoseconds per call of a batch of `count`. */
static inline double timed(void (*run)(int), int count)
{
    double begin = now_ns();
    run(count);
    return (now_ns() - begin) / count;
}

#endif
