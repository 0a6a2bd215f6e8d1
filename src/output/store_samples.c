/* Sampled calls and GPU activities, from the pages of the sample log; and the windows in which the
 * samples of a thread or stream are complete. */
#include "rows.h"

#include "ledger/samples.h"

#include <stdlib.h>
#include <string.h>

/* A time in which there was no room for the samples of an owner. */
struct gap {
    uint64_t owner;
    struct span span;
};

/* Copies a page. False: a thread of the job has reused it meanwhile. */
static bool take_page(const struct ledger_page *from, struct ledger_page *page)
{
    uint64_t owner = __atomic_load_n(&from->owner, __ATOMIC_ACQUIRE);
    memcpy(page, from, offsetof(struct ledger_page, samples));
    for (int i = 0; i < LEDGER_PAGE_SAMPLES; i++) {
        uint64_t end_ticks = __atomic_load_n(&from->samples[i].end_ticks, __ATOMIC_ACQUIRE);
        page->samples[i] = from->samples[i];
        page->samples[i].end_ticks = end_ticks;
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    uint64_t owner_now = __atomic_load_n(&from->owner, __ATOMIC_RELAXED),
             first_now = __atomic_load_n(&from->first, __ATOMIC_RELAXED);
    return page->owner == owner && owner_now == owner && page->first == first_now;
}

/* Whether a sample counts: those that are no longer sampled stay until their page is reused; in
 * pages of the record they stay for good. */
static bool is_retained(const struct store *store, const struct ledger_page *page,
                        const struct ledger_sample *sample)
{
    const struct ledger_header *ledger = store->ledger;
    if ((uint8_t)page->owner == LEDGER_OF_STEPS)
        return samples_mask_keeps(page->first, ledger->step_mask);
    bool is_call = (uint8_t)page->owner == LEDGER_OF_THREAD;
    int64_t at_ns = ledger->start_unix_ns +
                    rows_since_start_ns(store, is_call ? sample->end_ticks : sample->start_ticks);
    uint64_t window = (uint64_t)at_ns >> LEDGER_WINDOW_NS_LOG2;
    if (!is_call)
        return samples_mask_keeps(window, ledger->device_mask);
    return samples_mask_keeps(window, ledger->window_mask) || samples_record_has(ledger, window);
}

static struct value bytes_of(const struct store *store, const struct ledger_sample *sample)
{
    return rows_bytes(store, sample->bytes == LEDGER_SAMPLE_BYTES_UNKNOWN ? LEDGER_BYTES_UNKNOWN
                                                                          : sample->bytes);
}

/* When the kernel of an NCCL operation ran. False: another call, or not known. */
static bool device_span(const struct store *store, const struct ledger_sample *sample,
                        struct span *span)
{
    int64_t span_ns = (int64_t)(sample->device_span >> 1) * LEDGER_DEVICE_SPAN_UNIT_NS;
    span->end_ns = rows_since_start_ns(store, sample->completed_ticks);
    span->begin_ns = span->end_ns > span_ns ? span->end_ns - span_ns : 0;
    return sample->completed_ticks && rows_call_is_nccl(store, sample->call);
}

/* An NCCL operation completes when its kernel ends. The clocks of host and device may differ by
 * more than the operation lasted, so its completion may seem to precede its start. */
static struct value completion(const struct store *store, const struct ledger_sample *sample)
{
    bool is_early =
        rows_call_is_nccl(store, sample->call) && sample->completed_ticks < sample->start_ticks;
    return sample->completed_ticks
               ? rows_ticks(store, is_early ? sample->start_ticks : sample->completed_ticks)
               : rows_null();
}

/* The sample's thread, and the tag and number of its message. */
struct message_columns {
    struct value thread, tag, number;
};

/* Messages are in the pages of their threads. */
static struct message_columns message_columns(const struct store *store,
                                              const struct ledger_sample *entry, uint64_t owner)
{
    bool is_message = entry->flags & LEDGER_SAMPLE_MESSAGE;
    return (struct message_columns){
        .thread = rows_number(store, is_message ? (int64_t)(owner >> 8) : entry->thread),
        .tag = is_message && entry->tag != LEDGER_NO_TAG ? rows_number(store, entry->tag)
                                                         : rows_null(),
        .number = is_message ? rows_unless_zero(store, entry->number) : rows_null(),
    };
}

static void store_message(struct store *store, const struct ledger_sample *entry, uint64_t owner)
{
    struct message_columns message = message_columns(store, entry, owner);
    struct value thread = message.thread, tag = message.tag, number = message.number,
                 completed_ns = completion(store, entry);
    struct value bytes = bytes_of(store, entry);
    unsigned is_received = (entry->flags & LEDGER_SAMPLE_RECEIVED) != 0;
    struct value direction = rows_name(direction_names, COUNT(direction_names), is_received);
    const struct column row[] = {
#define ROWS_OF_SAMPLE_MESSAGE
#include "rows.def"
    };
    ROWS_INSERT_MANY(store, "INSERT INTO sample_message", row);
}

static void store_start(struct store *store, const struct ledger_sample *entry, uint64_t owner)
{
    struct value thread = rows_number(store, (int64_t)(owner >> 8)),
                 operation = rows_number(store, entry->operation);
    struct value number = rows_number(store, entry->starts),
                 completed_ns = completion(store, entry), bytes = bytes_of(store, entry);
    const struct column row[] = {
#define ROWS_OF_SAMPLE_START
#include "rows.def"
    };
    ROWS_INSERT_MANY(store, "INSERT INTO sample_start", row);
}

static void store_epoch(struct store *store, const struct ledger_sample *entry, uint64_t owner)
{
    struct value thread = rows_number(store, (int64_t)(owner >> 8)),
                 object = rows_number(store, (int64_t)entry->sequence);
    struct value number = rows_unless_zero(store, entry->epoch),
                 partners = rows_number(store, entry->partners);
    const struct column row[] = {
#define ROWS_OF_SAMPLE_EPOCH
#include "rows.def"
    };
    ROWS_INSERT_MANY(store, "INSERT INTO sample_epoch", row);
}

static void store_further(struct store *store, const struct ledger_sample *entry, uint64_t owner)
{
    if (entry->flags & LEDGER_SAMPLE_MESSAGE)
        store_message(store, entry, owner);
    else if (entry->flags & LEDGER_SAMPLE_RECEIVED)
        store_epoch(store, entry, owner);
    else
        store_start(store, entry, owner);
}

/* How long the polls before a call lasted, at most the time since the first. */
static struct value polled(const struct store *store, const struct ledger_sample *entry)
{
    uint64_t since = entry->completed_ticks, most = entry->start_ticks - since;
    uint64_t until = since + (entry->sequence < most ? entry->sequence : most);
    return rows_number(store,
                       rows_since_start_ns(store, until) - rows_since_start_ns(store, since));
}

static void store_call_sample(struct store *store, const struct ledger_sample *entry,
                              uint64_t owner)
{
    struct span device;
    struct message_columns message = message_columns(store, entry, owner);
    struct value thread = message.thread, tag = message.tag, number = message.number;
    bool is_nccl = rows_call_is_nccl(store, entry->call),
         is_on_device = device_span(store, entry, &device);
    bool is_round = entry->flags == LEDGER_SAMPLE_ROUND;
    bool has_request = !is_nccl && !is_round && !(entry->flags & LEDGER_SAMPLE_MESSAGE);
    bool has_polled =
        entry->flags & LEDGER_SAMPLE_POLLED && entry->completed_ticks <= entry->start_ticks;
    uint64_t numbers = has_polled ? 0 : entry->sequence;
    struct value completed_ns = has_polled ? rows_null() : completion(store, entry);
    struct value bytes = bytes_of(store, entry),
                 signature = rows_unless_zero(store, entry->signature);
    uint64_t on = numbers & LEDGER_ON_OBJECT ? numbers - LEDGER_ON_OBJECT : 0;
    struct value sequence = rows_unless_zero(store, on ? 0 : (int64_t)numbers);
    struct value object = rows_unless_zero(store, (int64_t)(on >> LEDGER_OBJECT_BIT));
    struct value object_sequence =
        rows_unless_zero(store, (int64_t)(on & ((1ull << LEDGER_OBJECT_BIT) - 1)));
    struct value polled_since_ns =
        has_polled ? rows_ticks(store, entry->completed_ticks) : rows_null();
    struct value polled_ns = has_polled ? polled(store, entry) : rows_null();
    struct value peer = numbers ? rows_null() : rows_rank(store, entry->peer);
    struct value root = numbers ? rows_rank(store, entry->peer) : rows_null();
    struct value request_call = rows_call(store, has_request ? entry->request_call : 0);
    struct value device_start_ns = is_on_device ? rows_number(store, device.begin_ns) : rows_null();
    struct value device_end_ns = is_on_device ? rows_number(store, device.end_ns) : rows_null();
    struct value offered = is_round ? rows_number(store, entry->offered) : rows_null();
    struct value agreed = is_round ? rows_number(store, entry->agreed) : rows_null();
    struct value is_shared =
        is_on_device ? rows_boolean(store, entry->device_span & LEDGER_DEVICE_SPAN_SHARED)
                     : rows_null();
    const struct column row[] = {
#define ROWS_OF_SAMPLE
#include "rows.def"
    };
    ROWS_INSERT_MANY(store, "INSERT INTO sample", row);
}

/* The last step has no end of its own: it lasts until the rank's end. */
static void store_step(struct store *store, const struct ledger_sample *entry, int64_t number)
{
    bool is_open = entry->end_ticks == entry->start_ticks;
    struct value step = rows_number(store, number);
    struct value end_ns = is_open ? rows_number(store, rows_wall_ns(store->ledger))
                                  : rows_ticks(store, entry->end_ticks);
    const struct column row[] = {
#define ROWS_OF_STEP
#include "rows.def"
    };
    ROWS_INSERT(store, "INSERT OR IGNORE INTO step", row);
}

static void store_span(struct store *store, const struct ledger_sample *entry)
{
    const struct column row[] = {
#define ROWS_OF_REGION_SPAN
#include "rows.def"
    };
    ROWS_INSERT_MANY(store, "INSERT INTO region_span", row);
}

static void store_page(struct store *store, const struct ledger_page *page)
{
    for (int i = 0; i < LEDGER_PAGE_SAMPLES; i++) {
        const struct ledger_sample *sample = &page->samples[i];
        if (!sample->end_ticks || sample->start_ticks < store->ledger->reset_ticks ||
            !is_retained(store, page, sample))
            continue;
        if ((uint8_t)page->owner == LEDGER_OF_STEPS)
            store_step(store, sample, (int64_t)page->first * LEDGER_PAGE_SAMPLES + i + 1);
        else if ((uint8_t)page->owner == LEDGER_OF_STREAM)
            store_activity_sample(store, sample);
        else if (sample->flags & LEDGER_SAMPLE_FURTHER)
            store_further(store, sample, page->owner);
        else if (sample->call)
            store_call_sample(store, sample, page->owner);
        else
            store_span(store, sample);
    }
}

/* Notes a time without room. Without memory for that, the database would claim too much, so it is
 * not written. */
static void note_gap(struct store *store, const struct ledger_page *page)
{
    if (!page->until_ticks)
        return;
    struct gap *gaps = realloc(store->gaps, (store->gap_count + 1) * sizeof *gaps);
    store->failed |= !gaps;
    if (!gaps)
        return;
    int64_t start = store->ledger->start_unix_ns,
            begin_ns = rows_since_start_ns(store, page->until_ticks);
    int64_t end_ns = (int64_t)((page->last + 1) << LEDGER_WINDOW_NS_LOG2) - start;
    store->gaps = gaps;
    gaps[store->gap_count++] = (struct gap){page->owner, {begin_ns, end_ns}};
}

static void store_pages(struct store *store)
{
    const struct ledger_page *entry;
    struct ledger_page page;
    FOR_EACH_ENTRY(entry, store, LEDGER_SAMPLES)
        if (take_page(entry, &page) && page.owner != LEDGER_NOBODY) {
            store_page(store, &page);
            note_gap(store, &page);
        }
}

static int compare_gaps(const void *left, const void *right)
{
    const struct gap *a = left, *b = right;
    return a->span.begin_ns < b->span.begin_ns ? -1 : a->span.begin_ns > b->span.begin_ns;
}

/* An owner (thread or stream), the mask of its windows, and the time from which and up to which
 * they are complete. */
struct sampled {
    const char *insert, *owner_column;
    uint64_t owner, mask;
    struct span life;
};

static void store_window(struct store *store, const struct sampled *sampled, struct span span)
{
    const struct column row[] = {
        RANK(world_rank){sampled->owner_column, rows_number(store, (int64_t)(sampled->owner >> 8))},
        {"begin_ns", rows_number(store, span.begin_ns)},
        {"end_ns", rows_number(store, span.end_ns)}};
    if (span.end_ns > span.begin_ns)
        ROWS_INSERT_MANY(store, sampled->insert, row);
}

/* A row for each part of a stretch of windows that has no gaps. */
static void store_stretch(struct store *store, const struct sampled *sampled, struct span span)
{
    const struct gap *last = store->gaps + store->gap_count;
    for (const struct gap *gap = store->gaps; gap < last && gap->span.begin_ns < span.end_ns; gap++)
        if (gap->owner == sampled->owner && gap->span.end_ns > span.begin_ns) {
            store_window(store, sampled, (struct span){span.begin_ns, gap->span.begin_ns});
            span.begin_ns = gap->span.end_ns;
        }
    store_window(store, sampled, span);
}

/* Adds bits to the mask while there are too many stretches: a burst of calls that has filled the
 * log leaves short ones, in a long run millions. */
static uint64_t mask_of_rows(uint64_t mask, uint64_t windows)
{
    enum { MOST_STRETCHES = 1 << 16 };
    while (mask && windows >> __builtin_popcountll(mask) > MOST_STRETCHES * (mask & -mask))
        mask |= 1ull << (64 - __builtin_clzll(mask));
    return mask;
}

static void store_windows_of(struct store *store, struct sampled sampled)
{
    uint64_t start = (uint64_t)store->ledger->start_unix_ns;
    uint64_t first = (start + (uint64_t)sampled.life.begin_ns) >> LEDGER_WINDOW_NS_LOG2;
    uint64_t last = (start + (uint64_t)sampled.life.end_ns) >> LEDGER_WINDOW_NS_LOG2;
    if (first > last)
        return;
    sampled.mask = mask_of_rows(sampled.mask, last - first);
    uint64_t low_bits = sampled.mask ? (sampled.mask & -sampled.mask) - 1 : UINT64_MAX >> 24;
    for (uint64_t window = samples_next_window(first - 1, sampled.mask);
         first <= window && window <= last; /* 0 after the last one that the mask keeps */
         window = samples_next_window(window | low_bits, sampled.mask)) {
        int64_t begin_ns = (int64_t)((window << LEDGER_WINDOW_NS_LOG2) - start);
        int64_t end_ns = (int64_t)((((window | low_bits) + 1) << LEDGER_WINDOW_NS_LOG2) - start);
        struct span span = {begin_ns > sampled.life.begin_ns ? begin_ns : sampled.life.begin_ns,
                            end_ns < sampled.life.end_ns ? end_ns : sampled.life.end_ns};
        store_stretch(store, &sampled, span);
    }
}

static int64_t complete_since_ns(const struct store *store, uint64_t since_ticks)
{
    uint64_t reset_ticks = store->ledger->reset_ticks,
             begin_ticks = since_ticks > reset_ticks ? since_ticks : reset_ticks;
    return begin_ticks ? rows_since_start_ns(store, begin_ticks) : 0;
}

static void store_windows_of_threads(struct store *store)
{
    const struct ledger_thread *thread;
    FOR_EACH_ENTRY(thread, store, LEDGER_THREADS) {
        struct span life = {complete_since_ns(store, thread->sampled_since_ticks),
                            rows_wall_ns(store->ledger)};
        uint64_t owner = LEDGER_OF_THREAD | (uint64_t)thread->thread << 8;
        store_windows_of(store, (struct sampled){"INSERT INTO sample_window", "thread", owner,
                                                 store->ledger->window_mask, life});
    }
}

/* Until when all activities are known. They are stored in the order of their begin, with a delay,
 * so while tracing is on they are complete only up to the begin of the last one. */
static int64_t complete_until_ns(const struct store *store)
{
    const struct ledger_tracing *tracing;
    FOR_EACH_ENTRY(tracing, store, LEDGER_TRACINGS)
        if (__atomic_load_n(&tracing->end_ns, __ATOMIC_ACQUIRE) == 0)
            return store->settled_ns;
    return rows_wall_ns(store->ledger);
}

static void store_windows_of_streams(struct store *store)
{
    const struct ledger_stream *stream;
    int64_t end_ns = complete_until_ns(store);
    FOR_EACH_ENTRY(stream, store, LEDGER_STREAMS) {
        struct span life = {complete_since_ns(store, stream->sampled_since_ticks), end_ns};
        uint64_t owner = LEDGER_OF_STREAM | (uint64_t)stream->stream << 8;
        store_windows_of(store, (struct sampled){"INSERT INTO gpu_sample_window", "stream", owner,
                                                 store->ledger->device_mask, life});
    }
}

/* A log without pages has no windows either. */
void store_samples(struct store *store)
{
    uint32_t at = 0;
    store_pages(store);
    if (store->gap_count)
        qsort(store->gaps, store->gap_count, sizeof *store->gaps, compare_gaps);
    if (rows_chunk(store->ledger, LEDGER_SAMPLES, &at)) {
        store_windows_of_threads(store);
        store_windows_of_streams(store);
    }
    free(store->gaps);
}
