/* The buffers that CUPTI fills with records. It asks for one and gives it back on the job's threads, in the middle of a launch: there is no
 * lock, no allocation, no system call there.
 *
 *     free ----request----> lent ----complete----> completed ----collect----> free
 *        \---none left----> refused: CUPTI drops the record, and counts it
 *
 * CUPTI before 12.9 crashes on a request that is refused: there all get the sink, one buffer for all, whose records are lost and counted. */
#ifndef COMMPROF_CUPTI_BUFFERS_H
#define COMMPROF_CUPTI_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NVIDIA recommends 1 to 10 MB. CUPTI has one in use for each thread that launches (from 13.0 on), about 9,700 kernels fit in it. */
enum { BUFFER_BYTES = 2 << 20, BUFFER_COUNT = 64 };

/* Allocate them; false: there is no room. `may_refuse`: this CUPTI allows that a request is not met. */
bool buffers_begin(bool may_refuse);

/* CUPTI's callbacks (CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc). */
void buffers_request(uint8_t **buffer, size_t *bytes, size_t *most_records);
void buffers_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes);

/* Where buffers go that are not ours: another client's, who has them from a time when it had registered its callbacks. NULL: nowhere. */
typedef void (*buffers_completed)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes);
void buffers_forward(buffers_completed to);

/* Hand over what has been completed, in any order; the buffers are free afterwards. Returns how many there were. */
unsigned buffers_collect(void (*take)(uint8_t *buffer, size_t valid_bytes));

/* When the earliest of those that are not back was lent, on CLOCK_MONOTONIC; INT64_MAX: all are back. */
int64_t buffers_lent_since_ns(void);

/* Those that are lent now will not come back (another client's callback got them): nobody waits for them any more. */
void buffers_abandon(void);

/* How many records the sink has swallowed since this was asked last; estimated from their bytes. */
uint64_t buffers_sunk_records(void);

/* How many records lie in buffers that nobody has read: also in those that are lent, which CUPTI may be filling meanwhile. Estimated from
 * their bytes. Those that were abandoned may be freed, and are not looked at. */
uint64_t buffers_unread_records(void);

#endif
