#include "record/wait_array.h"

#include "completed.h"
#include "fake_mpi.h"
#include "record/requests.h"
#include "unit.h"

enum { A = 0x1000, B = 0x2000, C = 0x3000, D = 0x4000 };

static struct wait_array wait_array;
static char array[8 * 8];

static void begin(const char *abi)
{
    fake_mpi_speak(abi);
    CHECK(requests_begin(false));
}

static void put(char *place, int index, mpi_handle handle)
{
    mpi_handle_store(place + (size_t)index * mpi_abi.handle_bytes, handle);
}

static void track(mpi_handle handle)
{
    struct request request = {.start_ticks = 1000, .peer = PEER_NONE, .flags = REQUEST_ACTIVE};
    CHECK(requests_track(handle, &request));
}

static void wait_for_three(const char *abi)
{
    begin(abi);
    const mpi_handle handles[] = {A, B, C};
    for (int i = 0; i < 3; i++) {
        track(handles[i]);
        put(array, i, handles[i]);
    }
}

/* A call on an array that completes nothing. */
static void poll(const char *place, int count, uint64_t start, uint64_t end)
{
    CHECK(wait_array_look(&wait_array, place, count));
    wait_array_passed(&wait_array, start, end);
}

static uint64_t blocked_on(mpi_handle handle)
{
    struct request done = {0};
    CHECK(requests_complete(handle, NULL, UINT64_MAX, UINT64_MAX, &done));
    return done.blocked_ticks;
}

TEST(each_entry_waits_through_all_calls)
{
    wait_for_three("open_mpi");
    poll(array, 3, 2000, 2010);
    poll(array, 3, 2100, 2130);
    CHECK_EQUAL(wait_array_done(&wait_array, 1), 40);
    wait_array_passed(&wait_array, 2200, 2205);
    wait_array_settle(&wait_array);
    CHECK_EQUAL(blocked_on(A), 45);
    CHECK_EQUAL(blocked_on(B), 0); /* the caller counts the result of wait_array_done */
    CHECK_EQUAL(blocked_on(C), 45);
}

TEST(narrow_handles_are_distinguished)
{
    wait_for_three("mpich");
    poll(array, 3, 2000, 2010);
    CHECK_EQUAL(wait_array_handle(&wait_array, 2), C);
    CHECK_EQUAL(wait_array_done(&wait_array, 0), 10);
    wait_array_settle(&wait_array);
    CHECK_EQUAL(blocked_on(B), 10);
}

TEST(an_entry_that_comes_later_has_not_waited_before)
{
    wait_for_three("open_mpi");
    poll(array, 3, 2000, 2010);
    wait_array_done(&wait_array, 1);
    track(D);
    put(array, 1, D);
    poll(array, 3, 2100, 2107);
    wait_array_settle(&wait_array);
    CHECK_EQUAL(blocked_on(D), 7);
    CHECK_EQUAL(blocked_on(A), 17);
}

TEST(an_entry_that_is_replaced_is_settled)
{
    wait_for_three("open_mpi");
    poll(array, 3, 2000, 2010);
    put(array, 0, mpi_abi.request_null);
    poll(array, 3, 2100, 2107);
    CHECK_EQUAL(blocked_on(A), 10);
}

TEST(a_null_request_is_never_done)
{
    wait_for_three("open_mpi");
    put(array, 2, mpi_abi.request_null);
    poll(array, 3, 2000, 2010);
    CHECK_EQUAL(wait_array.live, 2);
    CHECK_EQUAL(wait_array_done(&wait_array, 2), 0);
    CHECK_EQUAL(wait_array.live, 2);
}

TEST(arrays_may_grow)
{
    static uintptr_t many[5000];
    wait_for_three("open_mpi");
    poll(array, 3, 2000, 2010);
    for (int i = 0; i < 5000; i++)
        many[i] = A + 16 * (uintptr_t)i;
    CHECK(wait_array_look(&wait_array, many, 5000));
    CHECK_EQUAL(wait_array.live, 5000);
    CHECK_EQUAL(wait_array_handle(&wait_array, 4999), A + 16 * 4999);
    CHECK_EQUAL(blocked_on(A), 10);
}

TEST(the_same_place_with_another_length_is_another_array)
{
    wait_for_three("open_mpi");
    poll(array, 3, 2000, 2010);
    poll(array, 2, 2100, 2103);
    wait_array_settle(&wait_array);
    CHECK_EQUAL(blocked_on(B), 13);
    CHECK_EQUAL(blocked_on(C), 10);
}
