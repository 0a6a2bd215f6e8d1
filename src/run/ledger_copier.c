/* While it copies, the thread holds no lock that the job may wait for; it sleeps until its next
 * action is due or until it must exit:
 *
 *     the job                        the ledger copier
 *     ledger_copier_begin ----------------> copy, sleep, copy, switch, sleep ...
 *     ledger_copier_end: order = GO -------> (copy once more) gone = 1, exits
 *            waits for gone <------------------------
 *
 * The wait is limited: a thread that hangs on an unresponsive file system is abandoned. Forked
 * children have no copier. */
#include "ledger_copier.h"

#include "base/clock.h"
#include "base/filesystems.h"
#include "base/service_thread.h"
#include "base/settings.h"
#include "ledger/copy.h"
#include "ledger/ledger.h"
#include "record/call.h"
#include "record/recording.h"
#include "usage.h"

#include <errno.h>
#include <libgen.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SECOND_NS INT64_C(1000000000)

enum { STAY, GO, COPY_AND_GO }; /* values of `order` */
enum { PATIENCE_S = 5 };

static struct {
    char copy[PATH_MAX]; /* "": nothing to copy */
    char folder[PATH_MAX];
    struct filesystems_folder identity;
    void (*complain)(const char *line);
    bool has_thread, is_copied;
    int64_t begin_ns, end_ns, copy_ns; /* when each action is due; INT64_MAX: never */
    int64_t copy_every_ns;
    uint32_t order, gone;
} copier;

/* Another folder may have taken the place of ours, before or meanwhile. */
static int copy_to_folder(void)
{
    int moved = filesystems_find(&copier.identity, copier.folder);
    int error = moved ? moved : ledger_copy(copier.copy);
    if (error && !moved)
        moved = filesystems_find(&copier.identity, copier.folder);
    return moved ? moved : error;
}

/* run_folder_find follows a folder that was renamed, which only the last copy must not wait for. */
static bool may_be_found_at_the_end(int error)
{
    bool is_last = __atomic_load_n(&copier.order, __ATOMIC_ACQUIRE) != STAY;
    return (error == FILESYSTEMS_MOVED || error == FILESYSTEMS_REPLACED) && !is_last;
}

/* If a new copy cannot be written, the old one stays. */
static void copy(void)
{
    char line[2 * PATH_MAX + 256];
    int error = *copier.copy ? copy_to_folder() : ENOENT;
    copier.is_copied = error == 0;
    if (!error || error == EAGAIN || may_be_found_at_the_end(error) || !*copier.copy ||
        !copier.complain)
        return;
    bool is_there = access(the_ledger.path, F_OK) == 0;
    snprintf(line, sizeof line, "cannot copy the ledger to %s: %s; %s %s %s", copier.copy,
             filesystems_reason(error), is_there ? "what is measured is in" : "the ledger",
             the_ledger.path, is_there ? "alone" : "cannot be seen either");
    copier.complain(line);
    copier.complain = NULL; /* once */
}

/* True if `*due_ns` has passed; advances it by `every_ns` (INT64_MAX: never again), skipping missed
 * times. */
static bool is_due(int64_t *due_ns, int64_t every_ns)
{
    int64_t now_ns = clock_monotonic_ns();
    if (now_ns < *due_ns)
        return false;
    *due_ns = every_ns == INT64_MAX ? INT64_MAX
                                    : *due_ns + ((now_ns - *due_ns) / every_ns + 1) * every_ns;
    return true;
}

static int64_t next_duty_ns(void)
{
    int64_t next_ns = copier.begin_ns < copier.end_ns ? copier.begin_ns : copier.end_ns;
    return next_ns < copier.copy_ns ? next_ns : copier.copy_ns;
}

static void pause_counting(const char *setting, setting_number seconds)
{
    char by[64];
    snprintf(by, sizeof by, "%s=%llu", setting, (unsigned long long)seconds);
    recording_paused_by(by);
    recording_switch(false);
}

static void *keep(void *unused)
{
    prctl(PR_SET_NAME, "commprof");
    copy();
    while (__atomic_load_n(&copier.order, __ATOMIC_ACQUIRE) == STAY) {
        if (is_due(&copier.begin_ns, INT64_MAX))
            recording_switch(true);
        if (is_due(&copier.end_ns, INT64_MAX))
            pause_counting("COMMPROF_END_S", settings.end_s);
        if (is_due(&copier.copy_ns, copier.copy_every_ns)) {
            usage_read(&the_ledger.header->usage_last, the_ledger.header->start_ns);
            copy();
        }
        service_thread_wait_while(&copier.order, STAY, next_duty_ns());
    }
    if (__atomic_load_n(&copier.order, __ATOMIC_ACQUIRE) == COPY_AND_GO)
        copy();
    service_thread_wake(&copier.gone, 1);
    return unused;
}

static int64_t seconds_from(int64_t now_ns, setting_number seconds)
{
    static const setting_number A_CENTURY_S = 3155760000;
    return seconds ? now_ns + (int64_t)(seconds < A_CENTURY_S ? seconds : A_CENTURY_S) * SECOND_NS
                   : INT64_MAX;
}

/* Spread the ranks' copies over the period: multiples of the golden ratio are evenly distributed
 * for any number of ranks. */
static int64_t part_of(int64_t period_ns, int world_rank)
{
    return (int64_t)((double)((uint32_t)world_rank * UINT32_C(2654435769)) / 4294967296.0 *
                     (double)period_ns);
}

static void plan(int world_rank)
{
    int64_t now_ns = clock_monotonic_ns();
    copier.begin_ns = seconds_from(now_ns, settings.begin_s);
    copier.end_ns = seconds_from(now_ns, settings.end_s);
    copier.copy_every_ns = copier.copy_ns = INT64_MAX;
    if (*copier.copy && settings.copy_s) {
        copier.copy_every_ns = seconds_from(0, settings.copy_s);
        copier.copy_ns = now_ns + part_of(copier.copy_every_ns, world_rank);
    }
}

void ledger_copier_begin(const char *to, int world_rank, void (*complain)(const char *line))
{
    char line[256], folder[PATH_MAX];
    snprintf(copier.copy, sizeof copier.copy, "%s", to ? to : "");
    memcpy(folder, copier.copy, sizeof folder);
    snprintf(copier.folder, sizeof copier.folder, "%s", dirname(folder));
    copier.identity = filesystems_folder_at(copier.folder);
    copier.complain = complain;
    plan(world_rank);
    if (settings.begin_s)
        pause_counting("COMMPROF_BEGIN_S", settings.begin_s);
    if (!to && next_duty_ns() == INT64_MAX)
        return;
    int error = service_thread_start(keep, NULL);
    copier.has_thread = error == 0;
    if (!error)
        return;
    snprintf(line, sizeof line, "cannot start a thread: %s; %s", strerror(error),
             to ? "the ledger is copied at the beginning and the end alone"
                : "the time window does not hold");
    complain(line);
    if (settings.begin_s)
        recording_switch(settings.start);
    copy();
}

bool ledger_copier_end(bool last_copy)
{
    if (!copier.has_thread) {
        copier.is_copied = false;
        if (last_copy)
            copy();
        return copier.is_copied;
    }
    int64_t until_ns = clock_monotonic_ns() + PATIENCE_S * SECOND_NS;
    service_thread_wake(&copier.order, last_copy ? COPY_AND_GO : GO);
    return service_thread_await(&copier.gone, 0, until_ns) && last_copy && copier.is_copied;
}
