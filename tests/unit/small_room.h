/* Leaves this thread's last chunk of cells room for so many more sizes with one block each, so that
 * it folds or grows after few steps. */
#ifndef SMALL_ROOM_H
#define SMALL_ROOM_H

#include "record/thread.h"

static inline void small_room(uint32_t sizes)
{
    struct cells *cells = &this_thread->cells;
    size_t bytes = (cells->chunk->used + sizes) * sizeof(struct ledger_cell) +
                   sizes * sizeof(struct ledger_block);
    cells->blocks_at = LEDGER_CHUNK_HEADER_BYTES + (uint32_t)bytes;
}

#endif
