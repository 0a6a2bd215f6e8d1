#include "cupti/cupti_clock.h"

#include "base/clock.h"
#include "unit.h"

#include <inttypes.h>

/* CUPTI's clock, as the test sets it: units per nanosecond of CLOCK_MONOTONIC, and offset. */
static int64_t ahead = 1700000000000000000;
static uint64_t rate = 1;

static uint64_t theirs_at(int64_t ours_ns)
{
    return (uint64_t)ours_ns * rate + (uint64_t)ahead;
}

static int their_clock(uint64_t *now)
{
    *now = theirs_at(clock_monotonic_ns());
    return 0;
}

static uint64_t another_clients_clock(void)
{
    return theirs_at(clock_monotonic_ns());
}

/* Two pairs are distinct only if time has passed between them. */
static void let_pass(int64_t ns)
{
    for (int64_t until_ns = clock_monotonic_ns() + ns; clock_monotonic_ns() < until_ns;) {
    }
}

static void check_near(int64_t actual_ns, int64_t expected_ns, int64_t tolerance_ns)
{
    if (actual_ns - expected_ns > tolerance_ns || expected_ns - actual_ns > tolerance_ns)
        fprintf(stderr, "%" PRId64 " ns off\n", actual_ns - expected_ns);
    CHECK(actual_ns - expected_ns <= tolerance_ns && expected_ns - actual_ns <= tolerance_ns);
}

/* Error allowed for a reading on a shared machine. */
enum { READING_NS = 2000000, STEP_NS = 500000000 };

TEST(after_a_clock_step_timestamps_use_the_nearer_pair_and_the_error_is_the_step)
{
    cupti_clock_begin(their_clock);
    cupti_clock_pair();
    int64_t before_ns = clock_monotonic_ns();
    uint64_t moment_before = theirs_at(before_ns);
    let_pass(20000000);
    ahead += STEP_NS;
    int64_t after_ns = clock_monotonic_ns();
    cupti_clock_pair();
    check_near(cupti_clock_ns(moment_before), before_ns, READING_NS);
    check_near(cupti_clock_ns(moment_before + 8000000), before_ns + 8000000, READING_NS);
    check_near(cupti_clock_ns(theirs_at(after_ns)), after_ns, READING_NS);
    uint32_t error_ns = cupti_clock_error_ns();
    CHECK(error_ns >= STEP_NS - READING_NS && error_ns < STEP_NS + READING_NS);
}

TEST(another_clients_clock_may_count_in_any_unit)
{
    cupti_clock_begin(their_clock);
    cupti_clock_pair();
    rate = 3;
    ahead = 77;
    cupti_clock_is_foreign(another_clients_clock);
    cupti_clock_pair();
    int64_t first_ns = clock_monotonic_ns();
    let_pass(300000000);
    cupti_clock_pair();
    int64_t last_ns = clock_monotonic_ns();
    check_near(cupti_clock_ns(theirs_at(first_ns)), first_ns, READING_NS);
    check_near(cupti_clock_ns(theirs_at((first_ns + last_ns) / 2)), (first_ns + last_ns) / 2,
               READING_NS);
    check_near(cupti_clock_ns(theirs_at(last_ns + 10000000)), last_ns + 10000000, READING_NS);
}

TEST(many_pairs_forget_the_oldest)
{
    cupti_clock_begin(their_clock);
    for (unsigned i = 0; i < 1000; i++) {
        ahead += i % 2 ? STEP_NS : -STEP_NS; /* a pair each */
        cupti_clock_pair();
    }
    int64_t now_ns = clock_monotonic_ns();
    check_near(cupti_clock_ns(theirs_at(now_ns)), now_ns, READING_NS);
}
