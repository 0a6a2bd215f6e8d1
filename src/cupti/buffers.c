/* Each buffer is one bit in three sets. It moves by an atomic AND in one set and an OR in the next,
 * so there are no list heads and no ABA problem. Between the two steps its bit is in no set; the
 * consumer must not miss it then, so it looks at all buffers that are not free.
 *
 * Each buffer is a separate allocation: a client that is not seen (interpose.h) may receive it in
 * its callback and free it. The system provides memory only for pages in use, and the lowest free
 * buffer is taken first, so a program that needs few touches few. A free buffer holds zeros; so the
 * contents show how far CUPTI has filled a buffer that it never returned. */
#include "buffers.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RESIDENT_COUNT = 256, RECORD_BYTES = 216 }; /* size of a kernel record in CUDA 12 and 13.0 */
enum { SINK = BUFFER_COUNT, WORD_BITS = 64, WORDS = BUFFER_COUNT / WORD_BITS };

static struct {
    uint8_t *memory[BUFFER_COUNT + 1]; /* the last one is the sink */
    uint64_t free[WORDS], lent[WORDS], completed[WORDS];
    uint64_t abandoned[WORDS]; /* lent, but no longer expected back */
    uint64_t sunk_bytes;
    bool may_refuse;
    buffers_completed forward;
    struct {
        int64_t lent_ns;
        size_t valid_bytes;
    } each[BUFFER_COUNT];
} buffers;

static uint64_t bit(unsigned buffer)
{
    return UINT64_C(1) << buffer % WORD_BITS;
}

static uint64_t *word(uint64_t *set, unsigned buffer)
{
    return &set[buffer / WORD_BITS];
}

/* Lowest buffer of a set's word. */
static unsigned lowest(unsigned word, uint64_t bits)
{
    return word * WORD_BITS + (unsigned)__builtin_ctzll(bits);
}

/* More than SINK: not one of ours. */
static unsigned number_of(const uint8_t *memory)
{
    unsigned buffer = 0;
    while (buffer <= SINK && buffers.memory[buffer] != memory)
        buffer++;
    return buffer;
}

bool buffers_begin(bool may_refuse)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    buffers.may_refuse = may_refuse;
    if (buffers.memory[SINK])
        return true;
    for (unsigned buffer = 0; buffer <= SINK; buffer++) {
        void *memory = buffers.memory[buffer];
        if (!memory && posix_memalign(&memory, page_bytes, BUFFER_BYTES))
            return false;
        madvise(memory, BUFFER_BYTES,
                MADV_DONTNEED); /* zero it: the allocator may have used this memory before */
        buffers.memory[buffer] = memory;
    }
    for (unsigned i = 0; i < WORDS; i++)
        __atomic_store_n(&buffers.free[i], UINT64_MAX, __ATOMIC_RELEASE);
    return true;
}

/* SINK: none is free. */
static unsigned take_free_one(void)
{
    for (unsigned i = 0; i < WORDS; i++) {
        uint64_t all = __atomic_load_n(&buffers.free[i], __ATOMIC_RELAXED);
        while (all)
            if (__atomic_compare_exchange_n(&buffers.free[i], &all, all & (all - 1), true,
                                            __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return lowest(i, all);
    }
    return SINK;
}

void buffers_request(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
    unsigned taken = take_free_one();
    if (taken != SINK) {
        __atomic_store_n(&buffers.each[taken].lent_ns, clock_monotonic_ns(), __ATOMIC_RELAXED);
        __atomic_fetch_or(word(buffers.lent, taken), bit(taken), __ATOMIC_RELEASE);
    }
    bool is_refused = taken == SINK && buffers.may_refuse;
    *buffer = is_refused ? NULL : buffers.memory[taken];
    *bytes = is_refused ? 0 : BUFFER_BYTES;
    *most_records = 0; /* as many as fit */
}

static void come_back(unsigned buffer, size_t valid_bytes)
{
    if (!(__atomic_fetch_and(word(buffers.lent, buffer), ~bit(buffer), __ATOMIC_ACQUIRE) &
          bit(buffer)))
        return; /* not lent */
    buffers.each[buffer].valid_bytes = valid_bytes < BUFFER_BYTES ? valid_bytes : BUFFER_BYTES;
    __atomic_fetch_or(word(buffers.completed, buffer), bit(buffer), __ATOMIC_RELEASE);
}

void buffers_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                      size_t valid_bytes)
{
    unsigned number = number_of(buffer);
    buffers_completed forward = __atomic_load_n(&buffers.forward, __ATOMIC_ACQUIRE);
    if (number < SINK)
        come_back(number, valid_bytes);
    else if (number == SINK)
        __atomic_fetch_add(&buffers.sunk_bytes, valid_bytes, __ATOMIC_RELAXED);
    else if (forward)
        forward(context, stream, buffer, bytes, valid_bytes);
}

void buffers_forward(buffers_completed to)
{
    __atomic_store_n(&buffers.forward, to, __ATOMIC_RELEASE);
}

static void clear(unsigned buffer)
{
    if (buffer < RESIDENT_COUNT)
        memset(buffers.memory[buffer], 0, buffers.each[buffer].valid_bytes);
    else
        madvise(buffers.memory[buffer], BUFFER_BYTES, MADV_DONTNEED);
}

static void give_free(unsigned buffer)
{
    clear(buffer);
    __atomic_fetch_and(word(buffers.abandoned, buffer), ~bit(buffer), __ATOMIC_RELAXED);
    __atomic_fetch_or(word(buffers.free, buffer), bit(buffer), __ATOMIC_RELEASE);
}

unsigned buffers_collect(void (*take)(uint8_t *buffer, size_t valid_bytes))
{
    unsigned count = 0;
    for (unsigned i = 0; i < WORDS; i++)
        for (uint64_t all = __atomic_exchange_n(&buffers.completed[i], 0, __ATOMIC_ACQUIRE); all;
             all &= all - 1, count++) {
            unsigned buffer = lowest(i, all);
            take(buffers.memory[buffer], buffers.each[buffer].valid_bytes);
            give_free(buffer);
        }
    return count;
}

static uint64_t not_back(unsigned word)
{
    return buffers.memory[SINK]
               ? ~__atomic_load_n(&buffers.free[word], __ATOMIC_ACQUIRE) & ~buffers.abandoned[word]
               : 0;
}

int64_t buffers_lent_since_ns(void)
{
    int64_t since_ns = INT64_MAX;
    for (unsigned i = 0; i < WORDS; i++)
        for (uint64_t waited_for = not_back(i); waited_for; waited_for &= waited_for - 1) {
            int64_t lent_ns =
                __atomic_load_n(&buffers.each[lowest(i, waited_for)].lent_ns, __ATOMIC_RELAXED);
            since_ns = lent_ns < since_ns ? lent_ns : since_ns;
        }
    return since_ns;
}

void buffers_abandon(void)
{
    for (unsigned i = 0; i < WORDS; i++)
        __atomic_store_n(&buffers.abandoned[i], __atomic_load_n(&buffers.lent[i], __ATOMIC_ACQUIRE),
                         __ATOMIC_RELAXED);
}

static uint64_t records_in(uint64_t bytes)
{
    return (bytes + RECORD_BYTES - 1) / RECORD_BYTES;
}

uint64_t buffers_sunk_records(void)
{
    return records_in(__atomic_exchange_n(&buffers.sunk_bytes, 0, __ATOMIC_RELAXED));
}

/* The size up to the last word that is not zero. */
static __attribute__((no_sanitize_thread)) size_t filled_bytes(unsigned buffer)
{
    const uint64_t *words = (const uint64_t *)buffers.memory[buffer];
    size_t count = BUFFER_BYTES / sizeof *words;
    while (count > 0 && words[count - 1] == 0)
        count--;
    return count * sizeof *words;
}

uint64_t buffers_unread_records(void)
{
    uint64_t records = 0;
    for (unsigned i = 0; i < WORDS; i++)
        for (uint64_t unread = not_back(i); unread; unread &= unread - 1)
            records += records_in(filled_bytes(lowest(i, unread)));
    return records;
}
