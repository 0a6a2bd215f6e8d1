#include "gpu/windows.h"

#include "base/settings.h"
#include "ledger/ledger_format.h"
#include "unit.h"

#define S INT64_C(1000000000)

static const int64_t BOOTED = 1000 * S; /* the wall clock when the monotonic one was 0 */

static struct windows windows;
static bool repeats;

static void begin(const char *every_s, const char *on_s)
{
    setenv("COMMPROF_GPU_EVERY_S", every_s, 1);
    setenv("COMMPROF_GPU_ON_S", on_s, 1);
    settings_read(NULL);
    windows = (struct windows){.part = LEDGER_PART_ANY};
    repeats = false;
}

static struct windows_now at(int64_t unix_ns, uint64_t steps)
{
    return (struct windows_now){unix_ns - BOOTED, unix_ns, steps, repeats};
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

static bool is_better(int64_t unix_ns, uint64_t steps)
{
    struct windows_now now = at(unix_ns, steps);
    return windows_is_better(&windows, &now);
}

TEST(a_minute_later_there_is_a_window_whatever_the_job_does_until_steps_replace_it)
{
    begin("once", "10");
    open_at(2003 * S, 0);
    CHECK(!is_better(2063 * S - 1, 0));
    CHECK(is_better(2063 * S, 0));
    open_at(2063 * S, 0);
    CHECK_EQUAL(windows.part, LEDGER_PART_LATER);
    check_end(2080 * S);
    CHECK(!is_due(2400 * S));
    repeats = true;
    CHECK(is_due(2401 * S) && is_better(2401 * S, 0));
    open_at(2401 * S, 0);
    check_end(2420 * S);
    CHECK(!is_due(2420 * S));
}

TEST(later_windows_begin_at_multiples_of_the_period_on_every_rank)
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

TEST(a_window_that_ends_where_another_begins_goes_on)
{
    begin("20", "10");
    open_at(2001 * S, 0);
    CHECK(!is_over(2020 * S, 0));
    CHECK(!is_over(2030 * S - 1, 0));
    CHECK(is_over(2030 * S, 0));
}

TEST(where_steps_are_marked_a_window_holds_two)
{
    begin("once", "10");
    open_at(1990 * S, 0);
    open_at(2000 * S, 7);
    CHECK(!is_over(2010 * S, 9)); /* it contains step 8; step 9 has not ended */
    CHECK(!is_over(2015 * S, 10));
    CHECK(is_over(2020 * S, 10)); /* still at a multiple of the period */
}

TEST(a_window_does_not_wait_for_steps_without_end)
{
    begin("once", "10");
    open_at(1990 * S, 0);
    open_at(2000 * S, 7);
    int64_t second = 2000;
    while (!is_over(second * S, 7))
        second++;
    CHECK_EQUAL(second, 2100);
}

TEST(what_another_tool_interrupts_keeps_its_end)
{
    begin("once", "10");
    repeats = true;
    open_at(2000 * S, 0);
    CHECK(is_due(2006 * S));
    open_at(2006 * S, 0);
    check_end(2010 * S);
}

TEST(marked_steps_are_steps)
{
    begin("once", "10");
    open_at(2003 * S, 0);
    CHECK(!is_better(2010 * S, 2)); /* the second one has not ended */
    CHECK(is_better(2010 * S, 3));
}
