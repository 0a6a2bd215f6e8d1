#include "record/host_time.h"
#include "record/recording.h"

#include "fake_mpi.h"
#include "ledger/ledger.h"
#include "record/announce.h"
#include "unit.h"

#include <pthread.h>
#include <sched.h>

enum { MANY = UNIT_SANITIZED ? 200000 : 3000000, THREADS = 3 };

static void begin(void)
{
    fake_mpi_speak("open_mpi");
    clock_begin(CLOCK_GETTIME);
    CHECK_EQUAL(ledger_open("ledger", 4 << 20), 0);
    fake_world(4, 1);
    recording_begin();
    recording_switch(true);
    host_time_wanted = true;
}

/* The intervals handed over. */
static uint64_t taken, taken_ticks, first_start, last_end;

static void take(uint64_t start_ticks, uint64_t end_ticks)
{
    CHECK(start_ticks < end_ticks);
    first_start = taken ? first_start : start_ticks;
    last_end = end_ticks;
    taken++;
    taken_ticks += end_ticks - start_ticks;
}

/* Hands over; returns how many were lost. */
static uint64_t collected(void)
{
    uint64_t lost = 0;
    taken = taken_ticks = 0;
    host_time_collect(take, &lost);
    return lost;
}

static struct call called(enum call_id id)
{
    struct call call UNTIL_RETURN;
    call_begin(&call, id, SITE_JOB);
    while (clock_ticks() <= call.start) {
    }
    call_end(&call, MPI_SUCCESS);
    return call;
}

/* The record and calls of a fake thread. */
static struct ledger_thread record;
static struct host_time thread = {.record = &record};

static void enter_thread(void)
{
    host_time_enter(&thread);
}

static void add(uint64_t from, uint64_t until)
{
    for (uint64_t i = from; i < until; i++)
        host_time_add(&thread, 10 * i, 10 * i + 7);
}

static void *end_inside_a_call(void *unused)
{
    struct call call;
    call_begin(&call, CALL_Recv, SITE_JOB);
    return unused;
}

TEST(a_thread_that_has_ended_inside_a_call_is_in_it_no_longer)
{
    pthread_t other;
    begin();
    CHECK(pthread_create(&other, NULL, end_inside_a_call, NULL) == 0);
    CHECK(pthread_join(other, NULL) == 0);
    CHECK_EQUAL(collected(), 0);
    CHECK_EQUAL(taken, 0);
}

TEST(what_was_overwritten_is_counted_as_lost)
{
    enter_thread();
    add(0, HOST_TIME_SLOTS + 100);
    /* The oldest slot may be partly overwritten by a new call. */
    CHECK_EQUAL(collected(), 101);
    CHECK_EQUAL(taken, HOST_TIME_SLOTS - 1);
    CHECK_EQUAL(first_start, 10 * 101);
    add(HOST_TIME_SLOTS + 100, HOST_TIME_SLOTS + 105);
    CHECK_EQUAL(collected(), 0);
    CHECK_EQUAL(taken, 5);
}

/* Threads that call while their rings are read. Each call's end follows from its begin, so a torn
 * slot is detected by its length. */
static struct host_time several[THREADS];
static struct ledger_thread records[THREADS];
static uint32_t running;

static void *make_many(void *number)
{
    for (uint64_t i = 1; i <= MANY; i++)
        host_time_add(&several[(intptr_t)number], 1000 * i, 1000 * i + 1 + i % 999);
    __atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
    return NULL;
}

static uint64_t handed_over;

static void take_whole(uint64_t start_ticks, uint64_t end_ticks)
{
    CHECK_EQUAL(start_ticks % 1000, 0);
    CHECK_EQUAL(end_ticks - start_ticks, 1 + start_ticks / 1000 % 999);
    handed_over++;
}

TEST(each_call_is_handed_over_whole_or_lost)
{
    pthread_t threads[THREADS];
    uint64_t lost = 0;
    running = THREADS;
    for (intptr_t i = 0; i < THREADS; i++) {
        several[i].record = &records[i];
        host_time_enter(&several[i]);
        CHECK(pthread_create(&threads[i], NULL, make_many, (void *)i) == 0);
    }
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE))
        host_time_collect(take_whole, &lost);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    host_time_collect(take_whole, &lost);
    CHECK_EQUAL(handed_over + lost, (uint64_t)THREADS * MANY);
    CHECK(handed_over > 0);
}

/* Real calls. Slightly more than their time may be found: a thread may be preempted between reading
 * the clock and leaving the call. */
static uint64_t in_mpi_ticks, calls_made, said_ticks;

static void *call_again_and_again(void *unused)
{
    uint64_t total = 0;
    for (int i = 0; i < 2000; i++) {
        struct call call = called(i % 2 ? CALL_Send : CALL_Recv);
        total += call.end - call.start;
        sched_yield();
    }
    __atomic_add_fetch(&said_ticks, total, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
    return unused;
}

static void add_up(uint64_t start_ticks, uint64_t end_ticks)
{
    in_mpi_ticks += end_ticks - start_ticks;
    calls_made++;
}

TEST(no_time_in_mpi_is_missing_however_often_it_is_asked_for)
{
    pthread_t threads[THREADS];
    uint64_t lost = 0;
    begin();
    running = THREADS;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, call_again_and_again, NULL) == 0);
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE))
        host_time_collect(add_up, &lost);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    host_time_collect(add_up, &lost);
    CHECK_EQUAL(lost, 0);
    CHECK(calls_made >= THREADS * 2000);
    CHECK(in_mpi_ticks >= said_ticks);
}
