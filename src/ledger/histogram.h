/* Log-linear latency histograms; the buckets are defined in ledger_format.h. */
#ifndef COMMPROF_HISTOGRAM_H
#define COMMPROF_HISTOGRAM_H

#include "ledger_format.h"

static inline unsigned histogram_bucket(uint64_t ns)
{
    const uint64_t low = (1u << HISTOGRAM_FIRST_OCTAVE) - 1, high = 2ull << HISTOGRAM_LAST_OCTAVE; /* of the first and the last bucket */
    ns = ns > low ? ns : low;
    ns = ns < high ? ns : high;
    unsigned octave = 63u ^ (unsigned)__builtin_clzll(ns); /* 63 - clz; as an exclusive or it is one instruction */
    unsigned part = (unsigned)(ns >> (octave - 3));        /* 8 to 15 */
    return octave * HISTOGRAM_SUB_BUCKETS + part + 1 - HISTOGRAM_SUB_BUCKETS * (HISTOGRAM_FIRST_OCTAVE + 1);
}

/* The number of latencies in all buckets. */
static inline uint64_t histogram_count(const uint64_t buckets[HISTOGRAM_BUCKETS])
{
    uint64_t count = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        count += buckets[i];
    return count;
}

/* The lower bound of a bucket, in nanoseconds. */
static inline uint64_t histogram_low_ns(unsigned bucket)
{
    if (bucket == 0)
        return 0;
    unsigned octave = HISTOGRAM_FIRST_OCTAVE + (bucket - 1) / HISTOGRAM_SUB_BUCKETS;
    unsigned part = (bucket - 1) % HISTOGRAM_SUB_BUCKETS;
    return (uint64_t)(HISTOGRAM_SUB_BUCKETS + part) << (octave - 3);
}

#endif
