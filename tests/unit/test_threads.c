/* Threads run everything concurrently that can interfere in the profiler. The thread sanitizer
 * finds races; the counts show losses. */
#include "fake_mpi.h"
#include "ledger_reader.h"
#include "record/account.h"
#include "record/announce.h"
#include "record/recording.h"
#include "record/traffic.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, ROUNDS = UNIT_SANITIZED ? 1000 : 3000 };

static mpi_handle comms[THREADS][4];

static const int MEMBERS[] = {0, 1};

static void begin(size_t limit_bytes)
{
    fake_mpi_speak("mpich");
    CHECK_EQUAL(ledger_open("ledger", limit_bytes), 0);
    fake_world(4, 1);
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; k < 4; k++)
            comms[i][k] = fake_comm(MEMBERS, 2);
    CHECK(requests_begin(true));
    samples_begin(1 << 18);
    recording_begin();
    recording_switch(true);
}

static void call_on(mpi_handle comm, uint64_t bytes)
{
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Send, SITE_JOB);
    call_end(&call, MPI_SUCCESS);
    struct traffic traffic = traffic_nowhere();
    traffic.communicator = communicators_find(comm);
    traffic.bytes = traffic.volume_bytes = bytes;
    account_call(&call, traffic);
}

static uint64_t calls_counted(void)
{
    uint64_t count = __atomic_load_n(&the_ledger.header->dropped_calls, __ATOMIC_RELAXED);
    for (uint32_t thread = 0; thread < THREADS; thread++)
        count += reader_totals(the_ledger.header, thread).count;
    return count;
}

static void *call_with_many_sizes(void *number)
{
    for (uint64_t round = 0; round < ROUNDS; round++)
        call_on(mpi_abi.comm_world, round * 8 + (uint64_t)(intptr_t)number);
    return NULL;
}

TEST(threads_whose_tables_grow_count_every_call)
{
    begin(64 << 20);
    unit_together(THREADS, call_with_many_sizes, NULL);
    CHECK_EQUAL(calls_counted(), THREADS * ROUNDS);
    CHECK_EQUAL(the_ledger.header->dropped_calls, 0);
}

static void *make_use_and_free(void *number)
{
    for (uint64_t round = 0; round < ROUNDS; round++) {
        mpi_handle comm = comms[(intptr_t)number][round % 4];
        communicators_created(comm, CALL_Comm_split, mpi_abi.comm_world, true, 0);
        call_on(comm, 8);
        call_on(mpi_abi.comm_world, 8);
        communicators_freed(communicators_freeing(comm));
    }
    return NULL;
}

TEST(communicators_of_many_threads_come_and_go)
{
    begin(64 << 20);
    unit_together(THREADS, make_use_and_free, NULL);
    CHECK_EQUAL(calls_counted(), 2 * THREADS * ROUNDS);
}

/* The first thread enters a communicator into the ledger; the others find it there. */
static mpi_handle shared[64];

static void *meet_one_after_the_other(void *number)
{
    (void)number;
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
        for (int repeat = 0; repeat < 20; repeat++)
            call_on(shared[i], 8);
    return NULL;
}

TEST(threads_that_first_use_a_communicator_at_once_share_its_entry)
{
    begin(64 << 20);
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        shared[i] = fake_comm(MEMBERS, 2);
        communicators_created(shared[i], CALL_Comm_dup, mpi_abi.comm_world, true, 0);
    }
    unit_together(THREADS, meet_one_after_the_other, NULL);
    CHECK_EQUAL(calls_counted(), THREADS * 20 * sizeof shared / sizeof shared[0]);
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
        CHECK_EQUAL(communicators_find(shared[i])->entry->communicator,
                    communicators_find(shared[i])->slot);
}

/* All threads count; one of them resets, another one pauses and resumes. */
static void *count_and_reset(void *number)
{
    for (uint64_t round = 0; round < ROUNDS; round++) {
        call_on(mpi_abi.comm_world, round);
        if ((intptr_t)number == 0 && round % 64 == 0)
            recording_reset();
        if ((intptr_t)number == 1 && round % 64 == 0) {
            recording_switch(false);
            recording_switch(true);
        }
    }
    return NULL;
}

TEST(resets_while_other_threads_count_leave_no_more_than_was_counted)
{
    begin(1);
    unit_together(THREADS, count_and_reset, NULL);
    CHECK(calls_counted() <= THREADS * ROUNDS);
    recording_reset();
    CHECK_EQUAL(calls_counted(), 0);
}
