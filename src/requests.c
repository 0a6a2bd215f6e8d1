/* The table: 4096 buckets, each a chain of chunks of seven slots. A slot is taken by writing REQUEST_BUSY over REQUEST_EMPTY
 * and published by storing its handle; it is emptied in the reverse order. Chunks are never given back, so a chain may be
 * walked while others write to it.
 *
 *     bucket --> | 7 slots | next --> | 7 slots | next --> NULL
 *     slot.handle:   EMPTY -> BUSY -> handle -> BUSY -> EMPTY
 *
 * Where MPI is used by one thread at a time these are plain stores; only under MPI_THREAD_MULTIPLE are they compare-and-swap.
 * Nobody ever waits: a thread that loses a slot looks on. */
#include "requests.h"

#include <sys/mman.h>

enum { REQUEST_EMPTY = 0, REQUEST_BUSY = 1, BUCKETS = 4096, SLOTS = 7, POOL_CHUNKS = 4096, POOLS_MAX = 64 };

struct chunk {
    struct request slots[SLOTS];
    struct chunk *next;
    uint64_t padding[7];
};
_Static_assert(sizeof(struct request) == 64, "a request is a cache line");

static struct chunk *buckets;
static bool is_concurrent;

static struct chunk *pools[POOLS_MAX];
static uint32_t chunks_taken;

static void *fresh_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

bool requests_begin(bool concurrent)
{
    is_concurrent = concurrent;
    if (!buckets)
        buckets = fresh_memory(BUCKETS * sizeof *buckets);
    return buckets != NULL;
}

/* Change a slot's handle if it still is what the caller has seen. */
static bool swap_handle(struct request *slot, uintptr_t seen, uintptr_t wanted)
{
    if (!is_concurrent) {
        slot->handle = wanted;
        return true;
    }
    return __atomic_compare_exchange_n(&slot->handle, &seen, wanted, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void publish_handle(struct request *slot, uintptr_t handle)
{
    __atomic_store_n(&slot->handle, handle, __ATOMIC_RELEASE);
}

static uintptr_t handle_in(const struct request *slot)
{
    return __atomic_load_n(&slot->handle, __ATOMIC_RELAXED);
}

static struct chunk *bucket_of(mpi_handle bits)
{
    return &buckets[(bits * 0x9e3779b97f4a7c15ull) >> 52];
}
_Static_assert(BUCKETS == 1 << 12, "bucket_of takes twelve bits");

static struct chunk *next_of(struct chunk *chunk)
{
    return __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE);
}

/* A chunk from the pools; they are mapped a quarter of a megabyte of requests at a time. */
static struct chunk *take_chunk(void)
{
    uint32_t number = __atomic_fetch_add(&chunks_taken, 1, __ATOMIC_RELAXED);
    if (number >= POOL_CHUNKS * POOLS_MAX) {
        __atomic_fetch_sub(&chunks_taken, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    struct chunk **pool = &pools[number / POOL_CHUNKS];
    struct chunk *memory = __atomic_load_n(pool, __ATOMIC_ACQUIRE);
    if (!memory) {
        struct chunk *fresh = fresh_memory(POOL_CHUNKS * sizeof *fresh);
        if (!fresh)
            return NULL;
        if (__atomic_compare_exchange_n(pool, &memory, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            memory = fresh;
        else
            munmap(fresh, POOL_CHUNKS * sizeof *fresh);
    }
    return &memory[number % POOL_CHUNKS];
}

/* Take an empty slot of this chunk; NULL if there is none. */
static struct request *claim_slot(struct chunk *chunk)
{
    for (int i = 0; i < SLOTS; i++)
        if (handle_in(&chunk->slots[i]) == REQUEST_EMPTY && swap_handle(&chunk->slots[i], REQUEST_EMPTY, REQUEST_BUSY))
            return &chunk->slots[i];
    return NULL;
}

/* A new chunk goes directly behind the bucket's first, so that a long chain does not have to be walked to add to it. */
static bool extend(struct chunk *first)
{
    struct chunk *fresh = take_chunk();
    if (!fresh)
        return false;
    struct chunk *second = next_of(first);
    do
        fresh->next = second;
    while (!__atomic_compare_exchange_n(&first->next, &second, fresh, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    return true;
}

bool requests_track(mpi_handle handle, const struct request *request)
{
    enum { LOOK_AT = 64 }; /* chunks to look through for an empty slot before adding one */
    mpi_handle bits = mpi_handle_bits(handle);
    struct chunk *first = bucket_of(bits);
    struct request *slot = NULL;
    struct chunk *chunk = first;
    for (int i = 0; i < LOOK_AT && chunk && !slot; i++, chunk = next_of(chunk))
        slot = claim_slot(chunk);
    while (!slot) {
        if (!extend(first))
            return false;
        slot = claim_slot(next_of(first));
    }
    struct request entry = *request;
    entry.handle = REQUEST_BUSY;
    *slot = entry;
    publish_handle(slot, bits);
    return true;
}

/* A slot with this handle, active or not as asked. */
static struct request *find(mpi_handle bits, bool active)
{
    if (!buckets)
        return NULL;
    for (struct chunk *chunk = bucket_of(bits); chunk; chunk = next_of(chunk))
        for (int i = 0; i < SLOTS; i++)
            if (handle_in(&chunk->slots[i]) == bits && !!(chunk->slots[i].flags & REQUEST_ACTIVE) == active)
                return &chunk->slots[i];
    return NULL;
}

bool requests_start(mpi_handle handle, uint64_t start_ticks)
{
    struct request *slot = find(mpi_handle_bits(handle), false);
    if (!slot)
        return false;
    slot->start_ticks = start_ticks;
    slot->blocked_ticks = 0;
    slot->flags |= REQUEST_ACTIVE;
    return true;
}

void requests_blocked(mpi_handle handle, uint64_t start_ticks, uint64_t end_ticks)
{
    struct request *slot = find(mpi_handle_bits(handle), true);
    if (!slot || slot->charged == (uint32_t)end_ticks)
        return;
    slot->charged = (uint32_t)end_ticks;
    slot->blocked_ticks += end_ticks - (start_ticks > slot->start_ticks ? start_ticks : slot->start_ticks);
}

bool requests_complete(mpi_handle handle, struct request *completed)
{
    mpi_handle bits = mpi_handle_bits(handle);
    struct request *slot;
    do {
        slot = find(bits, true);
        if (!slot)
            return false;
    } while (!swap_handle(slot, bits, REQUEST_BUSY));
    *completed = *slot;
    slot->flags &= (uint16_t)~REQUEST_ACTIVE;
    publish_handle(slot, completed->flags & REQUEST_PERSISTENT ? bits : REQUEST_EMPTY);
    return true;
}

bool requests_forget(mpi_handle handle, struct request *forgotten)
{
    mpi_handle bits = mpi_handle_bits(handle);
    struct request *slot = find(bits, true);
    if (!slot)
        slot = find(bits, false);
    if (!slot || !swap_handle(slot, bits, REQUEST_BUSY))
        return false;
    *forgotten = *slot;
    publish_handle(slot, REQUEST_EMPTY);
    return true;
}
