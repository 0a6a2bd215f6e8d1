/* The sample log: single calls, stored in pages of the ledger. ledger_format.h explains which calls
 * are sampled, the same on all ranks.
 *
 * Each source of samples has a stream: a thread for its calls and regions, a GPU stream for its
 * activities, the process for its marked steps. Sampling a call takes a compare and seven stores
 * into the stream's open page. Once in 64 calls a stream gets another page: a new one while the log
 * grows, then one whose window is no longer sampled. */
#ifndef COMMPROF_SAMPLES_H
#define COMMPROF_SAMPLES_H

#include "ledger.h"

#include <string.h>

/* Stream of a thread's calls, or of a GPU stream's activities. Initialized to zero. */
struct samples_window {
    struct ledger_page *page;         /* NULL: not sampled now */
    struct ledger_sample *next, *end; /* in the page; NULL: not sampled now */
    uint64_t until_ticks; /* end of the stretch of windows that are sampled; if not sampled, when to
                             ask again */
};

/* Use at most this many bytes of the open ledger for samples; less than one chunk: no samples. */
void samples_begin(size_t bytes);

/* Sample every call that returns between these times of CLOCK_MONOTONIC, in whole windows, with
 * pages of at most this many bytes more. After samples_begin, before any call is sampled. */
void samples_record(int64_t begin_ns, int64_t end_ns, size_t bytes);

/* Total number of pages examined to find free ones (a measure of the work). */
extern uint64_t samples_pages_looked_at;

/* Slow paths of the functions below. */
struct ledger_sample *samples_open_for_thread(struct samples_window *window,
                                              struct ledger_thread *thread, uint64_t ticks);
struct ledger_sample *samples_open_for_stream(struct samples_window *window,
                                              struct ledger_stream *entry, uint64_t ticks);

/* Whether a page with this number (`first`) is retained. */
static inline bool samples_mask_keeps(uint64_t number, uint64_t mask)
{
    return (number & mask) == 0;
}

/* Whether a window is in the record. */
static inline bool samples_record_has(const struct ledger_header *header, uint64_t window)
{
    return header->record_first && header->record_first <= window && window <= header->record_last;
}

/* Whether its pages have calls of a window: of one on either side, too. */
static inline bool samples_record_pages_have(const struct ledger_header *header, uint64_t window)
{
    return header->record_first && header->record_first <= window + 1 &&
           window <= header->record_last + 1;
}

/* The stream's next sample, NULL if it is not sampled. False: a page must be opened first. */
static inline bool samples_next(struct samples_window *stream, uint64_t ticks,
                                struct ledger_sample **sample)
{
    struct ledger_sample *next = *sample = stream->next;
    if (__builtin_expect(ticks >= stream->until_ticks || (next && next == stream->end), 0))
        return false;
    stream->next = next ? next + 1 : NULL;
    return true;
}

/* The next window that is sampled: the lowest number above this one without bits of the mask. */
uint64_t samples_next_window(uint64_t window, uint64_t mask);

/* The sample for a thread's call that returned at `ticks`; NULL if it is not sampled. */
static inline struct ledger_sample *samples_of_window(struct samples_window *stream,
                                                      struct ledger_thread *thread, uint64_t ticks)
{
    struct ledger_sample *sample;
    return __builtin_expect(samples_next(stream, ticks, &sample), 1)
               ? sample
               : samples_open_for_thread(stream, thread, ticks);
}

/* The thread's next two samples will be adjacent, if they are of one time. */
static inline void samples_keep_together(struct samples_window *stream)
{
    if (stream->next && stream->next + 1 == stream->end)
        stream->next++;
}

/* The sample for a GPU activity that began at `ticks`; NULL if it is not sampled. Call it in order
 * of start within a GPU stream. */
static inline struct ledger_sample *samples_of_stream(struct samples_window *stream,
                                                      struct ledger_stream *entry, uint64_t ticks)
{
    struct ledger_sample *sample;
    return __builtin_expect(samples_next(stream, ticks, &sample), 1)
               ? sample
               : samples_open_for_stream(stream, entry, ticks);
}

/* A number of bytes as a sample has it, without a signature. */
static inline uint64_t sample_bytes(uint64_t bytes)
{
    return bytes < LEDGER_SAMPLE_BYTES_UNKNOWN ? bytes : LEDGER_SAMPLE_BYTES_UNKNOWN;
}

/* The call and its flags at once: one store, where two bit fields would first be read. */
static inline void sample_set_call(struct ledger_sample *sample, uint16_t call_and_flags)
{
    memcpy((char *)sample + offsetof(struct ledger_sample, communicator) - sizeof call_and_flags,
           &call_and_flags, sizeof call_and_flags);
}

/* Fill in a sample, field by field, so that none passes through the stack; end_ticks is stored last
 * and makes it valid. */
static inline void sample_fill(struct ledger_sample *sample, const struct ledger_sample *filled)
{
    __atomic_store_n(&sample->start_ticks, filled->start_ticks, __ATOMIC_RELAXED);
    sample->completed_ticks = 0;
    sample->bytes_and_signature = filled->bytes_and_signature;
    sample->peer = filled->peer;
    sample_set_call(sample, (uint16_t)(filled->call | filled->flags << 12));
    __atomic_store_n(&sample->communicator, filled->communicator,
                     __ATOMIC_RELAXED); /* gcc would first shift plain ones together */
    __atomic_store_n(&sample->thread, filled->thread, __ATOMIC_RELAXED);
    __atomic_store_n(&sample->region, filled->region, __ATOMIC_RELAXED);
    sample->tag_or_request = filled->tag_or_request;
    sample->sequence = filled->sequence;
    __atomic_store_n(&sample->end_ticks, filled->end_ticks, __ATOMIC_RELEASE);
}

/* A nonblocking collective's sample is finished when the operation is complete; its page is not
 * reused before. */
void sample_begin_unfinished(struct ledger_sample *sample);
void sample_finish(struct ledger_sample *sample, uint64_t completed_ticks);

/* Begin a step at `ticks` and end the previous one. A step that has not ended is in the log with
 * length 0. */
void samples_step(unsigned thread, uint64_t ticks);

/* Sample the time that a thread spent in a region. */
void samples_region(struct samples_window *stream, struct ledger_thread *thread, unsigned region,
                    uint64_t start_ticks, uint64_t end_ticks);

#endif
