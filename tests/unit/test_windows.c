#include "gpu/windows.h"

#include "base/settings.h"
#include "unit.h"

#define S INT64_C(1000000000)

static const int64_t BOOTED = 1000 * S; /* the wall clock when the monotonic one was 0 */

static struct windows windows;

static void begin(const char *every_s, const char *on_s)
{
    setenv("COMMPROF_GPU_EVERY_S", every_s, 1);
    setenv("COMMPROF_GPU_ON_S", on_s, 1);
    settings_read(NULL);
    windows = (struct windows){0, 0, 0};
}

static struct windows_now at(int64_t unix_ns, uint64_t steps)
{
    return (struct windows_now){unix_ns - BOOTED, unix_ns, steps};
}

static bool is_due(int64_t unix_ns)
{
    struct windows_now now = at(unix_ns, 0);
    return windows_is_due(&windows, &now);
}

static void open_at(int64_t unix_ns, uint64_t steps)
{
    struct windows_now now = at(unix_ns, steps);
    CHECK(windows_is_due(&windows, &now));
    windows_begin(&windows, &now);
}

static bool is_over(int64_t unix_ns, uint64_t steps)
{
    struct windows_now now = at(unix_ns, steps);
    return windows_is_over(&windows, &now);
}

static void check_end(int64_t unix_ns)
{
    CHECK(!is_over(unix_ns - 1, 0));
    CHECK(is_over(unix_ns, 0));
}

static void one_window_of_ten_to_twenty_seconds_is_the_default(void)
{
    unsetenv("COMMPROF_GPU_EVERY_S");
    unsetenv("COMMPROF_GPU_ON_S");
    settings_read(NULL);
    open_at(2003 * S, 0);
    check_end(2020 * S);
    for (int64_t later = 2020; later < 90000; later++)
        CHECK(!is_due(later * S));
}

static void ranks_that_begin_at_different_times_end_at_once(void)
{
    static const int64_t BEGINS[] = {2000 * S + 1, 2003 * S, 2009 * S, 2010 * S};
    for (unsigned i = 0; i < 4; i++) {
        begin("once", "10");
        open_at(BEGINS[i], 0);
        check_end(2020 * S);
    }
}

static void later_windows_begin_at_multiples_of_the_period_on_every_rank(void)
{
    begin("30", "3");
    open_at(1983 * S, 0);
    check_end(1986 * S);
    CHECK(!is_due(2010 * S - 1));
    CHECK(is_due(2010 * S));
    open_at(2010 * S + S / 10, 0); /* detected slightly late */
    check_end(2013 * S);
    CHECK(!is_due(2013 * S));
    CHECK(is_due(2042 * S));
}

static void a_window_that_ends_where_another_begins_goes_on(void)
{
    begin("20", "10");
    open_at(2001 * S, 0);
    CHECK(!is_over(2020 * S, 0));
    CHECK(!is_over(2030 * S - 1, 0));
    CHECK(is_over(2030 * S, 0));
}

static void every_zero_seconds_is_always(void)
{
    begin("0", "3");
    open_at(2001 * S, 0);
    CHECK(!is_over(9001 * S, 0));
    CHECK(is_due(9001 * S));
}

static void where_steps_are_marked_a_window_holds_two(void)
{
    begin("once", "10");
    open_at(2000 * S, 7);
    CHECK(!is_over(2010 * S, 9)); /* it contains step 8; step 9 has not ended */
    CHECK(!is_over(2015 * S, 10));
    CHECK(is_over(2020 * S, 10)); /* still at a multiple of the period */
}

static void a_window_does_not_wait_for_steps_without_end(void)
{
    begin("once", "10");
    open_at(2000 * S, 7);
    int64_t second = 2000;
    while (!is_over(second * S, 7))
        second++;
    CHECK_EQUAL(second, 2100);
}

static void what_another_tool_interrupts_keeps_its_end(void)
{
    begin("once", "10");
    open_at(2000 * S, 0);
    CHECK(is_due(2006 * S));
    open_at(2006 * S, 0);
    check_end(2010 * S);
}

static void who_sets_the_clock_back_prolongs_nothing(void)
{
    begin("once", "10");
    open_at(2000 * S, 0);
    CHECK(windows_is_over(&windows, &(struct windows_now){2010 * S - BOOTED, 100 * S, 0}));
}

static const struct unit_test TESTS[] = {
    TEST(one_window_of_ten_to_twenty_seconds_is_the_default),
    TEST(ranks_that_begin_at_different_times_end_at_once),
    TEST(later_windows_begin_at_multiples_of_the_period_on_every_rank),
    TEST(a_window_that_ends_where_another_begins_goes_on),
    TEST(every_zero_seconds_is_always),
    TEST(where_steps_are_marked_a_window_holds_two),
    TEST(a_window_does_not_wait_for_steps_without_end),
    TEST(what_another_tool_interrupts_keeps_its_end),
    TEST(who_sets_the_clock_back_prolongs_nothing),
};

int main(void)
{
    return UNIT_RUN(TESTS);
}
