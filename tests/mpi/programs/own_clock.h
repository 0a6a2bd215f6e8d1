/* Readings and waits of the programs' own, to hold against what is recorded of them. */
#ifndef OWN_CLOCK_H
#define OWN_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static inline void compute(int64_t busy_ns)
{
    for (int64_t end_ns = now_ns() + busy_ns; now_ns() < end_ns;)
        continue;
}

#endif
