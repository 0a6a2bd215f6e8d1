/* The thread takes no lock that the job may wait for; it sleeps until its next duty or until it is told to go:
 *
 *     the job                        the keeper
 *     keeper_begin ----------------> copy, sleep, copy, switch, sleep ...
 *     keeper_end: told = GO -------> (copy once more) gone = 1, leaves
 *            waits for gone <------------------------
 *
 * The wait has an end: one that hangs on a file system that does not answer is left behind. Forked children have no keeper. */
#include "keeper.h"

#include "call.h"
#include "clock.h"
#include "ledger/copy.h"
#include "ledger/ledger.h"
#include "own_thread.h"
#include "settings.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#define SECOND_NS INT64_C(1000000000)

enum { STAY, GO, COPY_AND_GO }; /* what it is told */
enum { PATIENCE_S = 5 };

static struct {
    char copy[PATH_MAX]; /* "": nothing to copy */
    void (*complain)(const char *line);
    bool has_thread, is_copied;
    int64_t begin_ns, end_ns, copy_ns; /* when what is to be done; INT64_MAX: never */
    int64_t copy_every_ns;
    uint32_t told, gone;
} keeper;

/* An old copy stays where a new one cannot be made. */
static void copy(void)
{
    char line[2 * PATH_MAX + 256];
    int error = *keeper.copy ? ledger_copy(keeper.copy) : ENOENT;
    keeper.is_copied = error == 0;
    if (!error || error == EAGAIN || !*keeper.copy || !keeper.complain)
        return;
    snprintf(line, sizeof line, "cannot copy the ledger to %s: %s; what is measured is in %s alone", keeper.copy, strerror(error),
             the_ledger.path);
    keeper.complain(line);
    keeper.complain = NULL; /* once */
}

/* `*due_ns` has come; it comes again after `every_ns`, or never. What was missed meanwhile is left out. */
static bool is_due(int64_t *due_ns, int64_t every_ns)
{
    int64_t now_ns = clock_monotonic_ns();
    if (now_ns < *due_ns)
        return false;
    *due_ns = every_ns == INT64_MAX ? INT64_MAX : *due_ns + ((now_ns - *due_ns) / every_ns + 1) * every_ns;
    return true;
}

static int64_t next_duty_ns(void)
{
    int64_t next_ns = keeper.begin_ns < keeper.end_ns ? keeper.begin_ns : keeper.end_ns;
    return next_ns < keeper.copy_ns ? next_ns : keeper.copy_ns;
}

static void *keep(void *unused)
{
    prctl(PR_SET_NAME, "commprof");
    copy();
    while (__atomic_load_n(&keeper.told, __ATOMIC_ACQUIRE) == STAY) {
        if (is_due(&keeper.begin_ns, INT64_MAX))
            call_switch(true);
        if (is_due(&keeper.end_ns, INT64_MAX))
            call_switch(false);
        if (is_due(&keeper.copy_ns, keeper.copy_every_ns))
            copy();
        own_thread_wait_while(&keeper.told, STAY, next_duty_ns());
    }
    if (__atomic_load_n(&keeper.told, __ATOMIC_ACQUIRE) == COPY_AND_GO)
        copy();
    own_thread_tell(&keeper.gone, 1);
    return unused;
}

static int64_t seconds_from(int64_t now_ns, setting_number seconds)
{
    static const setting_number A_CENTURY_S = 3155760000;
    return seconds ? now_ns + (int64_t)(seconds < A_CENTURY_S ? seconds : A_CENTURY_S) * SECOND_NS : INT64_MAX;
}

/* Ranks copy at different moments: multiples of the golden section are spread evenly, however many there are. */
static int64_t part_of(int64_t period_ns, int world_rank)
{
    return (int64_t)((double)((uint32_t)world_rank * UINT32_C(2654435769)) / 4294967296.0 * (double)period_ns);
}

static void plan(int world_rank)
{
    int64_t now_ns = clock_monotonic_ns();
    keeper.begin_ns = seconds_from(now_ns, settings.begin_s);
    keeper.end_ns = seconds_from(now_ns, settings.end_s);
    keeper.copy_every_ns = keeper.copy_ns = INT64_MAX;
    if (*keeper.copy && settings.copy_s) {
        keeper.copy_every_ns = seconds_from(0, settings.copy_s);
        keeper.copy_ns = now_ns + part_of(keeper.copy_every_ns, world_rank);
    }
}

void keeper_begin(const char *to, int world_rank, void (*complain)(const char *line))
{
    char line[256];
    snprintf(keeper.copy, sizeof keeper.copy, "%s", to ? to : "");
    keeper.complain = complain;
    plan(world_rank);
    if (settings.begin_s)
        call_switch(false);
    if (!to && next_duty_ns() == INT64_MAX)
        return;
    int error = own_thread_start(keep, NULL);
    keeper.has_thread = error == 0;
    if (!error)
        return;
    snprintf(line, sizeof line, "cannot start a thread: %s; %s", strerror(error),
             to ? "the ledger is copied at the beginning and the end alone" : "the time window does not hold");
    complain(line);
    if (settings.begin_s)
        call_switch(settings.start);
    copy();
}

bool keeper_end(bool last_copy)
{
    if (!keeper.has_thread) {
        keeper.is_copied = false;
        if (last_copy)
            copy();
        return keeper.is_copied;
    }
    int64_t until_ns = clock_monotonic_ns() + PATIENCE_S * SECOND_NS;
    own_thread_tell(&keeper.told, last_copy ? COPY_AND_GO : GO);
    while (!__atomic_load_n(&keeper.gone, __ATOMIC_ACQUIRE) && clock_monotonic_ns() < until_ns)
        own_thread_wait_while(&keeper.gone, 0, until_ns);
    return __atomic_load_n(&keeper.gone, __ATOMIC_ACQUIRE) && last_copy && keeper.is_copied;
}
