#include "peers.h"

#include "base/memory.h"
#include "base/quiet.h"

enum { FIRST_INDEX = 64 };

bool peers_create(struct peers *peers, uint32_t thread)
{
    *peers = (struct peers){.index_mask = FIRST_INDEX - 1, .thread = thread};
    peers->index = memory_take(FIRST_INDEX * sizeof *peers->index);
    return peers->index != NULL;
}

void peers_clear(struct peers *peers)
{
    for (uint32_t i = 0; i <= peers->index_mask; i++)
        if (peers->index[i])
            peers->index[i]->count = peers->index[i]->bytes = peers->index[i]->time_ns = 0;
}

static void index_put(struct peers *peers, struct ledger_peer *row)
{
    uint32_t at = peers_hash(peer_key_of(row));
    while (peers->index[at & peers->index_mask])
        at++;
    peers->index[at & peers->index_mask] = row;
}

static bool grow_index(struct peers *peers)
{
    uint32_t size = peers->index_mask + 1;
    struct ledger_peer **old = peers->index;
    struct ledger_peer **larger = memory_take(2 * (size_t)size * sizeof *larger);
    if (!larger)
        return false;
    peers->index = larger;
    peers->index_mask = 2 * size - 1;
    for (uint32_t i = 0; i < size; i++)
        if (old[i])
            index_put(peers, old[i]);
    memory_give(old);
    return true;
}

static bool index_fits(struct peers *peers, uint32_t count)
{
    if (2 * count <= peers->index_mask + 1)
        return true;
    struct quiet before = quiet_begin();
    bool fits = grow_index(peers);
    quiet_end(&before);
    return fits;
}

/* A thread that vanishes in it (cells.c) loses a row at most. */
struct ledger_peer *peers_insert(struct peers *peers, uint64_t key)
{
    if (!index_fits(peers, peers->count + 1))
        return NULL;
    if (!peers->chunk || peers->chunk->used == ledger_chunk_capacity(sizeof(struct ledger_peer))) {
        struct ledger_chunk *chunk =
            ledger_chunk(LEDGER_PEERS, sizeof(struct ledger_peer), peers->thread);
        if (!chunk)
            return NULL;
        peers->chunk = chunk;
    }
    struct ledger_peer *row = ledger_entry(peers->chunk, peers->chunk->used);
    memcpy(row, &key, sizeof key);
    __atomic_store_n(&peers->chunk->used, peers->chunk->used + 1, __ATOMIC_RELEASE);
    peers->count++;
    index_put(peers, row);
    return row;
}
