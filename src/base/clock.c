/* The counter is used only if it is invariant (same rate in all power states, on all cores) and the
 * kernel itself uses it as its clock source: a kernel that measures an unstable counter switches to
 * another source, and so do we.
 *
 * The counter's rate is measured against CLOCK_MONOTONIC across MPI_Init, which takes long enough
 * for an error below 10 ppm. At the end both clocks are compared over the whole run, which gives
 * the actual error. */
#include "clock.h"

#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

struct clock the_clock = {.counter = false, .scale = 1ull << 32};
struct clock clock_of_late = {.counter = false, .scale = 1ull << 32};

struct pair {
    uint64_t ticks;
    int64_t ns;
};

int64_t clock_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_unix_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Uses the fastest of several readings: an interruption between the two clocks would shift the
 * process's wall-clock times by its length. */
int64_t clock_unix_shift_ns(void)
{
    int64_t shift_ns = 0, least_ns = INT64_MAX;
    for (int i = 0; i < 8; i++) {
        int64_t before_ns = clock_monotonic_ns();
        int64_t unix_ns = clock_unix_ns();
        int64_t span_ns = clock_monotonic_ns() - before_ns;
        if (span_ns < least_ns) {
            least_ns = span_ns;
            shift_ns = unix_ns - before_ns - span_ns / 2;
        }
    }
    return shift_ns;
}

/* Reads both clocks at one time. Uses the fastest of several readings, the one least likely to have
 * been interrupted. */
static struct pair pair_now(void)
{
    struct pair best = {0, 0};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        uint64_t before = clock_counter();
        int64_t ns = clock_monotonic_ns();
        uint64_t after = clock_counter();
        if (after - before < least) {
            least = after - before;
            best = (struct pair){before + (after - before) / 2, ns};
        }
    }
    return best;
}

static bool kernel_trusts_counter(void)
{
    char source[64] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (!file)
        return true; /* no sysfs (some containers): only the processor can be asked */
    if (!fgets(source, sizeof source, file))
        source[0] = '\0';
    fclose(file);
    return strstr(source, "tsc") || strstr(source, "kvm-clock") ||
           strstr(source, "arch_sys_counter");
}

#if defined(__x86_64__) || defined(__aarch64__)
enum { HAS_COUNTER = true };
#else
enum { HAS_COUNTER = false };
#endif

static bool counter_is_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
#elif defined(__aarch64__)
    return true; /* Arm ARM D12: the generic timer has a fixed rate */
#else
    return false;
#endif
}

void clock_begin(enum clock_kind wanted)
{
    bool trusted = wanted == CLOCK_AUTO && counter_is_invariant() && kernel_trusts_counter();
    the_clock.counter = HAS_COUNTER && (wanted == CLOCK_COUNTER || trusted);
    the_clock.scale = 1ull << 32;
    struct pair now = pair_now();
    the_clock.base_ns = now.ns;
    the_clock.base_ticks = the_clock.counter ? now.ticks : (uint64_t)now.ns;
    clock_of_late = the_clock;
}

static uint64_t scale_since_base(struct pair now)
{
    return (uint64_t)(((unsigned __int128)(uint64_t)(now.ns - the_clock.base_ns) << 32) /
                      (now.ticks - the_clock.base_ticks));
}

/* The counter has not moved or has gone backwards: use CLOCK_MONOTONIC instead. */
static void do_without_counter(void)
{
    the_clock = (struct clock){.scale = 1ull << 32,
                               .base_ticks = (uint64_t)the_clock.base_ns,
                               .base_ns = the_clock.base_ns};
}

void clock_calibrate(void)
{
    enum { BASELINE_NS = 2000000 };
    if (!the_clock.counter)
        return;
    while (clock_monotonic_ns() - the_clock.base_ns < BASELINE_NS) {
    }
    struct pair now = pair_now();
    if (now.ticks > the_clock.base_ticks && now.ns > the_clock.base_ns)
        the_clock.scale = scale_since_base(now);
    else
        do_without_counter();
    clock_of_late = the_clock;
}

uint64_t clock_scale_so_far(void)
{
    enum { LONG_ENOUGH_NS = 100000000 }; /* below it, the calibration is as good */
    if (!the_clock.counter)
        return the_clock.scale;
    struct pair now = pair_now();
    bool is_long = now.ticks > the_clock.base_ticks && now.ns - the_clock.base_ns > LONG_ENOUGH_NS;
    return is_long ? scale_since_base(now) : the_clock.scale;
}

void clock_realign(void)
{
    clock_of_late.counter = the_clock.counter;
    clock_of_late.scale = clock_scale_so_far();
    clock_pair(&clock_of_late.base_ticks, &clock_of_late.base_ns);
}

void clock_pair(uint64_t *ticks, int64_t *ns)
{
    struct pair now = pair_now();
    *ticks = the_clock.counter ? now.ticks : (uint64_t)now.ns;
    *ns = now.ns;
}

int64_t clock_error_ppb(void)
{
    if (!the_clock.counter)
        return 0;
    struct pair now = pair_now();
    int64_t elapsed_ns = now.ns - the_clock.base_ns;
    int64_t off_ns = clock_ns(now.ticks) - now.ns;
    return elapsed_ns > 0 ? (int64_t)((__int128)off_ns * 1000000000 / elapsed_ns) : 0;
}

const char *clock_name(void)
{
    return the_clock.counter ? "processor counter" : "clock_gettime";
}
