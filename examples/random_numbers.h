/* Random numbers that are the same on every machine, which rand() does not promise: what the
 * examples in C share. */
#include <stdint.h>

/* xorshift64* (Vigna, 2016), from 0 to 1. */
static double random_uniform(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * UINT64_C(2685821657736338717)) >> 11) / (double)(UINT64_C(1) << 53);
}

/* Near enough to a normal distribution, of variance 1: the sum of twelve (Irwin-Hall). */
static double random_normal(uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += random_uniform(state);
    return sum - 6;
}
