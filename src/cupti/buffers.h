/* The buffers that CUPTI fills with records. CUPTI requests and returns them on the job's threads,
 * in the middle of a launch, so these functions use no lock, allocation or system call.
 *
 *     free ----request----> lent ----complete----> completed ----collect----> free
 *        \---none left----> refused: CUPTI drops the record and counts it
 *
 * CUPTI before 12.9 crashes if a request is refused: it then gets the sink, one buffer shared by
 * all such requests. Its records are lost and counted. */
#ifndef COMMPROF_CUPTI_BUFFERS_H
#define COMMPROF_CUPTI_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NVIDIA recommends 1 to 10 MB. But CUPTI gives a buffer back only when all of its records are
 * complete: on a device that never idles, only when it is full. Until then its records are in no
 * ledger, and a kill loses them; so a buffer holds no more than 303 kernels. CUPTI 13.0 and later
 * uses one per launching thread. Together they hold 620,000 kernels, for what is launched ahead and
 * between two collections. */
enum { BUFFER_BYTES = 64 << 10, BUFFER_COUNT = 2048 };

/* Allocates the buffers; false: no memory. `may_refuse`: this CUPTI allows us to refuse a
 * request. */
bool buffers_begin(bool may_refuse);

/* CUPTI's callbacks (CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc). */
void buffers_request(uint8_t **buffer, size_t *bytes, size_t *most_records);
void buffers_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                      size_t valid_bytes);

/* Passes buffers that are not ours to `to`: another client that had registered its callbacks before
 * us still has some. NULL: drops them. */
typedef void (*buffers_completed)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                  size_t valid_bytes);
void buffers_forward(buffers_completed to);

/* Hands over the completed buffers, in any order, and frees them. Returns how many there were. */
unsigned buffers_collect(void (*take)(uint8_t *buffer, size_t valid_bytes));

/* When the earliest buffer that is still lent was lent, on CLOCK_MONOTONIC; INT64_MAX: none is
 * lent. */
int64_t buffers_lent_since_ns(void);

/* Stops waiting for the buffers that are lent now: they went to another client's callback and will
 * not come back. */
void buffers_abandon(void);

/* How many records the sink has lost since the last call; estimated from their bytes. */
uint64_t buffers_sunk_records(void);

/* How many records are in buffers that have not been read, including lent ones, which CUPTI may be
 * filling meanwhile. Estimated from their bytes. Abandoned buffers may be freed, so they are not
 * read. */
uint64_t buffers_unread_records(void);

#endif
