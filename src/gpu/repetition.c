#include "repetition.h"

#include "ledger/cells.h"
#include "record/call_table.h"

#include <string.h>

#define LOOK_NS (REPETITION_LOOK_S * INT64_C(1000000000))

enum { LEAST_CALLS = 4 }; /* in each of two spans */
static const unsigned SPANS[] = {1, 4};

bool repetition_is_due(const struct repetition *repetition, int64_t unix_ns)
{
    return unix_ns / LOOK_NS != repetition->number;
}

/* A reset of the counters makes a difference negative. */
static bool are_alike(uint64_t first, uint64_t middle, uint64_t last)
{
    int64_t before = (int64_t)(middle - first), after = (int64_t)(last - middle);
    return before >= LEAST_CALLS && after >= LEAST_CALLS && before <= 2 * after &&
           after <= 2 * before;
}

bool repetition_look(struct repetition *repetition, int64_t unix_ns, uint64_t calls)
{
    memmove(repetition->calls + 1, repetition->calls,
            sizeof repetition->calls - sizeof *repetition->calls);
    repetition->calls[0] = calls;
    repetition->number = unix_ns / LOOK_NS;
    repetition->looks++;
    bool repeats = false;
    for (unsigned i = 0; i < sizeof SPANS / sizeof *SPANS; i++) {
        unsigned span = SPANS[i];
        repeats |=
            repetition->looks > 2 * span &&
            are_alike(repetition->calls[2 * span], repetition->calls[span], repetition->calls[0]);
    }
    return repeats;
}

static bool counts(const struct ledger_cell *cell)
{
    if (!cell->live || cell->measure != LEDGER_CALL || cell->call >= CALL_COUNT)
        return false;
    const struct ledger_call *call = &CALL_TABLE[cell->call];
    bool moves_data =
        strcmp(call->bandwidth, "silent") != 0 && strcmp(call->bandwidth, "unrated") != 0;
    return moves_data && strcmp(call->waits_for, "root_first") != 0;
}

uint64_t repetition_calls(void)
{
    const struct ledger_header *header = the_ledger.header;
    uint32_t chunks = __atomic_load_n(&header->chunk_count, __ATOMIC_ACQUIRE);
    uint64_t calls = 0;
    for (uint32_t i = 0; i < chunks; i++) {
        struct ledger_chunk *chunk = ledger_chunk_at(header, i);
        uint32_t used =
            chunk->kind == LEDGER_CELLS ? __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE) : 0;
        for (uint32_t at = 0; at < used; at++) {
            const struct ledger_cell *cell = ledger_entry(chunk, at);
            calls += counts(cell) ? cell_count(cell) : 0;
        }
    }
    return calls;
}
