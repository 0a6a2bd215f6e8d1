/* One thread's cells: a hash table from a key (call, communicator, bytes, ...) to a ledger_cell,
 * updated in place.
 *
 * Only the owning thread writes, so there is no lock and no atomic instruction. A lookup is one
 * probe of a private hash index; an update touches two cache lines of the ledger: the sums, and the
 * block of the duration's bucket. A cell gets a block at the first duration in its octave. Once in
 * about a hundred new cells a chunk is allocated (a lock, sometimes a system call). When the ledger
 * is full, the rarest sizes fold into power-of-two cells, and these into cells that communicators
 * share; they are flagged, and the ledger's header counts them. */
#ifndef COMMPROF_CELLS_H
#define COMMPROF_CELLS_H

#include "histogram.h"
#include "ledger.h"

#include <string.h>

struct cells {
    struct ledger_cell **index; /* open addressing by key; NULL: empty */
    uint32_t index_mask;
    uint32_t count;        /* of `all`: all cells of this thread, in the ledger's order */
    uint32_t count_before; /* the last chunk */
    struct ledger_thread *record;
    struct ledger_cell **all;
    struct ledger_cell **spare; /* free ones; room for all */
    uint32_t spare_count;
    struct ledger_chunk *chunk;       /* the last one: cells from its begin, blocks from its end */
    uint32_t blocks_at;               /* in that chunk, in bytes: the lowest block */
    uint32_t spare_block_count;       /* in a list: */
    struct ledger_block *spare_block; /* its first count is the distance of the next one from the
                                         ledger's begin; 0: the last one */
};

/* A cell's key except for its size, packed as in the cell. */
static inline uint64_t cell_key(unsigned call, unsigned communicator, enum ledger_measure measure)
{
    return (uint64_t)call | (uint64_t)communicator << 16 | (uint64_t)measure << 48;
}

static inline enum ledger_measure cell_measure(uint64_t key)
{
    return (enum ledger_measure)(key >> 48 & 0xf);
}

#define CELL_KEY_FOLDED ((uint64_t)LEDGER_CELL_FOLDED << 52)

/* The region's number and the buffers' memory kinds, which cell_key leaves 0. */
enum { CELL_KEY_REGION_BIT = 32, CELL_KEY_MEMORY_KIND_BIT = 56 };
#define CELL_KEY_REGION ((uint64_t)UINT16_MAX << CELL_KEY_REGION_BIT)

static inline uint64_t cell_key_memory_kind(uint8_t pair)
{
    return (uint64_t)pair << CELL_KEY_MEMORY_KIND_BIT;
}

static inline uint64_t cell_key_of(const struct ledger_cell *cell)
{
    uint64_t key;
    memcpy(&key, &cell->call, sizeof key);
    return key;
}

/* Create an empty table whose cells belong to `record`. False if out of memory. */
bool cells_create(struct cells *cells, struct ledger_thread *record);
void cells_destroy(struct cells *cells);

/* Discard all counts; the table keeps its cells as free ones. */
void cells_clear(struct cells *cells);

/* Insert a key that is not in the index: returns a new cell, the folded cell for this size, or NULL
 * if there is no room. */
struct ledger_cell *cells_insert(struct cells *cells, uint64_t bytes, uint64_t key);

/* A multiplication carries upwards only: turned by half a word, the key's high bits (measure,
 * memory kind) reach the index's low bits. */
static inline uint32_t cells_hash(uint64_t bytes, uint64_t key)
{
    uint64_t spread = key * 0x9e3779b97f4a7c15ull;
    uint64_t mixed = (bytes ^ (spread >> 32 | spread << 32)) * 0xd6e8feb86659fd93ull;
    return (uint32_t)(mixed >> 32);
}

static inline struct ledger_cell *cells_find(struct cells *cells, uint64_t bytes, uint64_t key)
{
    for (uint32_t at = cells_hash(bytes, key);; at++) {
        struct ledger_cell *cell = cells->index[at & cells->index_mask];
        if (__builtin_expect(!cell, 0))
            return cells_insert(cells, bytes, key);
        if (cell->bytes == bytes && cell_key_of(cell) == key)
            return cell;
    }
}

/* The same, with what an earlier look-up has found, maybe for another key. A cell that has been
 * folded or cleared since has no key. */
static inline struct ledger_cell *cells_find_again(struct cells *cells, uint64_t bytes,
                                                   uint64_t key, struct ledger_cell **found)
{
    struct ledger_cell *cell = *found;
    if (__builtin_expect(cell->bytes == bytes && cell_key_of(cell) == key, 1))
        return cell;
    cell = cells_find(cells, bytes, key);
    *found = cell ? cell : *found;
    return cell;
}

/* Give the cell this block of its histogram. Returns the cell, or the one that it has been folded
 * into; NULL if there is no room. */
struct ledger_cell *cells_add_block(struct cells *cells, struct ledger_cell *cell, unsigned block);

/* A block that the cell has. */
static inline struct ledger_block *cell_block(const struct ledger_cell *cell, unsigned block)
{
    return (struct ledger_block *)((char *)cell + cell->blocks[block]);
}

/* Count one call, of a time above 0, in its cell. The bucket is stored last: that store counts the
 * call. False: there is no room for the bucket, and nothing was counted.
 *
 * The address of the counter would have to wait for the place of its block, 2 to 3 ns. So the last
 * call's is used at once, if the processor predicts that this call has the same; a wrong prediction
 * costs 5 ns. */
static inline bool cells_count(struct cells *cells, struct ledger_cell *cell, uint64_t duration_ns,
                               uint64_t volume_bytes, uint64_t blocked_ns)
{
    struct histogram_place place = histogram_place(duration_ns);
    int64_t at = cell->last_at;
    if (__builtin_expect(cell->last_block != place.block, 0)) {
        if (__builtin_expect(!cell->blocks[place.block], 0))
            cell = cells_add_block(cells, cell, (unsigned)place.block);
        if (!cell)
            return false;
        at = cell->last_at = cell->blocks[place.block];
        cell->last_block = (uint32_t)place.block;
    }
    cell->total_ns += duration_ns;
    cell->volume_bytes += volume_bytes;
    cell->blocked_ns += blocked_ns;
    if (duration_ns < cell->min_ns)
        cell->min_ns = duration_ns;
    if (duration_ns > cell->max_ns)
        cell->max_ns = duration_ns;
    __asm__ volatile("" ::: "memory");
    ((struct ledger_block *)((char *)cell + at))->counts[place.counter]++;
    return true;
}

/* The number of calls in each bucket; returns their sum. */
uint64_t cell_buckets(const struct ledger_cell *cell, uint64_t buckets[HISTOGRAM_BUCKETS]);
uint64_t cell_count(const struct ledger_cell *cell);

#endif
