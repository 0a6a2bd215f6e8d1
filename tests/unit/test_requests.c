#include "record/requests.h"

#include "fake_mpi.h"
#include "unit.h"

#include <pthread.h>

static void begin(bool concurrent)
{
    fake_mpi_speak("open_mpi");
    CHECK(requests_begin(concurrent));
}

static bool track(mpi_handle handle, uint64_t bytes, unsigned flags)
{
    struct request request = {.start_ticks = 100 + bytes, .bytes = bytes, .call = 7, .peer = PEER_NONE, .flags = (uint16_t)flags};
    return requests_track(handle, &request);
}

static void a_request_completes_as_it_was_tracked(void)
{
    begin(false);
    struct ledger_sample sample;
    struct request done, request = {.start_ticks = 11,
                                    .bytes = 22,
                                    .volume_bytes = 33,
                                    .sample = &sample,
                                    .peer = 4,
                                    .call = 5,
                                    .slot = 6,
                                    .flags = REQUEST_RECEIVE | REQUEST_ACTIVE};
    CHECK(requests_track(0x7f0012345678, &request));
    CHECK(requests_complete(0x7f0012345678, UINT64_MAX, &done));
    CHECK_EQUAL(done.start_ticks, 11);
    CHECK_EQUAL(done.bytes, 22);
    CHECK_EQUAL(done.volume_bytes, 33);
    CHECK(done.sample == &sample);
    CHECK_EQUAL(done.peer, 4);
    CHECK_EQUAL(done.call, 5);
    CHECK_EQUAL(done.slot, 6);
    CHECK_EQUAL(done.flags, REQUEST_RECEIVE | REQUEST_ACTIVE);
    CHECK_EQUAL(done.blocked_ticks, 0);
}

/* Out of memory for the table: the job continues without one. */
static void without_a_table_nothing_is_tracked(void)
{
    fake_mpi_speak("open_mpi");
    struct request done;
    CHECK(!track(0x1000, 1, REQUEST_ACTIVE));
    CHECK(!requests_start(requests_inactive(0x1000), 5, 5, NULL));
    CHECK(!requests_complete(0x1000, UINT64_MAX, &done));
    CHECK(!requests_forget(0x1000, &done));
}

/* Between the end of the call that completed the request and our accounting, MPI has given its handle to another thread's new request. */
static void a_request_that_started_after_the_call_is_passed_over(void)
{
    begin(true);
    struct request done;
    track(0x1000, 500, REQUEST_ACTIVE); /* starts at 600 */
    CHECK(!requests_complete(0x1000, 599, &done));
    requests_blocked(0x1000, 49, 599);
    track(0x1000, 1, REQUEST_ACTIVE);
    CHECK(requests_complete(0x1000, 599, &done));
    CHECK_EQUAL(done.bytes, 1);
    CHECK(requests_complete(0x1000, 700, &done));
    CHECK_EQUAL(done.bytes, 500);
    CHECK_EQUAL(done.blocked_ticks, 0);
}

static void a_request_completes_where_the_counter_has_gone_backwards(void)
{
    begin(false);
    struct request done;
    track(0x1000, 500, REQUEST_ACTIVE); /* starts at 600 */
    requests_blocked(0x1000, 49, 599);
    CHECK(requests_complete(0x1000, 599, &done));
    CHECK_EQUAL(done.bytes, 500);
    CHECK_EQUAL(done.start_ticks, 599);
    CHECK_EQUAL(done.blocked_ticks, 0);
}

static void a_request_completes_once(void)
{
    begin(false);
    struct request done;
    track(0x1000, 1, REQUEST_ACTIVE);
    CHECK(requests_complete(0x1000, UINT64_MAX, &done));
    CHECK(!requests_complete(0x1000, UINT64_MAX, &done));
}

static void a_handle_that_is_not_tracked_completes_nothing(void)
{
    begin(false);
    struct request done = {.bytes = 99};
    track(0x1000, 1, REQUEST_ACTIVE);
    CHECK(!requests_complete(0x2000, UINT64_MAX, &done));
    CHECK_EQUAL(done.bytes, 99);
}

/* MPICH and Open MPI return one handle for several small sends that are already complete. */
static void one_handle_may_be_in_flight_many_times(void)
{
    begin(false);
    struct request done;
    uint64_t sum = 0;
    for (uint64_t i = 1; i <= 1000; i++)
        CHECK(track(0x6c000001, i, REQUEST_ACTIVE));
    for (int i = 0; i < 1000; i++) {
        CHECK(requests_complete(0x6c000001, UINT64_MAX, &done));
        sum += done.bytes;
    }
    CHECK_EQUAL(sum, 500500);
    CHECK(!requests_complete(0x6c000001, UINT64_MAX, &done));
}

static void the_upper_half_of_a_narrow_handle_does_not_matter(void)
{
    fake_mpi_speak("mpich");
    CHECK(requests_begin(false));
    struct request done;
    track((mpi_handle)0xdeadbeef00000000 | 0x2c000007, 5, REQUEST_ACTIVE);
    CHECK(requests_complete(0x2c000007, UINT64_MAX, &done));
    CHECK_EQUAL(done.bytes, 5);
}

static void a_hundred_thousand_requests_are_in_flight_at_once(void)
{
    begin(false);
    struct request done;
    for (uint64_t i = 1; i <= 100000; i++)
        CHECK(track(0x55550000 + 64 * i, i, REQUEST_ACTIVE));
    for (uint64_t i = 100000; i >= 1; i--) {
        CHECK(requests_complete(0x55550000 + 64 * i, UINT64_MAX, &done));
        CHECK_EQUAL(done.bytes, i);
    }
    CHECK(!requests_complete(0x55550000 + 64, UINT64_MAX, &done));
}

static void a_hundred_thousand_sends_under_one_handle_are_in_flight_at_once(void)
{
    enum { MANY = 100000 };
    begin(false);
    struct request done;
    for (uint64_t i = 0; i < MANY; i++)
        CHECK(track(0x6c000001, 1, REQUEST_ACTIVE));
    for (uint64_t i = 0; i < MANY; i++)
        CHECK(requests_complete(0x6c000001, UINT64_MAX, &done));
    CHECK(!requests_complete(0x6c000001, UINT64_MAX, &done));
}

/* Blocked time */

static void time_blocked_on_a_request_adds_up_until_it_completes(void)
{
    begin(false);
    struct request done;
    track(0x1000, 1, REQUEST_ACTIVE);
    requests_blocked(0x1000, 30, 230);
    requests_blocked(0x1000, 12, 312);
    requests_blocked(0x2000, 1000, 1300);
    CHECK(requests_complete(0x1000, UINT64_MAX, &done));
    CHECK_EQUAL(done.blocked_ticks, 42);
}

/* A Waitsome on many equal handles charges each of them. */
static void a_call_is_charged_once_to_requests_that_share_a_handle(void)
{
    begin(false);
    struct request first, second;
    track(0x6c000001, 1, REQUEST_ACTIVE);
    track(0x6c000001, 2, REQUEST_ACTIVE);
    requests_blocked(0x6c000001, 30, 230);
    requests_blocked(0x6c000001, 30, 230);
    requests_complete(0x6c000001, UINT64_MAX, &first);
    requests_complete(0x6c000001, UINT64_MAX, &second);
    CHECK_EQUAL(first.blocked_ticks + second.blocked_ticks, 30);
}

static void a_request_is_not_charged_with_time_before_it_started(void)
{
    begin(false);
    struct request done;
    track(0x1000, 900, REQUEST_ACTIVE); /* starts at 1000 */
    requests_blocked(0x1000, 570, 1070);
    requests_complete(0x1000, UINT64_MAX, &done);
    CHECK_EQUAL(done.blocked_ticks, 70);
}

static void a_reused_handle_begins_without_blocked_time(void)
{
    begin(false);
    struct request done;
    track(0x1000, 1, REQUEST_ACTIVE);
    requests_blocked(0x1000, 30, 230);
    requests_complete(0x1000, UINT64_MAX, &done);
    track(0x1000, 2, REQUEST_ACTIVE);
    CHECK(requests_complete(0x1000, UINT64_MAX, &done));
    CHECK_EQUAL(done.bytes, 2);
    CHECK_EQUAL(done.blocked_ticks, 0);
}

/* Persistent requests */

static void a_persistent_request_stays_and_starts_again(void)
{
    begin(false);
    struct request done;
    track(0x1000, 8, REQUEST_PERSISTENT);
    CHECK(requests_start(requests_inactive(0x1000), 500, 500, NULL));
    requests_blocked(0x1000, 9, 609);
    CHECK(requests_complete(0x1000, UINT64_MAX, &done));
    CHECK_EQUAL(done.start_ticks, 500);
    CHECK_EQUAL(done.blocked_ticks, 9);
    CHECK(requests_start(requests_inactive(0x1000), 700, 705, NULL));
    CHECK(requests_complete(0x1000, UINT64_MAX, &done));
    CHECK_EQUAL(done.start_ticks, 700);
    CHECK_EQUAL(done.blocked_ticks, 5); /* in the call that started it */
    CHECK_EQUAL(done.bytes, 8);
}

static void a_persistent_request_that_was_not_started_does_not_complete(void)
{
    begin(false);
    struct request done;
    track(0x1000, 8, REQUEST_PERSISTENT);
    CHECK(!requests_complete(0x1000, UINT64_MAX, &done));
    requests_start(requests_inactive(0x1000), 500, 500, NULL);
    requests_complete(0x1000, UINT64_MAX, &done);
    CHECK(!requests_complete(0x1000, UINT64_MAX, &done));
}

static void a_handle_that_is_not_tracked_does_not_start(void)
{
    begin(false);
    CHECK(!requests_start(requests_inactive(0x1000), 500, 500, NULL));
    track(0x1000, 1, REQUEST_ACTIVE);
    CHECK(!requests_start(requests_inactive(0x1000), 500, 500, NULL)); /* not persistent */
}

static void a_freed_request_is_given_back_and_gone(void)
{
    begin(false);
    struct request forgotten, done;
    track(0x1000, 8, REQUEST_PERSISTENT);
    requests_start(requests_inactive(0x1000), 500, 500, NULL);
    CHECK(requests_forget(0x1000, &forgotten));
    CHECK_EQUAL(forgotten.bytes, 8);
    CHECK(forgotten.flags & REQUEST_ACTIVE);
    CHECK(!requests_complete(0x1000, UINT64_MAX, &done));
    CHECK(!requests_forget(0x1000, &forgotten));
    CHECK(!requests_start(requests_inactive(0x1000), 600, 600, NULL));
}

static void an_inactive_persistent_request_can_be_freed(void)
{
    begin(false);
    struct request forgotten;
    track(0x1000, 8, REQUEST_PERSISTENT);
    CHECK(requests_forget(0x1000, &forgotten));
    CHECK(!(forgotten.flags & REQUEST_ACTIVE));
}

/* Threads. All use a shared handle and their own handles at the same time, as with MPI_THREAD_MULTIPLE. */

enum { THREADS = 4, ROUNDS = 20000, IN_FLIGHT = 16, SHARED_HANDLE = 0x6c000001 };

static void together(void *(*work)(void *), void *results[THREADS])
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], &results[i]);
}

static void *send_and_complete(void *number)
{
    uintptr_t completed_bytes = 0;
    mpi_handle own = 0x10000 + 64 * (uintptr_t)number;
    struct request done;
    for (int round = 0; round < ROUNDS / IN_FLIGHT; round++) {
        for (int i = 0; i < IN_FLIGHT; i++) {
            CHECK(track(SHARED_HANDLE, 1, REQUEST_ACTIVE));
            CHECK(track(own, 1000, REQUEST_ACTIVE));
        }
        requests_blocked(own, 5, 2005);
        for (int i = 0; i < IN_FLIGHT; i++) {
            CHECK(requests_complete(SHARED_HANDLE, UINT64_MAX, &done));
            completed_bytes += done.bytes;
            CHECK(requests_complete(own, UINT64_MAX, &done));
            completed_bytes += done.bytes;
        }
    }
    return (void *)completed_bytes;
}

static void threads_complete_what_they_track_and_nothing_twice(void)
{
    void *bytes[THREADS];
    struct request done;
    begin(true);
    together(send_and_complete, bytes);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQUAL((uintptr_t)bytes[i], ROUNDS / IN_FLIGHT * IN_FLIGHT * 1001);
    CHECK(!requests_complete(SHARED_HANDLE, UINT64_MAX, &done));
}

static void *start_and_complete(void *number)
{
    uintptr_t completed = 0;
    mpi_handle own = 0x20000 + 64 * (uintptr_t)number;
    struct request done;
    CHECK(track(own, 8, REQUEST_PERSISTENT));
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        CHECK(requests_start(requests_inactive(own), round, round, NULL));
        CHECK(requests_complete(own, UINT64_MAX, &done));
        completed += done.start_ticks == round;
    }
    CHECK(requests_forget(own, &done));
    return (void *)completed;
}

static void threads_run_their_own_persistent_requests(void)
{
    void *completed[THREADS];
    begin(true);
    together(start_and_complete, completed);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQUAL((uintptr_t)completed[i], ROUNDS);
}

static const struct unit_test TESTS[] = {
    TEST(a_request_completes_as_it_was_tracked),
    TEST(without_a_table_nothing_is_tracked),
    TEST(a_request_that_started_after_the_call_is_passed_over),
    TEST(a_request_completes_where_the_counter_has_gone_backwards),
    TEST(a_request_completes_once),
    TEST(a_handle_that_is_not_tracked_completes_nothing),
    TEST(one_handle_may_be_in_flight_many_times),
    TEST(the_upper_half_of_a_narrow_handle_does_not_matter),
    TEST(a_hundred_thousand_requests_are_in_flight_at_once),
    TEST(a_hundred_thousand_sends_under_one_handle_are_in_flight_at_once),
    TEST(time_blocked_on_a_request_adds_up_until_it_completes),
    TEST(a_call_is_charged_once_to_requests_that_share_a_handle),
    TEST(a_request_is_not_charged_with_time_before_it_started),
    TEST(a_reused_handle_begins_without_blocked_time),
    TEST(a_persistent_request_stays_and_starts_again),
    TEST(a_persistent_request_that_was_not_started_does_not_complete),
    TEST(a_handle_that_is_not_tracked_does_not_start),
    TEST(a_freed_request_is_given_back_and_gone),
    TEST(an_inactive_persistent_request_can_be_freed),
    TEST(threads_complete_what_they_track_and_nothing_twice),
    TEST(threads_run_their_own_persistent_requests),
};

int main(void)
{
    return UNIT_RUN(TESTS);
}
