/* The process may be killed at any instant of a fold; no call may be lost or counted twice, so live cells are never changed in
 * place. To merge c into b, a spare cell a is filled with their sum; then one store to the thread's `folding` word commits:
 * a counts, b and c do not. Then the three `live` marks are updated and the word is cleared.
 *
 *     b live  c live  a free      folding 0
 *     b live  c live  a = b + c   folding 0           if killed here, b and c count
 *     b live  c live  a           folding a,b,c       from this store on, a counts
 *     b free  c free  a live      folding 0
 *
 * Merged cells have no region, so that folding frees cells however many regions there are.
 *
 * One spare cell is always reserved for folding. Each fold merges the rarest half of the sizes, so that its cost is amortized
 * over as many new sizes. */
#include "cells.h"

#include <stdlib.h>

enum { FIRST_INDEX = 256, CELLS_MAX = (1 << 21) - 1 };

bool cells_create(struct cells *cells, struct ledger_thread *record)
{
    *cells = (struct cells){.index_mask = FIRST_INDEX - 1, .record = record};
    cells->index = calloc(FIRST_INDEX, sizeof *cells->index);
    return cells->index != NULL;
}

void cells_destroy(struct cells *cells)
{
    free(cells->index);
    free(cells->all);
    free(cells->spare);
    *cells = (struct cells){0};
}

void cells_clear(struct cells *cells)
{
    cells->spare_count = 0;
    for (uint32_t i = cells->count; i-- > 0;) {
        cells->all[i]->live = 0;
        cells->spare[cells->spare_count++] = i;
    }
    memset(cells->index, 0, ((size_t)cells->index_mask + 1) * sizeof *cells->index);
}

static void index_put(struct cells *cells, struct ledger_cell *cell)
{
    uint32_t at = cells_hash(cell->bytes, cell_key_of(cell));
    while (cells->index[at & cells->index_mask])
        at++;
    cells->index[at & cells->index_mask] = cell;
}

static void index_rebuild(struct cells *cells)
{
    memset(cells->index, 0, ((size_t)cells->index_mask + 1) * sizeof *cells->index);
    for (uint32_t i = 0; i < cells->count; i++)
        if (cells->all[i]->live)
            index_put(cells, cells->all[i]);
}

/* Grow the index to at least twice the number of cells, so that probes stay short. */
static bool index_fits(struct cells *cells, uint32_t count)
{
    uint32_t size = cells->index_mask + 1;
    while (size < 2 * count)
        size *= 2;
    if (size == cells->index_mask + 1)
        return true;
    struct ledger_cell **larger = calloc(size, sizeof *larger);
    if (!larger)
        return false;
    free(cells->index);
    cells->index = larger;
    cells->index_mask = size - 1;
    index_rebuild(cells);
    return true;
}

/* Allocate a chunk of cells and add them to the spares. */
static bool take_chunk(struct cells *cells)
{
    uint32_t capacity = ledger_chunk_capacity(sizeof(struct ledger_cell));
    uint32_t total = cells->count + capacity;
    struct ledger_cell **all = realloc(cells->all, total * sizeof(struct ledger_cell *));
    if (all)
        cells->all = all;
    uint32_t *spare = realloc(cells->spare, total * sizeof *spare);
    if (spare)
        cells->spare = spare;
    if (!all || !spare || total > CELLS_MAX || !index_fits(cells, total))
        return false;
    struct ledger_chunk *chunk = ledger_chunk(LEDGER_CELLS, sizeof(struct ledger_cell), cells->record->thread);
    if (!chunk)
        return false;
    for (uint32_t i = capacity; i-- > 0;)
        cells->spare[cells->spare_count++] = cells->count + i;
    for (uint32_t i = 0; i < capacity; i++)
        cells->all[cells->count++] = ledger_entry(chunk, i);
    __atomic_store_n(&chunk->used, capacity, __ATOMIC_RELEASE);
    return true;
}

static void cell_clear(struct ledger_cell *cell, uint64_t bytes, uint64_t key)
{
    memset(cell, 0, sizeof *cell);
    cell->bytes = bytes;
    memcpy(&cell->call, &key, sizeof key);
    cell->min_ns = UINT64_MAX;
}

static void cell_merge(struct ledger_cell *into, const struct ledger_cell *from)
{
    into->total_ns += from->total_ns;
    into->volume_bytes += from->volume_bytes;
    into->blocked_ns += from->blocked_ns;
    if (from->min_ns < into->min_ns)
        into->min_ns = from->min_ns;
    if (from->max_ns > into->max_ns)
        into->max_ns = from->max_ns;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

static uint64_t power_of_two_above(uint64_t bytes)
{
    if (bytes <= 1)
        return bytes;
    return bytes > 1ull << 63 ? UINT64_MAX : 1ull << (64 - __builtin_clzll(bytes - 1));
}

static uint64_t folded_key(uint64_t key)
{
    return (key & ~CELL_KEY_REGION) | CELL_KEY_FOLDED;
}

static uint32_t find_folded(const struct cells *cells, uint64_t bytes, uint64_t key)
{
    for (uint32_t i = 0; i < cells->count; i++)
        if (cells->all[i]->live && cells->all[i]->bytes == bytes && cell_key_of(cells->all[i]) == key)
            return i;
    return UINT32_MAX;
}

/* Ordered with the stores to `folding`, for readers and for a kill. */
static void mark(struct ledger_cell *cell, uint64_t live)
{
    __atomic_store_n(&cell->live, live, __ATOMIC_RELEASE);
}

/* Replace cell `victim`, and the power-of-two cell with its key if there is one, by their sum in a spare cell. */
static void fold(struct cells *cells, uint32_t victim)
{
    struct ledger_cell *rare = cells->all[victim];
    uint64_t bytes = power_of_two_above(rare->bytes);
    uint64_t key = folded_key(cell_key_of(rare));
    uint32_t folded = find_folded(cells, bytes, key);
    uint32_t fresh = cells->spare[--cells->spare_count];
    struct ledger_cell *sum = cells->all[fresh];

    cell_clear(sum, bytes, key);
    cell_merge(sum, rare);
    if (folded != UINT32_MAX)
        cell_merge(sum, cells->all[folded]);
    uint64_t third = folded == UINT32_MAX ? 0 : folded + 1ull;
    __atomic_store_n(&cells->record->folding, (fresh + 1ull) | (victim + 1ull) << 21 | third << 42, __ATOMIC_RELEASE);
    mark(sum, 1);
    mark(rare, 0);
    cells->spare[cells->spare_count++] = victim;
    if (folded != UINT32_MAX) {
        mark(cells->all[folded], 0);
        cells->spare[cells->spare_count++] = folded;
    }
    __atomic_store_n(&cells->record->folding, 0, __ATOMIC_RELEASE);
    ledger_count(&the_ledger.header->folded_cells);
}

static int by_count(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static bool may_fold(const struct ledger_cell *cell)
{
    return cell->live && !(cell->flags & LEDGER_CELL_FOLDED);
}

static void fold_the_rarest(struct cells *cells)
{
    uint64_t *counts = malloc(cells->count * sizeof *counts);
    if (!counts || cells->count == 0)
        goto done;
    uint32_t candidates = 0;
    for (uint32_t i = 0; i < cells->count; i++)
        if (may_fold(cells->all[i]))
            counts[candidates++] = cell_count(cells->all[i]);
    if (candidates == 0)
        goto done;
    qsort(counts, candidates, sizeof *counts, by_count);
    uint64_t rare = counts[(candidates - 1) / 2];
    uint32_t wanted = (candidates + 1) / 2;
    __atomic_fetch_add(&the_ledger.header->folds_begun, 1, __ATOMIC_RELAXED); /* before `folding`, which is a release store */
    for (uint32_t i = 0; i < cells->count && wanted > 0; i++)
        if (may_fold(cells->all[i]) && cell_count(cells->all[i]) <= rare) {
            fold(cells, i);
            wanted--;
        }
    __atomic_fetch_add(&the_ledger.header->folds_ended, 1, __ATOMIC_RELEASE);
    index_rebuild(cells);
done:
    free(counts);
}

/* One spare is reserved for folding. */
static bool has_room(const struct cells *cells)
{
    return cells->spare_count >= 2;
}

struct ledger_cell *cells_insert(struct cells *cells, uint64_t bytes, uint64_t key)
{
    if (!has_room(cells) && !take_chunk(cells))
        fold_the_rarest(cells);
    if (!has_room(cells)) {
        uint32_t folded = find_folded(cells, power_of_two_above(bytes), folded_key(key));
        return folded == UINT32_MAX ? NULL : cells->all[folded];
    }
    struct ledger_cell *cell = cells->all[cells->spare[--cells->spare_count]];
    cell_clear(cell, bytes, key);
    mark(cell, 1);
    index_put(cells, cell);
    return cell;
}
