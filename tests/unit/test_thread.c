#include "record/thread.h"

#include "base/memory.h"
#include "ledger/ledger.h"
#include "unit.h"

#include <sys/resource.h>

TEST(a_thread_without_memory_for_its_peers_leaves_nothing_allocated)
{
    enum { TIMES = 100, PEERS_BYTES = 512, CELLS_BYTES = 2048 };
    if (UNIT_SANITIZED)
        unit_skip("a sanitizer reserves address space of its own");
    if (unit_is_emulated())
        unit_skip("the emulator does not limit its address space");
    CHECK_EQUAL(ledger_open("ledger", 1 << 20), 0);
    void *thread = memory_take(sizeof(struct thread)), *cells = memory_take(CELLS_BYTES);
    memory_give(thread);
    memory_give(cells);
    CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){1, 1}) == 0);
    while (memory_take(PEERS_BYTES))
        continue;
    size_t before = memory_in_use();
    for (int i = 0; i < TIMES; i++)
        CHECK(!thread_adopt());
    CHECK_EQUAL(the_ledger.header->dropped_calls, TIMES);
    CHECK_EQUAL(memory_in_use(), before);
}
