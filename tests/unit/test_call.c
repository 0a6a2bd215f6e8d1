#include "record/account.h"
#include "record/announce.h"
#include "record/recording.h"

#include "completed.h"
#include "fake_mpi.h"
#include "ledger/ledger.h"
#include "ledger_reader.h"
#include "unit.h"

#include <alloca.h>
#include <setjmp.h>

/* Conditions of long jobs: a counter that goes backwards or stops, and counts beyond 32 bits. */
enum { REQUEST = 0x2000 };
static const uint64_t AN_HOUR_AHEAD = 10000000000000; /* ticks, at least */

static void begin(void)
{
    fake_mpi_speak("open_mpi");
    clock_begin(CLOCK_AUTO);
    clock_calibrate();
    CHECK_EQUAL(ledger_open("ledger", 4 << 20), 0);
    fake_world(8, 3);
    CHECK(requests_begin(false));
    recording_begin();
    recording_switch(true);
}

/* A call whose counter is lower at its end than at its begin. */
static struct call call_from_ahead(enum call_id id)
{
    struct call call UNTIL_RETURN;
    call_begin(&call, id, SITE_JOB);
    call.start += AN_HOUR_AHEAD;
    call_end(&call, MPI_SUCCESS);
    return call;
}

static struct ledger_cell *only_cell(enum call_id id, enum ledger_measure measure)
{
    return cells_find(&this_thread->cells, 0, cell_key(id, LEDGER_COMMUNICATOR_NONE, measure));
}

static void track(uint64_t start_ticks)
{
    struct request request = {
        .start_ticks = start_ticks, .call = CALL_Isend, .peer = PEER_NONE, .flags = REQUEST_ACTIVE};
    CHECK(requests_track(REQUEST, &request));
}

TEST(a_test_that_ends_before_it_began_blocks_for_nothing)
{
    begin();
    track(clock_ticks());
    struct call call = call_from_ahead(CALL_Test);
    account_incomplete(&call, REQUEST);
    struct request done;
    CHECK(requests_complete(REQUEST, NULL, UINT64_MAX, UINT64_MAX, &done));
    CHECK_EQUAL(done.blocked_ticks, 0);
}

TEST(a_request_that_completes_before_it_started_took_the_least_time)
{
    begin();
    track(clock_ticks() + AN_HOUR_AHEAD);
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Wait, SITE_JOB);
    call_end(&call, MPI_SUCCESS);
    account_completed(&call, REQUEST, NULL, 0);
    struct ledger_cell *cell = only_cell(CALL_Isend, LEDGER_COMPLETION);
    CHECK_EQUAL(cell_count(cell), 1);
    CHECK_EQUAL(cell->total_ns, 1);
    CHECK(cell->blocked_ns <= 1);
}

TEST(calls_are_counted_beyond_32_bits)
{
    enum { CALLS = 3 };
    const uint64_t before = 10000000000;
    begin();
    struct ledger_cell *cell = NULL;
    for (int i = 0; i < CALLS; i++) {
        struct call call UNTIL_RETURN;
        call_begin(&call, CALL_Barrier, SITE_JOB);
        call_end(&call, MPI_SUCCESS);
        if (!cell) {
            cell = only_cell(CALL_Barrier, LEDGER_CALL);
            CHECK(cells_add_block(&this_thread->cells, cell, HISTOGRAM_BLOCKS - 1) == cell);
            cell_block(cell, HISTOGRAM_BLOCKS - 1)->counts[0] = before;
            cell->total_ns = before << 20;
            cell->volume_bytes = before << 20;
        }
        account_simple(&call);
    }
    CHECK_EQUAL(cell_count(cell), before + CALLS);
    CHECK(cell->total_ns > before << 20);
    CHECK_EQUAL(reader_totals(the_ledger.header, 0).count, before + CALLS);
}

TEST(resets_without_end_never_come_to_an_epoch_that_means_something_else)
{
    begin();
    the_ledger.header->epoch = UINT32_MAX - 2;
    recording_begin();
    for (int i = 0; i < 3; i++) {
        recording_reset();
        CHECK(the_ledger.header->epoch != 0);
        CHECK(the_ledger.header->epoch != UINT32_MAX);
        struct call call UNTIL_RETURN;
        call_begin(&call, CALL_Barrier, SITE_JOB);
        call_end(&call, MPI_SUCCESS);
        account_simple(&call);
        CHECK_EQUAL(reader_totals(the_ledger.header, 0).count, 1);
    }
}

/* Under MPI_THREAD_MULTIPLE each query may wait for MPI's lock, as do the job's other threads. */
static unsigned questions_about(mpi_handle made, enum call_id constructor, mpi_handle parent)
{
    struct call call UNTIL_RETURN;
    unsigned asked = fake_questions;
    uintptr_t memory = 0;
    mpi_handle_store(&memory, made);
    call_begin(&call, constructor, SITE_JOB);
    call_end(&call, MPI_SUCCESS);
    account_created(&call, &memory, parent, true, 0);
    CHECK(communicators_find(made) != NULL);
    return fake_questions - asked;
}

TEST(mpi_is_asked_nothing_about_a_duplicate_and_little_about_other_communicators)
{
    begin();
    mpi_handle parent = fake_comm((int[]){5, 3, 7}, 3);
    CHECK_EQUAL(questions_about(parent, CALL_Comm_split, mpi_abi.comm_world),
                7); /* two groups, two queries for each translation */
    mpi_handle duplicate = fake_comm((int[]){5, 3, 7}, 3);
    CHECK_EQUAL(questions_about(duplicate, CALL_Comm_dup, parent), 0);
    CHECK_EQUAL(questions_about(fake_comm((int[]){5, 3, 7}, 3), CALL_Comm_dup_with_info, duplicate),
                0);
    CHECK_EQUAL(communicators_find(duplicate)->constructor, CALL_Comm_dup);
    CHECK_EQUAL(communicators_world_rank(communicators_find(duplicate), 2), 7);
}

/* A call that begins in the middle of window 5 and lasts two windows. */
static void lasts_two_windows(struct call *call)
{
    call_start(call);
    the_ledger.header->start_ns = clock_ns(call->start);
    the_ledger.header->start_unix_ns = 11ll << (LEDGER_WINDOW_NS_LOG2 - 1);
    call_end(call, MPI_SUCCESS);
    call->end = clock_ticks_at(the_ledger.header->start_ns + (2ll << LEDGER_WINDOW_NS_LOG2));
}

TEST(a_message_is_sampled_in_the_window_in_which_it_returns)
{
    begin();
    samples_begin(256 << 10);
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Send, SITE_JOB);
    lasts_two_windows(&call);
    struct ledger_sample *sample = account_call(&call, traffic_nowhere());
    CHECK(sample == this_thread->window.page->samples);
    CHECK_EQUAL(this_thread->window.page->first, 7);
    CHECK_EQUAL(sample->sequence, 0);
}

#define NOINLINE __attribute__((noinline)) /* in a frame of its own, as a wrapper is */

static uint64_t the_inner_ticks;

/* A callback of MPI makes a call that takes a while, and each call calls back again. */
static NOINLINE void calls_inside(int depth)
{
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Barrier, SITE_JOB);
    while (clock_ticks() <= call.start + 10000) {
    }
    if (depth > 1)
        calls_inside(depth - 1);
    call_end(&call, MPI_SUCCESS);
    account_simple(&call);
    the_inner_ticks = call.end - call.start;
}

static uint64_t outer_call_around(void (*inside)(int), int depth)
{
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Comm_free, SITE_JOB);
    inside(depth);
    while (clock_ticks() <= call.start) {
    }
    call_end(&call, MPI_SUCCESS);
    account_simple(&call);
    return call.end - call.start;
}

TEST(calls_inside_calls_inside_calls_are_each_counted_once)
{
    begin();
    uint64_t ticks = outer_call_around(calls_inside, 5);
    struct ledger_cell *outer = only_cell(CALL_Comm_free, LEDGER_CALL),
                       *inner = only_cell(CALL_Barrier, LEDGER_CALL);
    CHECK_EQUAL(cell_count(inner), 5);
    CHECK(inner->total_ns >= 5 * clock_duration_ns(10000));
    CHECK(outer->total_ns + inner->total_ns <= clock_duration_ns(ticks) + 5);
}

TEST(calls_nested_too_deep_are_listed)
{
    begin();
    outer_call_around(calls_inside, WRAPPERS_NESTED + 3);
    CHECK_EQUAL(cell_count(only_cell(CALL_Barrier, LEDGER_CALL)), WRAPPERS_NESTED);
    CHECK_EQUAL(the_ledger.header->interrupted_calls, 3);
    CHECK_EQUAL(cell_count(only_cell(CALL_Comm_free, LEDGER_CALL)), 1);
    CHECK_EQUAL(this_thread->wrapper, 0);
}

/* MPI may be writing to the outer call's statuses. */
static NOINLINE void uses_scratch_inside(int unused)
{
    (void)unused;
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Barrier, SITE_JOB);
    memset(thread_scratch(call.thread, 100000), 1, 100000);
    call_end(&call, MPI_SUCCESS);
}

TEST(a_call_inside_another_has_memory_of_its_own)
{
    begin();
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Waitall, SITE_JOB);
    char *statuses = thread_scratch(call.thread, 100);
    memset(statuses, 0, 100);
    call_start(&call);
    for (int i = 0; i < 2; i++)
        uses_scratch_inside(0);
    call_end(&call, MPI_SUCCESS);
    CHECK(thread_scratch(call.thread, 100) == statuses);
    CHECK_EQUAL(statuses[99], 0);
}

static jmp_buf out_of_it;
static NOINLINE void tool_calls(bool leaves)
{
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Barrier, SITE_JOB | SITE_TOOL);
    if (leaves)
        longjmp(out_of_it, 1);
    call_end(&call, MPI_SUCCESS);
    account_simple(&call);
}

/* The second has its frame where the first one's was. */
TEST(a_tool_s_call_counts_after_one_that_was_left_by_longjmp)
{
    begin();
    for (volatile int i = 0; i < 2; i++)
        if (!setjmp(out_of_it))
            tool_calls(i == 0);
    CHECK_EQUAL(cell_count(only_cell(CALL_Barrier, LEDGER_CALL)), 1);
    CHECK_EQUAL(this_thread->wrapper, 0);
}

static void (*volatile nested)(int depth);

static NOINLINE void jumps_out(int depth)
{
    struct call call;
    call_begin(&call, CALL_Barrier, SITE_JOB);
    if (depth > 1)
        nested(depth - 1);
    longjmp(out_of_it, 1);
}

TEST(calls_left_by_longjmp_do_not_stay)
{
    begin();
    nested = jumps_out;
    if (!setjmp(out_of_it))
        outer_call_around(jumps_out, 3);
    calls_inside(1);
    CHECK_EQUAL(cell_count(only_cell(CALL_Barrier, LEDGER_CALL)), 1);
    CHECK_EQUAL(this_thread->depth, 0);
    CHECK_EQUAL(this_thread->wrapper, 0);
    CHECK(message_numbers_have_ended());
}

static void handler_on_its_own_stack(int number)
{
    (void)number;
    calls_inside(1);
}

static NOINLINE void raises(int unused)
{
    (void)unused;
    raise(SIGUSR1);
}

/* The stack is once below and once above that of the program. */
TEST(a_handler_s_call_is_inside_on_any_stack)
{
    begin();
    size_t bytes = 1 << 20;
    static char low[1 << 16];
    char *high = alloca(bytes);
    char *stacks[] = {low, high + bytes - sizeof low};
    for (int i = 0; i < 2; i++) {
        CHECK(sigaltstack(&(stack_t){.ss_sp = stacks[i], .ss_size = sizeof low}, NULL) == 0);
        CHECK(sigaction(SIGUSR1,
                        &(struct sigaction){.sa_handler = handler_on_its_own_stack,
                                            .sa_flags = SA_ONSTACK},
                        NULL) == 0);
        outer_call_around(raises, 0);
        CHECK_EQUAL(this_thread->wrapper, 0);
    }
    CHECK_EQUAL(cell_count(only_cell(CALL_Comm_free, LEDGER_CALL)), 2);
    CHECK_EQUAL(cell_count(only_cell(CALL_Barrier, LEDGER_CALL)), 2);
    CHECK(!message_numbers_have_ended());
}
