/* Service threads: the profiler's own, beside the job's. There are two at most, the ledger copier and the GPU thread. They take no
 * signal of the job's. */
#ifndef COMMPROF_SERVICE_THREAD_H
#define COMMPROF_SERVICE_THREAD_H

#include <stdint.h>

/* Start a detached thread. 0, or an errno. */
int service_thread_start(void *(*run)(void *), void *argument);

/* Sleep while `*word` is `value`, until a moment of CLOCK_MONOTONIC at the latest (INT64_MAX: for ever). */
void service_thread_wait_while(const uint32_t *word, uint32_t value, int64_t until_ns);

/* Change the word, and wake all that sleep while it is what it was. */
void service_thread_tell(uint32_t *word, uint32_t value);

#endif
