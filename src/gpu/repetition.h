/* Whether the job's communication repeats: training steps do it, loading and compiling do not.
 *
 * Counted are calls of MPI and NCCL that move data, but for those that one rank's data begins
 * (Bcast, Scatter): loading consists of these. The job's threads have counted them already; the GPU
 * thread adds them up at multiples of REPETITION_LOOK_S of the wall clock, thus at the same time on
 * all ranks. They repeat if two successive spans of one look, or of four, have about as many. */
#ifndef COMMPROF_REPETITION_H
#define COMMPROF_REPETITION_H

#include <stdbool.h>
#include <stdint.h>

enum { REPETITION_LOOK_S = 5, REPETITION_LOOKS = 9 };

/* All zero: no look yet. */
struct repetition {
    int64_t number; /* of the last look: Unix time in looks */
    unsigned looks;
    uint64_t calls[REPETITION_LOOKS]; /* the last first */
};

/* Whether it is time for a look. */
bool repetition_is_due(const struct repetition *repetition, int64_t unix_ns);

/* Looks; returns whether calls repeat. `calls`: how many have been counted so far. */
bool repetition_look(struct repetition *repetition, int64_t unix_ns, uint64_t calls);

/* How many calls all threads have counted so far. */
uint64_t repetition_calls(void);

#endif
