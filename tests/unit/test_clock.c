#include "base/clock.h"

#include "unit.h"

#include <sys/syscall.h>
#include <unistd.h>

UNIT_ALONE;

enum { CALIBRATION_NS = 20000000, SECOND_NS = 1000000000 };

/* Replaces libc's function: simulates an interruption of one second before this many readings. */
static int interruptions, seconds_interrupted;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long error = syscall(SYS_clock_gettime, clock, now);
    if (interruptions > 0) {
        interruptions--;
        seconds_interrupted++;
    }
    now->tv_sec += seconds_interrupted;
    return (int)error;
}

static void wait_ns(int64_t ns)
{
    int64_t began_ns = clock_monotonic_ns();
    while (clock_monotonic_ns() - began_ns < ns) {
    }
}

/* The same interval on both clocks. The scheduler may interrupt the process between the readings of
 * both, so the best of several intervals is used. */
static double best_ratio_over(int64_t span_ns)
{
    double best = 2;
    for (int i = 0; i < 5; i++) {
        uint64_t ticks = clock_ticks();
        int64_t began_ns = clock_monotonic_ns();
        wait_ns(span_ns);
        uint64_t duration_ns = clock_duration_ns(clock_ticks() - ticks);
        double ratio = (double)duration_ns / (double)(clock_monotonic_ns() - began_ns);
        if ((ratio - 1) * (ratio - 1) < (best - 1) * (best - 1))
            best = ratio;
    }
    return best;
}

TEST(a_calibrated_tick_is_right_to_a_thousandth)
{
    clock_begin(CLOCK_AUTO);
    wait_ns(CALIBRATION_NS);
    clock_calibrate();
    double ratio = best_ratio_over(CALIBRATION_NS);
    CHECK(ratio > 0.999);
    CHECK(ratio < 1.001);
}

TEST(timestamps_lie_on_the_axis_of_clock_monotonic)
{
    clock_begin(CLOCK_AUTO);
    clock_calibrate();
    int64_t before_ns = clock_monotonic_ns();
    int64_t ours_ns = clock_ns(clock_ticks());
    int64_t after_ns = clock_monotonic_ns();
    int64_t error_ns = (after_ns - before_ns) +
                       1000000; /* allows a millisecond for the scale's error since clock_begin */
    CHECK(ours_ns >= before_ns - error_ns);
    CHECK(ours_ns <= after_ns + error_ns);
}

TEST(a_counter_that_does_not_move_or_goes_backwards_is_not_used)
{
    clock_begin(CLOCK_COUNTER);
    if (!the_clock.counter)
        unit_skip("this processor has no invariant counter");
    the_clock.base_ticks = UINT64_MAX;
    clock_calibrate();
    CHECK(!the_clock.counter);
    CHECK_EQUAL(clock_duration_ns(1000), 1000);
    CHECK_EQUAL(clock_ns((uint64_t)the_clock.base_ns + 5), the_clock.base_ns + 5);
}

TEST(the_monotonic_clock_can_be_asked_for)
{
    clock_begin(CLOCK_GETTIME);
    clock_calibrate();
    CHECK(!the_clock.counter);
    CHECK_TEXT(clock_name(), "clock_gettime");
    CHECK_EQUAL(clock_duration_ns(123456789), 123456789);
    CHECK_EQUAL(clock_ns((uint64_t)the_clock.base_ns + 17), the_clock.base_ns + 17);
    CHECK_EQUAL(clock_error_ppb(), 0);
}

TEST(the_error_over_the_run_is_what_the_scale_is_off)
{
    clock_begin(CLOCK_COUNTER);
    if (!the_clock.counter)
        unit_skip("this processor has no invariant counter");
    wait_ns(CALIBRATION_NS);
    clock_calibrate();
    the_clock.scale += the_clock.scale / 100; /* one percent too fast */
    int64_t error_ppb = clock_error_ppb();
    CHECK(error_ppb > 9000000);
    CHECK(error_ppb < 11000000);
}

TEST(an_interruption_between_two_clocks_does_not_date_the_process_wrongly)
{
    int64_t undisturbed_ns = clock_unix_shift_ns();
    interruptions = 2; /* before the first reading, and between it and the second */
    int64_t error_ns = clock_unix_shift_ns() - undisturbed_ns;
    CHECK(error_ns > -SECOND_NS / 4);
    CHECK(error_ns < SECOND_NS / 4);
}
