/* NTP slews both kernel clocks alike, so they run at the same rate and the line between two pairs
 * has slope 1, except after a step. The time of the step is unknown: timestamps are then converted
 * from the nearer pair and may be off by the step. */
#include "cupti_clock.h"

#include "base/clock.h"

#include <stddef.h>
#include <string.h>

enum {
    PAIRS = 128, /* together with APART_NS: records may be half a minute old */
    READINGS = 5,
    SLEWED_PPM =
        1000, /* CLOCK_MONOTONIC_RAW, another clock that CUPTI may use, drifts by up to 500 ppm */
    SLACK_NS = 20000,
};
#define APART_NS INT64_C(250000000)

struct pair {
    uint64_t theirs;
    int64_t ours_ns, width_ns; /* how long the reading took */
    int64_t step_ns;           /* step of their clock since the pair before; 0: none */
};

static struct {
    int (*now)(uint64_t *ns);
    uint64_t (*foreign)(void);
    uint64_t (*foreign_paired)(void); /* the clock that the pairs were read from */
    struct pair pairs[PAIRS];         /* the oldest first */
    unsigned count;
    int64_t error_ns; /* largest error of the conversions */
} state;

void cupti_clock_begin(int (*now)(uint64_t *ns))
{
    state.now = now;
    state.count = 0;
    state.error_ns = 0;
}

void cupti_clock_is_foreign(uint64_t (*now)(void))
{
    __atomic_store_n(&state.foreign, now, __ATOMIC_RELEASE);
}

static bool read_theirs(uint64_t *theirs)
{
    if (state.foreign_paired)
        *theirs = state.foreign_paired();
    return state.foreign_paired || (state.now && state.now(theirs) == 0);
}

/* Takes the shortest of several readings, which is the least likely to be interrupted. */
static struct pair read_pair(void)
{
    struct pair best = {.width_ns = INT64_MAX};
    for (int i = 0; i < READINGS; i++) {
        uint64_t theirs;
        int64_t before_ns = clock_monotonic_ns();
        bool was_read = read_theirs(&theirs);
        int64_t after_ns = clock_monotonic_ns();
        if (was_read && after_ns - before_ns < best.width_ns)
            best = (struct pair){theirs, before_ns + (after_ns - before_ns) / 2,
                                 after_ns - before_ns, 0};
    }
    return best;
}

/* The step of their clock between two pairs. For another client's clock, in any unit, steps cannot
 * be detected. */
static int64_t step_between(const struct pair *before, const struct pair *after)
{
    int64_t ours_ns = after->ours_ns - before->ours_ns;
    int64_t ahead_ns = (int64_t)(after->theirs - before->theirs) - ours_ns;
    int64_t ahead_at_most_ns =
        ours_ns / 1000000 * SLEWED_PPM + before->width_ns + after->width_ns + SLACK_NS;
    bool is_step = ahead_ns > ahead_at_most_ns || ahead_ns < -ahead_at_most_ns;
    return is_step && !state.foreign_paired ? ahead_ns : 0;
}

/* True if the new pair replaces the last one: both are close to the one before. */
static bool replaces_the_last(const struct pair *fresh)
{
    const struct pair *last = &state.pairs[state.count - 1];
    return state.count >= 2 && !fresh->step_ns && !last->step_ns &&
           fresh->ours_ns - last[-1].ours_ns < APART_NS;
}

static void keep(struct pair pair)
{
    if (state.count)
        pair.step_ns = step_between(&state.pairs[state.count - 1], &pair);
    if (state.count && replaces_the_last(&pair))
        state.count--;
    if (state.count == PAIRS)
        memmove(state.pairs, state.pairs + 1, --state.count * sizeof *state.pairs);
    state.pairs[state.count++] = pair;
}

void cupti_clock_pair(void)
{
    uint64_t (*foreign)(void) = __atomic_load_n(&state.foreign, __ATOMIC_ACQUIRE);
    if (foreign != state.foreign_paired)
        state.count = 0;
    state.foreign_paired = foreign;
    struct pair pair = read_pair();
    if (pair.width_ns != INT64_MAX)
        keep(pair);
}

bool cupti_clock_last(uint64_t *theirs, int64_t *ours_ns)
{
    if (state.count == 0)
        return false;
    *theirs = state.pairs[state.count - 1].theirs;
    *ours_ns = state.pairs[state.count - 1].ours_ns;
    return true;
}

static int64_t since(uint64_t timestamp, const struct pair *pair)
{
    return (int64_t)(timestamp - pair->theirs);
}

static int64_t magnitude(int64_t value)
{
    return value < 0 ? -value : value;
}

static int64_t along(uint64_t timestamp, const struct pair *from, const struct pair *to)
{
    int64_t theirs = (int64_t)(to->theirs - from->theirs);
    if (theirs <= 0)
        return from->ours_ns + since(timestamp, from);
    return from->ours_ns +
           (int64_t)((__int128)since(timestamp, from) * (to->ours_ns - from->ours_ns) / theirs);
}

static void note_error(int64_t error_ns)
{
    state.error_ns = error_ns > state.error_ns ? error_ns : state.error_ns;
}

/* Converts a timestamp between two pairs. */
static int64_t within(uint64_t timestamp, const struct pair *from, const struct pair *to)
{
    note_error(magnitude(to->step_ns) +
               (from->width_ns > to->width_ns ? from->width_ns : to->width_ns));
    if (!to->step_ns)
        return along(timestamp, from, to);
    const struct pair *near =
        magnitude(since(timestamp, from)) < magnitude(since(timestamp, to)) ? from : to;
    return near->ours_ns + since(timestamp, near);
}

/* Converts a timestamp before or after all pairs: at the rate of CLOCK_MONOTONIC, or for another
 * client's clock at the mean rate from the first pair to the last. */
static int64_t outside(uint64_t timestamp, const struct pair *near)
{
    const struct pair *first = &state.pairs[0], *last = &state.pairs[state.count - 1];
    note_error(near->width_ns);
    if (!state.foreign_paired || first == last)
        return near->ours_ns + since(timestamp, near);
    return near->ours_ns + along(timestamp, first, last) - along(near->theirs, first, last);
}

int64_t cupti_clock_ns(uint64_t timestamp)
{
    if (state.count == 0)
        return (int64_t)timestamp;
    for (unsigned i = state.count; i-- > 0;)
        if (since(timestamp, &state.pairs[i]) >= 0)
            return i + 1 < state.count ? within(timestamp, &state.pairs[i], &state.pairs[i + 1])
                                       : outside(timestamp, &state.pairs[i]);
    return outside(timestamp, &state.pairs[0]);
}

uint32_t cupti_clock_error_ns(void)
{
    int64_t error_ns = state.error_ns;
    state.error_ns = 0;
    return state.count == 0 || error_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)error_ns;
}
