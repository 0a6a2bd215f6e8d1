/* Time, as cheap as the machine allows: the processor's invariant counter where the kernel trusts it too, clock_gettime
 * elsewhere. A timestamp is taken in ticks (clock_ticks) and turned into nanoseconds later; all nanoseconds lie on the axis
 * of CLOCK_MONOTONIC, so timestamps of the processes of one host can be compared. */
#ifndef COMMPROF_CLOCK_H
#define COMMPROF_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* CLOCK_COUNTER takes the counter even where nobody vouches for it. */
enum clock_kind { CLOCK_AUTO, CLOCK_COUNTER, CLOCK_GETTIME };

struct clock {
    bool counter;        /* ticks are the processor's, else nanoseconds */
    uint64_t scale;      /* nanoseconds per tick, times 2^32 */
    uint64_t base_ticks; /* these ticks ... */
    int64_t base_ns;     /* ... are this moment of CLOCK_MONOTONIC */
};
extern struct clock the_clock;

/* Begin measuring how long a tick is. Until clock_calibrate, durations are taken at 1 tick = 1 ns and must not be kept. */
void clock_begin(enum clock_kind wanted);

/* End the measurement begun by clock_begin; waits until at least 2 ms lie between both, normally MPI_Init has taken longer. */
void clock_calibrate(void);

/* How far the scale was off over the whole run against CLOCK_MONOTONIC, in parts per billion. */
int64_t clock_error_ppb(void);

const char *clock_name(void);
/* How long a tick has been since clock_begin, as the_clock.scale; better than that over a long run. */
uint64_t clock_scale_so_far(void);

/* One moment in ticks and on CLOCK_MONOTONIC, read as close to each other as can be. */
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
    return __builtin_expect(the_clock.counter, 1) ? clock_counter() : (uint64_t)clock_monotonic_ns();
}

static inline uint64_t clock_duration_ns(uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)ticks * the_clock.scale) >> 32);
}

static inline uint64_t clock_ticks_by(const struct clock *clock, int64_t ns)
{
    return clock->base_ticks + (uint64_t)((__int128)(ns - clock->base_ns) * ((__int128)1 << 32) / (__int128)clock->scale);
}

static inline int64_t clock_ns_by(const struct clock *clock, uint64_t ticks)
{
    return clock->base_ns + (int64_t)(((__int128)(int64_t)(ticks - clock->base_ticks) * (__int128)clock->scale) >> 32);
}

static inline uint64_t clock_ticks_at(int64_t ns)
{
    return clock_ticks_by(&the_clock, ns);
}

static inline int64_t clock_ns(uint64_t ticks)
{
    return clock_ns_by(&the_clock, ticks);
}

/* What others have dated on CLOCK_MONOTONIC, some seconds ago at most, lies beside ticks of the same time only on a line that is drawn anew
 * now and then: the scale of the beginning is some parts per million off, and that adds up. GPU thread. */
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
