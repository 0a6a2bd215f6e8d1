/* One thread's cells: a hash table from a key (call, communicator, bytes, ...) to a ledger_cell, updated in place.
 *
 * Only the owning thread writes, so there is no lock and no atomic instruction. A lookup is one probe of a private hash index;
 * an update touches two cache lines of the ledger. Once per 26 new cells a chunk is allocated (a lock, sometimes a system call).
 * When the ledger is full, the rarest sizes fold into power-of-two cells; they are flagged, and the ledger's header counts them. */
#ifndef COMMPROF_CELLS_H
#define COMMPROF_CELLS_H

#include "histogram.h"
#include "ledger.h"

#include <string.h>

struct cells {
    struct ledger_cell **index; /* open addressing by key; NULL: empty */
    uint32_t index_mask;
    uint32_t count; /* of `all`: all cells of this thread, in the ledger's order */
    struct ledger_cell **all;
    uint32_t *spare; /* indices in `all` of free cells */
    uint32_t spare_count;
    struct ledger_thread *record;
};

/* A cell's key except for its size, packed as in the cell. */
static inline uint64_t cell_key(unsigned call, unsigned communicator, enum ledger_measure measure)
{
    return (uint64_t)call | (uint64_t)communicator << 16 | (uint64_t)measure << 48;
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

/* Insert a key that is not in the index: returns a new cell, the folded cell for this size, or NULL if there is no room. */
struct ledger_cell *cells_insert(struct cells *cells, uint64_t bytes, uint64_t key);

/* A multiplication carries upwards only: turned by half a word, the key's high bits (measure, memory kind) reach the index's low bits. */
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

/* The same, with what an earlier look-up has found, maybe for another key. A cell that has been folded or cleared since is not live. */
static inline struct ledger_cell *cells_find_again(struct cells *cells, uint64_t bytes, uint64_t key, struct ledger_cell **found)
{
    struct ledger_cell *cell = *found;
    if (__builtin_expect(cell->bytes == bytes && cell_key_of(cell) == key && cell->live, 1))
        return cell;
    cell = cells_find(cells, bytes, key);
    *found = cell ? cell : *found;
    return cell;
}

/* Count one call. The bucket is stored last: that store counts the call. */
static inline void cell_add(struct ledger_cell *cell, uint64_t duration_ns, uint64_t volume_bytes)
{
    cell->total_ns += duration_ns;
    cell->volume_bytes += volume_bytes;
    if (duration_ns < cell->min_ns)
        cell->min_ns = duration_ns;
    if (duration_ns > cell->max_ns)
        cell->max_ns = duration_ns;
    __asm__ volatile("" ::: "memory");
    cell->buckets[histogram_bucket(duration_ns)]++;
}

static inline uint64_t cell_count(const struct ledger_cell *cell)
{
    return histogram_count(cell->buckets);
}

#endif
