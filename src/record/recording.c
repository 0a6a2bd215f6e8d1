#include "recording.h"

#include "base/clock.h"
#include "base/frames.h"
#include "base/quiet.h"
#include "base/settings.h"
#include "call_table.h"
#include "regions.h"
#include "thread.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static uint8_t counted_when_on[CALL_COUNT];

static pthread_mutex_t switching = PTHREAD_MUTEX_INITIALIZER;

static void keep_time(bool on)
{
    struct ledger_header *header = the_ledger.header;
    int64_t now_ns = clock_monotonic_ns();
    if (header->counting_since_ns)
        header->counted_ns += now_ns - header->counting_since_ns;
    __atomic_store_n(&header->counting_since_ns, on ? now_ns : 0,
                     __ATOMIC_RELAXED); /* the GPU thread reads it */
}

void recording_switch(bool on)
{
    struct quiet before = quiet_lock(&switching);
    keep_time(on);
    for (int i = 0; i < CALL_COUNT; i++)
        __atomic_store_n(&call_counted[i], on ? counted_when_on[i] : 0, __ATOMIC_RELAXED);
    quiet_unlock(&switching, &before);
}

bool recording_is_on(void)
{
    return __atomic_load_n(&the_ledger.header->counting_since_ns, __ATOMIC_RELAXED) != 0;
}

void recording_paused_by(const char *what)
{
    static char all[512];
    struct quiet before = quiet_lock(&switching);
    size_t used = strlen(all);
    if (!strstr(all, what) && used + strlen(what) + 3 < sizeof all) {
        snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", what);
        ledger_fact("unseen.off", all);
    }
    quiet_unlock(&switching, &before);
}

static void prepare(void)
{
    frames_begin();
    thread_begin(regions_end_all);
    for (int i = 1; i < CALL_COUNT; i++)
        counted_when_on[i] = !settings_excludes(CALL_TABLE[i].name);
    recording_switch(settings.start);
    if (!settings.start)
        recording_paused_by("COMMPROF_START=off");
    if (settings.start) /* MPI's initialization is counted, too */
        the_ledger.header->counting_since_ns = the_ledger.header->start_ns;
}

void recording_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    __atomic_store_n(&thread_epoch, the_ledger.header->epoch, __ATOMIC_RELEASE);
}

void recording_end(void)
{
    __atomic_store_n(&thread_epoch, 0, __ATOMIC_RELEASE);
}

static void begin_at_zero(struct ledger_header *header)
{
    keep_time(header->counting_since_ns != 0);
    header->counted_ns = 0;
    header->reset_ticks = clock_ticks();
    header->reset_unix_ns = clock_unix_ns();
    __atomic_store_n(&header->dropped_calls, 0,
                     __ATOMIC_RELAXED); /* other threads may add to these */
    __atomic_store_n(&header->dropped_messages, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&header->dropped_completions, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&header->untracked_requests, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&header->folded_cells, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&header->folded_communicators, 0, __ATOMIC_RELAXED);
    /* 0 means not recording, UINT32_MAX is thread_nobody's; 1,000 resets a second reach it after
     * seven weeks. */
    __atomic_store_n(&header->epoch, header->epoch < UINT32_MAX - 1 ? header->epoch + 1 : 1,
                     __ATOMIC_RELEASE);
}

void recording_reset(void)
{
    struct quiet before = quiet_lock(&switching);
    if (thread_epoch) {
        begin_at_zero(the_ledger.header);
        __atomic_store_n(&thread_epoch, the_ledger.header->epoch, __ATOMIC_RELEASE);
        if (this_thread != &thread_nobody)
            thread_catch_up(this_thread, thread_epoch);
    }
    quiet_unlock(&switching, &before);
}
