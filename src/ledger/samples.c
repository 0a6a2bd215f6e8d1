/* Pages come from chunks of the ledger until the log has its size. Then it shrinks in place, a page at a time:
 *
 *     a stream needs a page -> one that is not kept any more (its block or window is no multiple of 2^level) -> it changes its owner
 *                              there is none: the level grows of whoever would give up most pages by it
 *
 * A level is the owner's own: a communicator's, all threads', all GPU streams', the steps'. So a busy communicator thins out before a quiet one does. Where
 * each holds its first block only, which every level keeps, communicators that were freed give up theirs; where none was, later streams
 * are not kept. A page that is written to (is_open, unfinished) is not taken.
 *
 * One lock guards the pages; a thread takes it once in 64 calls. A stream itself has one writer: collectives on a communicator follow
 * each other, whichever threads make them (MPI-4.1, 6.14). Of a program that breaks this rule samples may be wrong; nothing else is. */
#include "samples.h"

#include "clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_PAGES = (LEDGER_CHUNK_BYTES - LEDGER_CHUNK_HEADER_BYTES) / sizeof(struct ledger_page),
    HIGHEST_LEVEL = 24,
    OF_THREADS = SAMPLES_SLOTS, /* owners that share a level, behind the communicators' slots */
    OF_STREAMS,
    OF_STEPS,
    LEVELS,
};

static struct {
    pthread_mutex_t lock;
    struct ledger_page **pages;
    size_t count, most, hand;
    struct ledger_chunk *chunk; /* that fresh pages come from */
    struct ledger_communicator *entries[SAMPLES_SLOTS];
    struct samples_sequence steps;
    struct ledger_sample *last_step;
    uint64_t anchor_ticks;
    int64_t anchor_ns;
} samples = {.lock = PTHREAD_MUTEX_INITIALIZER};

void samples_begin(size_t bytes)
{
    samples.most = bytes / LEDGER_CHUNK_BYTES * CHUNK_PAGES;
    samples.pages = samples.most ? calloc(samples.most, sizeof *samples.pages) : NULL;
    if (!samples.pages)
        samples.most = 0;
    samples.count = samples.hand = 0;
    samples.chunk = NULL;
    samples.steps = (struct samples_sequence){NULL, 0, 0};
    samples.last_step = NULL;
    memset(samples.entries, 0, sizeof samples.entries);
}

void samples_enter(unsigned slot, struct ledger_communicator *entry)
{
    if (slot < SAMPLES_SLOTS)
        __atomic_store_n(&samples.entries[slot], entry, __ATOMIC_RELEASE);
}

/* Levels */

static unsigned kind_of(uint64_t owner)
{
    return owner & 0xff;
}

/* Whose level an owner's pages go by. */
static unsigned level_index(uint64_t owner)
{
    switch (kind_of(owner)) {
    case LEDGER_OF_COMMUNICATOR:
        return (unsigned)(owner >> 8);
    case LEDGER_OF_THREAD:
        return OF_THREADS;
    case LEDGER_OF_STREAM:
        return OF_STREAMS;
    default:
        return OF_STEPS;
    }
}

static uint32_t *level_at(unsigned index)
{
    struct ledger_header *header = the_ledger.header;
    switch (index) {
    case OF_THREADS:
        return &header->window_level;
    case OF_STREAMS:
        return &header->device_level;
    case OF_STEPS:
        return &header->step_level;
    default:
        return &samples.entries[index]->sample_level;
    }
}

static uint64_t next_kept(uint64_t part, unsigned level)
{
    return level < LEDGER_SAMPLE_LEVEL_NONE ? ((part >> level) + 1) << level : UINT64_MAX / LEDGER_BLOCK_SAMPLES;
}

static bool is_in_use(const struct ledger_page *page)
{
    return page->is_open || __atomic_load_n(&page->unfinished, __ATOMIC_ACQUIRE) != 0;
}

static bool page_is_kept(const struct ledger_page *page, unsigned more)
{
    return page->owner != LEDGER_NOBODY &&
           samples_level_keeps(samples_part(page->owner, page->first), *level_at(level_index(page->owner)) + more);
}

/* Pages; the lock is held. */

static struct ledger_page *fresh_page(void)
{
    if (samples.count == samples.most)
        return NULL;
    if (!samples.chunk || samples.chunk->used == CHUNK_PAGES)
        samples.chunk = ledger_chunk(LEDGER_SAMPLES, sizeof(struct ledger_page), 0);
    if (!samples.chunk) { /* the ledger is full: what there is has to do */
        samples.most = samples.count;
        return NULL;
    }
    struct ledger_page *page = ledger_entry(samples.chunk, samples.chunk->used);
    __atomic_store_n(&samples.chunk->used, samples.chunk->used + 1, __ATOMIC_RELEASE);
    samples.pages[samples.count++] = page;
    return page;
}

static struct ledger_page *used_page(void)
{
    for (size_t looked = 0; looked < samples.count; looked++) {
        struct ledger_page *page = samples.pages[samples.hand++ % samples.count];
        if (!is_in_use(page) && !page_is_kept(page, 0))
            return page;
    }
    return NULL;
}

/* The level whose next step would set most pages free grows by it. False: none would set any free. */
static bool raise_a_level(void)
{
    static uint32_t freed[LEVELS];
    memset(freed, 0, sizeof freed);
    unsigned most = 0;
    for (size_t i = 0; i < samples.count; i++) {
        const struct ledger_page *page = samples.pages[i];
        unsigned index = level_index(page->owner);
        freed[index] += *level_at(index) < HIGHEST_LEVEL && !is_in_use(page) && !page_is_kept(page, 1);
        most = freed[index] > freed[most] ? index : most;
    }
    if (freed[most] == 0)
        return false;
    __atomic_add_fetch(level_at(most), 1, __ATOMIC_RELEASE);
    return true;
}

/* Communicators that were freed give up all that they have. False: none has any. */
static bool forget_the_freed(void)
{
    bool found = false;
    for (size_t i = 0; i < samples.count; i++) {
        const struct ledger_page *page = samples.pages[i];
        struct ledger_communicator *entry = kind_of(page->owner) == LEDGER_OF_COMMUNICATOR ? samples.entries[page->owner >> 8] : NULL;
        if (!entry || !(entry->flags & LEDGER_COMMUNICATOR_FREED) || is_in_use(page))
            continue;
        entry->sample_level = LEDGER_SAMPLE_LEVEL_NONE;
        found = true;
    }
    return found;
}

static struct ledger_page *find_page(void)
{
    struct ledger_page *page = fresh_page();
    if (!page)
        page = used_page();
    if (!page && samples.count && (raise_a_level() || forget_the_freed()))
        page = used_page();
    return page;
}

/* Ten a second at most: reading two clocks well takes as long as a dozen calls. */
static void put_anchor(struct ledger_page *page)
{
    enum { OFTEN_ENOUGH_NS = 100000000 };
    if (!samples.anchor_ticks || clock_duration_ns(clock_ticks() - samples.anchor_ticks) > OFTEN_ENOUGH_NS)
        clock_pair(&samples.anchor_ticks, &samples.anchor_ns);
    page->anchor_ticks = samples.anchor_ticks;
    page->anchor_ns = samples.anchor_ns;
}

/* Whoever reads the page meanwhile finds another owner, or another first, behind what it has read. */
static void hand_over(struct ledger_page *page, uint64_t owner, uint64_t first)
{
    __atomic_store_n(&page->owner, LEDGER_NOBODY, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (unsigned i = 0; i < LEDGER_PAGE_SAMPLES; i++)
        page->samples[i].end_ticks = 0;
    page->first = first;
    page->until_ticks = 0;
    page->is_open = 1;
    put_anchor(page);
    __atomic_store_n(&page->owner, owner, __ATOMIC_RELEASE);
}

static void close_page(struct ledger_page *page)
{
    if (page)
        page->is_open = 0;
}

/* An open page for a part that is kept; NULL: it is not, or there is no room. Finding room may raise this very owner's level. */
static struct ledger_page *take_page(uint64_t owner, uint64_t first)
{
    unsigned index = level_index(owner);
    struct ledger_page *page = samples_level_keeps(samples_part(owner, first), *level_at(index)) ? find_page() : NULL;
    if (!page || !samples_level_keeps(samples_part(owner, first), *level_at(index)))
        return NULL;
    hand_over(page, owner, first);
    return page;
}

/* Streams */

static void turn(struct samples_sequence *stream, uint64_t owner, uint64_t number)
{
    uint64_t first = number - number % LEDGER_PAGE_SAMPLES;
    close_page(stream->page);
    stream->page = NULL;
    struct ledger_page *page = take_page(owner, first);
    unsigned level = *level_at(level_index(owner));
    uint64_t block = number / LEDGER_BLOCK_SAMPLES;
    bool has_no_room = !page && samples_level_keeps(block, level);
    uint64_t end = page || has_no_room ? first + LEDGER_PAGE_SAMPLES : next_kept(block, level) * LEDGER_BLOCK_SAMPLES;
    stream->first = first;
    stream->span = end - first;
    stream->page = page;
}

struct ledger_sample *samples_turn(struct samples_sequence *stream, uint64_t owner, uint64_t number)
{
    if (stream->span && number < stream->first)
        return NULL;
    pthread_mutex_lock(&samples.lock);
    if (samples.most && (kind_of(owner) != LEDGER_OF_COMMUNICATOR || samples.entries[owner >> 8]))
        turn(stream, owner, number);
    else
        *stream = (struct samples_sequence){NULL, number, UINT64_MAX - number};
    pthread_mutex_unlock(&samples.lock);
    return stream->page ? &stream->page->samples[number - stream->first] : NULL;
}

void samples_leave(struct samples_sequence *stream)
{
    pthread_mutex_lock(&samples.lock);
    close_page(stream->page);
    pthread_mutex_unlock(&samples.lock);
}

static int64_t unix_ns(uint64_t ticks)
{
    return the_ledger.header->start_unix_ns + clock_ns(ticks) - the_ledger.header->start_ns;
}

static uint64_t window_of(uint64_t ticks)
{
    return (uint64_t)unix_ns(ticks) >> LEDGER_WINDOW_NS_LOG2;
}

static uint64_t beginning_of(uint64_t window)
{
    const struct ledger_header *header = the_ledger.header;
    uint64_t ticks = clock_ticks_at((int64_t)(window << LEDGER_WINDOW_NS_LOG2) - header->start_unix_ns + header->start_ns);
    while (window_of(ticks) < window)
        ticks++;
    return ticks;
}

/* A window that there is no room for has no samples to its end. If it has none at all, its owner is not complete before. */
static void give_up(const struct samples_window *stream, uint64_t *sampled_since_ticks, struct ledger_page *last, uint64_t ticks)
{
    if (last)
        last->until_ticks = ticks;
    else
        *sampled_since_ticks = stream->until_ticks;
}

static void next_window_page(struct samples_window *stream, uint64_t owner, uint64_t *sampled_since_ticks, uint64_t ticks)
{
    struct ledger_page *last = stream->page;
    bool is_full = stream->pages == SAMPLES_MOST_WINDOW_PAGES;
    close_page(last);
    stream->page = is_full ? NULL : take_page(owner, stream->number);
    stream->used = 0;
    stream->pages++;
    if (!stream->page && samples_level_keeps(stream->number, *level_at(level_index(owner))))
        give_up(stream, sampled_since_ticks, last, ticks);
}

static void next_window(struct samples_window *stream, uint64_t owner, uint64_t *sampled_since_ticks, uint64_t ticks)
{
    uint64_t window = window_of(ticks);
    unsigned level = *level_at(level_index(owner));
    close_page(stream->page);
    *stream = (struct samples_window){.number = window};
    stream->until_ticks = beginning_of(samples_level_keeps(window, level) ? window + 1 : next_kept(window, level));
    if (samples_level_keeps(window, level))
        next_window_page(stream, owner, sampled_since_ticks, ticks);
}

struct ledger_sample *samples_open(struct samples_window *stream, uint64_t owner, uint64_t *sampled_since_ticks, uint64_t ticks)
{
    pthread_mutex_lock(&samples.lock);
    if (!samples.most)
        *stream = (struct samples_window){.until_ticks = UINT64_MAX};
    else if (ticks >= stream->until_ticks)
        next_window(stream, owner, sampled_since_ticks, ticks);
    else
        next_window_page(stream, owner, sampled_since_ticks, ticks);
    pthread_mutex_unlock(&samples.lock);
    return stream->page ? &stream->page->samples[stream->used++] : NULL;
}

/* Samples */

static struct ledger_page *page_of(const struct ledger_sample *sample)
{
    size_t offset = (size_t)((const char *)sample - (const char *)the_ledger.header) - LEDGER_HEADER_BYTES;
    struct ledger_chunk *chunk = ledger_chunk_at(the_ledger.header, (uint32_t)(offset / LEDGER_CHUNK_BYTES));
    size_t within = offset % LEDGER_CHUNK_BYTES - LEDGER_CHUNK_HEADER_BYTES;
    return ledger_entry(chunk, (uint32_t)(within / sizeof(struct ledger_page)));
}

void sample_begin_unfinished(struct ledger_sample *sample)
{
    __atomic_add_fetch(&page_of(sample)->unfinished, 1, __ATOMIC_RELAXED);
}

void sample_finish(struct ledger_sample *sample, uint64_t completed_ticks)
{
    __atomic_store_n(&sample->completed_ticks, completed_ticks, __ATOMIC_RELEASE);
    __atomic_sub_fetch(&page_of(sample)->unfinished, 1, __ATOMIC_RELEASE);
}

void samples_step(unsigned thread, uint64_t ticks)
{
    static pthread_mutex_t stepping = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&stepping);
    uint64_t number = the_ledger.header->steps++;
    if (samples.last_step) /* its page is open still, or was until now */
        __atomic_store_n(&samples.last_step->end_ticks, ticks, __ATOMIC_RELEASE);
    struct ledger_sample *sample = samples_at(&samples.steps, LEDGER_OF_STEPS, number);
    samples.last_step = sample;
    if (sample)
        sample_fill(sample, &(struct ledger_sample){.start_ticks = ticks, .end_ticks = ticks, .thread = (uint16_t)thread});
    pthread_mutex_unlock(&stepping);
}

void samples_region(struct samples_window *stream, struct ledger_thread *thread, unsigned region, uint64_t start_ticks, uint64_t end_ticks)
{
    struct ledger_sample *sample = samples_of_window(stream, thread, end_ticks);
    struct ledger_sample span = {
        .start_ticks = start_ticks, .end_ticks = end_ticks, .thread = (uint16_t)thread->thread, .region = (uint16_t)region};
    if (sample)
        sample_fill(sample, &span);
}
