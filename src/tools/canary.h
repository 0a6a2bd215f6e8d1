/* A short measurement of the host, taken before a job: the same work each time, so that a change is
 * the machine's. */
#ifndef COMMPROF_CANARY_H
#define COMMPROF_CANARY_H

#include <stdbool.h>

/* Measures this host and writes folder/HOST, as JSON:
 *
 *     {"arithmetic_ns": 541356, "memory_ns": 358217}
 *
 * arithmetic_ns: half a million dependent multiplications and additions; memory_ns: a copy of 4 MiB
 * in 64 MiB; each the median of 24. One process of a host measures, and the others wait for it.
 * False, with errno, if the file cannot be written. */
bool canary_run(const char *folder);

#endif
