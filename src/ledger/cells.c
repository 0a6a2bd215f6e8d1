/* The process may be killed at any instant of a fold; no call may be lost or counted twice, so live
 * cells are never changed in place. To merge c into b, a spare cell a is filled with their sum;
 * then one store to the thread's `folding` word commits: a counts, b and c do not. Then the three
 * `live` marks are updated and the word is cleared.
 *
 *     b live  c live a free folding 0
 *     b live  c live  a = b + c   folding 0           if killed here, b and c count
 *     b live  c live  a           folding a,b,c       from this store on, a counts
 *     b free  c free a live folding 0
 *
 * Merged cells have no region, so that folding frees cells however many regions there are. When
 * all cells are merged, the rarest lose their communicator as well, so that a ledger full of
 * communicators still counts every call whose time has a block; the others are counted as dropped.
 *
 * A thread may also vanish in the middle (asynchronous cancellation, or a handler that leaves by
 * siglongjmp), and its table be used on. Chunks are taken, and cells folded, in quiet parts. All
 * else is done in such an order that at most a cell or a block is lost: signals stay open, for one
 * that is sent to the process while this thread blocks it runs its handler on another thread.
 *
 * One spare cell, and as many blocks as it may need, are always reserved for folding. Each fold
 * merges the rarest half of the sizes, so that its cost is amortized over as many new sizes. */
#include "cells.h"

#include "base/memory.h"
#include "base/quiet.h"

enum { FIRST_INDEX = 256, CELLS_MAX = (1 << 21) - 1 };

bool cells_create(struct cells *cells, struct ledger_thread *record)
{
    *cells = (struct cells){.index_mask = FIRST_INDEX - 1, .record = record};
    cells->index = memory_take(FIRST_INDEX * sizeof *cells->index);
    return cells->index != NULL;
}

void cells_destroy(struct cells *cells)
{
    memory_give(cells->index);
    memory_give(cells->all);
    memory_give(cells->spare);
    *cells = (struct cells){0};
}

/* Blocks and cells */

/* All before it is done when the thread vanishes after it. */
static void order(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void block_release(struct cells *cells, struct ledger_block *block)
{
    block->counts[0] =
        cells->spare_block ? (uint64_t)((char *)cells->spare_block - (char *)the_ledger.header) : 0;
    order();
    cells->spare_block = block;
    order();
    cells->spare_block_count++;
}

/* The list never has fewer blocks than are counted. */
static struct ledger_block *block_take(struct cells *cells)
{
    struct ledger_block *block = cells->spare_block;
    uint64_t next = block->counts[0];
    cells->spare_block_count--;
    order();
    cells->spare_block = next ? (struct ledger_block *)((char *)the_ledger.header + next) : NULL;
    order();
    memset(block, 0, sizeof *block);
    return block;
}

/* Give a cell a block. The process may be killed at once: the zeros come before their place. */
static void cell_grow(struct cells *cells, struct ledger_cell *cell, unsigned block)
{
    struct ledger_block *zeros = block_take(cells);
    __atomic_store_n(&cell->blocks[block], (int32_t)((char *)zeros - (char *)cell),
                     __ATOMIC_RELEASE);
}

static void cell_clear(struct ledger_cell *cell, uint64_t bytes, uint64_t key)
{
    *cell = (struct ledger_cell){.bytes = bytes,
                                 .min_ns = UINT64_MAX,
                                 .last_block = HISTOGRAM_BLOCKS,
                                 .number = cell->number};
    memcpy(&cell->call, &key, sizeof key);
}

/* Set a cell that does not count aside, without a key. */
static void cell_release(struct cells *cells, struct ledger_cell *cell)
{
    for (unsigned i = 0; i < HISTOGRAM_BLOCKS; i++)
        if (cell->blocks[i])
            block_release(cells, cell_block(cell, i));
    cell_clear(cell, 0, 0);
    cells->spare[cells->spare_count++] = cell;
}

uint64_t cell_buckets(const struct ledger_cell *cell, uint64_t buckets[HISTOGRAM_BUCKETS])
{
    uint64_t count = 0;
    for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        unsigned place = bucket + HISTOGRAM_SUB_BUCKETS - 1, block = place / HISTOGRAM_SUB_BUCKETS;
        buckets[bucket] = cell->blocks[block]
                              ? cell_block(cell, block)->counts[place % HISTOGRAM_SUB_BUCKETS]
                              : 0;
        count += buckets[bucket];
    }
    return count;
}

uint64_t cell_count(const struct ledger_cell *cell)
{
    uint64_t count = 0;
    for (unsigned block = 0; block < HISTOGRAM_BLOCKS; block++)
        for (unsigned i = 0; cell->blocks[block] && i < HISTOGRAM_SUB_BUCKETS; i++)
            count += cell_block(cell, block)->counts[i];
    return count;
}

void cells_clear(struct cells *cells)
{
    cells->spare_count = 0;
    for (uint32_t i = cells->count; i-- > 0;) {
        cells->all[i]->live = 0;
        cell_release(cells, cells->all[i]);
    }
    memset(cells->index, 0, ((size_t)cells->index_mask + 1) * sizeof *cells->index);
}

/* The index */

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
    struct ledger_cell **larger = memory_take(size * sizeof *larger);
    if (!larger)
        return false;
    memory_give(cells->index);
    cells->index = larger;
    cells->index_mask = size - 1;
    index_rebuild(cells);
    return true;
}

/* Room */

/* Bytes between the cells and the blocks of the last chunk. */
static uint32_t gap(const struct cells *cells)
{
    uint32_t cells_end = LEDGER_CHUNK_HEADER_BYTES + (cells->chunk ? cells->chunk->used : 0) *
                                                         (uint32_t)sizeof(struct ledger_cell);
    return cells->chunk ? cells->blocks_at - cells_end : 0;
}

/* As `count`, which is one less if the thread vanished as it laid a cell. */
static uint32_t count_laid(const struct cells *cells)
{
    return cells->count_before + (cells->chunk ? cells->chunk->used : 0);
}

/* Until more than `reserve` cells are spare. False: there is no room. */
static bool lay_cells(struct cells *cells, uint32_t reserve)
{
    while (cells->spare_count <= reserve && gap(cells) >= sizeof(struct ledger_cell)) {
        struct ledger_cell *cell = ledger_entry(cells->chunk, cells->chunk->used);
        uint32_t count = count_laid(cells);
        cell->number = count + 1;
        cells->all[count] = cell;
        __atomic_store_n(&cells->chunk->used, cells->chunk->used + 1, __ATOMIC_RELEASE);
        order();
        cells->count = count + 1;
        cells->spare[cells->spare_count] = cell;
        order();
        cells->spare_count++;
    }
    return cells->spare_count > reserve;
}

static bool lay_blocks(struct cells *cells, uint32_t reserve)
{
    while (cells->spare_block_count <= reserve && gap(cells) >= sizeof(struct ledger_block)) {
        cells->blocks_at -= (uint32_t)sizeof(struct ledger_block);
        order();
        block_release(cells, (struct ledger_block *)((char *)cells->chunk + cells->blocks_at));
    }
    return cells->spare_block_count > reserve;
}

static bool take_chunk(struct cells *cells)
{
    uint32_t total = count_laid(cells) + ledger_chunk_capacity(sizeof(struct ledger_cell));
    if (total > CELLS_MAX)
        return false;
    struct ledger_cell **all = memory_resize(cells->all, total * sizeof *all);
    if (all)
        cells->all = all;
    struct ledger_cell **spare = memory_resize(cells->spare, total * sizeof *spare);
    if (spare)
        cells->spare = spare;
    if (!all || !spare || !index_fits(cells, total))
        return false;
    struct ledger_chunk *chunk =
        ledger_chunk(LEDGER_CELLS, sizeof(struct ledger_cell), cells->record->thread);
    if (!chunk)
        return false;
    lay_blocks(cells, UINT32_MAX); /* the rest of the chunk before */
    cells->count = cells->count_before = count_laid(cells);
    cells->chunk = chunk;
    cells->blocks_at = LEDGER_CHUNK_BYTES;
    lay_cells(cells, 0); /* what a fold needs */
    lay_blocks(cells, HISTOGRAM_BLOCKS - 1);
    return true;
}

/* Beyond what a fold needs. */
static bool has_block(struct cells *cells)
{
    return lay_blocks(cells, HISTOGRAM_BLOCKS);
}

/* With its first block. */
static bool has_cell(struct cells *cells)
{
    return lay_cells(cells, 1) && has_block(cells);
}

/* Folding */

static void cell_merge(struct cells *cells, struct ledger_cell *into,
                       const struct ledger_cell *from)
{
    into->total_ns += from->total_ns;
    into->volume_bytes += from->volume_bytes;
    into->blocked_ns += from->blocked_ns;
    if (from->min_ns < into->min_ns)
        into->min_ns = from->min_ns;
    if (from->max_ns > into->max_ns)
        into->max_ns = from->max_ns;
    for (unsigned block = 0; block < HISTOGRAM_BLOCKS; block++) {
        if (from->blocks[block] && !into->blocks[block])
            cell_grow(cells, into, block);
        for (unsigned i = 0; from->blocks[block] && i < HISTOGRAM_SUB_BUCKETS; i++)
            cell_block(into, block)->counts[i] += cell_block(from, block)->counts[i];
    }
}

static uint64_t power_of_two_above(uint64_t bytes)
{
    if (bytes <= 1)
        return bytes;
    return bytes > 1ull << 63 ? UINT64_MAX : 1ull << (64 - __builtin_clzll(bytes - 1));
}

/* A coarser key; a key that is as coarse already stays. */
typedef uint64_t coarser_key(uint64_t key);

static uint64_t folded_key(uint64_t key)
{
    return (key & ~CELL_KEY_REGION) | CELL_KEY_FOLDED;
}

static uint64_t shared_key(uint64_t key)
{
    bool is_shared = (key >> 16 & UINT16_MAX) <= LEDGER_COMMUNICATOR_OTHER;
    uint64_t other = key & ~((uint64_t)UINT16_MAX << 16);
    return folded_key(is_shared ? key : other | LEDGER_COMMUNICATOR_OTHER << 16);
}

/* Place in the index of the cell with this key that counts; if there is none, an empty place. */
static struct ledger_cell **index_place(const struct cells *cells, uint64_t bytes, uint64_t key)
{
    for (uint32_t at = cells_hash(bytes, key);; at++) {
        struct ledger_cell **place = &cells->index[at & cells->index_mask], *cell = *place;
        if (!cell || (cell->live && cell->bytes == bytes && cell_key_of(cell) == key))
            return place;
    }
}

/* Ordered with the stores to `folding`, for readers and for a kill. */
static void mark(struct ledger_cell *cell, uint64_t live)
{
    __atomic_store_n(&cell->live, live, __ATOMIC_RELEASE);
}

/* Replace a rare cell, and the power-of-two cell with its coarser key if there is one, by their sum
 * in a spare cell. */
static void fold(struct cells *cells, struct ledger_cell *rare, coarser_key *coarser)
{
    uint64_t bytes = power_of_two_above(rare->bytes);
    uint64_t key = coarser(cell_key_of(rare));
    struct ledger_cell **place = index_place(cells, bytes, key), *folded = *place;
    struct ledger_cell *sum = cells->spare[--cells->spare_count];

    cell_clear(sum, bytes, key);
    cell_merge(cells, sum, rare);
    if (folded)
        cell_merge(cells, sum, folded);
    uint64_t third = folded ? folded->number : 0;
    __atomic_store_n(&cells->record->folding,
                     sum->number | (uint64_t)rare->number << 21 | third << 42, __ATOMIC_RELEASE);
    mark(sum, 1);
    mark(rare, 0);
    if (folded)
        mark(folded, 0);
    __atomic_store_n(&cells->record->folding, 0, __ATOMIC_RELEASE);
    *place = sum;
    cell_release(cells, rare);
    if (folded)
        cell_release(cells, folded);
    ledger_count(&the_ledger.header->folded_cells);
}

/* The smallest number that so many of these do not exceed. (qsort allocates memory.) */
static uint64_t bound_of(const uint64_t *counts, uint32_t count, uint32_t wanted)
{
    uint64_t low = 0, high = UINT64_MAX;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        uint32_t within = 0;
        for (uint32_t i = 0; i < count; i++)
            within += counts[i] <= middle;
        if (within >= wanted)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool may_fold(const struct ledger_cell *cell, coarser_key *coarser)
{
    return cell->live && coarser(cell_key_of(cell)) != cell_key_of(cell);
}

/* False: nothing can be folded. */
static bool fold_the_rarest(struct cells *cells, coarser_key *coarser)
{
    uint32_t candidates = 0;
    uint64_t *counts = memory_take(cells->count * sizeof *counts);
    if (!counts || cells->count == 0)
        goto done;
    for (uint32_t i = 0; i < cells->count; i++)
        if (may_fold(cells->all[i], coarser))
            counts[candidates++] = cell_count(cells->all[i]);
    if (candidates == 0)
        goto done;
    uint32_t wanted = (candidates + 1) / 2;
    uint64_t rare = bound_of(counts, candidates, wanted);
    __atomic_fetch_add(&the_ledger.header->folds_begun, 1,
                       __ATOMIC_RELAXED); /* before `folding`, which is a release store */
    for (uint32_t i = 0; i < cells->count && wanted > 0; i++)
        if (may_fold(cells->all[i], coarser) && cell_count(cells->all[i]) <= rare) {
            fold(cells, cells->all[i], coarser);
            wanted--;
        }
    __atomic_fetch_add(&the_ledger.header->folds_ended, 1, __ATOMIC_RELEASE);
    index_rebuild(cells);
done:
    memory_give(counts);
    return candidates > 0;
}

/* From the ledger, or by folding until there is room. */
static bool make_room(struct cells *cells, bool (*has_room)(struct cells *cells))
{
    static coarser_key *const COARSER[] = {folded_key, shared_key};
    if (has_room(cells))
        return true;
    struct quiet before = quiet_begin();
    take_chunk(cells);
    for (unsigned i = 0; i < sizeof COARSER / sizeof *COARSER; i++)
        while (!has_room(cells) && fold_the_rarest(cells, COARSER[i]))
            continue;
    quiet_end(&before);
    return has_room(cells);
}

/* The merged cell that has room for calls of this key; NULL: there is none. */
static struct ledger_cell *merged_cell(const struct cells *cells, uint64_t bytes, uint64_t key)
{
    struct ledger_cell *cell = *index_place(cells, power_of_two_above(bytes), folded_key(key));
    return cell ? cell : *index_place(cells, power_of_two_above(bytes), shared_key(key));
}

struct ledger_cell *cells_insert(struct cells *cells, uint64_t bytes, uint64_t key)
{
    if (!make_room(cells, has_cell))
        return merged_cell(cells, bytes, key);
    struct ledger_cell *cell = cells->spare[--cells->spare_count];
    order();
    cell_clear(cell, bytes, key);
    mark(cell, 1);
    index_put(cells, cell);
    return cell;
}

struct ledger_cell *cells_add_block(struct cells *cells, struct ledger_cell *cell, unsigned block)
{
    uint64_t bytes = cell->bytes, key = cell_key_of(cell);
    if (!has_block(cells)) {
        make_room(cells, has_block);
        cell = cells_find(cells, bytes, key); /* it may have been folded */
    }
    if (!cell || cell->blocks[block])
        return cell;
    if (!has_block(cells))
        return NULL;
    cell_grow(cells, cell, block);
    return cell;
}
