/* The sample log: single calls, kept in pages of the ledger (ledger_format.h says which, and why all ranks keep the same).
 *
 * Whoever has calls to keep has a stream: a communicator for those with a sequence, a thread for the others. Keeping a call is a
 * compare and six stores into the stream's open page. Once in 64 calls a stream turns to another page: a fresh one while the log
 * grows, then one whose block or window is kept no longer. */
#ifndef COMMPROF_SAMPLES_H
#define COMMPROF_SAMPLES_H

#include "ledger.h"

#include <string.h>

enum { SAMPLES_SLOTS = 4096, SAMPLES_MOST_WINDOW_PAGES = 128 };

/* Of a communicator's collectives, or of the marked steps. All zero: nothing has been kept yet. */
struct samples_sequence {
    struct ledger_page *page; /* NULL: these are not kept */
    uint64_t first;           /* number, from 0, of the first call that this holds for ... */
    uint64_t span;            /* ... and for how many */
};

/* Of a thread's other calls, or of what a GPU's stream did. All zero: nothing has been kept yet. */
struct samples_window {
    struct ledger_page *page; /* NULL: these are not kept */
    uint64_t until_ticks;     /* the window's end; of windows that are not kept, the next one's beginning */
    uint64_t number;
    uint32_t used, pages;
};

/* Keep samples in at most so many bytes of the open ledger; less than a chunk's worth: none. */
void samples_begin(size_t bytes);

/* From now on calls are kept on the communicator that has this number in the ledger. */
void samples_enter(unsigned slot, struct ledger_communicator *entry);

/* Its last call has been kept: another stream may have the page, some day. */
void samples_leave(struct samples_sequence *sequence);

/* How much work it was to find room, all in all. */
extern uint64_t samples_pages_looked_at;

/* Slow halves of the functions below. */
struct ledger_sample *samples_turn(struct samples_sequence *sequence, uint64_t owner, uint64_t number);
struct ledger_sample *samples_open(struct samples_window *window, uint64_t owner, uint64_t *sampled_since_ticks, uint64_t ticks);

/* What a level is compared with: the number of a page's block, from 1, or of a thread's or stream's window. */
static inline uint64_t samples_part(uint64_t owner, uint64_t first)
{
    bool has_windows = (owner & 0xff) == LEDGER_OF_THREAD || (owner & 0xff) == LEDGER_OF_STREAM;
    return has_windows ? first : first / LEDGER_BLOCK_SAMPLES + 1;
}

static inline bool samples_level_keeps(uint64_t part, unsigned level)
{
    return level < LEDGER_SAMPLE_LEVEL_NONE && (part & ((1ull << level) - 1)) == 0;
}

/* Where the call with this number (from 0) is to be kept; NULL: it is not. A number lower than those before is not. */
static inline struct ledger_sample *samples_at(struct samples_sequence *stream, uint64_t owner, uint64_t number)
{
    struct ledger_page *page = stream->page;
    uint64_t at = number - stream->first;
    if (__builtin_expect(at >= stream->span, 0))
        return samples_turn(stream, owner, number);
    return page ? &page->samples[at % LEDGER_PAGE_SAMPLES] : NULL;
}

/* Where the collective with this sequence number (from 1) is to be kept. */
static inline struct ledger_sample *samples_of_sequence(struct samples_sequence *stream, unsigned slot, uint64_t sequence)
{
    return samples_at(stream, LEDGER_OF_COMMUNICATOR | (uint64_t)slot << 8, sequence - 1);
}

static inline struct ledger_sample *samples_within(struct samples_window *stream, uint64_t owner, uint64_t *sampled_since_ticks,
                                                   uint64_t ticks)
{
    if (__builtin_expect(ticks >= stream->until_ticks || stream->used == LEDGER_PAGE_SAMPLES, 0))
        return samples_open(stream, owner, sampled_since_ticks, ticks);
    return stream->page ? &stream->page->samples[stream->used++] : NULL;
}

/* Where a thread's call that began at `ticks` is to be kept; NULL: it is not. */
static inline struct ledger_sample *samples_of_window(struct samples_window *stream, struct ledger_thread *thread, uint64_t ticks)
{
    return samples_within(stream, LEDGER_OF_THREAD | (uint64_t)thread->thread << 8, &thread->sampled_since_ticks, ticks);
}

/* Where a GPU's activity that began at `ticks` is to be kept; those of a stream come in the order in which they began. */
static inline struct ledger_sample *samples_of_stream(struct samples_window *stream, struct ledger_stream *entry, uint64_t ticks)
{
    return samples_within(stream, LEDGER_OF_STREAM | (uint64_t)entry->stream << 8, &entry->sampled_since_ticks, ticks);
}

/* All of it, and last what makes it a sample. */
static inline void sample_fill(struct ledger_sample *sample, const struct ledger_sample *filled)
{
    sample->start_ticks = filled->start_ticks;
    sample->completed_ticks = 0;
    sample->bytes = filled->bytes;
    memcpy(&sample->peer, &filled->peer, sizeof *sample - offsetof(struct ledger_sample, peer));
    __atomic_store_n(&sample->end_ticks, filled->end_ticks, __ATOMIC_RELEASE);
}

/* A sample of a nonblocking collective is finished when the operation is complete; its page is nobody else's until then. */
void sample_begin_unfinished(struct ledger_sample *sample);
void sample_finish(struct ledger_sample *sample, uint64_t completed_ticks);

/* A step begins at `ticks`, which ends the one before: both are in the log with no length until then. */
void samples_step(unsigned thread, uint64_t ticks);

/* A thread was in a region. */
void samples_region(struct samples_window *stream, struct ledger_thread *thread, unsigned region, uint64_t start_ticks, uint64_t end_ticks);

#endif
