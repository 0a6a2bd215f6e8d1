/* A cache: a direct-mapped table that all threads share. Each entry is one word with key and
 * answer, and the time of the answer; both are relaxed atomics. If a reader sees the time of the
 * previous entry, it checks too early, never too late.
 *
 *     what    | number of the page (of the region's first) | KNOWN, IS_REGION, memory kind |
 *             0: empty
 *
 * Device memory is allocated in regions of 2 MiB (the granule of mappings on the device), so an
 * answer for one address holds for its region. Ordinary host, pinned and managed memory may
 * alternate from page to page, so there an answer holds for one page.
 *
 * Freed memory can be allocated again with another memory kind, without notice. So an answer
 * expires after a second, and in addition each thread checks one in 64 hits. Changed answers are
 * counted. */
#include "memory_kind.h"

#include "base/clock.h"
#include "base/quiet.h"
#include "ledger/ledger.h"

enum {
    ENTRIES_LOG2 = 10,
    PAGE_BITS = 12,
    REGION_BITS = 21,
    HITS_TO_A_CHECK = 64,
    GOOD_FOR_NS = 1000000000
};
enum { KEY_BIT = 8, KNOWN = 0x80, IS_REGION = 0x40, KIND = 0x0f };

int (*memory_kind_ask)(const void *address);

static struct entry {
    uint64_t what;
    uint64_t asked_ticks;
} entries[1 << ENTRIES_LOG2];

static _Thread_local uint32_t hits;

static uint64_t page_of(const void *address)
{
    return (uint64_t)(uintptr_t)address >> PAGE_BITS << KEY_BIT | KNOWN;
}

static uint64_t region_of(const void *address)
{
    return (uint64_t)(uintptr_t)address >> REGION_BITS << (REGION_BITS - PAGE_BITS + KEY_BIT) |
           KNOWN | IS_REGION;
}

static struct entry *entry_of(uint64_t key)
{
    return &entries[key * 0x9e3779b97f4a7c15ull >> (64 - ENTRIES_LOG2)];
}

/* The cached entry for a key; 0: none. */
static uint64_t remembered(const struct entry *entry, uint64_t key)
{
    uint64_t what = __atomic_load_n(&entry->what, __ATOMIC_RELAXED);
    return (what & ~(uint64_t)KIND) == key ? what : 0;
}

static void remember(const void *address, unsigned kind)
{
    uint64_t key = kind == LEDGER_DEVICE ? region_of(address) : page_of(address);
    struct entry *entry = entry_of(key);
    __atomic_store_n(&entry->what, key | kind, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->asked_ticks, clock_ticks(), __ATOMIC_RELAXED);
}

/* The driver has no record of ordinary host memory, and may already be unloaded when the process
 * ends. */
static unsigned ask(const void *address)
{
    int (*ask_driver)(const void *) = __atomic_load_n(&memory_kind_ask, __ATOMIC_ACQUIRE);
    if (!ask_driver)
        return LEDGER_HOST;
    ledger_count(&the_ledger.header->gpu_memory_kind_queries);
    struct quiet before = quiet_begin(); /* the driver has locks */
    int kind = ask_driver(address);
    quiet_end(&before);
    return kind > LEDGER_HOST && kind < LEDGER_MEMORY_KINDS ? (unsigned)kind : LEDGER_HOST;
}

__attribute__((noinline)) static unsigned ask_first(const void *address)
{
    unsigned kind = ask(address);
    remember(address, kind);
    return kind;
}

__attribute__((noinline)) static unsigned ask_again(const void *address, struct entry *entry,
                                                    unsigned expected)
{
    unsigned kind = ask(address);
    if (kind != expected) {
        ledger_count(&the_ledger.header->gpu_memory_kind_changes);
        __atomic_store_n(&entry->what, 0, __ATOMIC_RELAXED);
    }
    remember(address, kind);
    return kind;
}

static bool is_believed(const struct entry *entry)
{
    uint64_t age = clock_ticks() - __atomic_load_n(&entry->asked_ticks, __ATOMIC_RELAXED);
    return ++hits % HITS_TO_A_CHECK && clock_duration_ns(age) < GOOD_FOR_NS;
}

unsigned memory_kind_find(const void *address)
{
    if (!address)
        return LEDGER_HOST;
    uint64_t region = region_of(address), page = page_of(address);
    struct entry *entry = entry_of(region);
    uint64_t what = remembered(entry, region);
    if (!what) {
        entry = entry_of(page);
        what = remembered(entry, page);
    }
    if (!what)
        return ask_first(address);
    return is_believed(entry) ? what & KIND : ask_again(address, entry, what & KIND);
}
