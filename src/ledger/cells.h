/* One thread's cells: what is counted apart, found by its key and added to in place.
 *
 * Only the owning thread writes, so there is no lock and no atomic instruction. Finding a cell is one probe of a private
 * hash index; adding to it touches two cache lines of the ledger. A new cell may take a chunk from the ledger (a lock, and
 * now and then a system call); that happens once per 26 sizes. When the ledger is full, the rarest sizes fold into
 * power-of-two cells that say so, and the ledger's header counts them. */
#ifndef COMMPROF_CELLS_H
#define COMMPROF_CELLS_H

#include "histogram.h"
#include "ledger.h"

#include <string.h>

struct cells {
    struct ledger_cell **index; /* open addressing by key; NULL: empty */
    uint32_t index_mask;
    uint32_t count; /* of `all`: every cell this thread ever took, in the ledger's order */
    struct ledger_cell **all;
    uint32_t *spare; /* indices in `all` of cells that are free */
    uint32_t spare_count;
    struct ledger_thread *record;
};

/* A cell's key beside its size, packed as it lies in the cell. */
static inline uint64_t cell_key(unsigned call, unsigned communicator, enum ledger_measure measure)
{
    return (uint64_t)call | (uint64_t)communicator << 16 | (uint64_t)measure << 48;
}

#define CELL_KEY_FOLDED ((uint64_t)LEDGER_CELL_FOLDED << 52)

/* A region's number and the place of the buffers, which cell_key leaves 0. */
enum { CELL_KEY_REGION_BIT = 32, CELL_KEY_PLACE_BIT = 56 };
#define CELL_KEY_REGION ((uint64_t)UINT16_MAX << CELL_KEY_REGION_BIT)

static inline uint64_t cell_key_place(uint8_t place)
{
    return (uint64_t)place << CELL_KEY_PLACE_BIT;
}

static inline uint64_t cell_key_of(const struct ledger_cell *cell)
{
    uint64_t key;
    memcpy(&key, &cell->call, sizeof key);
    return key;
}

/* Make an empty table whose cells belong to `record`. False when out of memory. */
bool cells_create(struct cells *cells, struct ledger_thread *record);
void cells_destroy(struct cells *cells);

/* Forget all that was counted; the cells stay the table's. */
void cells_clear(struct cells *cells);

/* The cell of a key that is not in the index yet: a new one, a folded one, or NULL when there is no room at all. */
struct ledger_cell *cells_insert(struct cells *cells, uint64_t bytes, uint64_t key);

static inline uint32_t cells_hash(uint64_t bytes, uint64_t key)
{
    uint64_t mixed = (bytes ^ key * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
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

/* Count one call. The bucket comes last: its one store is what makes the call counted. */
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
