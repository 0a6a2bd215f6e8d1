/* Reads a ledger by the rules of ledger_format.h, without any other code of the library. */
#ifndef LEDGER_READER_H
#define LEDGER_READER_H

#include "ledger/ledger_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct ledger_totals {
    uint64_t count;
    uint64_t total_ns;
    uint64_t volume_bytes;
    uint64_t exact_cells, folded_cells;
    uint64_t unsound_cells;   /* have calls, but no minimum and maximum */
    uint64_t count_up_to[66]; /* [k]: sizes above 2^(k-2) up to 2^(k-1) bytes; [0]: 0 bytes */
};

struct reader_peers {
    uint64_t count, bytes, time_ns;
};

static inline const struct ledger_chunk *reader_chunk(const struct ledger_header *header,
                                                      uint32_t index)
{
    return (const struct ledger_chunk *)((const char *)header + header->header_bytes +
                                         (size_t)index * header->chunk_bytes);
}

static inline const void *reader_entry(const struct ledger_chunk *chunk, uint32_t index)
{
    return (const char *)chunk + LEDGER_CHUNK_HEADER_BYTES + (size_t)index * chunk->entry_bytes;
}

/* The entry of this number among those of a kind, in the order in which they were made; NULL: there
 * are not so many. */
static inline const void *reader_nth(const struct ledger_header *header, enum ledger_kind kind,
                                     uint32_t number)
{
    uint32_t chunks = __atomic_load_n(&header->chunk_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < chunks; i++) {
        const struct ledger_chunk *chunk = reader_chunk(header, i);
        uint32_t used = chunk->kind == kind ? __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE) : 0;
        if (number < used)
            return reader_entry(chunk, number);
        number -= used;
    }
    return NULL;
}

#define READER_EACH(ENTRY, HEADER, KIND) \
    for (uint32_t n_ = 0; ((ENTRY) = reader_nth(HEADER, KIND, n_)); n_++)

/* The value of a fact, the last one of its key; "": there is none. */
static inline const char *reader_fact(const struct ledger_header *header, const char *key)
{
    static char value[4096];
    value[0] = '\0';
    for (uint32_t i = 0; i < header->chunk_count; i++) {
        const struct ledger_chunk *chunk = reader_chunk(header, i);
        for (uint32_t at = 0; chunk->kind == LEDGER_FACTS && at < chunk->used;) {
            const struct ledger_fact *fact =
                (const void *)((const char *)chunk + LEDGER_CHUNK_HEADER_BYTES + at);
            const char *its_key = (const char *)(fact + 1);
            if (strlen(key) == fact->key_bytes && memcmp(its_key, key, fact->key_bytes) == 0)
                snprintf(value, sizeof value, "%.*s", (int)fact->value_bytes,
                         its_key + fact->key_bytes);
            at += (uint32_t)(sizeof *fact + fact->key_bytes + fact->value_bytes + 7) & ~7u;
        }
    }
    return value;
}

static inline const struct ledger_thread *reader_thread(const struct ledger_header *header,
                                                        uint32_t thread)
{
    const struct ledger_thread *entry;
    READER_EACH(entry, header, LEDGER_THREADS)
        if (entry->thread == thread)
            return entry;
    return NULL;
}

static inline bool reader_counts(const struct ledger_cell *cell, uint64_t folding, uint64_t number)
{
    uint64_t into = folding & 0x1fffff, first = folding >> 21 & 0x1fffff,
             second = folding >> 42 & 0x1fffff;
    if (folding && number == into)
        return true;
    if (folding && (number == first || number == second))
        return false;
    return cell->live;
}

static inline uint64_t reader_count(const struct ledger_cell *cell)
{
    uint64_t count = 0;
    for (int block = 0; block < HISTOGRAM_BLOCKS; block++) {
        const uint64_t *counts = (const uint64_t *)((const char *)cell + cell->blocks[block]);
        for (int i = 0; cell->blocks[block] && i < HISTOGRAM_SUB_BUCKETS; i++)
            count += counts[i];
    }
    return count;
}

static inline unsigned reader_class(uint64_t bytes)
{
    return bytes <= 1 ? (unsigned)bytes : 65u - (unsigned)__builtin_clzll(bytes - 1);
}

static inline void reader_add(struct ledger_totals *totals, const struct ledger_cell *cell)
{
    uint64_t count = reader_count(cell);
    totals->count += count;
    totals->total_ns += cell->total_ns;
    totals->volume_bytes += cell->volume_bytes;
    totals->exact_cells += !(cell->flags & LEDGER_CELL_FOLDED);
    totals->folded_cells += cell->flags & LEDGER_CELL_FOLDED;
    totals->unsound_cells += count > 0 && cell->min_ns > cell->max_ns;
    totals->count_up_to[reader_class(cell->bytes)] += count;
}

/* All valid rows of one thread's peers. */
static inline struct reader_peers reader_peers(const struct ledger_header *header, uint32_t thread)
{
    struct reader_peers sum = {0};
    const struct ledger_thread *owner = reader_thread(header, thread);
    if (owner && owner->epoch != header->epoch)
        return sum;
    for (uint32_t i = 0; i < header->chunk_count; i++) {
        const struct ledger_chunk *chunk = reader_chunk(header, i);
        for (uint32_t k = 0;
             chunk->kind == LEDGER_PEERS && chunk->thread == thread && k < chunk->used; k++) {
            const struct ledger_peer *row = reader_entry(chunk, k);
            sum.count += row->count;
            sum.bytes += row->bytes;
            sum.time_ns += row->time_ns;
        }
    }
    return sum;
}

/* All valid cells of one thread: none from a reset until the thread's next call. */
static inline struct ledger_totals reader_totals(const struct ledger_header *header,
                                                 uint32_t thread)
{
    struct ledger_totals totals = {0};
    const struct ledger_thread *owner = reader_thread(header, thread);
    if (owner && owner->epoch != header->epoch)
        return totals;
    uint64_t folding = owner ? owner->folding : 0,
             number = 0; /* decides which cells are valid while the thread folds */
    for (uint32_t i = 0; i < header->chunk_count; i++) {
        const struct ledger_chunk *chunk = reader_chunk(header, i);
        if (chunk->kind != LEDGER_CELLS || chunk->thread != thread)
            continue;
        for (uint32_t k = 0; k < chunk->used; k++)
            if (reader_counts(reader_entry(chunk, k), folding, ++number))
                reader_add(&totals, reader_entry(chunk, k));
    }
    return totals;
}

/* How often a function was called, on all threads of a ledger without resets and folds. */
static inline uint64_t reader_calls(const struct ledger_header *header, unsigned call)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < header->chunk_count; i++) {
        const struct ledger_chunk *chunk = reader_chunk(header, i);
        for (uint32_t k = 0; chunk->kind == LEDGER_CELLS && k < chunk->used; k++) {
            const struct ledger_cell *cell = reader_entry(chunk, k);
            count += cell->live && cell->call == call && cell->measure == LEDGER_CALL
                         ? reader_count(cell)
                         : 0;
        }
    }
    return count;
}

#endif
