/* gpu.c with a fake back end, whose answers the test sets. */
#include "gpu/gpu.h"

#include "base/clock.h"
#include "base/settings.h"
#include "ledger/ledger.h"
#include "record/call.h"
#include "record/host_time.h"
#include "record/memory_kind.h"
#include "record/recording.h"
#include "ledger_reader.h"
#include "unit.h"

#include <pthread.h>
#include <sched.h>

static struct {
    enum gpu_presence presence;
    enum gpu_armed armed;
    unsigned looks, arms, resumes, pauses, collections, last_collections;
    bool refuses, hangs, is_foreign, is_in_call;
    uint64_t graph_launches; /* seen in each collection */
    bool is_graph;           /* a graph launched the kernel */
    int64_t event_at_ns;     /* each collection has one kernel, from this time on; 0: none */
    int64_t uncollected_ns;  /* records of what began later may be missing */
} fake;

static enum gpu_presence look(void)
{
    __atomic_add_fetch(&fake.looks, 1, __ATOMIC_RELEASE);
    return __atomic_load_n(&fake.presence, __ATOMIC_ACQUIRE);
}

static enum gpu_armed arm(char *reason, size_t bytes)
{
    __atomic_add_fetch(&fake.arms, 1, __ATOMIC_RELEASE);
    snprintf(reason, bytes, "CUPTI 13.0.0 crashes");
    return __atomic_load_n(&fake.armed, __ATOMIC_ACQUIRE);
}

static bool resume(char *reason, size_t bytes)
{
    snprintf(reason, bytes, "no permission");
    __atomic_add_fetch(&fake.resumes, 1, __ATOMIC_RELEASE);
    return !fake.refuses;
}

static void pause_tracing(void)
{
    __atomic_add_fetch(&fake.pauses, 1, __ATOMIC_RELEASE);
}

static struct gpu_collected collect(gpu_take take, bool everything)
{
    __atomic_store_n(&fake.is_in_call, true, __ATOMIC_RELEASE);
    while (__atomic_load_n(&fake.hangs, __ATOMIC_ACQUIRE))
        sched_yield();
    struct gpu_collected collected = {.clock_error_ns = 100,
                                      .complete_until_ns = clock_monotonic_ns(),
                                      .graph_launches = fake.graph_launches,
                                      .is_foreign = fake.is_foreign};
    int64_t at_ns = __atomic_load_n(&fake.event_at_ns, __ATOMIC_ACQUIRE);
    if (at_ns) {
        take(&(struct gpu_event){.start_ns = at_ns,
                                 .end_ns = at_ns + 1000,
                                 .name = "kernel",
                                 .kind = LEDGER_ACTIVITY_KERNEL,
                                 .flags = fake.is_graph ? LEDGER_ACTIVITY_GRAPH : 0});
        __atomic_compare_exchange_n(&fake.event_at_ns, &at_ns, at_ns + 1000, false,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
        collected.records = 1;
    }
    __atomic_add_fetch(everything ? &fake.last_collections : &fake.collections, 1,
                       __ATOMIC_RELEASE);
    __atomic_store_n(&fake.is_in_call, false, __ATOMIC_RELEASE);
    return collected;
}

static int64_t uncollected_since_ns(void)
{
    return __atomic_load_n(&fake.uncollected_ns, __ATOMIC_ACQUIRE);
}

/* The next collection has a kernel that begins at this time; 0: none. */
static void set_event_at(int64_t ns)
{
    __atomic_store_n(&fake.event_at_ns, ns, __ATOMIC_RELEASE);
}

/* The next collection is the last for an hour. (ThreadSanitizer must not see that the setting
 * changes while it is read.) */
__attribute__((noinline, no_sanitize_thread)) static void collect_no_more(void)
{
    settings.gpu_collect_ms = 3600 * 1000;
}

/* Waits for this long. */
static void let_pass(int64_t ns)
{
    for (int64_t until_ns = clock_monotonic_ns() + ns; clock_monotonic_ns() < until_ns;)
        sched_yield();
}

static void device_facts(uint32_t device, struct gpu_device_facts *facts)
{
    *facts = (struct gpu_device_facts){.name = "double"};
    (void)device;
}

static int memory_kind(const void *address)
{
    (void)address;
    return -1;
}

static const struct gpu_backend FAKE = {
    .name = "fake",
    .look = look,
    .arm = arm,
    .resume = resume,
    .pause = pause_tracing,
    .collect = collect,
    .uncollected_since_ns = uncollected_since_ns,
    .device_facts = device_facts,
    .memory_kind = memory_kind,
};

static void hear(const char *line)
{
    (void)line;
}

static void begin(const char *gpu, const char *every_s, const char *on_s)
{
    setenv("COMMPROF_GPU", gpu, 1);
    setenv("COMMPROF_GPU_EVERY_S", every_s, 1);
    setenv("COMMPROF_GPU_ON_S", on_s, 1);
    setenv("COMMPROF_GPU_COLLECT_MS", "5", 1);
    settings_read(NULL);
    clock_begin(CLOCK_AUTO);
    clock_calibrate();
    CHECK_EQUAL(ledger_open("ledger", 8 << 20), 0);
    the_ledger.header->clock_ticks = the_clock.base_ticks;
    the_ledger.header->clock_ns = the_clock.base_ns;
    the_ledger.header->clock_scale = the_clock.scale;
    the_ledger.header->start_ns = clock_monotonic_ns();
    the_ledger.header->epoch = 1;
    recording_begin();
    memset(gpu_backends, 0, sizeof(struct gpu_backend *) * GPU_BACKENDS_MOST);
    gpu_backends[0] = &FAKE;
}

static enum ledger_gpu_state state(void)
{
    return __atomic_load_n(&the_ledger.header->gpu_state, __ATOMIC_ACQUIRE);
}

static void wait_for(enum ledger_gpu_state wanted)
{
    while (state() != wanted)
        sched_yield();
}

/* The process uses its GPU, which may be traced all the time. */
static void begin_in_use(void)
{
    fake.presence = GPU_IN_USE;
    begin("auto", "0", "0");
}

static void trace(void)
{
    begin_in_use();
    gpu_begin(hear);
    wait_for(LEDGER_GPU_TRACING);
}

static void wait_until_more(const unsigned *counter)
{
    unsigned before = __atomic_load_n(counter, __ATOMIC_ACQUIRE);
    while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) == before)
        sched_yield();
}

static const char *fact(const char *wanted)
{
    return reader_fact(the_ledger.header, wanted);
}

static const char *reason(void)
{
    return fact("gpu.reason");
}

/* The windows, in order. */
static const struct ledger_tracing *window(unsigned index)
{
    return reader_nth(the_ledger.header, LEDGER_TRACINGS, index);
}

TEST(a_machine_without_a_driver_gets_no_thread)
{
    begin("auto", "0", "0");
    gpu_begin(hear);
    CHECK_EQUAL(unit_threads("commprof-gpu\n"), 0);
    CHECK_EQUAL(state(), LEDGER_GPU_NONE);
    CHECK_EQUAL(fake.looks, 1);
    gpu_end();
}

TEST(nothing_is_armed_until_the_process_uses_a_gpu)
{
    fake.presence = GPU_UNUSED;
    begin("auto", "0", "0");
    gpu_begin(hear);
    wait_until_more(&fake.looks);
    CHECK_EQUAL(state(), LEDGER_GPU_DORMANT);
    CHECK_EQUAL(fake.arms, 0);
    CHECK(!memory_kind_ask && !gpu_used);
    __atomic_store_n(&fake.presence, GPU_IN_USE, __ATOMIC_RELEASE);
    gpu_wake();
    wait_for(LEDGER_GPU_TRACING);
    CHECK(memory_kind_ask && gpu_used == &FAKE);
    gpu_end();
    CHECK_EQUAL(state(), LEDGER_GPU_STOPPED);
    CHECK(!memory_kind_ask);
}

TEST(a_job_that_ends_before_it_uses_one_leaves_nothing_armed)
{
    fake.presence = GPU_UNUSED;
    begin("auto", "0", "0");
    gpu_begin(hear);
    gpu_end();
    CHECK_EQUAL(fake.arms, 0);
    CHECK_EQUAL(state(), LEDGER_GPU_DORMANT);
}

TEST(a_back_end_that_refuses_is_not_asked_again_and_its_reason_is_stored)
{
    fake.presence = GPU_IN_USE;
    fake.armed = GPU_ARM_REFUSED;
    begin("auto", "0", "0");
    gpu_begin(hear);
    wait_for(LEDGER_GPU_REFUSED);
    gpu_end();
    CHECK_EQUAL(fake.arms, 1);
    CHECK_EQUAL(fake.resumes, 0);
    CHECK_TEXT(reason(), "CUPTI 13.0.0 crashes");
    CHECK(window(0) == NULL);
}

TEST(tracing_that_cannot_begin_is_refused)
{
    fake.presence = GPU_IN_USE;
    fake.refuses = true;
    begin("auto", "0", "0");
    gpu_begin(hear);
    wait_for(LEDGER_GPU_REFUSED);
    gpu_end();
    CHECK_TEXT(reason(), "no permission");
    CHECK(window(0) == NULL);
}

TEST(records_are_collected_while_the_job_runs_and_once_more_at_its_end)
{
    begin_in_use();
    gpu_begin(hear);
    wait_until_more(&fake.collections);
    wait_until_more(&fake.collections);
    CHECK_EQUAL(fake.last_collections, 0);
    gpu_end();
    CHECK_EQUAL(fake.resumes, 1);
    CHECK_EQUAL(fake.pauses, 1);
    CHECK_EQUAL(fake.last_collections, 1);
    CHECK_EQUAL(window(0)->ended, LEDGER_TRACING_STOPPED);
    CHECK_EQUAL(window(0)->clock_error_ns, 100);
    CHECK(window(0)->end_ns > window(0)->begin_ns);
}

TEST(graphs_without_records_are_counted)
{
    fake.presence = GPU_IN_USE;
    fake.graph_launches = 3;
    begin("auto", "0", "0");
    set_event_at(clock_monotonic_ns());
    gpu_begin(hear);
    wait_for(LEDGER_GPU_TRACING);
    gpu_end();
    CHECK_EQUAL(atoi(fact("gpu.unseen_graph_launches")),
                3 * (int)(fake.collections + fake.last_collections));
}

static const struct ledger_device *device(void)
{
    return reader_nth(the_ledger.header, LEDGER_DEVICES, 0);
}

/* Numbers that the GPU thread may write meanwhile, which ThreadSanitizer must not see. */
__attribute__((noinline, no_sanitize_thread)) static uint64_t kernels_so_far(void)
{
    return device()->kernels;
}

__attribute__((noinline, no_sanitize_thread)) static uint32_t part_so_far(unsigned index)
{
    return window(index)->part;
}

/* Until an event has been collected. */
static void trace_from_the_first_use(void)
{
    fake.presence = GPU_IN_USE;
    begin("auto", "once", "10");
    set_event_at(clock_monotonic_ns());
    gpu_begin(hear);
    wait_for(LEDGER_GPU_TRACING);
    wait_until_more(&fake.collections);
    wait_until_more(&fake.collections);
}

/* As if the program had marked three more steps. */
static void mark_steps(void)
{
    __atomic_add_fetch(&the_ledger.header->steps, 3, __ATOMIC_RELEASE);
}

TEST(steps_replace_what_was_traced_before_them_and_tracing_goes_on)
{
    trace_from_the_first_use();
    CHECK_TEXT(fact("gpu.traced_part"), "first use");
    set_event_at(0);
    wait_until_more(&fake.collections);
    CHECK(kernels_so_far() > 0);
    mark_steps();
    while (!window(1))
        sched_yield();
    wait_until_more(&fake.collections);
    CHECK_EQUAL(kernels_so_far(), 0);
    int64_t in_it_ns = clock_monotonic_ns();
    set_event_at(in_it_ns);
    wait_until_more(&fake.collections);
    wait_until_more(&fake.collections);
    gpu_end();
    CHECK(device()->kernels > 0 && device()->first_ns == in_it_ns);
    CHECK_TEXT(fact("gpu.traced_part"), "steps");
    CHECK_EQUAL(fake.resumes, 1);
    CHECK_EQUAL(fake.pauses, 1);
    CHECK_EQUAL(window(0)->part, LEDGER_PART_FIRST_USE);
    CHECK_EQUAL(window(1)->part, LEDGER_PART_STEPS);
    CHECK_EQUAL(window(1)->ended, LEDGER_TRACING_STOPPED);
}

TEST(what_another_tool_has_interrupted_is_replaced_only_once_there_is_a_record)
{
    trace_from_the_first_use();
    set_event_at(0);
    gpu_yield("another tool");
    mark_steps();
    gpu_unyield();
    wait_for(LEDGER_GPU_TRACING);
    wait_until_more(&fake.collections);
    wait_until_more(&fake.collections);
    CHECK(kernels_so_far() > 0);
    CHECK_TEXT(fact("gpu.traced_part"), "first use");
    CHECK_EQUAL(part_so_far(1), LEDGER_PART_ANY);
    int64_t in_it_ns = clock_monotonic_ns();
    set_event_at(in_it_ns);
    wait_until_more(&fake.collections);
    wait_until_more(&fake.collections);
    gpu_end();
    CHECK_EQUAL(device()->first_ns, in_it_ns);
    CHECK_TEXT(fact("gpu.traced_part"), "steps");
    CHECK_EQUAL(window(1)->part, LEDGER_PART_STEPS);
}

TEST(a_window_does_not_begin_after_its_end)
{
    begin_in_use();
    set_event_at(clock_monotonic_ns() + 3600 * INT64_C(1000000000));
    gpu_begin(hear);
    wait_until_more(&fake.collections);
    gpu_end();
    CHECK_EQUAL(window(0)->begin_ns, window(0)->end_ns);
}

TEST(who_switches_calls_on_again_sees_a_whole_window)
{
    fake.presence = GPU_IN_USE;
    begin("auto", "once", "1");
    mark_steps();
    gpu_begin(hear);
    wait_for(LEDGER_GPU_TRACING);
    mark_steps();
    recording_switch(false);
    wait_for(LEDGER_GPU_PAUSED);
    CHECK_EQUAL(window(0)->ended, LEDGER_TRACING_OFF);
    recording_switch(true);
    wait_for(LEDGER_GPU_TRACING);
    mark_steps();
    wait_for(LEDGER_GPU_PAUSED);
    gpu_end();
    CHECK_EQUAL(window(1)->ended, LEDGER_TRACING_DUTY);
    CHECK(window(1)->end_ns - window(1)->begin_ns >= 1000000000);
}

TEST(a_later_window_begins_at_a_multiple_of_the_period)
{
    fake.presence = GPU_IN_USE;
    begin("auto", "3", "1");
    gpu_begin(hear);
    wait_for(LEDGER_GPU_TRACING);
    wait_until_more(&fake.resumes);
    wait_for(LEDGER_GPU_TRACING);
    gpu_end();
    CHECK_EQUAL(window(0)->ended, LEDGER_TRACING_DUTY);
    int64_t began_unix_ns = window(1)->begin_ns + clock_unix_ns() - clock_monotonic_ns();
    CHECK(began_unix_ns % 3000000000 < 1000000000);
}

TEST(one_rank_in_n_is_traced_and_all_report_memory_kinds)
{
    begin_in_use();
    settings.gpu_one_rank_in = 4;
    the_ledger.header->world_rank = 6;
    gpu_begin(hear);
    wait_for(LEDGER_GPU_REFUSED);
    gpu_end();
    CHECK_TEXT(reason(), "COMMPROF_GPU_ONE_RANK_IN=4: other ranks' are");
    CHECK_EQUAL(fake.arms, 0);
    CHECK(gpu_used == &FAKE);
}

static uint64_t busy_sum_ns(void)
{
    uint64_t sum_ns = 0;
    for (unsigned i = 0; i < LEDGER_BUSY_STATES; i++)
        sum_ns += device()->state_ns[i];
    return sum_ns;
}

/* In a window without activities it is not known for a second whether the GPU is idle. */
TEST(the_sums_are_those_of_all_windows_however_short)
{
    begin_in_use();
    set_event_at(clock_monotonic_ns());
    gpu_begin(hear);
    wait_until_more(&fake.collections);
    for (int i = 0; i < 3; i++) {
        recording_switch(false);
        wait_for(LEDGER_GPU_PAUSED);
        set_event_at(0);
        recording_switch(true);
        wait_for(LEDGER_GPU_TRACING);
        wait_until_more(&fake.collections);
        let_pass(20000000);
    }
    gpu_end();
    int64_t windows_ns = 0;
    for (unsigned i = 0; i < 4; i++)
        windows_ns += window(i)->end_ns - window(i)->begin_ns;
    CHECK_EQUAL(busy_sum_ns(), windows_ns);
}

static void *yield_in_a_while(void *unused)
{
    let_pass(250000000);
    gpu_yield("PyTorch's profiler");
    return unused;
}

/* The call is not in the ring yet, and no longer in progress when the GPU thread looks for it. */
TEST(a_call_that_ends_as_a_window_does_is_in_it)
{
    pthread_t thread;
    struct call call UNTIL_RETURN;
    begin_in_use();
    set_event_at(clock_monotonic_ns());
    gpu_begin(hear);
    wait_until_more(&fake.collections);
    CHECK_EQUAL(pthread_create(&thread, NULL, yield_in_a_while, NULL), 0);
    collect_no_more();
    call_begin(&call, CALL_Barrier, SITE_JOB);
    while (__atomic_load_n(&host_time_wanted, __ATOMIC_RELAXED)) {
    }
    call_end(&call, MPI_SUCCESS);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    int64_t in_window_ns = window(0)->end_ns - clock_ns(call.start);
    CHECK((int64_t)device()->state_ns[LEDGER_IN_MPI] > in_window_ns - 1000000);
    gpu_end();
}

/* The GPU thread notices a reset at its next collection, which may be the job's last. */
TEST(what_began_after_a_reset_counts_whenever_that_is_seen)
{
    trace();
    set_event_at(clock_monotonic_ns());
    wait_until_more(&fake.collections);
    collect_no_more();
    let_pass(200000000); /* so that a collection that is due has happened */
    recording_reset();
    let_pass(20000000);
    int64_t ends_ns = clock_monotonic_ns() - 10000000;
    set_event_at(ends_ns);
    gpu_end();
    CHECK_EQUAL(device()->kernels, 1);
    CHECK_EQUAL(device()->first_ns, ends_ns);
    CHECK_EQUAL(the_ledger.header->gpu_epoch, the_ledger.header->epoch);
    uint64_t traced_ns = busy_sum_ns();
    int64_t since_reset_ns = window(0)->end_ns - clock_ns(the_ledger.header->reset_ticks);
    CHECK(traced_ns > (uint64_t)since_reset_ns - 1000000 &&
          traced_ns < (uint64_t)since_reset_ns + 1000000); /* two clocks are compared */
}

/* Returns a time in the middle of a call. */
static int64_t in_a_call_ns(void)
{
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Barrier, SITE_JOB);
    int64_t begins_ns = clock_monotonic_ns();
    while (clock_monotonic_ns() < begins_ns + 10000000) {
    }
    call_end(&call, MPI_SUCCESS);
    return begins_ns + 5000000;
}

/* The scale was measured an hour ago, with an error of 10 ppm: 36 ms by now. */
TEST(calls_and_activities_lie_on_one_axis_however_long_the_run)
{
    enum { HOUR_S = 3600 };
    begin_in_use();
    if (!the_clock.counter)
        unit_skip("ticks are nanoseconds here");
    settings.gpu_collect_ms = HOUR_S * 1000;
    the_clock.base_ticks -= clock_ticks_at(HOUR_S * INT64_C(1000000000)) - clock_ticks_at(0);
    the_clock.base_ns -= HOUR_S * INT64_C(1000000000);
    the_clock.scale += the_clock.scale / 100000;
    gpu_begin(hear);
    wait_until_more(&fake.collections);
    let_pass(20000000);
    set_event_at(in_a_call_ns());
    gpu_end();
    CHECK_EQUAL(device()->state_ns[LEDGER_COMPUTING | LEDGER_IN_MPI], 1000);
    CHECK_EQUAL(device()->state_ns[LEDGER_COMPUTING], 0);
}

TEST(when_gpu_yield_returns_no_call_of_ours_is_under_way)
{
    trace();
    gpu_yield("PyTorch's profiler");
    CHECK(!fake.is_in_call);
    CHECK_EQUAL(fake.pauses, 1);
    CHECK_EQUAL(state(), LEDGER_GPU_YIELDED);
    CHECK_TEXT(reason(), "yielded to PyTorch's profiler");
    unsigned collections = fake.collections + fake.last_collections;
    int64_t ended_ns = window(0)->end_ns;
    CHECK_EQUAL(window(0)->ended, LEDGER_TRACING_YIELDED);
    gpu_unyield();
    CHECK_EQUAL(fake.collections + fake.last_collections, collections);
    wait_for(LEDGER_GPU_TRACING);
    CHECK_EQUAL(fake.resumes, 2);
    CHECK(window(1)->begin_ns >= ended_ns);
    gpu_end();
}

TEST(an_interface_that_hangs_does_not_hang_the_job)
{
    trace();
    __atomic_store_n(&fake.hangs, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&fake.is_in_call, __ATOMIC_ACQUIRE))
        sched_yield();
    gpu_yield("PyTorch's profiler"); /* waits, but not without limit */
    gpu_end();
    CHECK_TEXT(reason(),
               "the tracing interface did not answer at the end; what it held back is lost");
    __atomic_store_n(&fake.hangs, false, __ATOMIC_RELEASE);
}

TEST(one_whose_records_stop_to_come_is_lost_to_another)
{
    fake.presence = GPU_IN_USE;
    fake.is_foreign = true;
    begin("auto", "0", "0");
    gpu_begin(hear);
    while (!window(0) || !__atomic_load_n(&window(0)->end_ns, __ATOMIC_ACQUIRE))
        sched_yield();
    gpu_end();
    CHECK_EQUAL(window(0)->ended, LEDGER_TRACING_LOST);
}

TEST(a_forked_child_has_no_gpu_side)
{
    trace();
    pid_t child = fork();
    if (child == 0) {
        bool is_dead = !gpu_used && !memory_kind_ask;
        gpu_yield("nobody"); /* none of them waits for a thread that does not exist */
        gpu_wake();
        gpu_end();
        _exit(is_dead ? 0 : 1);
    }
    int status = 0;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(state(), LEDGER_GPU_TRACING);
    gpu_end();
}

TEST(a_process_that_exits_calls_nothing_of_the_vendor_s)
{
    trace();
    gpu_exit();
    while (unit_threads("commprof-gpu\n"))
        sched_yield();
    CHECK_EQUAL(fake.last_collections, 0);
    CHECK_EQUAL(fake.pauses, 0);
}
