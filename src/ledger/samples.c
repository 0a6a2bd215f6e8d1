/* Pages are allocated from chunks of the ledger until the log has its full size. From then on they
 * are reused, one at a time:
 *
 *     a stream needs a page -> take one that is no longer sampled (all its windows have a bit of
 *     the mask)
 *                              if there is none: add a bit to the mask of those that have most
 *                              pages, which frees about half of theirs if no bit frees any: the
 *                              stream is not sampled for the rest of the second
 *
 * The first bit is chosen so that the log holds at least four stretches of consecutive windows, as
 * long as that allows: what ranks do in a step, in all their calls, lies in one stretch then. The
 * next bits lie above it: stretches keep their length and become rarer. Ranks that fill their logs
 * at different rates choose other bits, but each wider mask leaves a part of what the other leaves.
 *
 * A page in use (is_open, unfinished) is not reused. The masks alone describe what is in the log.
 * They also bound the work: all pages are scanned only when a mask gets a bit, and once for each
 * stream in a second in which there is no room.
 *
 * In the record (samples_record) threads take pages that the log does not know, so these are
 * neither reused nor weighed when a mask gets a bit:
 *
 *     windows      . . . . . . . . . first - 1 | first   record   last | last + 1 . . . . . .
 *     a thread's   pages of the log, by mask   | pages of the record alone    | by mask again
 *
 * One window on either side is in these pages, too, for a reader's clock may put a call into the
 * next one. If there is no more room for them, the record ends: readers are told an earlier last
 * window, and all threads go on with pages of the log.
 *
 * One lock guards the pages; a thread takes it once in 64 calls. */
#include "samples.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/quiet.h"

#include <string.h>

enum {
    CHUNK_PAGES = (LEDGER_CHUNK_BYTES - LEDGER_CHUNK_HEADER_BYTES) / sizeof(struct ledger_page),
    MASK_BITS = 63 - LEDGER_WINDOW_NS_LOG2, /* of windows: up to the year 2262 */
    GAP_WINDOWS_LOG2 = LEDGER_GAP_NS_LOG2 - LEDGER_WINDOW_NS_LOG2,
    STRETCHES = 4, /* in a log that has just been filled, before half of them are left out */
};

static struct {
    pthread_mutex_t lock;
    struct ledger_page **pages;
    size_t count, most, hand;
    struct ledger_chunk *chunk; /* from which new pages are allocated */
    struct ledger_page *steps;  /* in which the current step is; NULL: it is not sampled */
    struct ledger_sample *last_step;
    struct ledger_chunk *record; /* from which pages of the record are allocated */
    size_t record_count, record_most;
    struct clock clock; /* realigned often: the_clock is some parts per million off, so the windows
                           of ranks would drift apart */
} samples = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t samples_pages_looked_at;

void samples_begin(size_t bytes)
{
    samples.most = bytes / LEDGER_CHUNK_BYTES * CHUNK_PAGES;
    samples.pages = samples.most ? memory_take(samples.most * sizeof *samples.pages) : NULL;
    if (!samples.pages)
        samples.most = 0;
    samples.count = samples.hand = 0;
    samples.chunk = NULL;
    samples.steps = NULL;
    samples.last_step = NULL;
    samples.record = NULL;
    samples.record_count = samples.record_most = 0;
    samples.clock = (struct clock){0};
}

/* Masks */

static uint64_t *mask_of(uint64_t owner)
{
    struct ledger_header *header = the_ledger.header;
    switch (owner & 0xff) {
    case LEDGER_OF_THREAD:
        return &header->window_mask;
    case LEDGER_OF_STREAM:
        return &header->device_mask;
    default:
        return &header->step_mask;
    }
}

uint64_t samples_next_window(uint64_t window, uint64_t mask)
{
    uint64_t wrong = window & mask;
    uint64_t below =
        wrong ? (1ull << (63 - __builtin_clzll(wrong))) - 1 : 0; /* the highest wrong bit */
    return ((window | mask | below) + 1) & ~mask;
}

static bool mask_keeps(uint64_t owner, uint64_t number)
{
    return samples_mask_keeps(number, *mask_of(owner));
}

static bool is_in_use(const struct ledger_page *page)
{
    return page->is_open || __atomic_load_n(&page->unfinished, __ATOMIC_ACQUIRE) != 0;
}

static bool page_is_retained(const struct ledger_page *page)
{
    return page->owner != LEDGER_NOBODY &&
           samples_next_window(page->first - 1, *mask_of(page->owner)) <= page->last;
}

/* Pages. These functions are called with the lock held. */

/* The next page of the chunk, or of a new one; NULL: the ledger is full. */
static struct ledger_page *next_page(struct ledger_chunk **chunk)
{
    if (!*chunk || (*chunk)->used == CHUNK_PAGES)
        *chunk = ledger_chunk(LEDGER_SAMPLES, sizeof(struct ledger_page), 0);
    if (!*chunk)
        return NULL;
    struct ledger_page *page = ledger_entry(*chunk, (*chunk)->used);
    __atomic_store_n(&(*chunk)->used, (*chunk)->used + 1, __ATOMIC_RELEASE);
    return page;
}

static struct ledger_page *fresh_page(void)
{
    if (samples.count == samples.most)
        return NULL;
    struct ledger_page *page = next_page(&samples.chunk);
    if (page)
        samples.pages[samples.count++] = page;
    else
        samples.most = samples.count; /* make do with the pages allocated */
    return page;
}

static struct ledger_page *used_page(void)
{
    for (size_t looked = 0; looked < samples.count; looked++) {
        struct ledger_page *page = samples.pages[samples.hand++ % samples.count];
        samples_pages_looked_at++;
        if (!is_in_use(page) && !page_is_retained(page))
            return page;
    }
    return NULL;
}

/* Pages of the owners that share a mask, which can be reused if it leaves them out, and how many
 * each bit would leave out. */
struct holding {
    uint64_t lowest, highest,
        present; /* numbers of windows; 0: the page that is wanted is for others */
    uint32_t pages, left_out[MASK_BITS];
};

static void hold(struct holding *holding, uint64_t first, uint64_t last)
{
    holding->lowest = holding->pages && holding->lowest < first ? holding->lowest : first;
    holding->highest = holding->highest > last ? holding->highest : last;
    holding->pages++;
    for (unsigned bit = 0; bit < MASK_BITS; bit++)
        holding->left_out[bit] += first >> bit & 1 && first >> bit == last >> bit;
}

/* The bit that is next, if it leaves out as much as is right. */
static unsigned preferred_bit(const struct holding *holding, uint64_t mask)
{
    if (mask)
        return 64 - (unsigned)__builtin_clzll(mask);
    uint64_t stretch = (holding->highest - holding->lowest + 1) / STRETCHES / 2;
    return stretch ? 63 - (unsigned)__builtin_clzll(stretch) : 0;
}

/* How many pages the bit leaves out or retains, whichever is less. 0: it is in the mask already, or
 * would leave out the present and nearly all that there is. */
static uint32_t lesser_part(const struct holding *holding, uint64_t mask, unsigned bit)
{
    uint32_t left_out = holding->left_out[bit], retained = holding->pages - left_out;
    if (mask >> bit & 1 || (holding->present >> bit & 1 && 4 * retained < holding->pages))
        return 0;
    return left_out < retained ? left_out : retained;
}

/* The bit to add: from the preferred one on, then below it, the first that leaves out a quarter to
 * three quarters; else the one nearest to that. MASK_BITS: none leaves out any. */
static unsigned choose_bit(const struct holding *holding, uint64_t mask)
{
    unsigned preferred = preferred_bit(holding, mask), best = MASK_BITS;
    uint32_t most = 0;
    for (unsigned i = 0; i < MASK_BITS; i++) {
        unsigned bit = preferred + i < MASK_BITS ? preferred + i : MASK_BITS - 1 - i;
        uint32_t lesser = lesser_part(holding, mask, bit);
        if (4 * lesser >= holding->pages)
            return bit;
        if (lesser > most) {
            most = lesser;
            best = bit;
        }
    }
    return best;
}

/* The present counts as a page, too: a window that fills the log is weighed against the one after
 * it. */
static void hold_present(struct holding *holding, uint64_t first)
{
    hold(holding, first, first);
    holding->present = first;
}

/* Adds a bit to the mask of those that have most pages. False if no bit would do. */
static bool leave_out_more(uint64_t owner, uint64_t first)
{
    struct holding holdings[LEDGER_OF_STEPS + 1] = {0};
    unsigned most = LEDGER_NOBODY;
    for (size_t i = 0; i < samples.count; i++)
        if (page_is_retained(samples.pages[i]) && !is_in_use(samples.pages[i]))
            hold(&holdings[samples.pages[i]->owner & 0xff], samples.pages[i]->first,
                 samples.pages[i]->last);
    samples_pages_looked_at += samples.count;
    if ((owner & 0xff) == LEDGER_OF_STEPS) {
        hold_present(&holdings[LEDGER_OF_STEPS], first);
    } else {
        hold_present(&holdings[LEDGER_OF_THREAD], first);
        hold_present(&holdings[LEDGER_OF_STREAM], first);
    }
    for (unsigned kind = LEDGER_OF_THREAD; kind <= LEDGER_OF_STEPS; kind++)
        most = holdings[kind].pages > holdings[most].pages ? kind : most;
    unsigned bit = choose_bit(&holdings[most], *mask_of(most));
    if (bit == MASK_BITS)
        return false;
    __atomic_fetch_or(mask_of(most), 1ull << bit, __ATOMIC_RELEASE);
    return true;
}

static struct ledger_page *find_page(uint64_t owner, uint64_t first)
{
    struct ledger_page *page = fresh_page();
    if (!page)
        page = used_page();
    if (!page && leave_out_more(owner, first))
        page = used_page();
    return page;
}

/* At most ten times a second: reading both clocks accurately takes as long as a dozen calls. */
static void realign(void)
{
    enum { OFTEN_ENOUGH_NS = 100000000 };
    if (samples.clock.scale &&
        clock_duration_ns(clock_ticks() - samples.clock.base_ticks) <= OFTEN_ENOUGH_NS)
        return;
    samples.clock.scale = clock_scale_so_far();
    clock_pair(&samples.clock.base_ticks, &samples.clock.base_ns);
}

static void put_anchor(struct ledger_page *page)
{
    realign();
    page->anchor_ticks = samples.clock.base_ticks;
    page->anchor_ns = samples.clock.base_ns;
}

/* A concurrent reader sees a different owner or first after reading, and discards the page. */
static void hand_over(struct ledger_page *page, uint64_t owner, uint64_t first)
{
    __atomic_store_n(&page->owner, LEDGER_NOBODY, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (unsigned i = 0; i < LEDGER_PAGE_SAMPLES; i++)
        page->samples[i].end_ticks = 0;
    page->first = page->last = first;
    page->until_ticks = 0;
    page->is_open = 1;
    put_anchor(page);
    __atomic_store_n(&page->owner, owner, __ATOMIC_RELEASE);
}

/* Open a page for a window or for steps; NULL if they are not sampled or there is no room. Finding
 * room may leave out just these. */
static struct ledger_page *take_page(uint64_t owner, uint64_t first)
{
    struct ledger_page *page = mask_keeps(owner, first) ? find_page(owner, first) : NULL;
    if (!page || !mask_keeps(owner, first))
        return NULL;
    hand_over(page, owner, first);
    return page;
}

/* Windows */

static int64_t unix_ns(uint64_t ticks)
{
    return the_ledger.header->start_unix_ns + clock_ns_by(&samples.clock, ticks) -
           the_ledger.header->start_ns;
}

static uint64_t window_of(uint64_t ticks)
{
    return (uint64_t)unix_ns(ticks) >> LEDGER_WINDOW_NS_LOG2;
}

static uint64_t beginning_of(uint64_t window)
{
    const struct ledger_header *header = the_ledger.header;
    uint64_t ticks = clock_ticks_by(&samples.clock, (int64_t)(window << LEDGER_WINDOW_NS_LOG2) -
                                                        header->start_unix_ns + header->start_ns);
    while (window_of(ticks) < window)
        ticks++;
    return ticks;
}

static uint64_t end_of_stretch(uint64_t window, uint64_t mask)
{
    return mask ? beginning_of((window | ((mask & -mask) - 1)) + 1) : UINT64_MAX;
}

/* The record */

void samples_record(int64_t begin_ns, int64_t end_ns, size_t bytes)
{
    struct ledger_header *header = the_ledger.header;
    int64_t shift_ns = header->start_unix_ns - header->start_ns;
    samples.record_most = bytes / LEDGER_CHUNK_BYTES * CHUNK_PAGES;
    header->record_first = ((uint64_t)(begin_ns + shift_ns) >> LEDGER_WINDOW_NS_LOG2) + 1;
    header->record_last = ((uint64_t)(end_ns + shift_ns) >> LEDGER_WINDOW_NS_LOG2) - 1;
    header->record_asked_ns = (uint64_t)(end_ns - begin_ns);
    if (!samples.most) /* the log has no pages: readers must not take any window for sampled */
        header->window_mask = header->device_mask = (1ull << MASK_BITS) - 1;
}

/* A page of the record for a thread. NULL: the window is not in it, or there is no room; then the
 * record ends before it. */
static struct ledger_page *record_page(uint64_t owner, uint64_t window)
{
    struct ledger_header *header = the_ledger.header;
    if ((owner & 0xff) != LEDGER_OF_THREAD || !samples_record_pages_have(header, window))
        return NULL;
    struct ledger_page *page =
        samples.record_count < samples.record_most ? next_page(&samples.record) : NULL;
    if (page) {
        samples.record_count++;
        hand_over(page, owner, window);
    } else {
        header->record_is_full = 1;
        __atomic_store_n(&header->record_last, window - 2, __ATOMIC_RELEASE);
    }
    return page;
}

/* When a thread must look for the record's begin, which is ahead of this window; UINT64_MAX: none
 * is. What is far ahead by now's clock may be a little earlier or later by a clock that is right
 * then: so it looks a thousandth of the time before, and again. */
static uint64_t record_ahead(uint64_t owner, uint64_t window)
{
    uint64_t first = the_ledger.header->record_first;
    if ((owner & 0xff) != LEDGER_OF_THREAD || first <= window + 1)
        return UINT64_MAX;
    uint64_t ahead = first - 1 - window;
    return beginning_of(window + ahead - ahead / 1024);
}

/* Some places may be empty (samples_keep_together). */
static void close_page(const struct samples_window *stream, uint64_t owner)
{
    struct ledger_page *page = stream->page;
    uint32_t last = (uint32_t)(stream->next - page->samples) - 1;
    while (last > 0 && !page->samples[last].end_ticks)
        last--;
    const struct ledger_sample *sample = &page->samples[last];
    page->last =
        window_of((owner & 0xff) == LEDGER_OF_STREAM ? sample->start_ticks : sample->end_ticks);
    page->is_open = 0;
}

/* No room until the end of a gap: note it in the stream's last page, which is retained as long as
 * the gap matters; without one, note that the owner's samples are complete only after the gap. */
static void give_up(struct ledger_page *last, uint64_t *sampled_since_ticks, uint64_t ticks,
                    uint64_t end_of_gap)
{
    if (last) {
        __atomic_store_n(&last->last, end_of_gap, __ATOMIC_RELAXED);
        __atomic_store_n(&last->until_ticks, ticks, __ATOMIC_RELEASE);
    } else {
        *sampled_since_ticks = beginning_of(end_of_gap + 1);
    }
}

static void turn(struct samples_window *stream, uint64_t owner, uint64_t *sampled_since_ticks,
                 uint64_t ticks)
{
    struct ledger_page *last = stream->page;
    realign();
    uint64_t window = window_of(ticks);
    if (last)
        close_page(stream, owner);
    bool is_recorded = (stream->page = record_page(owner, window)) != NULL;
    if (!is_recorded)
        stream->page = take_page(owner, window);
    stream->next = stream->page ? stream->page->samples : NULL;
    stream->end = stream->page ? stream->page->samples + LEDGER_PAGE_SAMPLES : NULL;
    uint64_t mask = *mask_of(owner), next = samples_next_window(window, mask),
             end_of_gap = window | ((1ull << GAP_WINDOWS_LOG2) - 1);
    if (is_recorded) {
        stream->until_ticks = beginning_of(the_ledger.header->record_last + 2);
    } else if (stream->page) {
        stream->until_ticks = end_of_stretch(window, mask);
    } else if (window & mask) {
        stream->until_ticks = beginning_of(
            next <= end_of_gap ? next : end_of_gap + 1); /* by a clock that is right then, too */
    } else {
        stream->until_ticks = beginning_of(end_of_gap + 1);
        give_up(last, sampled_since_ticks, ticks, end_of_gap);
    }
    uint64_t record_ticks = record_ahead(owner, window);
    if (record_ticks < stream->until_ticks)
        stream->until_ticks = record_ticks;
}

static struct ledger_sample *open_for(struct samples_window *stream, uint64_t owner,
                                      uint64_t *sampled_since_ticks, uint64_t ticks)
{
    struct quiet before = quiet_lock(&samples.lock);
    if (!samples.most && !the_ledger.header->record_first)
        *stream = (struct samples_window){.until_ticks = UINT64_MAX};
    else
        turn(stream, owner, sampled_since_ticks, ticks);
    struct ledger_sample *sample = stream->next ? stream->next++ : NULL;
    quiet_unlock(&samples.lock, &before);
    return sample;
}

struct ledger_sample *samples_open_for_thread(struct samples_window *stream,
                                              struct ledger_thread *thread, uint64_t ticks)
{
    return open_for(stream, LEDGER_OF_THREAD | (uint64_t)thread->thread << 8,
                    &thread->sampled_since_ticks, ticks);
}

struct ledger_sample *samples_open_for_stream(struct samples_window *stream,
                                              struct ledger_stream *entry, uint64_t ticks)
{
    return open_for(stream, LEDGER_OF_STREAM | (uint64_t)entry->stream << 8,
                    &entry->sampled_since_ticks, ticks);
}

/* Samples */

static struct ledger_page *page_of(const struct ledger_sample *sample)
{
    size_t offset =
        (size_t)((const char *)sample - (const char *)the_ledger.header) - LEDGER_HEADER_BYTES;
    struct ledger_chunk *chunk =
        ledger_chunk_at(the_ledger.header, (uint32_t)(offset / LEDGER_CHUNK_BYTES));
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

/* Slot for a step's sample. NULL if there is no page: then the steps up to the next page are not
 * sampled. */
static struct ledger_sample *sample_of_step(uint64_t number)
{
    uint64_t place = number % LEDGER_PAGE_SAMPLES;
    if (place == 0) {
        if (samples.steps)
            samples.steps->is_open = 0;
        samples.steps = take_page(LEDGER_OF_STEPS, number / LEDGER_PAGE_SAMPLES);
    }
    return samples.steps ? &samples.steps->samples[place] : NULL;
}

void samples_step(unsigned thread, uint64_t ticks)
{
    struct quiet before = quiet_lock(&samples.lock);
    uint64_t number = the_ledger.header->steps++;
    if (samples.last_step) /* its page is still open */
        __atomic_store_n(&samples.last_step->end_ticks, ticks, __ATOMIC_RELEASE);
    struct ledger_sample *sample = samples.last_step = sample_of_step(number);
    if (sample)
        sample_fill(sample, &(struct ledger_sample){.start_ticks = ticks,
                                                    .end_ticks = ticks,
                                                    .thread = (uint16_t)thread});
    quiet_unlock(&samples.lock, &before);
}

void samples_region(struct samples_window *stream, struct ledger_thread *thread, unsigned region,
                    uint64_t start_ticks, uint64_t end_ticks)
{
    struct ledger_sample *sample = samples_of_window(stream, thread, end_ticks);
    struct ledger_sample span = {.start_ticks = start_ticks,
                                 .end_ticks = end_ticks,
                                 .thread = (uint16_t)thread->thread,
                                 .region = (uint16_t)region};
    if (sample)
        sample_fill(sample, &span);
}
