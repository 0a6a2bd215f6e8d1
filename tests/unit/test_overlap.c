#include "gpu/overlap.h"

#include "unit.h"

enum { SPAN = 200, MOST_INTERVALS = 64, ROUNDS = UNIT_SANITIZED ? 3000 : 30000 };

struct interval {
    int64_t begin_ns, end_ns;
    enum ledger_busy state;
};

static struct overlap overlap;
static uint64_t sums[LEDGER_BUSY_STATES];

static uint64_t sum_of_all(const uint64_t *states)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < LEDGER_BUSY_STATES; i++)
        sum += states[i];
    return sum;
}

static void begin_at(int64_t ns)
{
    memset(sums, 0, sizeof sums);
    overlap = (struct overlap)OVERLAP_NONE;
    overlap_begin(&overlap, sums, ns);
}

static void add(enum ledger_busy state, int64_t begin_ns, int64_t end_ns)
{
    CHECK(overlap_add(&overlap, state, begin_ns, end_ns));
}

TEST(an_interval_too_many_is_refused_and_the_others_count)
{
    begin_at(0);
    for (int i = 0; i < OVERLAP_MOST_RUNNING; i++)
        add(LEDGER_COMPUTING, i, 10000 - i % 7);
    CHECK(!overlap_add(&overlap, LEDGER_COPYING, 5000, 6000));
    CHECK(overlap_add(&overlap, LEDGER_COPYING, 10000, 10010));
    overlap_settle(&overlap, 20000);
    CHECK_EQUAL(overlap.running, 0);
    CHECK_EQUAL(sums[LEDGER_COMPUTING], 10000);
    CHECK_EQUAL(sums[LEDGER_COPYING], 10);
    CHECK_EQUAL(sum_of_all(sums), 20000);
}

/* Comparison with a reference that counts every nanosecond. */

static int by_begin(const void *a, const void *b)
{
    int64_t first = ((const struct interval *)a)->begin_ns,
            second = ((const struct interval *)b)->begin_ns;
    return (first > second) - (first < second);
}

static void make_intervals(struct interval *intervals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t begin_ns = (int64_t)unit_random_below(SPAN),
                longest = 1 + (int64_t)unit_random_below(SPAN);
        int64_t end_ns =
            begin_ns + (int64_t)unit_random_below((uint64_t)longest); /* some have length 0 */
        intervals[i] = (struct interval){begin_ns, end_ns, 1u << unit_random_below(4)};
    }
    qsort(intervals, count, sizeof *intervals, by_begin);
}

static void look_at_each_nanosecond(const struct interval *intervals, size_t count, int64_t from_ns,
                                    int64_t until_ns, uint64_t *expected)
{
    for (int64_t ns = from_ns; ns < until_ns; ns++) {
        unsigned state = 0;
        for (size_t i = 0; i < count; i++)
            if (intervals[i].begin_ns <= ns && ns < intervals[i].end_ns)
                state |= intervals[i].state;
        expected[state]++;
    }
}

static void check_sums(const uint64_t *expected)
{
    for (unsigned i = 0; i < LEDGER_BUSY_STATES; i++)
        CHECK_EQUAL(sums[i], expected[i]);
}

/* Settles at intermediate times before which no later interval begins. */
TEST(any_intervals_add_up_as_the_reference_does)
{
    struct interval intervals[MOST_INTERVALS];
    for (int round = 0; round < ROUNDS; round++) {
        size_t count = unit_random_below(MOST_INTERVALS);
        int64_t from_ns = (int64_t)unit_random_below(SPAN),
                until_ns = from_ns + (int64_t)unit_random_below(2 * SPAN);
        uint64_t expected[LEDGER_BUSY_STATES] = {0};
        make_intervals(intervals, count);
        look_at_each_nanosecond(intervals, count, from_ns, until_ns, expected);
        begin_at(from_ns);
        for (size_t i = 0; i < count && intervals[i].begin_ns < until_ns; i++) {
            if (unit_random_below(3) == 0)
                overlap_settle(&overlap, intervals[i].begin_ns);
            add(intervals[i].state, intervals[i].begin_ns, intervals[i].end_ns);
        }
        overlap_end(&overlap, until_ns);
        check_sums(expected);
        CHECK_EQUAL(sum_of_all(sums), until_ns - from_ns);
    }
}

/* An interval that spans several windows counts in each with its part. */
TEST(many_windows_add_up_as_the_reference_does)
{
    enum { WINDOWS = 8, WINDOW = 40, ON = 25 };
    struct interval intervals[MOST_INTERVALS];
    for (int round = 0; round < ROUNDS / 10; round++) {
        size_t count = unit_random_below(MOST_INTERVALS);
        uint64_t expected[LEDGER_BUSY_STATES] = {0};
        make_intervals(intervals, count);
        size_t added = 0;
        begin_at(0);
        overlap_end(&overlap, 0);
        for (int64_t window = 0; window < WINDOWS; window++) {
            int64_t from_ns = window * WINDOW, until_ns = from_ns + ON;
            look_at_each_nanosecond(intervals, count, from_ns, until_ns, expected);
            overlap_begin(&overlap, sums, from_ns);
            for (; added < count && intervals[added].begin_ns < until_ns; added++)
                add(intervals[added].state, intervals[added].begin_ns, intervals[added].end_ns);
            overlap_end(&overlap, until_ns);
            overlap_settle(&overlap, until_ns + (WINDOW - ON) / 2); /* between windows */
        }
        check_sums(expected);
        CHECK_EQUAL(sum_of_all(sums), WINDOWS * ON);
    }
}
