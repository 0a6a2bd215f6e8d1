/* Looking is one comparison of the array with its copy, unless something changed: a few hundredths of a nanosecond an entry. */
#include "awaited.h"

#include "requests.h"

#include <stdlib.h>

static size_t bytes_of(int count)
{
    return (size_t)count * mpi_abi.handle_bytes;
}

static bool make_room(struct awaited *awaited, int count)
{
    if (count <= awaited->room)
        return true;
    int room = count < 64 ? 64 : count > INT32_MAX / 2 ? count : 2 * count;
    char *handles = realloc(awaited->handles, bytes_of(room));
    if (handles)
        awaited->handles = handles;
    uint64_t *since_ticks = realloc(awaited->since_ticks, (size_t)room * sizeof *since_ticks);
    if (since_ticks)
        awaited->since_ticks = since_ticks;
    if (handles && since_ticks)
        awaited->room = room;
    return handles && since_ticks;
}

static bool is_request(const void *handles, int index)
{
    return mpi_handle_load(handles, (size_t)index) != mpi_abi.request_null;
}

static void settle_entry(const struct awaited *awaited, int index)
{
    uint64_t ticks = awaited->total_ticks - awaited->since_ticks[index];
    if (ticks && is_request(awaited->handles, index))
        requests_blocked(awaited_handle(awaited, index), ticks, awaited->end_ticks);
}

void awaited_settle_now(struct awaited *awaited)
{
    for (int i = 0; i < awaited->count; i++)
        settle_entry(awaited, i);
    memset(awaited->since_ticks, 0, (size_t)awaited->count * sizeof *awaited->since_ticks);
    awaited->total_ticks = 0;
}

static void turn_to(struct awaited *awaited, const void *requests, int count)
{
    awaited->array = requests;
    awaited->count = count;
    awaited->first = 0;
    awaited->live = 0;
    memcpy(awaited->handles, requests, bytes_of(count));
    memset(awaited->since_ticks, 0, (size_t)count * sizeof *awaited->since_ticks);
    for (int i = 0; i < count; i++)
        awaited->live += is_request(requests, i);
}

static void see_changes(struct awaited *awaited, const void *requests)
{
    for (int i = 0; i < awaited->count; i++) {
        mpi_handle now = mpi_handle_load(requests, (size_t)i);
        if (now == awaited_handle(awaited, i))
            continue;
        settle_entry(awaited, i);
        awaited->first = i < awaited->first ? i : awaited->first;
        awaited->live += is_request(requests, i) - is_request(awaited->handles, i);
        mpi_handle_store(awaited->handles + bytes_of(i), now);
        awaited->since_ticks[i] = awaited->total_ticks;
    }
}

bool awaited_look(struct awaited *awaited, const void *requests, int count)
{
    if (awaited->array == requests && awaited->count == count) {
        if (memcmp(awaited->handles, requests, bytes_of(count)) != 0)
            see_changes(awaited, requests);
        return true;
    }
    awaited_settle(awaited);
    if (!make_room(awaited, count)) {
        awaited->array = NULL;
        awaited->count = 0;
        return false;
    }
    turn_to(awaited, requests, count);
    return true;
}

uint64_t awaited_done(struct awaited *awaited, int index)
{
    if (!is_request(awaited->handles, index))
        return 0;
    mpi_handle_store(awaited->handles + bytes_of(index), mpi_abi.request_null);
    awaited->live--;
    return awaited->total_ticks - awaited->since_ticks[index];
}
