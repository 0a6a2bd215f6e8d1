/* Log-linear latency histograms; the buckets are defined in ledger_format.h. */
#ifndef COMMPROF_HISTOGRAM_H
#define COMMPROF_HISTOGRAM_H

#include "ledger_format.h"

/* Position of a bucket: its block, and which of the block's counters. 64 bits: the counter is part
 * of an address. */
struct histogram_place {
    uint64_t block, counter;
};

/* Position for a time above 0. */
static inline struct histogram_place histogram_place(uint64_t ns)
{
    unsigned octave = 63u ^ (unsigned)__builtin_clzll(
                                ns); /* 63 - clz; as an exclusive or it is one instruction */
    uint64_t block = octave + 1 - HISTOGRAM_FIRST_OCTAVE, last = HISTOGRAM_BLOCKS - 1;
    if (__builtin_expect(block - 1 >= last - 1, 0))
        return octave < HISTOGRAM_FIRST_OCTAVE
                   ? (struct histogram_place){0, HISTOGRAM_SUB_BUCKETS - 1}
                   : (struct histogram_place){last, 0};
    return (struct histogram_place){
        block, (ns >> block) - HISTOGRAM_SUB_BUCKETS}; /* of four bits, the highest is set */
}

static inline unsigned histogram_bucket(uint64_t ns)
{
    struct histogram_place place = histogram_place(ns + !ns);
    return (unsigned)(place.block * HISTOGRAM_SUB_BUCKETS + place.counter) + 1 -
           HISTOGRAM_SUB_BUCKETS;
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
