#include "record/requests.h"

#include "record/persistent_collectives.h"

#include "completed.h"
#include "fake_mpi.h"
#include "stepping.h"
#include "unit.h"

#include <pthread.h>
#include <sched.h>

static void begin(bool concurrent)
{
    fake_mpi_speak("open_mpi");
    CHECK(requests_begin(concurrent));
}

static bool track(mpi_handle handle, uint64_t bytes, unsigned flags)
{
    struct request request = {.start_ticks = 100 + bytes,
                              .bytes = bytes,
                              .call = 7,
                              .peer = PEER_NONE,
                              .flags = (uint16_t)flags};
    return requests_track(handle, &request);
}

static const struct ledger_thread TWO_THREADS[] = {{.thread = 0}, {.thread = 1}};

/* A request that one of two threads starts by a call from `start` to `end`. */
static void start_by(int thread, mpi_handle handle, uint64_t start, uint64_t end, unsigned flags)
{
    struct request request = {.start_ticks = start,
                              .bytes = start,
                              .blocked_ticks = end - start,
                              .flags = (uint8_t)flags};
    if (!(flags & REQUEST_PERSISTENT))
        request.thread = (uint16_t)(thread + 1);
    CHECK(requests_track(handle, &request));
}

/* The start of the request that a call completes. 0: none. */
static uint64_t completed_by(int thread, mpi_handle handle, uint64_t start, uint64_t end)
{
    struct request done;
    return requests_complete(handle, &TWO_THREADS[thread], start, end, &done) ? done.start_ticks
                                                                              : 0;
}

static bool complete(mpi_handle handle, uint64_t end, struct request *done)
{
    return requests_complete(handle, &TWO_THREADS[0], end, end, done);
}

static bool forget(mpi_handle handle, struct request *forgotten)
{
    return requests_forget(handle, &TWO_THREADS[0], UINT64_MAX, forgotten);
}

/* Out of memory for the table: the job continues without one. */
TEST(without_a_table_nothing_is_tracked)
{
    fake_mpi_speak("open_mpi");
    struct request done;
    CHECK(!track(0x1000, 1, REQUEST_ACTIVE));
    CHECK(!requests_start(requests_inactive(0x1000), 5, 5, NULL));
    CHECK(!complete(0x1000, UINT64_MAX, &done));
    CHECK(!forget(0x1000, &done));
}

/* The first slot of a bucket and seven more need no chunk; behind them, one is the index of the
 * bucket's chains, and the others have seven requests each. */
TEST(the_last_chunk_is_used_and_none_beyond)
{
    static const struct {
        unsigned left, requests;
    } ROWS[] = {{0, 8}, {1, 8}, {2, 15}, {3, 22}};
    for (unsigned row = 0; row < sizeof ROWS / sizeof *ROWS; row++) {
        mpi_handle handle = 0x1000 * (row + 1);
        unsigned tracked = 0;
        struct request done;
        begin(false);
        requests_chunks = REQUESTS_CHUNKS_MOST - ROWS[row].left;
        while (tracked < 100 && track(handle, 1, REQUEST_ACTIVE))
            tracked++;
        CHECK_EQUAL(tracked, ROWS[row].requests);
        CHECK_EQUAL(requests_chunks, REQUESTS_CHUNKS_MOST);
        while (complete(handle, UINT64_MAX, &done))
            tracked--;
        CHECK_EQUAL(tracked, 0);
    }
}

TEST(persistent_collectives_have_places_up_to_65535)
{
    CHECK_EQUAL(persistent_collectives_add(UINT16_MAX + 1, 0), 0);
    for (unsigned place = 1; place <= UINT16_MAX; place++)
        CHECK_EQUAL(persistent_collectives_add(UINT16_MAX, 3), place);
    CHECK_EQUAL(persistent_collectives_at(UINT16_MAX)->root, 3);
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(persistent_collectives_add(1, 0), 0);
}

TEST(a_hundred_thousand_sends_under_one_handle_are_in_flight_at_once)
{
    enum { MANY = 100000 };
    begin(false);
    struct request done;
    for (uint64_t i = 0; i < MANY; i++)
        CHECK(track(0x6c000001, 1, REQUEST_ACTIVE));
    for (uint64_t i = 0; i < MANY; i++)
        CHECK(complete(0x6c000001, UINT64_MAX, &done));
    CHECK(!complete(0x6c000001, UINT64_MAX, &done));
}

/* Blocked time */

TEST(time_blocked_on_a_request_adds_up_until_it_completes)
{
    begin(false);
    struct request done;
    track(0x1000, 1, REQUEST_ACTIVE);
    requests_blocked(0x1000, 30, 230);
    requests_blocked(0x1000, 12, 312);
    requests_blocked(0x2000, 1000, 1300);
    CHECK(complete(0x1000, UINT64_MAX, &done));
    CHECK_EQUAL(done.blocked_ticks, 42);
}

/* A Waitsome on many equal handles charges each of them. */
TEST(a_call_is_charged_once_to_requests_that_share_a_handle)
{
    begin(false);
    struct request first, second;
    track(0x6c000001, 1, REQUEST_ACTIVE);
    track(0x6c000001, 2, REQUEST_ACTIVE);
    requests_blocked(0x6c000001, 30, 230);
    requests_blocked(0x6c000001, 30, 230);
    CHECK(complete(0x6c000001, UINT64_MAX, &first));
    CHECK(complete(0x6c000001, UINT64_MAX, &second));
    CHECK_EQUAL(first.blocked_ticks + second.blocked_ticks, 30);
}

/* Persistent requests */

TEST(a_persistent_request_stays_and_starts_again)
{
    begin(false);
    struct request done;
    track(0x1000, 8, REQUEST_PERSISTENT);
    CHECK(requests_start(requests_inactive(0x1000), 500, 500, NULL));
    requests_blocked(0x1000, 9, 609);
    CHECK(complete(0x1000, UINT64_MAX, &done));
    CHECK_EQUAL(done.start_ticks, 500);
    CHECK_EQUAL(done.blocked_ticks, 9);
    CHECK(requests_start(requests_inactive(0x1000), 700, 705, NULL));
    CHECK(complete(0x1000, UINT64_MAX, &done));
    CHECK_EQUAL(done.start_ticks, 700);
    CHECK_EQUAL(done.blocked_ticks, 5); /* in the call that started it */
    CHECK_EQUAL(done.bytes, 8);
}

TEST(a_freed_request_is_given_back_and_gone)
{
    begin(false);
    struct request forgotten, done;
    track(0x1000, 8, REQUEST_PERSISTENT);
    requests_start(requests_inactive(0x1000), 500, 500, NULL);
    CHECK(forget(0x1000, &forgotten));
    CHECK_EQUAL(forgotten.bytes, 8);
    CHECK(forgotten.flags & REQUEST_ACTIVE);
    CHECK(!complete(0x1000, UINT64_MAX, &done));
    CHECK(!forget(0x1000, &forgotten));
    CHECK(!requests_start(requests_inactive(0x1000), 600, 600, NULL));
}

/* Several threads: MPI has given the handle of a request to another thread's new one, before the
 * completion of the former is recorded. */

enum {
    HANDLE = 0x1000,
    SHARED_HANDLE = 0x6c000001,
    RECEIVED = REQUEST_MESSAGE | REQUEST_RECEIVE | REQUEST_ACTIVE
};
enum { SENT = REQUEST_MESSAGE | REQUEST_ACTIVE };

TEST(the_call_that_began_before_a_handle_was_used_again_completes_the_older_request)
{
    begin(true);
    start_by(0, HANDLE, 100, 110, RECEIVED);
    start_by(1, HANDLE, 90, 240, RECEIVED); /* MPI had no request left for 140 ticks */
    CHECK_EQUAL(completed_by(0, HANDLE, 200, 250), 100);
    CHECK_EQUAL(completed_by(1, HANDLE, 240, 300), 90);
}

TEST(a_request_that_became_known_during_the_call_is_left_alone)
{
    begin(true);
    start_by(1, HANDLE, 90, 240, RECEIVED);
    CHECK_EQUAL(completed_by(0, HANDLE, 239, 250), 0);
    requests_blocked(HANDLE, 11, 250);
    struct request done;
    CHECK(complete(HANDLE, 240, &done));
    CHECK_EQUAL(done.blocked_ticks, 150);
}

TEST(of_many_with_one_handle_the_latest_is_completed)
{
    enum { MANY = 50 };
    begin(true);
    for (uint64_t i = 1; i <= MANY; i++)
        start_by(0, HANDLE, (i * 7 % MANY + 1) * 10, (i * 7 % MANY + 1) * 10 + 5, RECEIVED);
    for (uint64_t i = MANY; i >= 1; i--)
        CHECK_EQUAL(completed_by(1, HANDLE, 10 * i + 9, 1000), 10 * i);
}

TEST(a_persistent_request_starts_and_ends_beside_an_older_one)
{
    begin(true);
    struct request done;
    start_by(0, HANDLE, 100, 110, RECEIVED);
    start_by(1, HANDLE, 210, 240, REQUEST_MESSAGE | REQUEST_PERSISTENT);
    struct request *persistent = requests_inactive(HANDLE);
    CHECK(requests_start(persistent, 300, 310, NULL));
    CHECK_EQUAL(completed_by(1, HANDLE, 320, 330), 300);
    CHECK(requests_inactive(HANDLE) == persistent);
    CHECK(requests_forget(HANDLE, &TWO_THREADS[1], 340, &done));
    CHECK(done.flags & REQUEST_PERSISTENT);
    CHECK_EQUAL(completed_by(0, HANDLE, 200, 360), 100);
}

TEST(of_sends_that_share_a_handle_a_thread_completes_its_own)
{
    begin(true);
    start_by(0, SHARED_HANDLE, 100, 110, SENT);
    start_by(0, SHARED_HANDLE, 120, 130, SENT);
    start_by(1, SHARED_HANDLE, 140, 150, SENT);
    CHECK_EQUAL(completed_by(0, SHARED_HANDLE, 200, 210), 100);
    CHECK_EQUAL(completed_by(0, SHARED_HANDLE, 220, 230), 120);
    CHECK_EQUAL(completed_by(0, SHARED_HANDLE, 240, 250), 140); /* another thread may complete it */
}

/* A thread takes its request, one instruction after the other. Between any two of them, from the
 * n-th on, another thread, as which a signal handler acts, records that it has completed its
 * request of this handle, and starts a new one. */
static int steps, acts_from;
static uint64_t others_start;

static void start_other(uint64_t start)
{
    others_start = start;
    start_by(1, HANDLE, start, start + 10, RECEIVED);
}

static void let_the_other_thread_act(int signal)
{
    (void)signal;
    if (++steps < acts_from)
        return;
    CHECK_EQUAL(completed_by(1, HANDLE, others_start + 15, others_start + 20), others_start);
    start_other(200 + 20 * (uint64_t)steps);
}

static void stop_after_each_instruction(bool on)
{
#if defined(__x86_64__)
    enum { TRAP_FLAG = 0x100 };
    uint64_t flags = __builtin_ia32_readeflags_u64();
    __builtin_ia32_writeeflags_u64(on ? flags | TRAP_FLAG : flags & ~(uint64_t)TRAP_FLAG);
#endif
}

TEST(a_slot_that_is_filled_again_during_a_search_is_not_taken)
{
    if (UNIT_SANITIZED || !STEPPING_POSSIBLE)
        unit_skip("the plain variant on x86-64 alone is stepped through");
    begin(true);
    sigaction(SIGTRAP, &(struct sigaction){.sa_handler = let_the_other_thread_act}, NULL);
    for (acts_from = 1; acts_from == 1 || steps >= acts_from; acts_from++) {
        start_other(100);
        start_by(0, HANDLE, 120, 130, RECEIVED);
        steps = 0;
        stop_after_each_instruction(true);
        struct request *taken = requests_take(HANDLE, &TWO_THREADS[0], 140, 150);
        stop_after_each_instruction(false);
        CHECK(taken && taken->start_ticks == 120);
        requests_end(taken, HANDLE);
        CHECK_EQUAL(completed_by(1, HANDLE, others_start + 15, others_start + 20), others_start);
    }
    CHECK(acts_from > 50);
}

/* A request in flight costs the same, however many others there are. */

static void count_step(int signal)
{
    (void)signal;
    steps++;
}

static mpi_handle handle_number(uint64_t number)
{
    return 0x7f5555550000 + 208 * number; /* as a library allocates them */
}

/* Instructions to track and to complete a request, on average, while requests 0 to `open` - 1
 * are. */
static uint64_t instructions_among(uint64_t open)
{
    enum { TRIED = 100 };
    steps = 0;
    for (uint64_t i = 0; i < TRIED; i++) {
        uint64_t number = i * (open / TRIED);
        mpi_handle handle = handle_number(number);
        stop_after_each_instruction(true);
        struct request *taken = requests_take(handle, &TWO_THREADS[0], UINT64_MAX, UINT64_MAX);
        stop_after_each_instruction(false);
        CHECK(taken && taken->bytes == number);
        requests_end(taken, handle);
        struct request again = {.start_ticks = 1, .bytes = number, .flags = REQUEST_ACTIVE};
        stop_after_each_instruction(true);
        bool is_tracked = requests_track(handle, &again);
        stop_after_each_instruction(false);
        CHECK(is_tracked);
    }
    return (uint64_t)steps / TRIED;
}

static void start_many(uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        CHECK(track(handle_number(i), i, REQUEST_ACTIVE));
}

static void a_million_open_requests_cost_little_more_than_thousands(bool concurrent)
{
    enum { THOUSANDS = 100000, MILLION = 1000000 }; /* of 32,768 buckets */
    if (UNIT_SANITIZED || !STEPPING_POSSIBLE)
        unit_skip("the plain variant on x86-64 alone is stepped through");
    begin(concurrent);
    sigaction(SIGTRAP, &(struct sigaction){.sa_handler = count_step}, NULL);
    start_many(0, THOUSANDS);
    uint64_t among_thousands = instructions_among(THOUSANDS);
    start_many(THOUSANDS, MILLION);
    CHECK(instructions_among(MILLION) < 2 * among_thousands);
}

TEST(a_search_among_a_million_requests_takes_few_instructions)
{
    a_million_open_requests_cost_little_more_than_thousands(false);
}

TEST(a_search_among_a_million_requests_of_several_threads_takes_few_instructions)
{
    a_million_open_requests_cost_little_more_than_thousands(true);
}

TEST(a_million_requests_complete_as_they_were_tracked)
{
    enum { MILLION = 1000000 };
    struct request done;
    begin(true);
    start_many(0, MILLION);
    for (uint64_t i = MILLION; i-- > 0;) {
        CHECK(complete(handle_number(i), UINT64_MAX, &done));
        CHECK_EQUAL(done.bytes, i);
    }
    CHECK(!complete(handle_number(0), UINT64_MAX, &done));
}

/* Threads. All use a shared handle and their own handles at the same time, as with
 * MPI_THREAD_MULTIPLE. */

enum { THREADS = 4, ROUNDS = 20000, IN_FLIGHT = 16 };

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
            CHECK(complete(SHARED_HANDLE, UINT64_MAX, &done));
            completed_bytes += done.bytes;
            CHECK(complete(own, UINT64_MAX, &done));
            completed_bytes += done.bytes;
        }
    }
    return (void *)completed_bytes;
}

TEST(threads_complete_what_they_track_and_nothing_twice)
{
    void *bytes[THREADS];
    struct request done;
    begin(true);
    unit_together(THREADS, send_and_complete, bytes);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQUAL((uintptr_t)bytes[i], ROUNDS / IN_FLIGHT * IN_FLIGHT * 1001);
    CHECK(!complete(SHARED_HANDLE, UINT64_MAX, &done));
}

/* One handle goes from thread to thread, as if MPI reused it at once: each completes what it has
 * started, though the former owner may not have recorded its completion yet. */
static uint64_t now_ticks = 1, handle_is_free = 1;

static uint64_t tick(void)
{
    return __atomic_add_fetch(&now_ticks, 1, __ATOMIC_SEQ_CST);
}

static void *pass_a_handle_on(void *number)
{
    uintptr_t right = 0;
    for (int round = 0; round < ROUNDS / 4; round++) {
        uint64_t start = tick(), is_free = 1;
        while (!__atomic_compare_exchange_n(&handle_is_free, &is_free, 0, false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_SEQ_CST))
            is_free = 1, sched_yield();
        uint64_t end = tick();
        start_by((int)(uintptr_t)number % 2, HANDLE, start, end, RECEIVED);
        uint64_t begin = tick();
        __atomic_store_n(&handle_is_free, 1, __ATOMIC_SEQ_CST);
        right += completed_by((int)(uintptr_t)number % 2, HANDLE, begin, tick()) == start;
    }
    return (void *)right;
}

TEST(a_handle_that_goes_from_thread_to_thread_completes_the_request_of_each)
{
    void *right[THREADS];
    begin(true);
    unit_together(THREADS, pass_a_handle_on, right);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQUAL((uintptr_t)right[i], ROUNDS / 4);
}

TEST(an_inactive_persistent_request_can_be_freed)
{
    begin(false);
    struct request forgotten;
    track(0x1000, 8, REQUEST_PERSISTENT);
    CHECK(forget(0x1000, &forgotten));
    CHECK(!(forgotten.flags & REQUEST_ACTIVE));
}
