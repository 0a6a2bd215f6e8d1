#include "ledger/samples.h"

#include "base/clock.h"
#include "ledger_reader.h"
#include "stepping.h"
#include "unit.h"

#include <stdlib.h>

enum {
    CHUNK_PAGES = 20,
    BLOCK_PAGES = LEDGER_BLOCK_SAMPLES / LEDGER_PAGE_SAMPLES,
    TWO_CHUNKS = 2 * LEDGER_CHUNK_BYTES, /* 40 pages: 2.5 blocks */
    BUSY = 5,                            /* slots */
    QUIET = 6,
};

static struct ledger_thread *thread;
static struct ledger_communicator *entries[SAMPLES_SLOTS];
static struct samples_sequence streams[SAMPLES_SLOTS];
static uint64_t made[SAMPLES_SLOTS]; /* number of collectives on each communicator */
static uint64_t ticks_each;          /* their duration */
static struct samples_window window;

static void begin(size_t bytes)
{
    clock_begin(CLOCK_AUTO);
    clock_calibrate();
    CHECK_EQUAL(ledger_open("ledger", 64 << 20), 0);
    the_ledger.header->start_ns = clock_ns(clock_ticks());
    the_ledger.header->start_unix_ns = clock_unix_ns();
    struct ledger_thread entry = {.thread = 3, .epoch = 1};
    thread = ledger_append(LEDGER_THREADS, &entry, sizeof entry);
    samples_begin(bytes);
    memset(streams, 0, sizeof streams);
    memset(made, 0, sizeof made);
    ticks_each = 1;
    samples_pages_looked_at = 0;
    window = (struct samples_window){NULL, 0, 0, 0, 0};
}

static void communicator(unsigned slot)
{
    struct ledger_communicator entry = {.communicator = slot, .identity = slot};
    entries[slot] = ledger_append(LEDGER_COMMUNICATORS, &entry, sizeof entry);
    samples_enter(slot, entries[slot]);
}

/* Collectives on a communicator, each with its sequence as its size. */
static void collectives(unsigned slot, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t sequence = ++made[slot];
        entries[slot]->collectives = sequence;
        struct ledger_sample *sample = samples_of_sequence(&streams[slot], slot, sequence);
        if (sample)
            sample_fill(sample, &(struct ledger_sample){
                                    .start_ticks = 1, .end_ticks = 1 + ticks_each, .bytes = sequence, .communicator = (uint16_t)slot});
    }
}

static struct ledger_sample *call_at(uint64_t ticks)
{
    struct ledger_sample *sample = samples_of_window(&window, thread, ticks);
    if (sample)
        sample_fill(sample, &(struct ledger_sample){.start_ticks = ticks, .end_ticks = ticks + 1, .call = 1});
    return sample;
}

/* The samples in the ledger. */

struct retained {
    uint8_t *has; /* by sequence, from 1 */
    uint64_t count, most;
    bool is_sound; /* every sample is the one that its page and index indicate */
};

static void look_at_page(struct retained *retained, const struct ledger_page *page, unsigned slot)
{
    if (page->owner != (LEDGER_OF_COMMUNICATOR | (uint64_t)slot << 8))
        return;
    for (unsigned i = 0; i < LEDGER_PAGE_SAMPLES; i++) {
        const struct ledger_sample *sample = &page->samples[i];
        if (!sample->end_ticks)
            continue;
        uint64_t sequence = page->first + i + 1;
        retained->is_sound &= sample->bytes == sequence && sample->communicator == slot;
        retained->is_sound &= sequence <= retained->most && !retained->has[sequence];
        if (retained->is_sound)
            retained->has[sequence] = 1;
        retained->count++;
    }
}

#define FOR_EACH_PAGE(page)                                                             \
    for (uint32_t c_ = 0; c_ < the_ledger.header->chunk_count; c_++)                    \
        if (reader_chunk(the_ledger.header, c_)->kind == LEDGER_SAMPLES)                \
            for (uint32_t p_ = 0; p_ < reader_chunk(the_ledger.header, c_)->used; p_++) \
                for (const struct ledger_page *page = reader_entry(reader_chunk(the_ledger.header, c_), p_); page; page = NULL)

static struct retained retained_of(unsigned slot)
{
    struct retained retained = {calloc(made[slot] + 1, 1), 0, made[slot], true};
    FOR_EACH_PAGE(page)
    look_at_page(&retained, page, slot);
    return retained;
}

/* Whether every call of every block that the level retains has its sample. */
static bool has_all_of_level(const struct retained *retained, unsigned level)
{
    for (uint64_t sequence = 1; sequence <= retained->most; sequence++)
        if ((((sequence - 1) / LEDGER_BLOCK_SAMPLES + 1) & ((1ull << level) - 1)) == 0 && !retained->has[sequence])
            return false;
    return true;
}

/* Collectives */

static void all_calls_are_sampled_while_there_is_room(void)
{
    begin(TWO_CHUNKS);
    communicator(BUSY);
    collectives(BUSY, 2 * LEDGER_BLOCK_SAMPLES);
    struct retained retained = retained_of(BUSY);
    CHECK(retained.is_sound);
    CHECK_EQUAL(retained.count, 2 * LEDGER_BLOCK_SAMPLES);
    CHECK_EQUAL(entries[BUSY]->sample_level, 0);
}

static void a_full_log_retains_every_second_block_then_every_fourth(void)
{
    begin(TWO_CHUNKS);
    communicator(BUSY);
    unsigned level = 0;
    for (int i = 0; i < 40; i++) {
        collectives(BUSY, 500);
        struct retained retained = retained_of(BUSY);
        CHECK(retained.is_sound);
        CHECK(entries[BUSY]->sample_level >= level);
        level = entries[BUSY]->sample_level;
        CHECK(has_all_of_level(&retained, level));
        free(retained.has);
    }
    CHECK_EQUAL(level, 3); /* 19.5 blocks: the 8th and the 16th fit */
}

static void a_quiet_communicator_loses_nothing_to_a_busy_one(void)
{
    begin(2 * TWO_CHUNKS);
    communicator(BUSY);
    communicator(QUIET);
    for (int i = 0; i < 400; i++) {
        collectives(BUSY, 1000);
        collectives(QUIET, 3);
    }
    struct retained retained = retained_of(QUIET);
    CHECK(retained.is_sound);
    CHECK_EQUAL(retained.count, 1200);
    CHECK_EQUAL(entries[QUIET]->sample_level, 0);
    CHECK(entries[BUSY]->sample_level > 3);
}

static void whoever_holds_most_gives_up_most(void)
{
    begin(2 * TWO_CHUNKS);
    communicator(BUSY);
    communicator(QUIET);
    collectives(BUSY, 61 * LEDGER_PAGE_SAMPLES);
    collectives(QUIET, 1200); /* the last 19 pages, of its two blocks */
    collectives(BUSY, 1);
    CHECK_EQUAL(entries[BUSY]->sample_level, 1);
    CHECK_EQUAL(entries[QUIET]->sample_level, 0);
}

static void an_open_page_is_not_taken(void)
{
    begin(TWO_CHUNKS);
    communicator(BUSY);
    communicator(QUIET);
    collectives(QUIET, LEDGER_BLOCK_SAMPLES + 1); /* one call of its second block: the page stays open */
    collectives(BUSY, 40 * LEDGER_BLOCK_SAMPLES);
    struct ledger_page *open = streams[QUIET].page;
    entries[QUIET]->sample_level = 5;
    collectives(BUSY, 40 * LEDGER_BLOCK_SAMPLES);
    CHECK_EQUAL(open->owner, LEDGER_OF_COMMUNICATOR | QUIET << 8);
    CHECK_EQUAL(open->samples[0].bytes, LEDGER_BLOCK_SAMPLES + 1);
}

/* Two ranks of a communicator: the samples of the busier one are a subset of the other's, and are all that its level promises. */
static void ranks_whose_logs_fill_at_different_times_have_the_same_calls_in_common(void)
{
    enum { CALLS = 50 * LEDGER_BLOCK_SAMPLES + 17 };
    begin(8 * TWO_CHUNKS);
    communicator(BUSY);
    collectives(BUSY, CALLS);
    struct retained idle = retained_of(BUSY);
    unsigned idle_level = entries[BUSY]->sample_level;

    the_ledger.header = NULL;
    CHECK_EQUAL(unlink("ledger"), 0);
    begin(3 * TWO_CHUNKS);
    communicator(BUSY);
    communicator(QUIET);
    for (int i = 0; i < 50; i++) {
        collectives(BUSY, LEDGER_BLOCK_SAMPLES);
        collectives(QUIET, 300);
    }
    collectives(BUSY, 17);
    struct retained loaded = retained_of(BUSY);
    unsigned level = entries[BUSY]->sample_level;
    CHECK(level > idle_level);
    CHECK(has_all_of_level(&loaded, level));
    CHECK(has_all_of_level(&idle, level));
}

static void calls_in_flight_keep_their_page(void)
{
    begin(TWO_CHUNKS);
    communicator(BUSY);
    struct ledger_sample *first = samples_of_sequence(&streams[BUSY], BUSY, ++made[BUSY]);
    sample_fill(first, &(struct ledger_sample){.start_ticks = 1, .end_ticks = 2, .bytes = 1, .communicator = BUSY});
    sample_begin_unfinished(first);
    streams[BUSY].page->is_open = 0;
    entries[BUSY]->sample_level = LEDGER_SAMPLE_LEVEL_NONE; /* no block is sampled, not even the first */
    communicator(QUIET);
    collectives(QUIET, 40 * LEDGER_BLOCK_SAMPLES);
    CHECK_EQUAL(first->bytes, 1);
    sample_finish(first, 77);
    CHECK_EQUAL(first->completed_ticks, 77);
    collectives(QUIET, 40 * LEDGER_BLOCK_SAMPLES);
    CHECK(first->bytes != 1);
}

static void communicators_without_end_leave_room_for_later_ones(void)
{
    begin(TWO_CHUNKS);
    for (unsigned slot = 2; slot < 200; slot++) {
        communicator(slot);
        collectives(slot, 10);
        CHECK_EQUAL(retained_of(slot).count, 10);
        entries[slot]->flags |= LEDGER_COMMUNICATOR_FREED;
        samples_leave(&streams[slot]);
    }
}

static void communicators_beyond_the_room_have_no_samples_and_harm_no_other(void)
{
    begin(TWO_CHUNKS);
    for (unsigned slot = 2; slot < 100; slot++) {
        communicator(slot);
        collectives(slot, 10);
    }
    CHECK_EQUAL(retained_of(2).count, 10);
    CHECK_EQUAL(retained_of(99).count, 0);
    CHECK_EQUAL(the_ledger.header->chunk_count, 1 + 2 + 2); /* for the thread, communicators, samples */
}

/* Many communicators */

enum { DEFAULT_LOG = 4 << 20, DEFAULT_PAGES = DEFAULT_LOG / LEDGER_CHUNK_BYTES * CHUNK_PAGES, FIRST = 10 };

static void communicators(unsigned count)
{
    for (unsigned slot = FIRST; slot < FIRST + count; slot++)
        communicator(slot);
}

static void collectives_in_turn(unsigned count, uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++)
        for (unsigned slot = FIRST; slot < FIRST + count; slot++)
            collectives(slot, 1);
}

static uint64_t retained_count(unsigned slot)
{
    struct retained retained = retained_of(slot);
    free(retained.has);
    return retained.count;
}

static void room_is_looked_for_once_a_level_however_many_calls_there_are(void)
{
    enum { MANY = 100, ROUNDS = 5000 };
    begin(DEFAULT_LOG);
    communicators(MANY);
    collectives_in_turn(MANY, ROUNDS);
    uint64_t levels = 0;
    for (unsigned slot = FIRST; slot < FIRST + MANY; slot++)
        levels += entries[slot]->sample_level;
    CHECK(levels <= 3 * MANY); /* five blocks have been started */
    CHECK(samples_pages_looked_at <= 3 * DEFAULT_PAGES * levels);
    CHECK(samples_pages_looked_at < 2 * MANY * ROUNDS);
}

static void of_many_communicators_each_has_all_that_its_level_says(void)
{
    enum { MANY = 100 };
    begin(DEFAULT_LOG);
    communicators(MANY);
    for (int round = 0; round < 9; round++) {
        collectives_in_turn(MANY, 500);
        for (unsigned slot = FIRST; slot < FIRST + MANY; slot++) {
            struct retained retained = retained_of(slot);
            CHECK(retained.is_sound);
            CHECK(has_all_of_level(&retained, entries[slot]->sample_level));
            free(retained.has);
        }
    }
}

static void most_of_many_communicators_have_samples(void)
{
    enum { MANY = 100 };
    begin(DEFAULT_LOG);
    communicators(MANY);
    collectives_in_turn(MANY, 1100);
    unsigned with_samples = 0;
    for (unsigned slot = FIRST; slot < FIRST + MANY; slot++)
        with_samples += retained_count(slot) > 0;
    CHECK(with_samples >= 70);
}

static void a_late_communicator_is_sampled(void)
{
    begin(DEFAULT_LOG);
    communicator(BUSY);
    communicators(100);
    collectives_in_turn(100, 1100);
    collectives(BUSY, 1200);
    CHECK_EQUAL(retained_count(BUSY), 1200);
    CHECK_EQUAL(entries[BUSY]->sample_level, 0);
}

static void a_communicator_with_few_and_long_collectives_retains_its_samples(void)
{
    begin(DEFAULT_LOG);
    communicator(BUSY);
    communicators(100);
    ticks_each = 10000;
    collectives(BUSY, 500);
    ticks_each = 1;
    collectives_in_turn(100, 3000);
    CHECK_EQUAL(retained_count(BUSY), 500);
    CHECK_EQUAL(entries[BUSY]->sample_level, 0);
}

static void a_communicator_with_few_and_short_collectives_loses_its_samples(void)
{
    begin(DEFAULT_LOG);
    communicator(BUSY);
    communicators(100);
    collectives(BUSY, 500);
    collectives_in_turn(100, 3000);
    CHECK(entries[BUSY]->sample_level > 0);
}

static void quiet_communicators_do_not_fill_the_log_with_open_pages(void)
{
    begin(DEFAULT_LOG);
    communicator(BUSY);
    communicators(2000);
    collectives_in_turn(2000, 10);
    collectives(BUSY, 3 * LEDGER_BLOCK_SAMPLES);
    struct retained retained = retained_of(BUSY);
    CHECK(has_all_of_level(&retained, entries[BUSY]->sample_level));
    CHECK(entries[BUSY]->sample_level <= 1);
    free(retained.has);
}

static void ranks_with_the_same_calls_sample_the_same(void)
{
    enum { MANY = 100 };
    uint32_t levels[2][MANY];
    for (int rank = 0; rank < 2; rank++) {
        begin(DEFAULT_LOG);
        communicators(MANY);
        for (unsigned i = 0; i < 4000 * MANY; i++) {
            ticks_each = 100 + (i * 7 + i % MANY * (3 + (unsigned)rank)) % 10; /* different durations on each rank */
            collectives(FIRST + i % MANY, 1);
        }
        for (int i = 0; i < MANY; i++)
            levels[rank][i] = entries[FIRST + i]->sample_level;
        the_ledger.header = NULL;
        CHECK_EQUAL(unlink("ledger"), 0);
    }
    CHECK_EQUAL(memcmp(levels[0], levels[1], sizeof levels[0]), 0);
}

static void without_a_log_levels_show_that_nothing_is_sampled(void)
{
    begin(LEDGER_CHUNK_BYTES - 1);
    communicator(BUSY);
    CHECK_EQUAL(entries[BUSY]->sample_level, LEDGER_SAMPLE_LEVEL_NONE);
}

static void without_room_nothing_is_sampled(void)
{
    begin(LEDGER_CHUNK_BYTES - 1);
    communicator(BUSY);
    collectives(BUSY, 5000);
    CHECK_EQUAL(retained_of(BUSY).count, 0);
    CHECK(call_at(clock_ticks()) == NULL);
}

/* Other calls: the test sets the time. */

static uint64_t window_ticks(uint64_t number, uint64_t after_ns)
{
    int64_t ns = (int64_t)((number << LEDGER_WINDOW_NS_LOG2) + after_ns) - the_ledger.header->start_unix_ns + the_ledger.header->start_ns;
    return clock_ticks_at(ns);
}

static uint64_t first_window(void)
{
    return ((uint64_t)the_ledger.header->start_unix_ns >> LEDGER_WINDOW_NS_LOG2) + 1;
}

static uint64_t calls_retained_in(uint64_t number)
{
    uint64_t count = 0;
    FOR_EACH_PAGE(page)
    for (int i = 0; page->owner == (LEDGER_OF_THREAD | 3 << 8) && page->first == number && i < LEDGER_PAGE_SAMPLES; i++)
        count += page->samples[i].end_ticks != 0;
    return count;
}

static void calls_are_sampled_in_the_window_in_which_they_begin(void)
{
    begin(TWO_CHUNKS);
    uint64_t number = first_window();
    for (int i = 0; i < 100; i++)
        call_at(window_ticks(number, 1000 + (uint64_t)i * 1000000));
    for (int i = 0; i < 30; i++)
        call_at(window_ticks(number + 1, 1000 + (uint64_t)i));
    CHECK_EQUAL(calls_retained_in(number), 100);
    CHECK_EQUAL(calls_retained_in(number + 1), 30);
}

static void a_full_log_retains_windows_at_multiples_of_its_level(void)
{
    begin(TWO_CHUNKS);
    uint64_t first = (first_window() + 63) & ~UINT64_C(63), calls = 10;
    for (uint64_t number = first; number < first + 200; number++)
        for (uint64_t i = 0; i < calls; i++)
            call_at(window_ticks(number, 1000 + i));
    unsigned level = the_ledger.header->window_level;
    CHECK_EQUAL(level, 3); /* 40 pages for 200 windows: 25 fit */
    for (uint64_t number = first; number < first + 200; number += 1u << level)
        CHECK_EQUAL(calls_retained_in(number), calls);
}

static void a_window_with_too_many_calls_says_from_when_on_they_are_missing(void)
{
    begin(20 * TWO_CHUNKS);
    uint64_t number = first_window();
    const uint64_t most = SAMPLES_MOST_WINDOW_PAGES * LEDGER_PAGE_SAMPLES;
    for (uint64_t i = 0; i < most + 5; i++)
        call_at(window_ticks(number, 1000 + i * 1000));
    CHECK_EQUAL(calls_retained_in(number), most);
    uint64_t until = 0;
    FOR_EACH_PAGE(page)
    until = page->until_ticks ? page->until_ticks : until;
    CHECK_EQUAL(until, window_ticks(number, 1000 + most * 1000));
    call_at(window_ticks(number + 1, 1000));
    CHECK_EQUAL(calls_retained_in(number + 1), 1);
    CHECK_EQUAL(thread->sampled_since_ticks, 0);
}

static void a_window_without_room_says_so(void)
{
    begin(LEDGER_CHUNK_BYTES);
    uint64_t number = first_window();
    struct samples_window others[CHUNK_PAGES] = {0};
    for (unsigned i = 0; i < CHUNK_PAGES; i++)
        samples_of_window(&others[i], &(struct ledger_thread){.thread = 10 + i}, window_ticks(number, 1000));
    CHECK(call_at(window_ticks(number, 1000)) == NULL);
    CHECK(thread->sampled_since_ticks >= window_ticks(number + 1, 0));
    CHECK(thread->sampled_since_ticks <= window_ticks(number + 1, 0) + 1000);
}

static void a_region_is_sampled_in_the_window_in_which_it_ends(void)
{
    begin(TWO_CHUNKS);
    uint64_t number = first_window();
    call_at(window_ticks(number, 1000));
    samples_region(&window, thread, 9, window_ticks(number, 500), window_ticks(number + 1, 500));
    CHECK_EQUAL(calls_retained_in(number + 1), 1);
    CHECK_EQUAL(window.page->samples[0].region, 9);
    CHECK_EQUAL(window.page->samples[0].call, 0);
}

/* Steps */

static void a_step_ends_where_the_next_one_begins(void)
{
    begin(TWO_CHUNKS);
    for (uint64_t step = 0; step < 3000; step++)
        samples_step(3, 100 + step * 10);
    CHECK_EQUAL(the_ledger.header->steps, 3000);
    uint64_t count = 0;
    FOR_EACH_PAGE(page)
    for (uint64_t i = 0; page->owner == LEDGER_OF_STEPS && i < LEDGER_PAGE_SAMPLES; i++) {
        const struct ledger_sample *step = &page->samples[i];
        uint64_t number = page->first + i;
        if (!step->end_ticks)
            continue;
        CHECK_EQUAL(step->start_ticks, 100 + number * 10);
        CHECK_EQUAL(step->end_ticks, number == 2999 ? step->start_ticks : step->start_ticks + 10);
        CHECK_EQUAL(step->thread, 3);
        count++;
    }
    CHECK_EQUAL(the_ledger.header->step_level, 1);
    CHECK(count >= LEDGER_BLOCK_SAMPLES + 3000 - 2 * LEDGER_BLOCK_SAMPLES);
}

/* Kills */

static void fill_and_turn(void)
{
    collectives(BUSY, 3 * LEDGER_PAGE_SAMPLES);
}

static void look_for_strangers(pid_t child)
{
    (void)child;
    made[BUSY] = UINT32_MAX; /* the maximum: the child counts on its own */
    static uint8_t has[1 << 20];
    memset(has, 0, sizeof has);
    struct retained retained = {has, 0, sizeof has - 1, true};
    FOR_EACH_PAGE(page)
    look_at_page(&retained, page, BUSY);
    CHECK(retained.is_sound);
}

static void a_kill_while_pages_change_hands_leaves_no_call_in_a_wrong_place(void)
{
    begin(LEDGER_CHUNK_BYTES);
    communicator(BUSY);
    collectives(BUSY, 2 * LEDGER_BLOCK_SAMPLES - LEDGER_PAGE_SAMPLES);
    CHECK(entries[BUSY]->sample_level > 0); /* another page must be taken from another block */
    made[BUSY] = 4 * LEDGER_BLOCK_SAMPLES - LEDGER_PAGE_SAMPLES;
    CHECK(stepping(PTRACE_SINGLESTEP, fill_and_turn, look_for_strangers) > 1000);
}

static const struct unit_test TESTS[] = {
    TEST(all_calls_are_sampled_while_there_is_room),
    TEST(a_full_log_retains_every_second_block_then_every_fourth),
    TEST(a_quiet_communicator_loses_nothing_to_a_busy_one),
    TEST(whoever_holds_most_gives_up_most),
    TEST(an_open_page_is_not_taken),
    TEST(ranks_whose_logs_fill_at_different_times_have_the_same_calls_in_common),
    TEST(calls_in_flight_keep_their_page),
    TEST(communicators_without_end_leave_room_for_later_ones),
    TEST(communicators_beyond_the_room_have_no_samples_and_harm_no_other),
    TEST(room_is_looked_for_once_a_level_however_many_calls_there_are),
    TEST(of_many_communicators_each_has_all_that_its_level_says),
    TEST(most_of_many_communicators_have_samples),
    TEST(a_late_communicator_is_sampled),
    TEST(a_communicator_with_few_and_long_collectives_retains_its_samples),
    TEST(a_communicator_with_few_and_short_collectives_loses_its_samples),
    TEST(quiet_communicators_do_not_fill_the_log_with_open_pages),
    TEST(ranks_with_the_same_calls_sample_the_same),
    TEST(without_a_log_levels_show_that_nothing_is_sampled),
    TEST(without_room_nothing_is_sampled),
    TEST(calls_are_sampled_in_the_window_in_which_they_begin),
    TEST(a_full_log_retains_windows_at_multiples_of_its_level),
    TEST(a_window_with_too_many_calls_says_from_when_on_they_are_missing),
    TEST(a_window_without_room_says_so),
    TEST(a_region_is_sampled_in_the_window_in_which_it_ends),
    TEST(a_step_ends_where_the_next_one_begins),
    TEST(a_kill_while_pages_change_hands_leaves_no_call_in_a_wrong_place),
};

int main(void)
{
    return UNIT_RUN(TESTS);
}
