#include "ledger/samples.h"

#include "base/clock.h"
#include "ledger_reader.h"
#include "stepping.h"
#include "unit.h"

#include <pthread.h>

enum {
    CHUNK_PAGES = (LEDGER_CHUNK_BYTES - LEDGER_CHUNK_HEADER_BYTES) / sizeof(struct ledger_page),
    LOG = 4 * LEDGER_CHUNK_BYTES,
    LOG_PAGES = 4 * CHUNK_PAGES,
    PAGE = LEDGER_PAGE_SAMPLES,
    WINDOW_BIT = LEDGER_GAP_NS_LOG2 - LEDGER_WINDOW_NS_LOG2, /* a second has 1024 windows */
    FIRST = 1 << 20, /* number of the first second: its lower bits are 0 */
    SECONDS = 4096,
    STREAMS = 40,
    CALL_NS = 10000,
};

/* A rank: its threads' streams and its GPU streams, and how many samples each has asked for in each
 * second (of 2^30 ns). */

static struct ledger_thread *threads[STREAMS];
static struct ledger_stream *gpu_streams[STREAMS];
static struct samples_window windows[STREAMS], gpu_windows[STREAMS];
static uint32_t calls_of[STREAMS][SECONDS], activities_of[STREAMS][SECONDS];

static void begin(size_t bytes)
{
    clock_begin(CLOCK_GETTIME); /* without drift: the tests' times are hours from now */
    clock_calibrate();
    CHECK_EQUAL(ledger_open("ledger", 64 << 20), 0);
    the_ledger.header->start_ns = clock_ns(clock_ticks());
    the_ledger.header->start_unix_ns = (int64_t)FIRST << LEDGER_GAP_NS_LOG2;
    memset(windows, 0, sizeof windows);
    memset(gpu_windows, 0, sizeof gpu_windows);
    memset(calls_of, 0, sizeof calls_of);
    memset(activities_of, 0, sizeof activities_of);
    for (uint32_t i = 0; i < STREAMS; i++) {
        threads[i] = ledger_append(LEDGER_THREADS, &(struct ledger_thread){.thread = i, .epoch = 1},
                                   sizeof **threads);
        gpu_streams[i] = ledger_append(LEDGER_STREAMS, &(struct ledger_stream){.stream = i},
                                       sizeof **gpu_streams);
    }
    samples_begin(bytes);
    samples_pages_looked_at = 0;
}

/* Another rank of the same job. */
static void begin_again(size_t bytes)
{
    the_ledger.header = NULL;
    CHECK_EQUAL(unlink("ledger"), 0);
    begin(bytes);
}

static uint64_t ticks_in(uint64_t at, uint64_t after_ns)
{
    return clock_ticks_at((int64_t)((at << LEDGER_GAP_NS_LOG2) + after_ns) +
                          the_ledger.header->start_ns);
}

static uint64_t ticks_of_call(uint64_t at, uint64_t index)
{
    return ticks_in(at, 1000 + index * CALL_NS);
}

/* Calls of a thread that return in second FIRST + `at`, one every 10 us. */
static void calls(unsigned thread, uint64_t at, unsigned count)
{
    for (; count > 0; count--) {
        uint64_t index = calls_of[thread][at]++, ticks = ticks_of_call(at, index);
        struct ledger_sample *sample = samples_of_window(&windows[thread], threads[thread], ticks);
        if (sample)
            sample_fill(sample, &(struct ledger_sample){.start_ticks = ticks - 1,
                                                        .end_ticks = ticks,
                                                        .bytes_and_signature = index,
                                                        .call = 1,
                                                        .thread = (uint16_t)thread,
                                                        .sequence = at << 32 | (index + 1)});
    }
}

static void activities(unsigned stream, uint64_t at, unsigned count)
{
    for (; count > 0; count--) {
        uint64_t index = activities_of[stream][at]++, ticks = ticks_of_call(at, index);
        struct ledger_sample *sample =
            samples_of_stream(&gpu_windows[stream], gpu_streams[stream], ticks);
        if (sample)
            sample_fill(sample, &(struct ledger_sample){.start_ticks = ticks,
                                                        .end_ticks = ticks,
                                                        .bytes_and_signature = index,
                                                        .thread = (uint16_t)stream});
    }
}

/* Samples in the ledger. */

#define FOR_EACH_PAGE(page)                                                             \
    for (uint32_t c_ = 0; c_ < the_ledger.header->chunk_count; c_++)                    \
        if (reader_chunk(the_ledger.header, c_)->kind == LEDGER_SAMPLES)                \
            for (uint32_t p_ = 0; p_ < reader_chunk(the_ledger.header, c_)->used; p_++) \
                for (const struct ledger_page *page =                                   \
                         reader_entry(reader_chunk(the_ledger.header, c_), p_);         \
                     page; page = NULL)

/* The window of a stream's sample with this index. */
static uint64_t window_of_call(uint64_t at, uint64_t index)
{
    return (FIRST + at) << WINDOW_BIT | (1000 + index * CALL_NS) >> LEDGER_WINDOW_NS_LOG2;
}

/* A stream's samples in one second that are in sampled windows. */
struct found {
    uint64_t count, until_ticks;
};
static uint8_t has[1 << 17];

static uint64_t owner_of_thread(unsigned thread)
{
    return LEDGER_OF_THREAD | (uint64_t)thread << 8;
}

static uint64_t mask_of(uint64_t owner)
{
    return owner & 1 ? the_ledger.header->window_mask : the_ledger.header->device_mask;
}

static bool is_in(uint64_t ticks, uint64_t at)
{
    return ticks >= ticks_in(at, 0) && ticks < ticks_in(at + 1, 0);
}

/* Checks that each is there once, with its own index, and sets has[index]. */
static struct found found_in(uint64_t owner, uint64_t at)
{
    struct found found = {0, 0};
    memset(has, 0, sizeof has);
    FOR_EACH_PAGE(page)
    {
        if (page->owner != owner)
            continue;
        found.until_ticks = page->until_ticks && is_in(page->until_ticks, at) ? page->until_ticks
                                                                              : found.until_ticks;
        for (unsigned i = 0; i < PAGE; i++) {
            const struct ledger_sample *sample = &page->samples[i];
            uint64_t index = sample->bytes_and_signature;
            if (!sample->end_ticks || !is_in(sample->end_ticks, at) ||
                (window_of_call(at, index) & mask_of(owner)))
                continue;
            CHECK_EQUAL(sample->end_ticks, ticks_of_call(at, index));
            CHECK_EQUAL(sample->thread, owner >> 8);
            CHECK(!has[index]);
            has[index] = 1;
            found.count++;
        }
    }
    return found;
}

static uint64_t found_calls(unsigned thread, uint64_t at)
{
    return found_in(owner_of_thread(thread), at).count;
}

/* Whether all windows of a second are sampled. */
static bool is_kept(uint64_t at, uint64_t mask)
{
    return mask >> WINDOW_BIT << WINDOW_BIT == mask && !((FIRST + at) << WINDOW_BIT & mask);
}

/* All samples before second `end` that a stream claims to have are there. Returns in how many
 * seconds there are some. */
static uint64_t check_complete(uint64_t owner, const uint32_t *asked, uint64_t since_ticks,
                               uint64_t end)
{
    uint64_t mask = mask_of(owner), seconds = 0;
    for (uint64_t at = 0; at < end; at++) {
        if (!asked[at] ||
            samples_next_window(((FIRST + at) << WINDOW_BIT) - 1, mask) >> WINDOW_BIT != FIRST + at)
            continue;
        struct found found = found_in(owner, at);
        for (uint64_t i = 0; i < asked[at]; i++) {
            uint64_t ticks = ticks_of_call(at, i);
            bool is_claimed = ticks >= since_ticks && !(window_of_call(at, i) & mask) &&
                              (!found.until_ticks || ticks < found.until_ticks);
            CHECK(has[i] || !is_claimed);
        }
        seconds += found.count > 0 && ticks_in(at, 0) >= since_ticks;
    }
    return seconds;
}

static uint64_t check_thread(unsigned thread, uint64_t end)
{
    return check_complete(owner_of_thread(thread), calls_of[thread],
                          threads[thread]->sampled_since_ticks, end);
}

static uint64_t pages_of(unsigned kind)
{
    uint64_t count = 0;
    FOR_EACH_PAGE(page)
    count += (page->owner & 0xff) == kind;
    return count;
}

static unsigned bits(uint64_t mask)
{
    return (unsigned)__builtin_popcountll(mask);
}

static unsigned lowest_bit(uint64_t mask)
{
    return (unsigned)__builtin_ctzll(mask);
}

/* Short runs */

TEST(a_call_belongs_to_the_window_in_which_it_returns)
{
    begin(LOG);
    the_ledger.header->window_mask = 1 << WINDOW_BIT; /* seconds with even numbers are sampled */
    calls(0, 3, 2);
    CHECK(!windows[0].page);
    samples_region(&windows[0], threads[0], 9, ticks_in(3, 500), ticks_in(4, 500));
    CHECK_EQUAL(windows[0].page->samples[0].region, 9);
    CHECK_EQUAL(windows[0].page->samples[0].call, 0);
    CHECK_EQUAL(windows[0].page->samples[0].start_ticks, ticks_in(3, 500));
    samples_region(&windows[0], threads[0], 9, ticks_in(4, 500), ticks_in(5, 500));
    CHECK(!windows[0].page);
}

TEST(a_window_ends_with_its_last_nanosecond)
{
    begin(4 << 20);
    const uint64_t window_ns = 1ull << LEDGER_WINDOW_NS_LOG2;
    the_ledger.header->window_mask = 1;
    for (uint64_t window = 0; window < 2000; window += 2) {
        CHECK(samples_of_window(&windows[0], threads[0], ticks_in(0, window * window_ns + 5)));
        CHECK(
            samples_of_window(&windows[0], threads[0], ticks_in(0, (window + 1) * window_ns - 5)));
        CHECK(
            !samples_of_window(&windows[0], threads[0], ticks_in(0, (window + 1) * window_ns + 5)));
        CHECK(
            !samples_of_window(&windows[0], threads[0], ticks_in(0, (window + 2) * window_ns - 5)));
    }
}

/* By a clock that has drifted for an hour, this time would be in the next stretch of windows. */
TEST(windows_are_of_the_monotonic_clock_though_the_calibration_was_off)
{
    enum { HOUR_S = 3600, OFF_PER_MILLION = 100, STRETCH_BIT = 28 - LEDGER_WINDOW_NS_LOG2 };
    begin(LOG);
    uint64_t ticks;
    clock_begin(CLOCK_AUTO);
    clock_calibrate();
    the_clock.base_ticks = clock_ticks_at(the_clock.base_ns - HOUR_S * 1000000000ll);
    the_clock.base_ns -= HOUR_S * 1000000000ll;
    the_clock.scale += the_clock.scale / 1000000 * OFF_PER_MILLION;
    clock_pair(&ticks, &the_ledger.header->start_ns);
    the_ledger.header->start_unix_ns += 1 << 27; /* the middle of a stretch of 2^28 ns */
    the_ledger.header->window_mask = 1 << STRETCH_BIT;
    CHECK(samples_of_window(&windows[0], threads[0], ticks));
}

TEST(two_samples_that_are_kept_together_are_adjacent)
{
    begin(LOG);
    calls(0, 0, PAGE - 1);
    samples_keep_together(&windows[0]);
    struct ledger_sample *one = samples_of_window(&windows[0], threads[0], ticks_of_call(0, PAGE));
    CHECK(samples_of_window(&windows[0], threads[0], ticks_of_call(0, PAGE)) == one + 1);
    CHECK(one == windows[0].page->samples);
}

/* A full log */

TEST(a_full_log_leaves_out_windows_and_has_all_of_the_others)
{
    begin(LOG);
    uint64_t mask = 0;
    for (uint64_t at = 0; at < 1000; at++) {
        calls(0, at, 10 + at % 100);
        CHECK_EQUAL(the_ledger.header->window_mask & mask,
                    mask); /* what is still sampled is a subset */
        mask = the_ledger.header->window_mask;
        if (at % 50 == 49)
            check_thread(0, at + 1);
    }
    CHECK(mask != 0);
    CHECK(check_thread(0, 1000) > LOG_PAGES / 5);
    CHECK_EQUAL(threads[0]->sampled_since_ticks, 0);
}

/* A run of `span` windows fills the log. Only then it gets a bit. */
static unsigned first_bit_of(uint64_t span, uint64_t from)
{
    begin_again(LOG);
    for (uint64_t at = from; at < from + span; at++)
        calls(0, at,
              (unsigned)(LOG_PAGES * (at - from + 1) / span - LOG_PAGES * (at - from) / span) *
                  PAGE);
    CHECK_EQUAL(the_ledger.header->window_mask, 0);
    calls(0, from + span, 1);
    CHECK_EQUAL(bits(the_ledger.header->window_mask), 1);
    check_thread(0, from + span + 1);
    return lowest_bit(the_ledger.header->window_mask);
}

static unsigned stretches_kept(uint64_t from, uint64_t end, uint64_t mask)
{
    unsigned count = 0;
    for (uint64_t at = from; at < end; at++)
        count += is_kept(at, mask) && (at == from || !is_kept(at - 1, mask));
    return count;
}

TEST(the_first_bit_leaves_at_least_four_stretches_as_long_as_possible)
{
    begin(LOG);
    for (uint64_t span = 10; span <= LOG_PAGES; span++)
        for (uint64_t from = 0; from < 70; from += 13) {
            unsigned bit = first_bit_of(span, from);
            CHECK(stretches_kept(from, from + span, 1ull << bit) >= 4);
            CHECK((16ull << bit) >
                  (span << WINDOW_BIT) + 1); /* twice as long, there might be fewer than four */
        }
}

TEST(further_bits_lie_above_the_first)
{
    begin(LOG);
    for (uint64_t at = 0; at < 4000; at++)
        calls(0, at, 20);
    uint64_t mask = the_ledger.header->window_mask;
    unsigned first = lowest_bit(mask);
    CHECK_EQUAL(first, WINDOW_BIT + 4);                     /* 217 seconds filled the log */
    CHECK_EQUAL(mask, ((1ull << bits(mask)) - 1) << first); /* the next ones, without a gap */
    CHECK(mask >> first > 15);
    check_thread(0, 4000);
}

/* A second fills the log */

static void call_at(uint64_t ns)
{
    uint64_t ticks = ticks_in(1, ns);
    struct ledger_sample *sample = samples_of_window(&windows[0], threads[0], ticks);
    if (sample)
        sample_fill(sample, &(struct ledger_sample){.start_ticks = ticks, .end_ticks = ticks});
}

static uint64_t samples_in_sampled_windows(void)
{
    uint64_t count = 0;
    FOR_EACH_PAGE(page)
    for (unsigned i = 0; i < PAGE; i++) {
        int64_t since_ns = clock_ns(page->samples[i].end_ticks) - the_ledger.header->start_ns;
        uint64_t window =
            (uint64_t)(the_ledger.header->start_unix_ns + since_ns) >> LEDGER_WINDOW_NS_LOG2;
        count += page->samples[i].end_ticks && !(window & the_ledger.header->window_mask);
    }
    return count;
}

/* Each page has the calls of one window; the call in the last window wants another page. */
static uint64_t first_mask_of_windows(uint64_t windows_in_all)
{
    const uint64_t window_ns = 1 << LEDGER_WINDOW_NS_LOG2;
    begin_again(LOG);
    for (uint64_t i = 0; i < LOG_PAGES * PAGE; i++)
        call_at(i / PAGE * window_ns + i % PAGE * 1000 + 10);
    CHECK_EQUAL(the_ledger.header->window_mask, 0);
    call_at((windows_in_all - 1) * window_ns + 10);
    return the_ledger.header->window_mask;
}

TEST(stretches_are_as_long_as_eight_of_them_fit)
{
    begin(LOG);
    CHECK_EQUAL(first_mask_of_windows(127), 8);
    CHECK_EQUAL(first_mask_of_windows(128), 16);
    CHECK_EQUAL(first_mask_of_windows(255), 16);
    CHECK_EQUAL(first_mask_of_windows(256), 32);
}

/* Some calls, a burst that fills the log in one window, and a later call. */
TEST(a_burst_stays_or_what_comes_after_it_is_sampled)
{
    const uint64_t window_ns = 1 << LEDGER_WINDOW_NS_LOG2;
    begin(LOG);
    for (uint64_t from = 0; from < 32; from++)
        for (uint64_t pause = 1; pause < 32; pause++) {
            begin_again(LOG);
            for (uint64_t i = 0; i < PAGE; i++)
                call_at(from * window_ns + i * window_ns / 20);
            for (uint64_t i = 0; i < (LOG_PAGES - 1) * PAGE; i++)
                call_at((from + 4) * window_ns + i * 40);
            call_at((from + 4 + pause) * window_ns + 10);
            CHECK(windows[0].page || samples_in_sampled_windows() > LOG_PAGES / 4 * PAGE);
        }
}

enum { BUSY = STREAMS - 1 };

/* All calls return in one window. One thread has none. */
static void fill_in_one_window(uint64_t at)
{
    for (unsigned thread = 0; thread < BUSY; thread++)
        calls(thread, at, PAGE);
    for (unsigned thread = 0; thread < LOG_PAGES - BUSY; thread++)
        calls(thread, at, 1);
}

TEST(where_one_window_fills_the_log_the_rest_of_the_second_is_given_up)
{
    begin(LOG);
    fill_in_one_window(0);
    unsigned last = LOG_PAGES - BUSY; /* the thread that finds no more room */
    calls(last, 0, 200);
    struct found found = found_in(owner_of_thread(last), 0);
    CHECK_EQUAL(found.count, PAGE);
    CHECK_EQUAL(found.until_ticks, ticks_of_call(0, PAGE));
    CHECK_EQUAL(threads[last]->sampled_since_ticks, 0);
    calls(BUSY, 0, 1);
    CHECK_EQUAL(found_calls(BUSY, 0), 0);
    CHECK(threads[BUSY]->sampled_since_ticks >= ticks_in(1, 0));
    CHECK(threads[BUSY]->sampled_since_ticks <= ticks_in(1, 100));
    CHECK_EQUAL(the_ledger.header->window_mask, 0);
}

TEST(a_page_stays_as_long_as_its_gap_matters)
{
    begin(LOG);
    const unsigned thread = LOG_PAGES - BUSY, first = 944;
    for (unsigned i = 0; i < STREAMS; i++)
        calls_of[i][1] = first; /* that many have returned before, in nine windows */
    CHECK_EQUAL(window_of_call(1, first) & 1, 1);
    fill_in_one_window(1);
    calls(thread, 1, 300);
    CHECK_EQUAL(found_in(owner_of_thread(thread), 1).until_ticks, ticks_of_call(1, first + PAGE));
    the_ledger.header->window_mask =
        1; /* all samples of its page are left out, calls in the gap are not */
    for (uint64_t at = 2; at < 5; at++)
        calls(0, at, 2 * LOG_PAGES * PAGE);
    CHECK_EQUAL(found_in(owner_of_thread(thread), 1).until_ticks, ticks_of_call(1, first + PAGE));
    the_ledger.header->window_mask |= 1 << WINDOW_BIT;
    for (uint64_t at = 2048; at < 2060; at += 2)
        calls(0, at, 2 * LOG_PAGES * PAGE);
    CHECK_EQUAL(found_in(owner_of_thread(thread), 1).until_ticks, 0);
}

/* The record */

static void record(uint64_t at, uint64_t end, unsigned chunks)
{
    int64_t start_ns = the_ledger.header->start_ns;
    samples_record(start_ns + (int64_t)(at << LEDGER_GAP_NS_LOG2),
                   start_ns + (int64_t)(end << LEDGER_GAP_NS_LOG2), chunks * LEDGER_CHUNK_BYTES);
}

static uint64_t window_of(uint64_t ticks)
{
    int64_t since_ns = clock_ns(ticks) - the_ledger.header->start_ns;
    return (uint64_t)(the_ledger.header->start_unix_ns + since_ns) >> LEDGER_WINDOW_NS_LOG2;
}

static int compare(const void *left, const void *right)
{
    uint64_t one = *(const uint64_t *)left, other = *(const uint64_t *)right;
    return (one > other) - (one < other);
}

/* A thread's samples in the record, whatever the mask says; each is there once. */
static uint64_t recorded_calls(unsigned thread)
{
    static uint64_t calls_seen[1 << 17];
    uint64_t count = 0;
    FOR_EACH_PAGE(page)
    for (unsigned i = 0; i < PAGE && page->owner == owner_of_thread(thread); i++) {
        const struct ledger_sample *sample = &page->samples[i];
        if (!sample->end_ticks ||
            !samples_record_has(the_ledger.header, window_of(sample->end_ticks)))
            continue;
        CHECK(count < 1 << 17);
        calls_seen[count++] = (uint64_t)sample->sequence >> 32 << 32 | sample->bytes_and_signature;
    }
    qsort(calls_seen, count, sizeof *calls_seen, compare);
    for (uint64_t i = 1; i < count; i++)
        CHECK(calls_seen[i - 1] < calls_seen[i]);
    return count;
}

/* How many calls the thread has made in the record, of those asked for in some seconds. */
static uint64_t calls_in_record(unsigned thread, uint64_t at, uint64_t end)
{
    uint64_t count = 0;
    for (; at < end; at++)
        for (uint32_t i = 0; i < calls_of[thread][at]; i++)
            count += samples_record_has(the_ledger.header, window_of_call(at, i));
    return count;
}

TEST(a_record_has_all_calls_of_its_time_beside_a_full_log)
{
    begin(LOG);
    const int64_t start_ns = the_ledger.header->start_ns, window_ns = 1 << LEDGER_WINDOW_NS_LOG2;
    samples_record(start_ns + 500 * (window_ns << WINDOW_BIT) + 3 * window_ns,
                   start_ns + 502 * (window_ns << WINDOW_BIT) + 7 * window_ns + 10,
                   8 * LEDGER_CHUNK_BYTES);
    for (uint64_t at = 0; at < 1000; at++) {
        calls(0, at, 1000);
        calls(1, at, 7);
    }
    CHECK_EQUAL(the_ledger.header->record_is_full, 0);
    CHECK_EQUAL(the_ledger.header->record_asked_ns,
                (2ll << LEDGER_GAP_NS_LOG2) + 4 * window_ns + 10);
    CHECK_EQUAL(the_ledger.header->record_first, ((FIRST + 500ull) << WINDOW_BIT) + 4);
    CHECK_EQUAL(the_ledger.header->record_last, ((FIRST + 502ull) << WINDOW_BIT) + 6);
    CHECK(bits(the_ledger.header->window_mask) > 2);
    CHECK(calls_in_record(0, 499, 504) > 2000);
    CHECK_EQUAL(recorded_calls(0), calls_in_record(0, 499, 504));
    CHECK_EQUAL(recorded_calls(1), calls_in_record(1, 499, 504));
    CHECK(check_thread(0, 1000) > 0);
    check_thread(1, 1000);
}

TEST(a_record_without_room_ends_and_the_log_goes_on)
{
    begin(LOG);
    record(1, 9, 1);
    for (uint64_t at = 1; at < 9; at++)
        for (unsigned i = 0; i < 5; i++) {
            calls(0, at, 100);
            calls(1, at, 3);
        }
    CHECK_EQUAL(the_ledger.header->record_is_full, 1);
    CHECK(the_ledger.header->record_last < (FIRST + 4ull) << WINDOW_BIT);
    CHECK(calls_in_record(0, 1, 9) > CHUNK_PAGES * PAGE / 2);
    CHECK_EQUAL(recorded_calls(0), calls_in_record(0, 1, 9));
    CHECK_EQUAL(recorded_calls(1), calls_in_record(1, 1, 9));
    CHECK_EQUAL(check_thread(0, 9), 8);
    CHECK_EQUAL(check_thread(1, 9), 8);
}

/* An hour ahead, its idea of that time may be milliseconds off. */
TEST(a_thread_looks_for_the_record_a_thousandth_of_the_time_before_it)
{
    begin(LOG);
    record(3000, 3001, 8);
    calls(0, 0, 1);
    CHECK(windows[0].until_ticks > ticks_in(2997, 0));
    CHECK(windows[0].until_ticks < ticks_in(2998, 0));
    calls(0, 2998, 1);
    CHECK(windows[0].until_ticks > ticks_in(2999, 900000000));
    CHECK(windows[0].until_ticks <= ticks_in(3000, 0));
    the_ledger.header->window_mask = 1 << WINDOW_BIT; /* leaves the second before out */
    calls(0, 2999, 100);
    CHECK(!windows[0].page);
    calls(0, 3000, 1000);
    CHECK(windows[0].page);
    CHECK_EQUAL(recorded_calls(0), calls_in_record(0, 3000, 3001));
}

TEST(without_a_log_the_record_is_all)
{
    begin(0);
    record(5, 6, 8);
    for (uint64_t at = 0; at < 10; at++) {
        calls(0, at, 1000);
        activities(1, at, 100);
    }
    CHECK_EQUAL(recorded_calls(0), calls_in_record(0, 5, 6));
    uint64_t first = (uint64_t)FIRST << WINDOW_BIT;
    CHECK(samples_next_window(first, the_ledger.header->window_mask) > first + (1ull << 40));
    CHECK(samples_next_window(first, the_ledger.header->device_mask) > first + (1ull << 40));
    CHECK_EQUAL(pages_of(LEDGER_OF_STREAM), 0);
}

/* Pages in use */

TEST(an_unfinished_collective_keeps_its_page)
{
    begin(LOG);
    calls(0, 9, PAGE);
    struct ledger_sample *first = windows[0].page->samples;
    uint64_t start_ticks = first->start_ticks;
    sample_begin_unfinished(first);
    sample_begin_unfinished(first);
    for (uint64_t at = 10; at < 1000; at++)
        calls(0, at, PAGE);
    CHECK(!is_kept(9, the_ledger.header->window_mask));
    sample_finish(first, 77);
    for (uint64_t at = 1000; at < 2000; at++)
        calls(0, at, PAGE);
    CHECK_EQUAL(first->start_ticks, start_ticks);
    CHECK_EQUAL(first->completed_ticks, 77);
    sample_finish(first, 78);
    for (uint64_t at = 2000; at < SECONDS; at++)
        calls(0, at, PAGE);
    CHECK(first->start_ticks != start_ticks);
    check_thread(0, SECONDS);
}

/* Two ranks */

struct rank {
    uint64_t mask;
    uint64_t complete[SECONDS]; /* samples, if the second is sampled */
};

static void run_rank(struct rank *rank, unsigned calls_per_window, uint64_t from, uint64_t end)
{
    begin_again(LOG);
    for (uint64_t at = from; at < end; at++)
        calls(0, at, calls_per_window + (unsigned)(at * 7 % 5));
    check_thread(0, end);
    rank->mask = the_ledger.header->window_mask;
    for (uint64_t at = from; at < end; at++)
        rank->complete[at] = is_kept(at, rank->mask) ? found_calls(0, at) : 0;
}

/* The windows that two ranks have in common: those that the bits of both leave. */
static void check_common(const struct rank *one, const struct rank *other, uint64_t from,
                         uint64_t end)
{
    for (uint64_t at = from; at < end; at++)
        CHECK_EQUAL(one->complete[at] && other->complete[at], is_kept(at, one->mask | other->mask));
}

/* A bit in which both differ halves what they have in common. */
TEST(ranks_of_different_rates_have_at_least_about_half_of_what_the_less_sampled_one_has)
{
    static struct rank one, other;
    static const unsigned rates[] = {60, 70, 100, 128, 180, 200, 256, 300, 400};
    begin(LOG);
    for (uint64_t end = 200; end <= (UNIT_SANITIZED ? 200 : 1600); end *= 2)
        for (unsigned i = 0; i < sizeof rates / sizeof *rates; i++) {
            uint64_t from = 5 + 11 * i;
            run_rank(&one, 64, from, end);
            run_rank(&other, rates[i], from, end);
            check_common(&one, &other, from, end);
            unsigned most_bits =
                bits(one.mask) > bits(other.mask) ? bits(one.mask) : bits(other.mask);
            CHECK(bits(one.mask | other.mask) <= most_bits + 1);
        }
}

/* Work */

TEST(many_threads_that_share_a_small_log_look_for_pages_once_in_a_window)
{
    enum { BUSY_WINDOWS = 200 };
    begin(LEDGER_CHUNK_BYTES);
    for (uint64_t at = 0; at < BUSY_WINDOWS; at++)
        for (unsigned turn = 0; turn < 3; turn++)
            for (unsigned thread = 0; thread < STREAMS; thread++)
                calls(thread, at, PAGE);
    CHECK(samples_pages_looked_at <= 4 * CHUNK_PAGES * STREAMS * BUSY_WINDOWS);
    CHECK(samples_pages_looked_at <=
          3 * CHUNK_PAGES * STREAMS * 20); /* in most windows nothing is sampled */
    uint64_t complete = 0;
    for (unsigned thread = 0; thread < STREAMS; thread++)
        complete += check_thread(thread, BUSY_WINDOWS);
    CHECK(complete > 0);
}

/* Steps */

static void steps(uint64_t count)
{
    for (; count > 0; count--)
        samples_step(3, 100 + the_ledger.header->steps * 10);
}

/* Every step in the log has its number's times. Returns how many there are. */
static uint64_t check_steps(void)
{
    uint64_t count = 0;
    FOR_EACH_PAGE(page)
    for (uint64_t i = 0; page->owner == LEDGER_OF_STEPS &&
                         (page->first & the_ledger.header->step_mask) == 0 && i < PAGE;
         i++) {
        const struct ledger_sample *step = &page->samples[i];
        uint64_t number = page->first * PAGE + i;
        if (!step->end_ticks)
            continue;
        CHECK_EQUAL(step->start_ticks, 100 + number * 10);
        CHECK_EQUAL(step->end_ticks, number == the_ledger.header->steps - 1
                                         ? step->start_ticks
                                         : step->start_ticks + 10);
        CHECK_EQUAL(step->thread, 3);
        count++;
    }
    return count;
}

TEST(many_steps_leave_room_for_calls)
{
    begin(LEDGER_CHUNK_BYTES);
    steps(CHUNK_PAGES * PAGE);
    for (uint64_t at = 0; at < 100; at++)
        calls(0, at, 10);
    CHECK(check_thread(0, 100) >= 4);
    check_steps();
}

TEST(steps_that_find_no_page_are_missing_up_to_the_next_page)
{
    begin(LOG);
    fill_in_one_window(1);
    samples_pages_looked_at = 0;
    steps(PAGE);
    CHECK_EQUAL(check_steps(), 0);
    CHECK(samples_pages_looked_at <= 3 * LOG_PAGES);
    calls(0, 2, PAGE);
    steps(PAGE);
    CHECK_EQUAL(check_steps(), PAGE);
}

/* No log */

TEST(without_room_nothing_is_sampled)
{
    begin(LEDGER_CHUNK_BYTES - 1);
    calls(0, 0, 5000);
    activities(0, 0, 5000);
    steps(200);
    samples_region(&windows[0], threads[0], 9, ticks_in(1, 0), ticks_in(2, 0));
    CHECK_EQUAL(samples_pages_looked_at, 0);
    CHECK_EQUAL(the_ledger.header->steps, 200);
    CHECK_EQUAL(windows[0].until_ticks, UINT64_MAX); /* no call asks again */
    CHECK_EQUAL(gpu_windows[0].until_ticks, UINT64_MAX);
    FOR_EACH_PAGE(page)
    CHECK(!"there is a page");
}

TEST(a_ledger_without_room_for_the_log_samples_in_what_there_is)
{
    begin(LOG);
    while (ledger_chunk(LEDGER_CELLS, 64, 0))
        ;
    calls(0, 0, 10);
    calls(0, 1, 10);
    steps(PAGE + 1);
    FOR_EACH_PAGE(page)
    CHECK(!"there is a page");
    begin_again(LOG);
    calls(0, 0, CHUNK_PAGES / 2 * PAGE);
    while (ledger_chunk(LEDGER_CELLS, 64, 0))
        ;
    for (uint64_t at = 1; at < 200; at++)
        calls(0, at, 10);
    CHECK_EQUAL(pages_of(LEDGER_OF_THREAD), CHUNK_PAGES);
    check_thread(0, 200);
}

/* Threads */

static void *call_in_windows(void *number)
{
    unsigned thread = (unsigned)(uintptr_t)number;
    for (uint64_t at = 0; at < 100; at++)
        calls(thread, at, 3 * PAGE);
    return NULL;
}

static void *step_along(void *number)
{
    (void)number;
    steps(2000);
    return NULL;
}

TEST(threads_share_the_log)
{
    enum { THREADS = 6 };
    pthread_t all[THREADS + 1];
    begin(LOG);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&all[i], NULL, call_in_windows, (void *)i) == 0);
    CHECK(pthread_create(&all[THREADS], NULL, step_along, NULL) == 0);
    for (unsigned i = 0; i <= THREADS; i++)
        CHECK(pthread_join(all[i], NULL) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        check_thread(i, 100);
    check_steps();
}

/* Kills */

static void fill_and_turn(void)
{
    for (uint64_t at = 256; at < 260; at++)
        calls(0, at, PAGE + 1);
}

static uint64_t sampled_before; /* in windows that are still sampled */

/* The samples in sampled windows are those from before, and of each later second the first. */
static void look_for_strangers(pid_t child)
{
    (void)child;
    uint64_t before = 0, later[4] = {0}, indices[4] = {0};
    FOR_EACH_PAGE(page)
    for (unsigned i = 0; page->owner != LEDGER_NOBODY && i < PAGE; i++) {
        uint64_t index = page->samples[i].bytes_and_signature, at = page->samples[i].sequence >> 32;
        if (!page->samples[i].end_ticks)
            continue;
        CHECK_EQUAL(page->samples[i].end_ticks, ticks_of_call(at, index));
        before += at < 128;
        later[at & 3] += at >= 256;
        indices[at & 3] += at >= 256 ? index : 0;
    }
    CHECK_EQUAL(before, sampled_before);
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQUAL(indices[i], later[i] * (later[i] - 1) / 2 * (later[i] > 0));
        CHECK(i == 0 || !later[i] || later[i - 1] == PAGE + 1);
    }
}

TEST(a_kill_while_pages_change_hands_leaves_no_call_in_a_wrong_place)
{
    begin(LEDGER_CHUNK_BYTES);
    for (uint64_t at = 0; at < 200; at++)
        calls(0, at, 10);
    CHECK(the_ledger.header->window_mask != 0);
    the_ledger.header->window_mask =
        1 << (7 + WINDOW_BIT); /* 128 to 199 are left out, 0 to 127 are not */
    FOR_EACH_PAGE(page)
    for (unsigned i = 0; i < PAGE; i++)
        sampled_before += page->samples[i].end_ticks && page->samples[i].sequence >> 32 < 128;
    CHECK(stepping(PTRACE_SINGLESTEP, fill_and_turn, look_for_strangers) > 1000);
}

static uint64_t bits_of_all_masks(void)
{
    const struct ledger_header *header = the_ledger.header;
    return bits(header->window_mask) + bits(header->device_mask) + bits(header->step_mask);
}

TEST(pages_are_looked_for_a_few_times_for_each_bit)
{
    begin(LOG);
    for (uint64_t at = 0; at < SECONDS; at++)
        calls(0, at, 200);
    CHECK(samples_pages_looked_at <= 4 * LOG_PAGES * bits_of_all_masks());
}
