/* Counts launches of CUDA graphs that the job makes through the runtime or driver it is linked
 * with.
 *
 * CUPTI may have no records of a graph that was created before tracing began or between two
 * windows: apparent idle time may then be a graph's kernels. Launches without records reveal this.
 * Launches through a statically linked runtime, or through functions looked up by name (JAX), are
 * not seen. */
#ifndef COMMPROF_GRAPH_LAUNCHES_H
#define COMMPROF_GRAPH_LAUNCHES_H

#include <stdbool.h>
#include <stdint.h>

/* Starts or stops counting. */
void graph_launches_follow(bool followed);

/* The number of launches since the last call. */
uint64_t graph_launches_taken(void);

#endif
