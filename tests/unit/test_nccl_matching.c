#include "nccl/nccl_groups.h"

#include "gpu/observer.h"
#include "record/call.h"
#include "record/recording.h"
#include "unit.h"

#include <malloc.h>
#include <pthread.h>

/* A fake device: the test gives the times of its activities, in microseconds. */
enum {
    US = 1000,
    DEVICE = 0,
    CONTEXT_NUMBER = 1,
    SLOT = 5,
    ON_DEVICE = LEDGER_DEVICE | LEDGER_DEVICE << LEDGER_MEMORY_KIND_TO_BIT
};
static char communicator, other_communicator;
static int64_t origin_ns;

static uint64_t ticks(int64_t us)
{
    return clock_ticks_at(origin_ns + us * US);
}

static void begin(void)
{
    clock_begin(CLOCK_GETTIME);
    clock_calibrate();
    origin_ns = clock_monotonic_ns();
    CHECK_EQUAL(ledger_open("ledger", 16 << 20), 0);
    the_ledger.header->start_ns = origin_ns;
    samples_begin(1 << 20);
    recording_begin();
    recording_switch(true);
    CHECK(thread_ready() != NULL);
    gpu_observer->follow(true);
}

/* Operations as their wrappers pass them on. */

static struct nccl_operation operation(const void *comm, int stream, enum call_id call,
                                       uint64_t bytes, uint8_t kernels)
{
    return (struct nccl_operation){.communicator = comm,
                                   .stream = {CONTEXT_NUMBER, (uint32_t)stream},
                                   .has_stream = true,
                                   .bytes = bytes,
                                   .volume_bytes = bytes,
                                   .epoch = this_thread->epoch,
                                   .call = (uint16_t)call,
                                   .slot = SLOT,
                                   .kernels = kernels};
}

static void add(int stream, enum call_id call, uint64_t bytes, uint8_t kernels)
{
    struct nccl_operation added = operation(&communicator, stream, call, bytes, kernels);
    nccl_groups_add(&added);
}

static void launch(int64_t us)
{
    nccl_groups_launching(ticks(us));
    nccl_groups_launched(ticks(us), ticks(us + 5), NCCL_LAUNCHED);
}

static void allreduce(int stream, uint64_t bytes, int64_t us)
{
    add(stream, CALL_ncclAllReduce, bytes, NCCL_KERNELS_ONE);
    launch(us);
}

/* A Send and a Recv. */
static void exchange(int stream, uint64_t bytes, int64_t us)
{
    add(stream, CALL_ncclSend, bytes, NCCL_KERNELS_ONE);
    add(stream, CALL_ncclRecv, bytes, NCCL_KERNELS_ONE);
    launch(us);
}

static unsigned kernel_named(const char *name, int stream, int64_t from_us, int64_t until_us)
{
    return gpu_observer->kernel(&(struct gpu_event){.start_ns = origin_ns + from_us * US,
                                                    .end_ns = origin_ns + until_us * US,
                                                    .name = name,
                                                    .device = DEVICE,
                                                    .context = CONTEXT_NUMBER,
                                                    .stream = (uint32_t)stream,
                                                    .kind = LEDGER_ACTIVITY_KERNEL});
}

static unsigned kernel(int stream, int64_t from_us, int64_t until_us)
{
    return kernel_named("_Z21ncclDevKernel_Generic24ncclDevKernelArgsStorageILm4096EE", stream,
                        from_us, until_us);
}

static void idle(int64_t from_us, int64_t until_us)
{
    gpu_observer->idle(DEVICE, origin_ns + from_us * US, origin_ns + until_us * US);
}

/* The device is idle after it. */
static void last_kernel(int stream, int64_t from_us, int64_t until_us, int64_t idle_until_us)
{
    kernel(stream, from_us, until_us);
    idle(until_us, idle_until_us);
}

/* Attributed times */

static const struct ledger_cell *cell_on(unsigned slot, enum call_id call, uint64_t bytes)
{
    return cells_find(&this_thread->cells, bytes,
                      cell_key(call, slot, LEDGER_DEVICE_TIME) | cell_key_memory_kind(ON_DEVICE));
}

static const struct ledger_cell *cell_of(enum call_id call, uint64_t bytes)
{
    return cell_on(SLOT, call, bytes);
}

static void check_attributed(enum call_id call, uint64_t bytes, uint64_t count, uint64_t total_us)
{
    CHECK_EQUAL(cell_count(cell_of(call, bytes)), count);
    CHECK_EQUAL(cell_of(call, bytes)->total_ns, total_us * US);
}

static uint64_t unmatched(void)
{
    return the_ledger.header->gpu_unmatched_operations;
}

static void the_device_was_idle_first(void)
{
    begin();
    idle(0, 100);
}

TEST(nothing_is_attributed_before_the_device_was_idle)
{
    the_device_was_idle_first();
    allreduce(7, 64, 200);
    last_kernel(7, 210, 250, 270);
    check_attributed(CALL_ncclAllReduce, 64, 0, 0);
    CHECK_EQUAL(unmatched(), 0);
}

TEST(what_was_launched_within_a_gap_runs_behind_it)
{
    the_device_was_idle_first();
    allreduce(7, 64, 200);
    kernel(7, 210, 250);
    allreduce(7, 128, 390);
    idle(250, 400);
    last_kernel(7, 400, 420, 600);
    check_attributed(CALL_ncclAllReduce, 64, 1, 40);
    check_attributed(CALL_ncclAllReduce, 128, 1, 20);
}

TEST(streams_that_are_used_once_do_not_take_more_and_more_memory)
{
    enum { STREAMS = 4000, STEP_US = 200, MOST_BYTES = 8 << 20 };
    the_device_was_idle_first();
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < STREAMS; i++) {
        allreduce(7 + i, 64, 200 + STEP_US * i);
        kernel(7 + i, 210 + STEP_US * i, 250 + STEP_US * i);
        idle(250 + STEP_US * i, 400 + STEP_US * i);
    }
    check_attributed(CALL_ncclAllReduce, 64, STREAMS, 40 * STREAMS);
    CHECK_EQUAL(unmatched(), 0);
    CHECK(mallinfo2().uordblks < before + MOST_BYTES);
}

TEST(an_evicted_stream_is_not_identified_by_its_old_kernel)
{
    enum { OTHERS = 256 };
    the_device_was_idle_first();
    allreduce(7, 64, 200);
    for (int i = 0; i < OTHERS; i++)
        allreduce(100 + i, 32, 300 + i);
    allreduce(7, 128, 600);
    CHECK_EQUAL(kernel(7, 1000, 1040), SLOT);
    idle(1040, 1200);
    check_attributed(CALL_ncclAllReduce, 64, 0, 0);
    check_attributed(CALL_ncclAllReduce, 128, 0, 0);
    CHECK_EQUAL(unmatched(), OTHERS + 1);
    allreduce(7, 256, 1300);
    last_kernel(7, 1310, 1330, 1500);
    check_attributed(CALL_ncclAllReduce, 256, 1, 20);
}

TEST(nothing_is_followed_where_times_come_from_elsewhere)
{
    begin();
    CHECK(nccl_followed);
    nccl_groups_give_up();
    CHECK(!nccl_followed);
    gpu_observer->follow(true);
    CHECK(!nccl_followed);
}

/* One process with two devices: each numbers its own streams. */
TEST(streams_of_two_contexts_may_have_the_same_number)
{
    the_device_was_idle_first();
    gpu_observer->idle(DEVICE + 1, origin_ns, origin_ns + 100 * US);
    struct nccl_operation other =
        operation(&other_communicator, 7, CALL_ncclAllReduce, 128, NCCL_KERNELS_ONE);
    other.stream.context = CONTEXT_NUMBER + 1;
    add(7, CALL_ncclAllReduce, 64, NCCL_KERNELS_ONE);
    nccl_groups_add(&other);
    launch(200);
    kernel(7, 210, 250);
    gpu_observer->kernel(&(struct gpu_event){.start_ns = origin_ns + 210 * US,
                                             .end_ns = origin_ns + 230 * US,
                                             .device = DEVICE + 1,
                                             .context = CONTEXT_NUMBER + 1,
                                             .stream = 7});
    idle(250, 400);
    gpu_observer->idle(DEVICE + 1, origin_ns + 230 * US, origin_ns + 400 * US);
    check_attributed(CALL_ncclAllReduce, 64, 1, 40);
    check_attributed(CALL_ncclAllReduce, 128, 1, 20);
}

TEST(the_last_new_stream_of_a_communicator_has_the_kernel)
{
    the_device_was_idle_first();
    add(7, CALL_ncclSend, 32, NCCL_KERNELS_ONE);
    add(8, CALL_ncclRecv, 32, NCCL_KERNELS_ONE);
    add(9, CALL_ncclAllReduce, 0, NCCL_KERNELS_NONE);
    add(7, CALL_ncclRecv, 32, NCCL_KERNELS_ONE);
    launch(200);
    CHECK_EQUAL(kernel(7, 205, 208), 0);
    CHECK_EQUAL(kernel(9, 205, 208), 0);
    last_kernel(8, 210, 250, 400);
    check_attributed(CALL_ncclGroup, 96, 1, 40);
}

TEST(one_group_may_have_several_kernels)
{
    the_device_was_idle_first();
    allreduce(7, 64, 200);
    exchange(7, 32, 210);
    allreduce(7, 128, 220);
    kernel(7, 230, 240);
    kernel(7, 240, 260);
    kernel(7, 260, 270);
    last_kernel(7, 280, 285, 400);
    check_attributed(CALL_ncclAllReduce, 64, 1, 10);
    check_attributed(CALL_ncclGroup, 64, 1, 30);
    check_attributed(CALL_ncclAllReduce, 128, 1, 5);
    CHECK_EQUAL(unmatched(), 0);
}

TEST(if_several_groups_may_have_more_kernels_the_others_are_attributed)
{
    the_device_was_idle_first();
    allreduce(7, 64, 200);
    exchange(7, 32, 210);
    allreduce(7, 256, 215);
    exchange(7, 32, 220);
    allreduce(7, 128, 225);
    for (int i = 0; i < 6; i++)
        kernel(7, 300 + 10 * i, 301 + 11 * i);
    idle(360, 500);
    check_attributed(CALL_ncclAllReduce, 64, 1, 1);
    check_attributed(CALL_ncclAllReduce, 128, 1, 6);
    check_attributed(CALL_ncclAllReduce, 256, 0, 0);
    check_attributed(CALL_ncclGroup, 64, 0, 0);
    CHECK_EQUAL(unmatched(), 5);
}

TEST(kernels_of_other_callers_leave_all_unattributed)
{
    the_device_was_idle_first();
    allreduce(7, 64, 200);
    kernel(7, 210, 250);
    last_kernel(7, 250, 260, 400);
    check_attributed(CALL_ncclAllReduce, 64, 0, 0);
    CHECK_EQUAL(unmatched(), 1);
    allreduce(7, 64, 500);
    last_kernel(7, 510, 515, 700);
    check_attributed(CALL_ncclAllReduce, 64, 1, 5);
}

TEST(a_device_that_waits_for_the_host_is_not_taken_for_done)
{
    the_device_was_idle_first();
    allreduce(7, 64, 200);
    allreduce(7, 128, 210);
    last_kernel(7, 220, 230, 400);
    last_kernel(7, 400, 420, 500);
    check_attributed(CALL_ncclAllReduce, 64, 1, 10);
    check_attributed(CALL_ncclAllReduce, 128, 1, 20);
}

TEST(kernels_that_never_come_are_given_up_some_time)
{
    the_device_was_idle_first();
    allreduce(7, 64, 200);
    allreduce(7, 64, 210);
    kernel(7, 220, 230);
    for (int i = 0; i < 9; i++)
        idle(300 + 200 * i, 400 + 200 * i);
    CHECK_EQUAL(unmatched(), 2);
    allreduce(7, 64, 3000);
    last_kernel(7, 3010, 3020, 3200);
    check_attributed(CALL_ncclAllReduce, 64, 1, 10);
}

TEST(operations_without_work_have_no_kernel)
{
    the_device_was_idle_first();
    add(7, CALL_ncclAllReduce, 0, NCCL_KERNELS_NONE);
    launch(200);
    allreduce(7, 64, 210);
    last_kernel(7, 220, 230, 400);
    check_attributed(CALL_ncclAllReduce, 64, 1, 10);
    CHECK_EQUAL(unmatched(), 0);
}

/* PyTorch runs collectives that the host waits for on the compute stream. */
TEST(communication_kernels_of_other_libraries_on_the_stream_are_not_counted)
{
    the_device_was_idle_first();
    allreduce(7, 64, 200);
    exchange(7, 32, 210);
    kernel(7, 220, 230);
    CHECK_EQUAL(kernel_named("_ZN12_GLOBAL__N_125one_shot_all_reduce_kernelIfEEvPT_", 7, 230, 240),
                0);
    kernel(7, 240, 245);
    idle(250, 400);
    check_attributed(CALL_ncclAllReduce, 64, 1, 10);
    check_attributed(CALL_ncclGroup, 64, 1, 5);
}

/* After a loss up to 2000 or 2010, a kernel of a lost operation runs first, so nothing is
 * attributed before the next gap. */
static void check_nothing_attributed_before_the_next_gap(void)
{
    exchange(7, 64, 2020);
    kernel(7, 2030, 2130);
    last_kernel(7, 2140, 2150, 2300);
    check_attributed(CALL_ncclGroup, 128, 0, 0);
    exchange(7, 64, 2400);
    last_kernel(7, 2410, 2420, 2500);
    check_attributed(CALL_ncclGroup, 128, 1, 10);
}

TEST(a_gap_from_before_records_were_lost_says_nothing_of_what_is_behind_it)
{
    the_device_was_idle_first();
    exchange(7, 32, 1050); /* its kernel is lost */
    gpu_observer->untraced(origin_ns + 2000 * US);
    idle(1110, 1200);
    check_nothing_attributed_before_the_next_gap(); /* another kernel of it is not */
}

TEST(a_call_that_is_under_way_may_have_launched_before_a_gap)
{
    the_device_was_idle_first();
    allreduce(7, 64, 200);
    nccl_groups_launching(ticks(205));
    last_kernel(7, 210, 250, 400);
    check_attributed(CALL_ncclAllReduce, 64, 0, 0);
    nccl_groups_launched(ticks(205), ticks(260), NCCL_LAUNCHED);
    idle(420, 600);
    check_attributed(CALL_ncclAllReduce, 64, 1, 40);
}

/* The second Send and Recv are launched after their call has returned: after the gap. */
TEST(a_group_of_a_nonblocking_communicator_may_be_launched_behind_a_gap)
{
    the_device_was_idle_first();
    exchange(7, 32, 200);
    add(7, CALL_ncclSend, 64, NCCL_KERNELS_ONE);
    add(7, CALL_ncclRecv, 64, NCCL_KERNELS_ONE);
    nccl_groups_launching(ticks(206));
    nccl_groups_launched(ticks(206), ticks(210), NCCL_LAUNCHES_LATER);
    kernel(7, 210, 220);
    last_kernel(7, 220, 240, 400);
    check_attributed(CALL_ncclGroup, 64, 0, 0);
    check_attributed(CALL_ncclGroup, 128, 0, 0);
    CHECK_EQUAL(unmatched(), 0);
}

TEST(of_a_group_without_room_no_part_is_taken_for_the_whole)
{
    the_device_was_idle_first();
    for (int i = 0; i < NCCL_QUEUE_ITEMS; i++)
        add(7, CALL_ncclSend, 1, NCCL_KERNELS_ONE);
    idle(100, 200);
    idle(300, 400);
    for (int i = 0; i < 3; i++)
        add(7, CALL_ncclSend, 1, NCCL_KERNELS_ONE);
    launch(500);
    last_kernel(7, 510, 520, 600);
    check_attributed(CALL_ncclGroup, 3, 0, 0);
    check_attributed(CALL_ncclGroup, 4, 0, 0);
    CHECK_EQUAL(unmatched(), NCCL_QUEUE_ITEMS + 3);
}

TEST(a_simulated_group_leaves_no_trace)
{
    the_device_was_idle_first();
    add(7, CALL_ncclAllReduce, 32, NCCL_KERNELS_ONE);
    nccl_groups_forget();
    allreduce(7, 64, 200);
    last_kernel(7, 210, 250, 400);
    check_attributed(CALL_ncclAllReduce, 64, 1, 40);
    CHECK_EQUAL(unmatched(), 0);
}

TEST(a_queue_that_is_full_counts_what_it_loses)
{
    the_device_was_idle_first();
    for (int i = 0; i < NCCL_QUEUE_ITEMS; i++)
        allreduce(7, 64, 200 + i);
    idle(10000, 10100);
    check_attributed(CALL_ncclAllReduce, 64, 0, 0);
    CHECK_EQUAL(unmatched(), NCCL_QUEUE_ITEMS);
    allreduce(7, 64, 11000);
    kernel(7, 11010, 11020);
    idle(11100, 11200);
    check_attributed(CALL_ncclAllReduce, 64, 1, 10);
}

static void *allreduce_later(void *unused)
{
    CHECK(thread_adopt() != NULL);
    allreduce(7, 128, 300);
    return unused;
}

TEST(what_is_pending_stays_in_order_when_what_came_later_is_settled)
{
    pthread_t thread;
    the_device_was_idle_first();
    CHECK_EQUAL(pthread_create(&thread, NULL, allreduce_later, NULL), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    gpu_observer->collected();
    allreduce(7, 64, 200);
    allreduce(7, 32, 250);
    last_kernel(7, 210, 220, 290);
    kernel(7, 290, 310);
    last_kernel(7, 310, 340, 500);
    check_attributed(CALL_ncclAllReduce, 64, 1, 10);
    check_attributed(CALL_ncclAllReduce, 32, 1, 20);
}

TEST(the_samples_of_a_group_say_when_it_was_done_and_that_they_share)
{
    struct samples_window *window = &this_thread->window;
    the_device_was_idle_first();
    struct ledger_sample *samples[3];
    for (unsigned i = 0; i < 3; i++) {
        samples[i] = samples_of_window(window, this_thread->cells.record, ticks(0));
        sample_fill(samples[i], &(struct ledger_sample){.start_ticks = 1, .end_ticks = 2});
        struct nccl_operation added =
            operation(&communicator, 7, CALL_ncclAllReduce, 64, NCCL_KERNELS_ONE);
        added.sample = samples[i];
        nccl_groups_add(&added);
        if (i != 1)
            launch(200 + 10 * i);
    }
    CHECK_EQUAL(window->page->unfinished, 3);
    kernel(7, 230, 246);
    last_kernel(7, 250, 282, 400);
    CHECK_EQUAL(window->page->unfinished, 0);
    CHECK_EQUAL(samples[0]->completed_ticks, ticks(246));
    CHECK_EQUAL(samples[0]->device_span, 1000 << 1);
    CHECK_EQUAL(samples[1]->device_span, 2000 << 1 | LEDGER_DEVICE_SPAN_SHARED);
    CHECK_EQUAL(samples[2]->completed_ticks, ticks(282));
}
