#include "windows.h"

#include "base/settings.h"
#include "ledger/ledger_format.h"

#define SECOND_NS INT64_C(1000000000)

enum { LATER_S = 60 }; /* after the first use of a GPU: a window then, whatever the job does */
enum {
    WHOLE_STEPS = 2,
    MOST_LENGTHS = 10
}; /* whole steps that a window should hold; how many times its length it may grow to hold them */

static int64_t on_ns(void)
{
    return settings.gpu_on_s ? (int64_t)settings.gpu_on_s * SECOND_NS : SECOND_NS;
}

static int64_t every_ns(void)
{
    return (int64_t)settings.gpu_every_s * SECOND_NS;
}

/* Time since the last multiple of the period. */
static int64_t in_period_ns(int64_t unix_ns)
{
    return unix_ns % every_ns();
}

/* Whether it is time for a window after the first. */
static bool is_in_period(int64_t unix_ns)
{
    return settings.gpu_every_s != SETTING_ONCE && in_period_ns(unix_ns) < on_ns();
}

static uint32_t part_of(const struct windows *windows, const struct windows_now *now)
{
    int64_t since_ns = windows->first_use_ns ? now->monotonic_ns - windows->first_use_ns : 0;
    if (settings.gpu_every_s != SETTING_ONCE)
        return LEDGER_PART_ANY;
    if (now->repeats || now->steps > WHOLE_STEPS)
        return LEDGER_PART_STEPS;
    return since_ns >= LATER_S * SECOND_NS ? LEDGER_PART_LATER : LEDGER_PART_FIRST_USE;
}

bool windows_is_better(const struct windows *windows, const struct windows_now *now)
{
    return windows->first_use_ns && part_of(windows, now) > windows->part;
}

bool windows_wait_for_steps(const struct windows *windows)
{
    return settings.gpu_every_s == SETTING_ONCE && windows->part < LEDGER_PART_STEPS;
}

void windows_repeat(struct windows *windows)
{
    windows->end_ns = 0;
}

bool windows_is_due(const struct windows *windows, const struct windows_now *now)
{
    if (settings.gpu_every_s == 0 || !windows->end_ns || now->monotonic_ns < windows->end_ns)
        return true;
    return windows_is_better(windows, now) || is_in_period(now->unix_ns);
}

static int64_t to_multiple_ns(int64_t ns, int64_t of_ns)
{
    return (of_ns - ns % of_ns) % of_ns;
}

/* The first window by default goes on until there is a better one. */
static int64_t length_ns(const struct windows *windows, const struct windows_now *now,
                         uint32_t part)
{
    if (part == LEDGER_PART_FIRST_USE)
        return windows->first_use_ns + LATER_S * SECOND_NS - now->monotonic_ns;
    if (part != LEDGER_PART_ANY || !windows->end_ns)
        return on_ns() + to_multiple_ns(now->unix_ns + on_ns(), on_ns());
    return on_ns() - in_period_ns(now->unix_ns);
}

/* A window that resumes after another tool has traced keeps its end. */
void windows_begin(struct windows *windows, const struct windows_now *now)
{
    uint32_t part = part_of(windows, now);
    part = part > windows->part ? part : windows->part;
    bool goes_on = windows->end_ns && now->monotonic_ns < windows->end_ns && part == windows->part;
    if (goes_on || settings.gpu_every_s == 0)
        return;
    if (!windows->first_use_ns)
        windows->first_use_ns = now->monotonic_ns;
    windows->begin_ns = now->monotonic_ns;
    windows->end_ns = now->monotonic_ns + length_ns(windows, now, part);
    windows->first_step = now->steps;
    windows->part = part;
}

/* True also if no steps are marked. Two whole steps have three begins. */
static bool holds_enough(const struct windows *windows, uint64_t steps)
{
    return steps == 0 || steps - windows->first_step > WHOLE_STEPS;
}

/* A window that ends where the next begins is extended. */
bool windows_is_over(struct windows *windows, const struct windows_now *now)
{
    if (settings.gpu_every_s == 0 || now->monotonic_ns < windows->end_ns)
        return false;
    bool may_grow = windows->end_ns - windows->begin_ns < MOST_LENGTHS * on_ns();
    if (may_grow && !holds_enough(windows, now->steps))
        windows->end_ns += on_ns();
    else if (is_in_period(now->unix_ns))
        windows->end_ns = now->monotonic_ns + on_ns() - in_period_ns(now->unix_ns);
    return now->monotonic_ns >= windows->end_ns;
}
