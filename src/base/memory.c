/* Blocks have sizes of powers of two. Those that were given back are in a stack for each size, from
 * which a block is taken, or onto which it is put, by one compare-and-swap. Between its load of the
 * top and the exchange another thread may have taken the top and put it back above another block:
 * so each exchange also changes a number beside the pointer. New blocks come from slabs, which are
 * never unmapped: a thread may still read the `next` of a block that another has taken.
 *
 *     stack    | number | top --> | block --> | block --> NULL
 *     slab     |used| block | block | block | . . . . . . |
 *
 * Larger blocks are mapped one by one. */
#include "memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum {
    SMALLEST_LOG2 = 5,
    LARGEST_LOG2 = 15,
    STACKS = LARGEST_LOG2 - SMALLEST_LOG2 + 1,
    SLAB_BYTES = 256 << 10,
    ALIGNMENT_LOG2 = 4,
    ADDRESS_BITS = 48 - ALIGNMENT_LOG2, /* as in a stack's top; the kernel maps no higher unless it
                                           is asked to */
};

/* Precedes the memory that is handed out. */
struct block {
    size_t bytes; /* without this header */
    struct block *next;
};
_Static_assert(sizeof(struct block) == 1 << ALIGNMENT_LOG2, "blocks are aligned");

struct slab {
    size_t used, padding;
};

static uint64_t stacks[STACKS];
static struct slab *slab;
static size_t in_use;

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Stacks */

static struct block *top_of(uint64_t stack)
{
    return (struct block *)((stack & ((1ull << ADDRESS_BITS) - 1)) << ALIGNMENT_LOG2);
}

static uint64_t with_top(uint64_t stack, const struct block *top)
{
    uint64_t number = (stack >> ADDRESS_BITS) + 1;
    return number << ADDRESS_BITS | (uintptr_t)top >> ALIGNMENT_LOG2;
}

static bool exchange(uint64_t *stack, uint64_t *seen, const struct block *top)
{
    return __atomic_compare_exchange_n(stack, seen, with_top(*seen, top), true, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

static struct block *pop(uint64_t *stack)
{
    uint64_t seen = __atomic_load_n(stack, __ATOMIC_ACQUIRE);
    struct block *top;
    while ((top = top_of(seen)) &&
           !exchange(stack, &seen, __atomic_load_n(&top->next, __ATOMIC_RELAXED)))
        continue;
    return top;
}

static void push(uint64_t *stack, struct block *block)
{
    uint64_t seen = __atomic_load_n(stack, __ATOMIC_ACQUIRE);
    do
        __atomic_store_n(&block->next, top_of(seen), __ATOMIC_RELAXED);
    while (!exchange(stack, &seen, block));
}

/* Slabs */

/* A slab whose first bytes are used; NULL: there is no memory. If another thread maps one
 * meanwhile, that one is the next. */
static bool next_slab(struct slab *full)
{
    struct slab *fresh = map(SLAB_BYTES);
    if (!fresh)
        return false;
    fresh->used = sizeof *fresh;
    if (!__atomic_compare_exchange_n(&slab, &full, fresh, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        munmap(fresh, SLAB_BYTES);
    return true;
}

static struct block *cut(size_t bytes)
{
    for (;;) {
        struct slab *current = __atomic_load_n(&slab, __ATOMIC_ACQUIRE);
        size_t at =
            current ? __atomic_fetch_add(&current->used, bytes, __ATOMIC_RELAXED) : SLAB_BYTES;
        if (at + bytes <= SLAB_BYTES)
            return (struct block *)((char *)current + at);
        if (!next_slab(current))
            return NULL;
    }
}

/* Blocks */

static struct block *block_of(void *memory)
{
    return (struct block *)memory - 1;
}

/* The stack of blocks with so many bytes. */
static unsigned stack_of(size_t bytes)
{
    if (bytes <= 1 << SMALLEST_LOG2)
        return 0;
    return 64 - (unsigned)__builtin_clzll(bytes - 1) - SMALLEST_LOG2;
}

static struct block *small_block(size_t bytes)
{
    unsigned number = stack_of(bytes);
    size_t whole = (size_t)1 << (number + SMALLEST_LOG2);
    struct block *block = pop(&stacks[number]);
    if (block) {
        memset(block + 1, 0, whole);
    } else if ((block = cut(sizeof *block + whole))) {
        block->bytes = whole;
    }
    return block;
}

static struct block *large_block(size_t bytes)
{
    struct block *block = bytes < SIZE_MAX - sizeof *block ? map(sizeof *block + bytes) : NULL;
    if (block)
        block->bytes = bytes;
    return block;
}

void *memory_take(size_t bytes)
{
    struct block *block = bytes <= 1 << LARGEST_LOG2 ? small_block(bytes) : large_block(bytes);
    if (!block)
        return NULL;
    __atomic_add_fetch(&in_use, block->bytes, __ATOMIC_RELAXED);
    return block + 1;
}

void memory_give(void *memory)
{
    if (!memory)
        return;
    struct block *block = block_of(memory);
    __atomic_sub_fetch(&in_use, block->bytes, __ATOMIC_RELAXED);
    if (block->bytes <= 1 << LARGEST_LOG2)
        push(&stacks[stack_of(block->bytes)], block);
    else
        munmap(block, sizeof *block + block->bytes);
}

void *memory_resize(void *memory, size_t bytes)
{
    size_t there = memory ? block_of(memory)->bytes : 0;
    if (memory && bytes <= there)
        return memory;
    void *larger = memory_take(bytes);
    if (larger && memory)
        memcpy(larger, memory, there);
    if (larger)
        memory_give(memory);
    return larger;
}

size_t memory_in_use(void)
{
    return __atomic_load_n(&in_use, __ATOMIC_RELAXED);
}
