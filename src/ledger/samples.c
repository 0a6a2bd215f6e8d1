/* Pages are allocated from chunks of the ledger until the log has its full size. From then on they are reused, one at a time:
 *
 *     a stream needs a page -> take one that is no longer sampled (its block or window is not a multiple of 2^level)
 *                              if there is none: increase a level, which frees pages
 *                              if none would be freed: increase the stream's own level; it asks again at its next sampled block
 *
 * There is one level for each communicator, one for all threads, one for all GPU streams, one for the steps. The level that increases
 * is the one that frees most pages and leaves its owner at least a quarter of its own. If there is none, the communicator with the fewest
 * collectives, the same on all its ranks, gives up all its pages until its next sampled block. Communicators with at least an eighth of
 * the time in collectives come last, and a sixteenth of the log is reserved for each.
 *
 * A page in use (is_open, unfinished) is not reused. Communicators in their first block leave a quarter of the pages to the others,
 * so that a thousand little-used ones do not fill the log with pages that they never complete.
 *
 * A rank has every collective of the blocks that its level selects, so the level alone describes what is in the log. Levels also bound the
 * work: all pages are scanned only when a level increases, at most 24 times for each owner.
 *
 * One lock guards the pages; a thread takes it once in 64 calls. Each stream has one writer at a time: collectives on a communicator are
 * serialized even across threads (MPI-4.1, 6.14). If a program violates this rule, samples may be wrong; nothing else is affected. */
#include "samples.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_PAGES = (LEDGER_CHUNK_BYTES - LEDGER_CHUNK_HEADER_BYTES) / sizeof(struct ledger_page),
    HIGHEST_LEVEL = 24,
    OF_THREADS = SAMPLES_SLOTS, /* owners that share a level, after the communicators' slots */
    OF_STREAMS,
    OF_STEPS,
    LEVELS,
};

static struct {
    pthread_mutex_t lock;
    struct ledger_page **pages;
    size_t count, most, hand, open;
    struct ledger_chunk *chunk; /* from which new pages are allocated */
    struct ledger_communicator *entries[SAMPLES_SLOTS];
    struct samples_sequence steps;
    struct ledger_sample *last_step;
    uint64_t anchor_ticks;
    int64_t anchor_ns;
    uint64_t spent_ticks[SAMPLES_SLOTS], all_spent_ticks; /* in collectives, extrapolated from those sampled */
} samples = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t samples_pages_looked_at;

void samples_begin(size_t bytes)
{
    samples.most = bytes / LEDGER_CHUNK_BYTES * CHUNK_PAGES;
    samples.pages = samples.most ? calloc(samples.most, sizeof *samples.pages) : NULL;
    if (!samples.pages)
        samples.most = 0;
    samples.count = samples.hand = samples.open = 0;
    samples.chunk = NULL;
    samples.steps = (struct samples_sequence){NULL, 0, 0};
    samples.last_step = NULL;
    memset(samples.entries, 0, sizeof samples.entries);
    memset(samples.spent_ticks, 0, sizeof samples.spent_ticks);
    samples.all_spent_ticks = 0;
}

void samples_enter(unsigned slot, struct ledger_communicator *entry)
{
    if (samples.most && slot < SAMPLES_SLOTS)
        __atomic_store_n(&samples.entries[slot], entry, __ATOMIC_RELEASE);
    else
        entry->sample_level = LEDGER_SAMPLE_LEVEL_NONE;
}

/* Levels */

static unsigned kind_of(uint64_t owner)
{
    return owner & 0xff;
}

/* Index of the level that applies to an owner's pages. */
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

/* The next block or window that is sampled at this level. */
static uint64_t next_retained(uint64_t part, unsigned level)
{
    return ((part >> level) + 1) << level;
}

static bool is_in_use(const struct ledger_page *page)
{
    return page->is_open || __atomic_load_n(&page->unfinished, __ATOMIC_ACQUIRE) != 0;
}

static bool page_is_retained(const struct ledger_page *page, unsigned more)
{
    return page->owner != LEDGER_NOBODY &&
           samples_level_keeps(samples_part(page->owner, page->first), *level_at(level_index(page->owner)) + more);
}

/* Pages. These functions are called with the lock held. */

static struct ledger_page *fresh_page(void)
{
    if (samples.count == samples.most)
        return NULL;
    if (!samples.chunk || samples.chunk->used == CHUNK_PAGES)
        samples.chunk = ledger_chunk(LEDGER_SAMPLES, sizeof(struct ledger_page), 0);
    if (!samples.chunk) { /* the ledger is full: make do with the pages allocated */
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
        samples_pages_looked_at++;
        if (!is_in_use(page) && !page_is_retained(page, 0))
            return page;
    }
    return NULL;
}

/* Pages of the owners that share a level, and how many of them the next level would free. */
struct holding {
    uint32_t retained, freed;
};

static void count_holdings(struct holding *holdings)
{
    memset(holdings, 0, LEVELS * sizeof *holdings);
    for (size_t i = 0; i < samples.count; i++) {
        const struct ledger_page *page = samples.pages[i];
        struct holding *holding = &holdings[level_index(page->owner)];
        bool can_grow = *level_at(level_index(page->owner)) < HIGHEST_LEVEL;
        holding->retained += page_is_retained(page, 0);
        holding->freed += can_grow && !is_in_use(page) && page_is_retained(page, 0) && !page_is_retained(page, 1);
    }
    samples_pages_looked_at += samples.count;
}

static bool has_much_of_the_time(unsigned index)
{
    enum { MUCH = 8 }; /* an eighth: true for at most eight communicators */
    return index < SAMPLES_SLOTS && samples.spent_ticks[index] >= samples.all_spent_ticks / MUCH;
}

static bool gives_up_some(unsigned index, struct holding holding)
{
    enum { RESERVED = 16 }; /* a sixteenth of the log for each such communicator: at most half of it in all */
    bool has_its_share = has_much_of_the_time(index) && holding.retained <= samples.count / RESERVED;
    return !has_its_share && 4 * (holding.retained - holding.freed) >= holding.retained;
}

/* LEVELS: none. */
static unsigned who_frees_most(const struct holding *holdings, bool may_be_all)
{
    unsigned most = LEVELS;
    for (unsigned i = 0; i < LEVELS; i++)
        if (holdings[i].freed > (most == LEVELS ? 0 : holdings[most].freed) && (may_be_all || gives_up_some(i, holdings[i])))
            most = i;
    return most;
}

static bool is_used_less(unsigned slot, unsigned than)
{
    const struct ledger_communicator *one = samples.entries[slot], *other = samples.entries[than];
    uint64_t begun = __atomic_load_n(&one->collectives, __ATOMIC_RELAXED), others = __atomic_load_n(&other->collectives, __ATOMIC_RELAXED);
    if (has_much_of_the_time(slot) != has_much_of_the_time(than))
        return has_much_of_the_time(than);
    return begun != others ? begun < others : one->identity < other->identity;
}

/* The communicator that gives up its pages for another owner. */
static unsigned who_is_used_least(const struct holding *holdings, unsigned asking)
{
    unsigned least = LEVELS;
    for (unsigned i = 0; i < SAMPLES_SLOTS; i++)
        if (holdings[i].freed && i != asking && (least == LEVELS || is_used_less(i, least)))
            least = i;
    return least;
}

/* Increase a level, which frees pages. False if no level would free any. */
static bool raise_a_level(unsigned asking)
{
    static struct holding holdings[LEVELS];
    count_holdings(holdings);
    unsigned raised = who_frees_most(holdings, false);
    if (raised == LEVELS)
        raised = who_is_used_least(holdings, asking);
    if (raised == LEVELS)
        raised = who_frees_most(holdings, true);
    if (raised != LEVELS)
        __atomic_add_fetch(level_at(raised), 1, __ATOMIC_RELEASE);
    return raised != LEVELS;
}

static struct ledger_page *find_page(unsigned asking)
{
    struct ledger_page *page = fresh_page();
    if (!page)
        page = used_page();
    if (!page && raise_a_level(asking))
        page = used_page();
    return page;
}

/* At most ten per second: reading both clocks accurately takes as long as a dozen calls. */
static void put_anchor(struct ledger_page *page)
{
    enum { OFTEN_ENOUGH_NS = 100000000 };
    if (!samples.anchor_ticks || clock_duration_ns(clock_ticks() - samples.anchor_ticks) > OFTEN_ENOUGH_NS)
        clock_pair(&samples.anchor_ticks, &samples.anchor_ns);
    page->anchor_ticks = samples.anchor_ticks;
    page->anchor_ns = samples.anchor_ns;
}

/* A concurrent reader sees a different owner or first after reading, and discards the page. */
static void hand_over(struct ledger_page *page, uint64_t owner, uint64_t first)
{
    __atomic_store_n(&page->owner, LEDGER_NOBODY, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (unsigned i = 0; i < LEDGER_PAGE_SAMPLES; i++)
        page->samples[i].end_ticks = 0;
    page->first = first;
    page->until_ticks = 0;
    page->is_open = 1;
    samples.open++;
    put_anchor(page);
    __atomic_store_n(&page->owner, owner, __ATOMIC_RELEASE);
}

static void close_page(struct ledger_page *page)
{
    if (!page)
        return;
    page->is_open = 0;
    samples.open--;
}

static bool level_keeps(uint64_t owner, uint64_t first)
{
    return samples_level_keeps(samples_part(owner, first), *level_at(level_index(owner)));
}

/* Open a page for a block or window; NULL if it is not sampled or there is no room. Finding room may increase this owner's own level. */
static struct ledger_page *take_page(uint64_t owner, uint64_t first)
{
    struct ledger_page *page = level_keeps(owner, first) ? find_page(level_index(owner)) : NULL;
    if (!page || !level_keeps(owner, first))
        return NULL;
    hand_over(page, owner, first);
    return page;
}

/* Streams */

static bool may_have_one_more(uint64_t owner, uint64_t first)
{
    bool begins = kind_of(owner) == LEDGER_OF_COMMUNICATOR && first < LEDGER_BLOCK_SAMPLES;
    return !begins || samples.open < samples.most - samples.most / 4;
}

/* No room for the rest of a block: increase the level until the whole block, including its earlier samples, is excluded. */
static void level_give_up(uint64_t owner, uint64_t first)
{
    while (level_keeps(owner, first))
        __atomic_add_fetch(level_at(level_index(owner)), 1, __ATOMIC_RELEASE);
}

/* Estimate a communicator's time from a full page: at level n one call in 2^n is sampled. Only every eighth sample is read, since this runs
 * on a thread of the job. */
static void note_time(const struct ledger_page *page)
{
    enum { EVERY = 8 };
    uint64_t ticks = 0;
    if (kind_of(page->owner) != LEDGER_OF_COMMUNICATOR)
        return;
    for (unsigned i = 0; i < LEDGER_PAGE_SAMPLES; i += EVERY) {
        const struct ledger_sample *sample = &page->samples[i];
        uint64_t end = sample->completed_ticks > sample->end_ticks ? sample->completed_ticks : sample->end_ticks;
        ticks += sample->end_ticks && end > sample->start_ticks ? end - sample->start_ticks : 0;
    }
    ticks = ticks * EVERY << *level_at(level_index(page->owner));
    samples.spent_ticks[level_index(page->owner)] += ticks;
    samples.all_spent_ticks += ticks;
}

static void turn(struct samples_sequence *stream, uint64_t owner, uint64_t number)
{
    uint64_t first = number - number % LEDGER_PAGE_SAMPLES;
    if (stream->page)
        note_time(stream->page);
    close_page(stream->page);
    stream->page = may_have_one_more(owner, first) ? take_page(owner, first) : NULL;
    if (!stream->page)
        level_give_up(owner, first);
    uint64_t block = next_retained(samples_part(owner, first), *level_at(level_index(owner)));
    stream->first = first;
    stream->span = stream->page ? LEDGER_PAGE_SAMPLES : (block - 1) * LEDGER_BLOCK_SAMPLES - first;
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

/* No room for the rest of a window: note where its samples end, or, if it has none, that the owner's samples are complete only after it. */
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
    stream->until_ticks = beginning_of(samples_level_keeps(window, level) ? window + 1 : next_retained(window, level));
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
    if (samples.last_step) /* its page is still open, or was until now */
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
