/* If nothing changed, a look is one comparison of the array with its copy: a few hundredths of a
 * nanosecond per entry. Both begin at the same place in a cache line: otherwise half of the loads
 * cross from one line to the next, and a thousand entries take 10 ns more. */
#include "wait_array.h"

#include "base/memory.h"
#include "base/quiet.h"
#include "requests.h"

enum { CACHE_LINE = 64 };

static size_t bytes_of(int count)
{
    return (size_t)count * mpi_abi.handle_bytes;
}

static bool grow(struct wait_array *wait_array, int count)
{
    int room = count < 64 ? 64 : count > INT32_MAX / 2 ? count : 2 * count;
    char *memory = memory_resize(wait_array->memory, bytes_of(room) + CACHE_LINE);
    if (memory)
        wait_array->memory = memory;
    uint64_t *since_ticks =
        memory_resize(wait_array->since_ticks, (size_t)room * sizeof *since_ticks);
    if (since_ticks)
        wait_array->since_ticks = since_ticks;
    if (memory && since_ticks)
        wait_array->room = room;
    return memory && since_ticks;
}

static bool make_room(struct wait_array *wait_array, int count)
{
    if (count <= wait_array->room)
        return true;
    struct quiet before = quiet_begin();
    bool has_room = grow(wait_array, count);
    quiet_end(&before);
    return has_room;
}

static bool is_request(const void *handles, int index)
{
    return mpi_handle_load(handles, (size_t)index) != mpi_abi.request_null;
}

static void settle_entry(const struct wait_array *wait_array, int index)
{
    uint64_t ticks = wait_array->total_ticks - wait_array->since_ticks[index];
    if (ticks && is_request(wait_array->handles, index))
        requests_blocked(wait_array_handle(wait_array, index), ticks, wait_array->end_ticks);
}

void wait_array_settle_now(struct wait_array *wait_array)
{
    for (int i = 0; i < wait_array->count; i++)
        settle_entry(wait_array, i);
    memset(wait_array->since_ticks, 0, (size_t)wait_array->count * sizeof *wait_array->since_ticks);
    wait_array->total_ticks = 0;
}

static void turn_to(struct wait_array *wait_array, const void *requests, int count)
{
    wait_array->array = requests;
    wait_array->count = count;
    wait_array->first = 0;
    wait_array->live = 0;
    wait_array->handles =
        wait_array->memory + ((uintptr_t)requests - (uintptr_t)wait_array->memory) % CACHE_LINE;
    memcpy(wait_array->handles, requests, bytes_of(count));
    memset(wait_array->since_ticks, 0, (size_t)count * sizeof *wait_array->since_ticks);
    for (int i = 0; i < count; i++)
        wait_array->live += is_request(requests, i);
}

static void see_changes(struct wait_array *wait_array, const void *requests)
{
    for (int i = 0; i < wait_array->count; i++) {
        mpi_handle now = mpi_handle_load(requests, (size_t)i);
        if (now == wait_array_handle(wait_array, i))
            continue;
        settle_entry(wait_array, i);
        wait_array->first = i < wait_array->first ? i : wait_array->first;
        wait_array->live += is_request(requests, i) - is_request(wait_array->handles, i);
        mpi_handle_store(wait_array->handles + bytes_of(i), now);
        wait_array->since_ticks[i] = wait_array->total_ticks;
    }
}

bool wait_array_look(struct wait_array *wait_array, const void *requests, int count)
{
    if (wait_array->array == requests && wait_array->count == count) {
        if (memcmp(wait_array->handles, requests, bytes_of(count)) != 0)
            see_changes(wait_array, requests);
        return true;
    }
    wait_array_settle(wait_array);
    if (!make_room(wait_array, count)) {
        wait_array->array = NULL;
        wait_array->count = 0;
        return false;
    }
    turn_to(wait_array, requests, count);
    return true;
}

uint64_t wait_array_done(struct wait_array *wait_array, int index)
{
    if (!is_request(wait_array->handles, index))
        return 0;
    mpi_handle_store(wait_array->handles + bytes_of(index), mpi_abi.request_null);
    wait_array->live--;
    return wait_array->total_ticks - wait_array->since_ticks[index];
}
