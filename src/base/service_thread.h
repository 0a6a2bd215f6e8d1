/* The profiler's own threads: at most three, the ledger copier, the one that reads CPU times and
 * the GPU thread. They block all signals, so they never receive one that is meant for the job. */
#ifndef COMMPROF_SERVICE_THREAD_H
#define COMMPROF_SERVICE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/* Start a detached thread. Returns 0 or an errno. */
int service_thread_start(void *(*run)(void *), void *argument);

/* Sleep while `*word` equals `value`, at most until `until_ns` on CLOCK_MONOTONIC (INT64_MAX:
 * without limit). */
void service_thread_wait_while(const uint32_t *word, uint32_t value, int64_t until_ns);

/* Sleep until `*word` is no longer `value`, at most until `until_ns`; whether it is so. */
bool service_thread_await(const uint32_t *word, uint32_t value, int64_t until_ns);

/* Set the word to `value`, and wake the threads that sleep on it. */
void service_thread_wake(uint32_t *word, uint32_t value);

#endif
