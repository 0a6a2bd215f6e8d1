#include "record/thread.h"

#include "ledger/ledger.h"
#include "unit.h"

#include <malloc.h>

UNIT_ALONE;

/* The allocation that fails while this is set: a new table of peers. */
static bool has_no_room_for_peers;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *calloc(size_t count, size_t bytes)
{
    if (has_no_room_for_peers && count == 64 && bytes == sizeof(struct ledger_peer *))
        return NULL;
    void *memory = malloc(count * bytes);
    if (memory)
        explicit_bzero(
            memory,
            count * bytes); /* not memset: the compiler would turn malloc and memset into calloc */
    return memory;
}
#endif

static size_t allocated_bytes(void)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo info = mallinfo();
#pragma GCC diagnostic pop
    return (size_t)info.uordblks;
}

TEST(a_thread_without_memory_for_its_peers_leaves_nothing_allocated)
{
    enum { TIMES = 100 };
    if (UNIT_SANITIZED)
        unit_skip("a sanitizer has an allocator of its own");
    CHECK_EQUAL(ledger_open("ledger", 1 << 20), 0);
    has_no_room_for_peers = true;
    CHECK(!thread_adopt());
    size_t before = allocated_bytes();
    for (int i = 0; i < TIMES; i++)
        CHECK(!thread_adopt());
    CHECK_EQUAL(the_ledger.header->dropped_calls, TIMES + 1);
    CHECK_EQUAL(allocated_bytes(), before);
}
