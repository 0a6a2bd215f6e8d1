/* The GPU thread makes all calls into a vendor's library; it holds nothing that the job may wait
 * for.
 *
 *     the job                          the GPU thread
 *     gpu_begin ---------------------> look, look, ... until the process has a context; arm
 *                                      window: resume, collect, collect, ..., pause, collect until
 *                                      all has arrived
 *     gpu_yield: foreign = 1 --------> ends the window at once; is_in = 0
 *          waits while is_in (bounded) <---'
 *     gpu_end: order = FINISH --------> ends the window; gone = 1
 *          waits for gone (bounded) <------'
 *
 * is_in is 1 while a window is open: calls into the tracing interface may be in progress. The GPU
 * thread sets is_in before it reads `foreign`, and gpu_yield sets `foreign` before it reads is_in,
 * so at least one of them sees the other's store.
 *
 * The overlap sums of a window begin with the first activity seen in it: until then, kernels
 * launched before tracing was resumed may still be running unseen. If no activity is seen, they
 * begin when tracing was resumed: the GPU was idle. */
#include "gpu.h"

#include "activity.h"
#include "base/clock.h"
#include "base/service_thread.h"
#include "base/settings.h"
#include "ledger/ledger.h"
#include "observer.h"
#include "readings.h"
#include "record/host_time.h"
#include "record/memory_kind.h"
#include "repetition.h"
#include "windows.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define MS_NS INT64_C(1000000)
#define SECOND_NS (1000 * MS_NS)

enum { STAY, FINISH, ABANDON }; /* commands to the GPU thread */
enum {
    PATIENCE_S = 2,
    FIRST_LOOK_MS = 50,
    SLOWEST_LOOK_MS = 250,
    ARM_AGAIN_MS = 1000,
    TICK_MS = 100,
    DRAIN_S = 3,
    AFTER_ANOTHER_S = 1
};

enum phase { CLOSED, OPEN, DRAINING };

const struct gpu_backend *gpu_used;

static struct {
    const struct gpu_backend *backend;
    char foreign_name[64];
    uint32_t has_thread, order, gone;
    uint32_t bell;           /* incremented to wake the GPU thread */
    uint32_t foreign, is_in; /* see above */
    int64_t foreign_until_ns;
    uint32_t epoch; /* the epoch that the counters belong to */

    enum phase phase;
    struct ledger_tracing *window;
    struct windows windows; /* when they are due */
    struct repetition repetition;
    bool repeats;        /* by the last look */
    bool replaces;       /* the first record of this window discards what was counted before it */
    bool has_had_window; /* a complete one */
    int64_t resumed_ns;  /* of this window: when tracing was resumed */
    int64_t earliest_ns; /* begin of the earliest activity seen since then; INT64_MAX: none yet */
    int64_t paused_ns;
    int64_t collect_at_ns;
    int64_t complete_ns; /* activities that began before this have been counted */
    bool is_summed;      /* the overlap sums have begun */
    uint64_t graph_launches, graph_records; /* in this window */
    uint64_t unseen_graphs; /* lower bound of the launches without a record, in all windows */
    enum ledger_tracing_end ending;
} gpu;

static bool is_ordered_to_end(void)
{
    return __atomic_load_n(&gpu.order, __ATOMIC_ACQUIRE) != STAY;
}

static bool is_abandoned(void)
{
    return __atomic_load_n(&gpu.order, __ATOMIC_ACQUIRE) == ABANDON;
}

static void ring(void)
{
    service_thread_wake(&gpu.bell, __atomic_load_n(&gpu.bell, __ATOMIC_RELAXED) + 1);
}

static void sleep_until(int64_t until_ns)
{
    uint32_t bell = __atomic_load_n(&gpu.bell, __ATOMIC_ACQUIRE);
    if (!is_ordered_to_end() && !__atomic_load_n(&gpu.foreign, __ATOMIC_ACQUIRE))
        service_thread_wait_while(&gpu.bell, bell, until_ns);
}

static void enter_state(enum ledger_gpu_state state, const char *reason)
{
    __atomic_store_n(&the_ledger.header->gpu_state, state, __ATOMIC_RELEASE);
    if (reason)
        ledger_fact("gpu.reason", reason);
}

/* Looking and arming */

static enum gpu_presence look_for_one(void)
{
    enum gpu_presence best = GPU_ABSENT;
    for (const struct gpu_backend **backend = gpu_backends; *backend && best != GPU_IN_USE;
         backend++) {
        enum gpu_presence presence = (*backend)->look();
        best = presence > best ? presence : best;
        if (presence == GPU_IN_USE)
            gpu.backend = *backend;
    }
    return best;
}

/* Waits until the process uses a GPU. False: the job ended first. */
static bool wait_for_use(void)
{
    int64_t pause_ns = FIRST_LOOK_MS * MS_NS;
    while (!is_ordered_to_end() && look_for_one() != GPU_IN_USE) {
        sleep_until(clock_monotonic_ns() + pause_ns);
        pause_ns = pause_ns < SLOWEST_LOOK_MS * MS_NS ? 2 * pause_ns : pause_ns;
    }
    return !is_ordered_to_end();
}

static bool arm(void)
{
    char reason[512] = "";
    enum gpu_armed armed = GPU_ARM_LATER;
    int64_t began_ns = clock_monotonic_ns();
    while (!is_ordered_to_end() &&
           (armed = gpu.backend->arm(reason, sizeof reason)) == GPU_ARM_LATER)
        sleep_until(clock_monotonic_ns() + ARM_AGAIN_MS * MS_NS);
    the_ledger.header->cost_gpu_begin_ns = (uint64_t)(clock_monotonic_ns() - began_ns);
    if (armed == GPU_ARM_REFUSED)
        enter_state(LEDGER_GPU_REFUSED, reason);
    /* Exit handlers run in reverse order: the vendor's was registered earlier, when the job created
     * its context. */
    if (armed == GPU_ARMED)
        atexit(gpu_end);
    return armed == GPU_ARMED;
}

/* Windows */

static bool calls_are_counted(void)
{
    return __atomic_load_n(&the_ledger.header->counting_since_ns, __ATOMIC_RELAXED) != 0;
}

static struct windows_now windows_now(int64_t now_ns)
{
    return (struct windows_now){now_ns, clock_unix_ns(),
                                __atomic_load_n(&the_ledger.header->steps, __ATOMIC_RELAXED),
                                gpu.repeats};
}

static void look_for_repetition(void)
{
    int64_t unix_ns = clock_unix_ns();
    if (windows_wait_for_steps(&gpu.windows) && repetition_is_due(&gpu.repetition, unix_ns))
        gpu.repeats = repetition_look(&gpu.repetition, unix_ns, repetition_calls());
}

static bool is_better(int64_t now_ns)
{
    struct windows_now now = windows_now(now_ns);
    return windows_is_better(&gpu.windows, &now);
}

static bool is_due(int64_t now_ns)
{
    struct windows_now now = windows_now(now_ns);
    return windows_is_due(&gpu.windows, &now);
}

static bool is_over(int64_t now_ns)
{
    struct windows_now now = windows_now(now_ns);
    return windows_is_over(&gpu.windows, &now);
}

static void begin_window(int64_t now_ns)
{
    struct windows_now now = windows_now(now_ns);
    windows_begin(&gpu.windows, &now);
}

static bool another_traces(int64_t now_ns)
{
    if (__atomic_load_n(&gpu.foreign, __ATOMIC_SEQ_CST))
        return true;
    return now_ns < __atomic_load_n(&gpu.foreign_until_ns, __ATOMIC_RELAXED);
}

static void go_out(void)
{
    service_thread_wake(&gpu.is_in, 0);
}

static bool go_in(void)
{
    __atomic_store_n(&gpu.is_in, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&gpu.foreign, __ATOMIC_SEQ_CST))
        return true;
    go_out();
    return false;
}

static void note_unseen_graphs(uint64_t launches)
{
    char text[24];
    if (launches == gpu.unseen_graphs)
        return;
    gpu.unseen_graphs = launches;
    snprintf(text, sizeof text, "%llu", (unsigned long long)launches);
    ledger_fact("gpu.unseen_graph_launches", text);
}

static void reset_counts(int64_t from_ns)
{
    struct ledger_header *header = the_ledger.header;
    note_unseen_graphs(0);
    gpu.graph_launches = gpu.graph_records = 0;
    activity_reset(from_ns);
    header->gpu_records = header->gpu_dropped_records = header->gpu_implausible_records =
        header->gpu_late_records = 0;
    header->gpu_late_ns = 0;
    header->gpu_unattributed_records = header->gpu_lost_intervals =
        header->gpu_unmatched_operations = 0;
}

static void note_part(void)
{
    static const char *const NAMES[] = {[LEDGER_PART_FIRST_USE] = "first use",
                                        [LEDGER_PART_LATER] = "later",
                                        [LEDGER_PART_STEPS] = "steps"};
    if (gpu.window)
        gpu.window->part = gpu.windows.part;
    if (gpu.windows.part != LEDGER_PART_ANY)
        ledger_fact("gpu.traced_part", NAMES[gpu.windows.part]);
}

/* A window that CUPTI gives no records for, as has been reported of the second one, replaces
 * nothing. */
static void replace_earlier(void)
{
    gpu.replaces = false;
    reset_counts(gpu.resumed_ns);
    note_part();
}

static void take(const struct gpu_event *event)
{
    if (is_abandoned())
        return; /* the file is being read, or it belongs to the parent of this forked child */
    if (gpu.replaces && event->start_ns >= gpu.resumed_ns)
        replace_earlier();
    if (event->start_ns >= gpu.resumed_ns && event->start_ns < gpu.earliest_ns)
        gpu.earliest_ns = event->start_ns;
    gpu.graph_records += (event->flags & LEDGER_ACTIVITY_GRAPH) != 0;
    activity_take(event);
}

static void follow(bool followed)
{
    __atomic_store_n(&host_time_wanted, followed, __ATOMIC_RELAXED);
    gpu_observer->follow(followed);
}

static void enter_window(int64_t now_ns)
{
    struct ledger_tracing window = {.begin_ns = now_ns, .clock_error_ns = UINT32_MAX};
    __atomic_store_n(&gpu.window, ledger_append(LEDGER_TRACINGS, &window, sizeof window),
                     __ATOMIC_RELEASE);
    begin_window(now_ns);
}

static void open_window(int64_t now_ns)
{
    char reason[512] = "";
    if (!go_in())
        return;
    follow(true);
    if (!gpu.backend->resume(reason, sizeof reason)) {
        follow(false);
        go_out();
        enter_state(LEDGER_GPU_REFUSED, reason);
        return;
    }
    gpu.replaces = is_better(now_ns);
    enter_window(now_ns);
    if (!gpu.replaces)
        note_part();
    gpu.resumed_ns = now_ns;
    gpu.earliest_ns = INT64_MAX;
    gpu.is_summed = false;
    gpu.graph_launches = gpu.graph_records = 0;
    gpu.collect_at_ns = now_ns;
    gpu.phase = OPEN;
    enter_state(LEDGER_GPU_TRACING, NULL);
}

/* Begins the overlap sums at the earliest activity. Buffers arrive in any order, so the earliest
 * seen is known to be the first only once all activities up to it have arrived. */
static void begin_sums(int64_t complete_until_ns, bool everything)
{
    bool has_begun = gpu.earliest_ns != INT64_MAX;
    bool is_known = has_begun ? gpu.earliest_ns <= complete_until_ns
                              : clock_monotonic_ns() - gpu.resumed_ns > SECOND_NS;
    if (gpu.is_summed || (!is_known && !everything))
        return;
    int64_t begin_ns = has_begun ? gpu.earliest_ns : gpu.resumed_ns;
    begin_ns = gpu.phase == DRAINING && begin_ns > gpu.paused_ns ? gpu.paused_ns : begin_ns;
    activity_trace_from(begin_ns);
    gpu_observer->untraced(begin_ns);
    if (gpu.window)
        gpu.window->begin_ns = begin_ns;
    gpu.is_summed = true;
}

/* Readers of the ledger see these counters grow. */
static void count(const struct gpu_collected *collected)
{
    struct ledger_header *header = the_ledger.header;
    header->gpu_records += collected->records;
    header->gpu_dropped_records += collected->dropped;
    header->gpu_implausible_records += collected->implausible;
    gpu.graph_launches += collected->graph_launches;
    if (collected->dropped || collected->implausible)
        gpu_observer->untraced(clock_monotonic_ns());
    if (!gpu.window)
        return;
    gpu.window->records += collected->records;
    uint32_t error_ns = gpu.window->clock_error_ns;
    gpu.window->clock_error_ns = error_ns == UINT32_MAX || error_ns < collected->clock_error_ns
                                     ? collected->clock_error_ns
                                     : error_ns;
}

/* Collects the job's MPI calls. Returns the time up to which they are complete. */
static int64_t collect_host_time(void)
{
    clock_realign();
    return clock_ns_of_late(
        host_time_collect(activity_in_mpi, &the_ledger.header->gpu_lost_intervals));
}

/* Applies a reset (MPI_Pcontrol(2)). Events taken so far precede the reset; so it is checked before
 * each collection, which may bring later ones. */
static void begin_anew_after_reset(void)
{
    struct ledger_header *header = the_ledger.header;
    uint32_t epoch = __atomic_load_n(&header->epoch, __ATOMIC_ACQUIRE);
    if (epoch == gpu.epoch)
        return;
    gpu.epoch = epoch;
    reset_counts(clock_ns_of_late(header->reset_ticks));
}

/* Collects what has been recorded and settles it as far as it is complete. Returns the time up to
 * which the vendor's records are complete. */
static int64_t collect(bool everything)
{
    int64_t calls_until_ns = collect_host_time();
    begin_anew_after_reset();
    struct gpu_collected collected = gpu.backend->collect(take, everything);
    if (is_abandoned())
        return INT64_MAX;
    count(&collected);
    begin_sums(collected.complete_until_ns, everything);
    int64_t until_ns =
        collected.complete_until_ns < calls_until_ns ? collected.complete_until_ns : calls_until_ns;
    until_ns = gpu.phase == DRAINING && until_ns > gpu.paused_ns ? gpu.paused_ns : until_ns;
    if (gpu.is_summed) {
        activity_settle(until_ns);
        gpu_observer->collected();
    }
    if (collected.is_foreign)
        gpu.ending = LEDGER_TRACING_LOST;
    gpu.collect_at_ns = clock_monotonic_ns() + (int64_t)settings.gpu_collect_ms * MS_NS;
    __atomic_store_n(&gpu.complete_ns, until_ns, __ATOMIC_RELAXED);
    return collected.complete_until_ns;
}

/* Each graph launch leaves at least one record: if there are fewer records than launches, some
 * launches left none. */
static void compare_graphs(void)
{
    if (gpu.graph_launches > gpu.graph_records)
        note_unseen_graphs(gpu.unseen_graphs + gpu.graph_launches - gpu.graph_records);
}

static void end_entry(int64_t end_ns)
{
    if (!gpu.window)
        return;
    gpu.window->ended = gpu.ending;
    __atomic_store_n(&gpu.window->end_ns, end_ns, __ATOMIC_RELEASE);
}

/* Closes the window after its last record. */
static void close_window(void)
{
    if (is_abandoned())
        return;
    begin_sums(gpu.paused_ns, true);
    activity_trace_until(gpu.paused_ns);
    gpu_observer->collected();
    compare_graphs();
    end_entry(gpu.paused_ns);
    gpu.phase = CLOSED;
    static const enum ledger_gpu_state STATES[] = {
        [LEDGER_TRACING_DUTY] = LEDGER_GPU_PAUSED,     [LEDGER_TRACING_OFF] = LEDGER_GPU_PAUSED,
        [LEDGER_TRACING_YIELDED] = LEDGER_GPU_YIELDED, [LEDGER_TRACING_LOST] = LEDGER_GPU_YIELDED,
        [LEDGER_TRACING_STOPPED] = LEDGER_GPU_STOPPED,
    };
    enum ledger_gpu_state state = STATES[gpu.ending];
    char reason[128];
    snprintf(reason, sizeof reason, "yielded to %s",
             *gpu.foreign_name ? gpu.foreign_name : "another client of the tracing interface");
    enter_state(state, state == LEDGER_GPU_YIELDED ? reason : NULL);
    go_out();
}

/* A record arrives when its activity has ended: after a window that ends by itself we wait a while
 * for the rest. */
static void end_window(enum ledger_tracing_end ending)
{
    gpu.ending = ending;
    gpu.has_had_window |= ending == LEDGER_TRACING_DUTY;
    if (!gpu.has_had_window)
        windows_repeat(&gpu.windows); /* one window shall be complete */
    gpu.backend->pause();
    gpu.paused_ns = clock_monotonic_ns();
    gpu.phase = DRAINING;
    collect_host_time(); /* calls that end from now on do not report their begin */
    follow(false);
    bool is_hurried = ending != LEDGER_TRACING_DUTY && ending != LEDGER_TRACING_OFF;
    int64_t complete_ns = collect(is_hurried);
    if (is_hurried || complete_ns >= gpu.paused_ns)
        close_window();
}

static void drain(int64_t now_ns)
{
    bool is_late = now_ns - gpu.paused_ns > DRAIN_S * SECOND_NS;
    if (collect(is_late) >= gpu.paused_ns || is_late)
        close_window();
}

/* Tracing goes on; what it has shown so far does not count. */
static void begin_better_window(int64_t now_ns)
{
    gpu.ending = LEDGER_TRACING_DUTY;
    end_entry(now_ns);
    gpu.ending = LEDGER_TRACING_GOES_ON;
    enter_window(now_ns);
    gpu.resumed_ns = now_ns;
    gpu.earliest_ns = INT64_MAX;
    replace_earlier();
}

static void attend_window(int64_t now_ns, bool hurries)
{
    if (is_ordered_to_end())
        end_window(LEDGER_TRACING_STOPPED);
    else if (hurries)
        end_window(LEDGER_TRACING_YIELDED);
    else if (!calls_are_counted())
        end_window(LEDGER_TRACING_OFF);
    else if (is_better(now_ns))
        begin_better_window(now_ns);
    else if (is_over(now_ns))
        end_window(LEDGER_TRACING_DUTY);
    else if (now_ns >= gpu.collect_at_ns)
        collect(false);
    else
        collect_host_time();
    if (gpu.phase == OPEN && gpu.ending == LEDGER_TRACING_LOST)
        end_window(LEDGER_TRACING_LOST);
}

static void attend(void)
{
    int64_t now_ns = clock_monotonic_ns();
    bool hurries = another_traces(now_ns);
    look_for_repetition();
    if (gpu.phase == OPEN)
        attend_window(now_ns, hurries);
    else if (gpu.phase == DRAINING && (hurries || is_ordered_to_end())) {
        collect(true);
        close_window();
    } else if (gpu.phase == DRAINING)
        drain(now_ns);
    else if (!calls_are_counted())
        windows_repeat(
            &gpu.windows); /* the user who switches counting on wants to see what follows */
    else if (!hurries && !is_ordered_to_end() && is_due(now_ns)) {
        gpu.ending = LEDGER_TRACING_GOES_ON;
        open_window(now_ns);
    }
}

/* If the process is killed before the next time, this says of how long before records may be
 * missing, at most. */
static void note_uncollected(void)
{
    bool may_have_any = gpu.phase != CLOSED && gpu.backend->uncollected_since_ns;
    int64_t since_ns = may_have_any ? gpu.backend->uncollected_since_ns() : INT64_MAX,
            now_ns = clock_monotonic_ns();
    uint64_t age_ns = since_ns < now_ns ? (uint64_t)(now_ns + TICK_MS * MS_NS - since_ns) : 0;
    __atomic_store_n(&the_ledger.header->gpu_uncollected_ns, age_ns, __ATOMIC_RELAXED);
}

static bool is_refused(void)
{
    return the_ledger.header->gpu_state == LEDGER_GPU_REFUSED;
}

static void trace(void)
{
    activity_begin(gpu.backend);
    readings_begin(gpu.backend);
    gpu.epoch = the_ledger.header->epoch;
    gpu.paused_ns = clock_monotonic_ns();
    while (!is_refused() && !is_abandoned() && !(is_ordered_to_end() && gpu.phase == CLOSED)) {
        attend();
        if (!is_abandoned())
            note_uncollected();
        if (!is_ordered_to_end())
            readings_take(clock_monotonic_ns(), is_abandoned);
        int64_t tick_ns =
            (settings.gpu_collect_ms < TICK_MS ? (int64_t)settings.gpu_collect_ms : TICK_MS) *
            MS_NS;
        if (__atomic_load_n(&gpu.foreign, __ATOMIC_ACQUIRE) && gpu.phase == CLOSED)
            service_thread_wait_while(&gpu.foreign, 1, clock_monotonic_ns() + tick_ns);
        else
            sleep_until(clock_monotonic_ns() + tick_ns);
    }
}

static bool is_chosen(void)
{
    int rank = the_ledger.header->world_rank, of = (int)settings.gpu_one_rank_in;
    return of <= 1 || rank < 0 || rank % of == 0;
}

static void leave_to_other_ranks(void)
{
    char reason[96];
    snprintf(reason, sizeof reason, "COMMPROF_GPU_ONE_RANK_IN=%d: other ranks' are",
             (int)settings.gpu_one_rank_in);
    enter_state(LEDGER_GPU_REFUSED, reason);
}

static void *run(void *unused)
{
    prctl(PR_SET_NAME, "commprof-gpu");
    if (wait_for_use()) {
        __atomic_store_n(&gpu_used, gpu.backend, __ATOMIC_RELEASE);
        __atomic_store_n(&memory_kind_ask, gpu.backend->memory_kind, __ATOMIC_RELEASE);
        ledger_fact("gpu", gpu.backend->name);
        if (!is_chosen())
            leave_to_other_ranks();
        else if (arm())
            trace();
    }
    service_thread_wake(&gpu.gone, 1);
    return unused;
}

/* The job's side */

/* A forked child has no GPU thread and must not call libraries that do not survive a fork. */
static void in_forked_child(void)
{
    gpu.has_thread = 0;
    gpu.is_in = 0;
    gpu_used = NULL;
    memory_kind_ask = NULL;
    host_time_wanted = false;
}

void gpu_begin(void (*complain)(const char *line))
{
    char line[256];
    if (settings.gpu == GPU_WANTED_OFF) {
        enter_state(LEDGER_GPU_REFUSED, "COMMPROF_GPU=off");
        return;
    }
    if (settings.gpu == GPU_WANTED_AUTO && look_for_one() == GPU_ABSENT)
        return;
    enter_state(LEDGER_GPU_DORMANT, NULL);
    pthread_atfork(NULL, NULL, in_forked_child);
    int error = service_thread_start(run, NULL);
    gpu.has_thread = error == 0;
    if (!error)
        return;
    enter_state(LEDGER_GPU_REFUSED, "no thread could be started");
    snprintf(line, sizeof line, "cannot start a thread: %s; GPUs are not traced", strerror(error));
    complain(line);
}

void gpu_wake(void)
{
    if (__atomic_load_n(&gpu.has_thread, __ATOMIC_RELAXED))
        ring();
}

static void ask_no_more(void)
{
    __atomic_store_n(&memory_kind_ask, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&host_time_wanted, false, __ATOMIC_RELAXED);
}

/* Counts records that the vendor's library has not returned, or that we had no time to read. */
static void count_unread(void)
{
    const struct gpu_backend *backend = __atomic_load_n(&gpu_used, __ATOMIC_ACQUIRE);
    if (backend && backend->unread)
        the_ledger.header->gpu_dropped_records += backend->unread();
}

/* The thread hangs in the vendor's library: ends the window at the time up to which its records
 * were collected. */
static void lose_window(void)
{
    struct ledger_tracing *window = __atomic_load_n(&gpu.window, __ATOMIC_ACQUIRE);
    if (!window || window->end_ns)
        return;
    int64_t complete_ns = __atomic_load_n(&gpu.complete_ns, __ATOMIC_RELAXED);
    window->ended = LEDGER_TRACING_LOST;
    __atomic_store_n(&window->end_ns,
                     complete_ns > window->begin_ns ? complete_ns : window->begin_ns,
                     __ATOMIC_RELEASE);
}

void gpu_end(void)
{
    if (!__atomic_exchange_n(&gpu.has_thread, 0, __ATOMIC_ACQ_REL))
        return;
    int64_t began_ns = clock_monotonic_ns(), until_ns = began_ns + PATIENCE_S * SECOND_NS;
    __atomic_store_n(&gpu.order, FINISH, __ATOMIC_RELEASE);
    ring();
    service_thread_await(&gpu.gone, 0, until_ns);
    ask_no_more();
    the_ledger.header->cost_gpu_end_ns = (uint64_t)(clock_monotonic_ns() - began_ns);
    if (!__atomic_load_n(&gpu.gone, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&gpu.order, ABANDON, __ATOMIC_RELEASE);
        lose_window();
        enter_state(LEDGER_GPU_STOPPED,
                    "the tracing interface did not answer at the end; what it held back is lost");
    }
    count_unread();
}

void gpu_exit(void)
{
    __atomic_store_n(&gpu.order, ABANDON, __ATOMIC_RELEASE);
    if (__atomic_exchange_n(&gpu.has_thread, 0, __ATOMIC_ACQ_REL)) {
        ring();
        count_unread();
    }
    ask_no_more();
}

void gpu_yield(const char *to)
{
    int64_t until_ns = clock_monotonic_ns() + PATIENCE_S * SECOND_NS;
    snprintf(gpu.foreign_name, sizeof gpu.foreign_name, "%s", to);
    __atomic_store_n(&gpu.foreign, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&gpu.has_thread, __ATOMIC_ACQUIRE))
        return;
    ring();
    while (__atomic_load_n(&gpu.is_in, __ATOMIC_SEQ_CST) && clock_monotonic_ns() < until_ns)
        service_thread_wait_while(&gpu.is_in, 1, until_ns);
}

/* The other client may still be collecting its own records. */
void gpu_unyield(void)
{
    __atomic_store_n(&gpu.foreign_until_ns, clock_monotonic_ns() + AFTER_ANOTHER_S * SECOND_NS,
                     __ATOMIC_RELAXED);
    service_thread_wake(&gpu.foreign, 0);
}
