/* The functions that are counted: their numbers, their properties (calls.def, nccl_calls.def), and
 * whether each is counted now. */
#ifndef COMMPROF_CALL_TABLE_H
#define COMMPROF_CALL_TABLE_H

#include "base/hot.h"
#include "ledger/ledger_format.h"

#include <stdbool.h>
#include <stdint.h>

/* In the order of both tables. */
enum call_id {
    CALL_NONE,
#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS, BANDWIDTH, WAITS_FOR) CALL_##NAME,
#include "wrappers/calls.def"
#undef CALL
#define NCCL_CALL(NAME, FAMILY, BANDWIDTH, WAITS_FOR) CALL_nccl##NAME,
#include "nccl/nccl_calls.def"
#undef NCCL_CALL
    CALL_COUNT,
    CALL_FIRST_OF_NCCL = CALL_ncclCommInitRank
};

extern const struct ledger_call CALL_TABLE[CALL_COUNT];

/* Whether all ranks wait for each other in a call, as far as they contribute data. The compiler
 * knows it for a known call. */
HOT bool call_waits_for_all(unsigned id)
{
    enum {
        FOR_nobody,
        FOR_root_first = 0,
        FOR_root_last = 0,
        FOR_lower = 0,
        FOR_neighbors = 0,
        FOR_targets = 0,
        FOR_origins = 0,
        FOR_sender = 0,
        FOR_receiver = 0,
        FOR_peer = 0,
        FOR_all = 1,
        FOR_all_unless_empty = 1
    };
    switch (id) {
#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS, BANDWIDTH, WAITS_FOR) \
    case CALL_##NAME:                                                \
        return FOR_##WAITS_FOR;
#include "wrappers/calls.def"
#undef CALL
    default:
        return false;
    }
}

/* Writes the table to the ledger, so that a reader needs none of its own. */
void call_table_record(void);

/* Which calls are counted: 0 for those that the user excluded, and for all calls while
 * MPI_Pcontrol(0) holds. */
extern uint8_t call_counted[CALL_COUNT];

HOT bool call_is_counted(unsigned id)
{
    return __atomic_load_n(&call_counted[id], __ATOMIC_RELAXED);
}

#endif
