/* The table has 32,768 buckets. Each has a first slot, a chunk of seven more, 64 chains of chunks
 * for the rest, so that a search looks at a dozen slots whether a few requests are open or a
 * million. The chains of a bucket, and each of them, get memory when they are needed. A thread
 * claims a slot by writing REQUEST_BUSY over REQUEST_EMPTY and publishes it by storing the handle;
 * emptying runs in reverse order. Chunks are never freed, so a thread may walk a chain while others
 * write to it.
 *
 *     first slot, then bucket --> | 7 slots | index --> | chain --> | 7 slots | next --> NULL
 *                                                       | chain --> | 7 slots | next --> NULL
 *                                                         ... 64 chains
 *     slot.handle:   EMPTY -> BUSY -> handle -> BUSY -> EMPTY
 *
 * The first slots are adjacent in memory: nearly every request uses one, and tracking and
 * completing it then touch a single cache line.
 *
 * If one thread at a time uses MPI, these are plain stores, and a first slot is never marked as
 * busy (requests.h); only MPI_THREAD_MULTIPLE needs compare-and-swap. Nobody waits: a thread that
 * loses a slot tries the next. Only the thread that made a slot busy writes it. The exceptions are
 * `flags`, `start_ticks` and the charged time: other threads may read or write them while the slot
 * has its handle (several threads may use equal handles), so they are relaxed atomics.
 *
 * Chains grow long only when thousands of requests share one handle. A search starts at the chunk
 * where the last one ended (the chain's cursor), and a count shows that a bucket has only its first
 * slot in use, so neither filling nor emptying a chain walks it.
 *
 * With several threads, a request that MPI has freed may still be in the table: the thread that
 * completed it has not come to record that, and MPI has given its handle to another thread's new
 * request.
 *
 *     thread A    MPI_Wait(h) . . . . . . . . . . returns, and looks for h: the older one
 *     thread B              MPI_Irecv: h  MPI_Wait(h)  returns, and looks for h: the newer one
 *
 * Their times tell which one a call means. MPI had given the handle to this request when the call
 * began, but not yet to any later one; and it had freed those that had the handle before. So it is
 * the one that got the handle last before the call began. The exception are sends that are complete
 * already, which share a handle while they exist: a thread takes its own.
 *
 * While thread A looks into a slot, thread B may empty it and fill it with a new request of the
 * same handle. So the upper 16 bits of a slot's handle, which no address uses, differ between
 * requests then, and A cannot take the new one by mistake, not even for a moment: B, which would
 * not find it, would leave it in the table for ever. */
#include "requests.h"

#include <sys/mman.h>

enum { REQUEST_BUSY = 1, BUCKETS = REQUESTS_BUCKETS, CHAINS = 64, SLOTS = 7, HANDLE_BITS = 48 };
enum { POOL_CHUNKS = 4096 };

struct chunk {
    struct request slots[SLOTS];
    struct chunk *next;
    struct chunk *cursor; /* in a chain's first chunk: where the last search ended; NULL: here */
    struct chunk *index; /* in a bucket: a struct index, in place of a chunk; NULL: no chains yet */
    uint64_t padding[5];
};

struct index {
    struct chunk *chains[CHAINS]; /* the first chunk of each; NULL: it has none yet */
};
_Static_assert(sizeof(struct index) <= sizeof(struct chunk),
               "an index takes the memory of a chunk");

struct counts {
    uint64_t further;   /* at least the number of slots with a handle behind the first slot */
    uint64_t published; /* how often a handle was stored, also in the first slot; counted only with
                           MPI_THREAD_MULTIPLE */
};

_Static_assert(sizeof(struct request) == 64, "a request is a cache line");

static struct table {
    struct request firsts[BUCKETS];
    struct counts counts[BUCKETS];
    struct chunk buckets[BUCKETS];
} * table;
static bool is_concurrent;
struct request *requests_firsts;
unsigned requests_shift;

static struct chunk *pools[REQUESTS_CHUNKS_MOST / POOL_CHUNKS];
uint32_t requests_chunks;

static void *fresh_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

bool requests_begin(bool concurrent)
{
    is_concurrent = concurrent;
    if (!table)
        table = fresh_memory(sizeof *table);
    requests_shift = mpi_abi.handle_bytes == sizeof(uint32_t) ? 0 : 6;
    requests_firsts = table && !concurrent ? table->firsts : NULL;
    return table != NULL;
}

/* Change a slot's handle if it is still `seen`. */
static bool swap_handle(struct request *slot, uintptr_t seen, uintptr_t wanted)
{
    if (!is_concurrent) {
        slot->handle = wanted;
        return true;
    }
    return __atomic_compare_exchange_n(&slot->handle, &seen, wanted, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static void store_handle(struct request *slot, uintptr_t handle)
{
    __atomic_store_n(&slot->handle, handle, __ATOMIC_RELEASE);
}

static uintptr_t handle_in(const struct request *slot)
{
    return __atomic_load_n(&slot->handle, __ATOMIC_RELAXED);
}

static uint64_t hash_of(mpi_handle bits)
{
    return bits * 0x9e3779b97f4a7c15ull;
}

static struct chunk **chain_in(struct chunk *index, mpi_handle bits)
{
    return &((struct index *)index)->chains[hash_of(bits) >> 46 & (CHAINS - 1)];
}

/* The first chunk of the handle's chain; NULL: there is no such chain yet. */
static struct chunk *chain_of(struct chunk *bucket, mpi_handle bits)
{
    struct chunk *index = __atomic_load_n(&bucket->index, __ATOMIC_ACQUIRE);
    return index ? __atomic_load_n(chain_in(index, bits), __ATOMIC_ACQUIRE) : NULL;
}

static __attribute__((noinline)) void publish_concurrently(struct request *slot, mpi_handle bits)
{
    store_handle(slot, bits ^ slot->start_ticks << HANDLE_BITS);
    __atomic_add_fetch(&table->counts[requests_bucket(bits)].published, 1, __ATOMIC_RELEASE);
}

/* Make the slot visible to searches. */
static void publish(struct request *slot, mpi_handle bits)
{
    if (__builtin_expect(is_concurrent, 0))
        publish_concurrently(slot, bits);
    else
        store_handle(slot, bits);
}

static struct chunk *next_of(struct chunk *chunk)
{
    return __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE);
}

/* Take a chunk from the pools, which are mapped 4096 chunks at a time. */
static struct chunk *take_chunk(void)
{
    uint32_t number = __atomic_fetch_add(&requests_chunks, 1, __ATOMIC_RELAXED);
    if (number >= REQUESTS_CHUNKS_MOST) {
        __atomic_fetch_sub(&requests_chunks, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    struct chunk **pool = &pools[number / POOL_CHUNKS];
    struct chunk *memory = __atomic_load_n(pool, __ATOMIC_ACQUIRE);
    if (!memory) {
        struct chunk *fresh = fresh_memory(POOL_CHUNKS * sizeof *fresh);
        if (!fresh)
            return NULL;
        if (__atomic_compare_exchange_n(pool, &memory, fresh, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            memory = fresh;
        else
            munmap(fresh, POOL_CHUNKS * sizeof *fresh);
    }
    return &memory[number % POOL_CHUNKS];
}

/* The chunk at this place, put there if there was none; NULL when out of memory. If another thread
 * puts one there meanwhile, ours stays unused. */
static struct chunk *chunk_at(struct chunk **place)
{
    struct chunk *there = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    struct chunk *fresh = there ? NULL : take_chunk();
    if (fresh && __atomic_compare_exchange_n(place, &there, fresh, false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_ACQUIRE))
        return fresh;
    return there;
}

static void count_further(unsigned number, uint64_t more)
{
    if (is_concurrent)
        __atomic_add_fetch(&table->counts[number].further, more, __ATOMIC_RELAXED);
    else
        table->counts[number].further += more;
}

static struct chunk *cursor_of(struct chunk *chain)
{
    struct chunk *cursor = __atomic_load_n(&chain->cursor, __ATOMIC_ACQUIRE);
    return cursor ? cursor : chain;
}

static void move_cursor(struct chunk *chain, struct chunk *to)
{
    __atomic_store_n(&chain->cursor, to, __ATOMIC_RELEASE);
}

/* The chunk after `chunk`, wrapping from the chain's last to its first; NULL when back at
 * `start`. */
static struct chunk *next_round(struct chunk *chain, struct chunk *chunk, struct chunk *start)
{
    struct chunk *next = next_of(chunk);
    if (!next)
        next = chain;
    return next == start ? NULL : next;
}

/* Claim an empty slot of this chunk; NULL if there is none. */
static struct request *claim_slot(struct chunk *chunk)
{
    for (int i = 0; i < SLOTS; i++)
        if (handle_in(&chunk->slots[i]) == REQUEST_EMPTY &&
            swap_handle(&chunk->slots[i], REQUEST_EMPTY, REQUEST_BUSY))
            return &chunk->slots[i];
    return NULL;
}

/* Insert a new chunk directly after the chain's first. */
static struct chunk *extend(struct chunk *chain)
{
    struct chunk *fresh = take_chunk();
    if (!fresh)
        return NULL;
    struct chunk *second = next_of(chain);
    do
        fresh->next = second;
    while (!__atomic_compare_exchange_n(&chain->next, &second, fresh, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
    return fresh;
}

/* Claim an empty slot of a chain, near its cursor or in a new chunk; NULL when the table is
 * full. */
static struct request *claim_in_chain(struct chunk *chain)
{
    enum { LOOK_AT = 4 }; /* chunks to search before adding one */
    struct chunk *start = cursor_of(chain), *chunk = start;
    for (int i = 0; i < LOOK_AT && chunk; i++, chunk = next_round(chain, chunk, start)) {
        struct request *slot = claim_slot(chunk);
        if (slot) {
            move_cursor(chain, chunk);
            return slot;
        }
    }
    for (;;) {
        chunk = extend(chain);
        struct request *slot = chunk ? claim_slot(chunk) : NULL;
        if (!chunk || slot) {
            move_cursor(chain, chunk ? chunk : chain);
            return slot;
        }
    }
}

static __attribute__((noinline)) struct request *claim_further(unsigned number, mpi_handle bits)
{
    struct chunk *bucket = &table->buckets[number];
    struct request *slot = claim_slot(bucket);
    struct chunk *index = slot ? NULL : chunk_at(&bucket->index);
    struct chunk *chain = index ? chunk_at(chain_in(index, bits)) : NULL;
    if (chain)
        slot = claim_in_chain(chain);
    if (slot)
        count_further(number, 1);
    return slot;
}

/* Claim an empty slot of a bucket, normally the first. */
static struct request *claim(mpi_handle bits)
{
    unsigned number = requests_bucket(bits);
    struct request *first = &table->firsts[number];
    if (__builtin_expect(handle_in(first) == REQUEST_EMPTY, 1) &&
        swap_handle(first, REQUEST_EMPTY, REQUEST_BUSY))
        return first;
    return claim_further(number, bits);
}

struct request *requests_claim_anywhere(mpi_handle handle)
{
    return table ? claim(mpi_handle_bits(handle)) : NULL;
}

void requests_publish_anywhere(struct request *slot, mpi_handle handle)
{
    publish(slot, mpi_handle_bits(handle));
}

bool requests_track(mpi_handle handle, const struct request *request)
{
    struct request *slot = requests_claim(handle);
    if (!slot)
        return false;
    requests_fill(slot, request);
    requests_publish(slot, handle);
    return true;
}

static unsigned flags_of(const struct request *slot)
{
    return __atomic_load_n(&slot->flags, __ATOMIC_ACQUIRE);
}

/* One thread at a time uses MPI: any slot with the handle. */

HOT bool is_found(const struct request *slot, mpi_handle bits, bool active)
{
    return handle_in(slot) == bits && !!(flags_of(slot) & REQUEST_ACTIVE) == active;
}

HOT struct request *find_in(struct chunk *chunk, mpi_handle bits, bool active)
{
    for (int i = 0; i < SLOTS; i++)
        if (is_found(&chunk->slots[i], bits, active))
            return &chunk->slots[i];
    return NULL;
}

static struct request *find_in_chain(struct chunk *chain, mpi_handle bits, bool active)
{
    struct chunk *start = cursor_of(chain);
    for (struct chunk *chunk = start; chunk; chunk = next_round(chain, chunk, start)) {
        struct request *slot = find_in(chunk, bits, active);
        if (slot) {
            if (chunk != start)
                move_cursor(chain, chunk);
            return slot;
        }
    }
    return NULL;
}

static __attribute__((noinline)) struct request *find_further(unsigned number, mpi_handle bits,
                                                              bool active)
{
    struct chunk *bucket = &table->buckets[number];
    if (!table->counts[number].further)
        return NULL;
    struct request *slot = find_in(bucket, bits, active);
    struct chunk *chain = slot ? NULL : chain_of(bucket, bits);
    return chain ? find_in_chain(chain, bits, active) : slot;
}

/* A matching slot; NULL if there is none. */
HOT struct request *find(mpi_handle bits, bool active)
{
    if (!table)
        return NULL;
    unsigned number = requests_bucket(bits);
    struct request *first = &table->firsts[number];
    return __builtin_expect(is_found(first, bits, active), 1) ? first
                                                              : find_further(number, bits, active);
}

/* MPI_THREAD_MULTIPLE: the request that the call means. */

enum state { INACTIVE = 1, ACTIVE = 2, EITHER = 3 };

/* Target of a thread's search: this handle, in this state, known to MPI at this time. */
struct wanted {
    mpi_handle bits;
    enum state state;
    uint64_t known_at;
    uint16_t thread; /* that looks for it (requests_thread) */
};

struct latest {
    struct request *request;
    uintptr_t handle; /* as it is in the slot */
    uint64_t known_since;
};

/* From this time on the request's handle was known to be its own: its starting call had returned,
 * and those charged to it had begun. */
static uint64_t known_since(const struct request *slot)
{
    return __atomic_load_n(&slot->start_ticks, __ATOMIC_RELAXED) +
           __atomic_load_n(&slot->blocked_ticks, __ATOMIC_RELAXED);
}

/* A send of which nothing is read at completion: several may have one handle at a time. */
static bool may_share(const struct request *slot)
{
    return (flags_of(slot) & (REQUEST_MESSAGE | REQUEST_RECEIVE | REQUEST_HOLDS |
                              REQUEST_PERSISTENT)) == REQUEST_MESSAGE;
}

static bool is_wanted(const struct request *slot, const struct wanted *wanted)
{
    enum state state = flags_of(slot) & REQUEST_ACTIVE ? ACTIVE : INACTIVE;
    return state & wanted->state && known_since(slot) <= wanted->known_at;
}

/* True: it is a send of this thread, which ends the search. */
HOT bool look_at(struct request *slot, const struct wanted *wanted, struct latest *latest)
{
    uintptr_t handle = __atomic_load_n(&slot->handle, __ATOMIC_ACQUIRE);
    if ((handle ^ wanted->bits) << (64 - HANDLE_BITS) || !is_wanted(slot, wanted))
        return false;
    uint64_t since = known_since(slot);
    bool is_own_send =
        __atomic_load_n(&slot->thread, __ATOMIC_RELAXED) == wanted->thread && may_share(slot);
    if (is_own_send || !latest->request || since > latest->known_since)
        *latest = (struct latest){slot, handle, since};
    return is_own_send;
}

static bool look_at_chunk(struct chunk *chunk, const struct wanted *wanted, struct latest *latest)
{
    bool is_own_send = false;
    for (int i = 0; i < SLOTS && !is_own_send; i++)
        is_own_send = look_at(&chunk->slots[i], wanted, latest);
    return is_own_send;
}

/* Looks at all slots of a chain; once it has found a send, only at some more: thousands may have
 * the same handle. */
static void look_at_chain(struct chunk *chain, const struct wanted *wanted, struct latest *latest)
{
    enum { ENOUGH = 16 };
    struct chunk *start = cursor_of(chain);
    int passed = 0;
    for (struct chunk *chunk = start; chunk; chunk = next_round(chain, chunk, start)) {
        bool is_own_send = look_at_chunk(chunk, wanted, latest);
        if (!latest->request || !may_share(latest->request))
            continue;
        if (chunk != start)
            move_cursor(chain, chunk);
        if (is_own_send || ++passed == ENOUGH)
            return;
    }
}

static void look_further(struct chunk *bucket, const struct wanted *wanted, struct latest *latest)
{
    bool is_own_send = look_at_chunk(bucket, wanted, latest);
    struct chunk *chain = is_own_send ? NULL : chain_of(bucket, wanted->bits);
    if (chain)
        look_at_chain(chain, wanted, latest);
}

/* A search may pass a slot just before another thread fills it, and reach the wanted slot just
 * after it was taken. So if it found nothing and a handle was published meanwhile, it is
 * repeated. */
static __attribute__((noinline)) struct latest find_latest(const struct wanted *wanted)
{
    if (!table)
        return (struct latest){0};
    unsigned number = requests_bucket(wanted->bits);
    struct counts *counts = &table->counts[number];
    for (;;) {
        struct latest latest = {0};
        uint64_t published = __atomic_load_n(&counts->published, __ATOMIC_ACQUIRE);
        bool is_own_send = look_at(&table->firsts[number], wanted, &latest);
        if (!is_own_send && __atomic_load_n(&counts->further, __ATOMIC_RELAXED))
            look_further(&table->buckets[number], wanted, &latest);
        if (latest.request || published == __atomic_load_n(&counts->published, __ATOMIC_ACQUIRE))
            return latest;
    }
}

static __attribute__((noinline)) struct request *take_latest(const struct wanted *wanted)
{
    struct latest latest;
    do
        latest = find_latest(wanted);
    while (latest.request && !swap_handle(latest.request, latest.handle, REQUEST_BUSY));
    return latest.request;
}

HOT struct request *search(mpi_handle bits, enum state state, uint64_t known_at,
                           const struct ledger_thread *thread)
{
    if (__builtin_expect(is_concurrent, 0))
        return find_latest(
                   &(struct wanted){bits, state, known_at, thread ? requests_thread(thread) : 0})
            .request;
    return find(bits, state == ACTIVE);
}

/* The request that a call has completed or freed; its slot is busy then. */
HOT struct request *take(mpi_handle bits, enum state state, const struct ledger_thread *thread,
                         uint64_t start_ticks)
{
    if (__builtin_expect(is_concurrent, 0))
        return take_latest(&(struct wanted){bits, state, start_ticks, requests_thread(thread)});
    struct request *slot = find(bits, true);
    if (!slot && state == EITHER)
        slot = find(bits, false);
    if (slot)
        slot->handle = REQUEST_BUSY;
    return slot;
}

static void empty(mpi_handle bits, struct request *slot)
{
    unsigned number = requests_bucket(bits);
    store_handle(slot, REQUEST_EMPTY);
    if (slot != &table->firsts[number])
        count_further(number, (uint64_t)-1);
}

struct request *requests_look_anywhere(mpi_handle handle, const struct ledger_thread *thread)
{
    return search(mpi_handle_bits(handle), ACTIVE, UINT64_MAX, thread);
}

struct request *requests_inactive(mpi_handle handle)
{
    return search(mpi_handle_bits(handle), INACTIVE, UINT64_MAX, NULL);
}

bool requests_start(struct request *slot, uint64_t start_ticks, uint64_t end_ticks,
                    struct ledger_sample *sample)
{
    if (!slot)
        return false;
    __atomic_store_n(&slot->sample, sample, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->start_ticks, start_ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->blocked_ticks, end_ticks - start_ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->flags, slot->flags | REQUEST_ACTIVE, __ATOMIC_RELEASE);
    return true;
}

/* The sum never exceeds the time since the start, so known_since() is never after the end of these
 * calls. Another thread may complete the request and reuse its slot meanwhile: then nothing is
 * charged. */
void requests_blocked(mpi_handle handle, uint64_t blocked_ticks, uint64_t end_ticks)
{
    struct request *slot = search(mpi_handle_bits(handle), ACTIVE, end_ticks - blocked_ticks, NULL);
    if (!slot || __atomic_load_n(&slot->charged, __ATOMIC_RELAXED) == (uint32_t)end_ticks)
        return;
    uint64_t before = __atomic_load_n(&slot->blocked_ticks, __ATOMIC_RELAXED),
             after = before + blocked_ticks;
    uint64_t start_ticks = __atomic_load_n(&slot->start_ticks, __ATOMIC_RELAXED),
             passed = end_ticks - start_ticks;
    after = after < passed ? after : passed;
    if (start_ticks > end_ticks || after <= before) /* the tick counter went backwards */
        return;
    if (!is_concurrent)
        slot->blocked_ticks = after;
    else if (!__atomic_compare_exchange_n(&slot->blocked_ticks, &before, after, false,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&slot->charged, (uint32_t)end_ticks, __ATOMIC_RELAXED);
}

struct request *requests_take_anywhere(mpi_handle handle, const struct ledger_thread *thread,
                                       uint64_t start_ticks)
{
    return take(mpi_handle_bits(handle), ACTIVE, thread, start_ticks);
}

void requests_end_anywhere(struct request *slot, mpi_handle handle)
{
    mpi_handle bits = mpi_handle_bits(handle);
    if (!(slot->flags & REQUEST_PERSISTENT)) {
        empty(bits, slot);
        return;
    }
    __atomic_store_n(&slot->flags, slot->flags & ~REQUEST_ACTIVE, __ATOMIC_RELAXED);
    publish(slot, bits);
}

bool requests_forget(mpi_handle handle, const struct ledger_thread *thread, uint64_t start_ticks,
                     struct request *forgotten)
{
    mpi_handle bits = mpi_handle_bits(handle);
    struct request *slot = take(bits, EITHER, thread, start_ticks);
    if (!slot)
        return false;
    *forgotten = *slot;
    empty(bits, slot);
    return true;
}
