/* Timestamps at the lowest cost: the processor's invariant counter if the kernel relies on it too,
 * else clock_gettime. A timestamp is taken in ticks (clock_ticks) and converted to nanoseconds
 * later. All nanoseconds are on the time axis of CLOCK_MONOTONIC, so timestamps of the processes of
 * one host can be compared. */
#ifndef COMMPROF_CLOCK_H
#define COMMPROF_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* CLOCK_COUNTER uses the counter even if neither the processor nor the kernel says that it is
 * reliable. */
enum clock_kind { CLOCK_AUTO, CLOCK_COUNTER, CLOCK_GETTIME };

struct clock {
    bool counter;        /* ticks are the processor's counter; else nanoseconds */
    uint64_t scale;      /* nanoseconds per tick, times 2^32 */
    uint64_t base_ticks; /* one timestamp in ticks ... */
    int64_t base_ns;     /* ... and the same on CLOCK_MONOTONIC */
};
extern struct clock the_clock;

/* Begin measuring how long a tick is. Until clock_calibrate, conversions assume 1 tick = 1 ns, so
 * their results must not be stored. */
void clock_begin(enum clock_kind wanted);

/* End the measurement that clock_begin began. Waits until it has lasted 2 ms; MPI_Init normally
 * takes longer. */
void clock_calibrate(void);

/* The error of the scale against CLOCK_MONOTONIC over the whole run, in parts per billion. */
int64_t clock_error_ppb(void);

const char *clock_name(void);
/* The mean length of a tick since clock_begin, in the unit of the_clock.scale; more accurate than
 * that in a long run. */
uint64_t clock_scale_so_far(void);

/* The current time in ticks and on CLOCK_MONOTONIC, read as close together as possible. */
void clock_pair(uint64_t *ticks, int64_t *ns);

int64_t clock_monotonic_ns(void);
int64_t clock_unix_ns(void);
/* The wall clock minus CLOCK_MONOTONIC. */
int64_t clock_unix_shift_ns(void);

static inline uint64_t clock_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

static inline uint64_t clock_ticks(void)
{
    return __builtin_expect(the_clock.counter, 1) ? clock_counter()
                                                  : (uint64_t)clock_monotonic_ns();
}

static inline uint64_t clock_duration_ns(uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)ticks * the_clock.scale) >> 32);
}

static inline uint64_t clock_ticks_by(const struct clock *clock, int64_t ns)
{
    return clock->base_ticks + (uint64_t)((__int128)(ns - clock->base_ns) * ((__int128)1 << 32) /
                                          (__int128)clock->scale);
}

static inline int64_t clock_ns_by(const struct clock *clock, uint64_t ticks)
{
    return clock->base_ns +
           (int64_t)(((__int128)(int64_t)(ticks - clock->base_ticks) * (__int128)clock->scale) >>
                     32);
}

static inline uint64_t clock_ticks_at(int64_t ns)
{
    return clock_ticks_by(&the_clock, ns);
}

static inline int64_t clock_ns(uint64_t ticks)
{
    return clock_ns_by(&the_clock, ticks);
}

/* Converts between ticks and recent timestamps of others on CLOCK_MONOTONIC (GPU records, at most
 * some seconds old). the_clock's scale is some parts per million off, which adds up over a run, so
 * the GPU thread refits this line periodically (clock_realign). */
extern struct clock clock_of_late;
void clock_realign(void);

static inline uint64_t clock_ticks_of_late(int64_t ns)
{
    return clock_ticks_by(&clock_of_late, ns);
}

static inline int64_t clock_ns_of_late(uint64_t ticks)
{
    return clock_ns_by(&clock_of_late, ticks);
}

#endif
