/* One thread's table of peers: messages, bytes and time for each (peer rank, call, direction). Only
 * the owning thread writes, as with cells; a row takes 32 bytes of the ledger. */
#ifndef COMMPROF_PEERS_H
#define COMMPROF_PEERS_H

#include "ledger.h"

#include <string.h>

struct peers {
    struct ledger_peer **index; /* open addressing by key; NULL: empty */
    uint32_t index_mask;
    uint32_t count;
    struct ledger_chunk *chunk;
    uint32_t thread;
};

bool peers_create(struct peers *peers, uint32_t thread);

/* Set all counts to zero; the rows stay. */
void peers_clear(struct peers *peers);

/* Insert a row for a new key; NULL if there is no room. */
struct ledger_peer *peers_insert(struct peers *peers, uint64_t key);

/* A row's key, packed as in the row. */
static inline uint64_t peer_key(int32_t peer, unsigned call, enum ledger_direction direction)
{
    return (uint64_t)(uint32_t)peer | (uint64_t)call << 32 | (uint64_t)direction << 48;
}

/* The same for a rank in an NCCL communicator, whose world ranks this process does not know. */
static inline uint64_t peer_key_in(unsigned slot, int32_t rank, unsigned call,
                                   enum ledger_direction direction)
{
    return peer_key(rank, call, direction) | (uint64_t)slot << (48 + LEDGER_PEER_SLOT_BIT);
}

static inline uint64_t peer_key_of(const struct ledger_peer *row)
{
    uint64_t key;
    memcpy(&key, row, sizeof key);
    return key;
}

static inline uint32_t peers_hash(uint64_t key)
{
    return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 32);
}

static inline struct ledger_peer *peers_find(struct peers *peers, uint64_t key)
{
    for (uint32_t at = peers_hash(key);; at++) {
        struct ledger_peer *row = peers->index[at & peers->index_mask];
        if (__builtin_expect(!row, 0))
            return peers_insert(peers, key);
        if (peer_key_of(row) == key)
            return row;
    }
}

static inline void peer_add(struct ledger_peer *row, uint64_t bytes, uint64_t time_ns)
{
    row->bytes += bytes;
    row->time_ns += time_ns;
    __asm__ volatile("" ::: "memory");
    row->count++;
}

#endif
