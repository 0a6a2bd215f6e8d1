/* How an NCCL operation is announced and counted, both for our wrappers (nccl_wrappers.c) and for
 * NCCL's profiler interface (nccl_plugin.c). */
#ifndef COMMPROF_NCCL_COUNTING_H
#define COMMPROF_NCCL_COUNTING_H

#include "record/account.h"
#include "record/announce.h"

enum nccl_counting {
    NCCL_BUFFER,         /* count elements, all sent by this rank */
    NCCL_FROM_ROOT,      /* count elements, sent by the root */
    NCCL_INCOMING,       /* count elements, sent by another rank */
    NCCL_BLOCKS,         /* one block of count elements to every rank */
    NCCL_BLOCKS_AT_ROOT, /* one block to every rank, sent by the root */
    NCCL_BLOCKS_REDUCED, /* the buffer holds one block for every rank */
};

struct nccl_moved {
    uint64_t bytes, volume_bytes;
};

/* `bytes` is the size of the call's count argument. */
HOT struct nccl_moved nccl_count_bytes(const struct communicator *communicator,
                                       enum nccl_counting counting, uint64_t bytes, int root)
{
    uint64_t ranks = communicator->size > 0 ? (uint64_t)communicator->size : 1;
    bool is_root = root == communicator->comm_rank;
    struct nccl_moved moved = {.bytes = counting == NCCL_BLOCKS_REDUCED ? bytes * ranks : bytes};
    moved.volume_bytes = counting == NCCL_BLOCKS || (counting == NCCL_BLOCKS_AT_ROOT && is_root)
                             ? bytes * ranks
                         : counting == NCCL_INCOMING || counting == NCCL_BLOCKS_AT_ROOT ? 0
                         : counting == NCCL_FROM_ROOT && !is_root                       ? 0
                                                                  : moved.bytes;
    return moved;
}

/* Operations that copy engines, the network or memory operations of the stream execute: they launch
 * no kernel. */
HOT bool nccl_is_one_sided(unsigned id)
{
    return id == CALL_ncclPutSignal || id == CALL_ncclSignal || id == CALL_ncclWaitSignal;
}

/* Operations between two ranks: no other rank of the communicator makes the same call. */
HOT bool nccl_is_message(unsigned id)
{
    return id == CALL_ncclSend || id == CALL_ncclRecv || nccl_is_one_sided(id);
}

HOT void nccl_announce_found(struct call *call, struct communicator *communicator)
{
    call->communicator = communicator;
    if (communicator)
        call->doing |= (uint64_t)communicators_slot(communicator) << LEDGER_DOING_SLOT_BIT;
}

/* Announces a counted call on a communicator. */
HOT void nccl_announce(struct call *call, struct communicator *communicator,
                       enum nccl_counting counting, uint64_t bytes, int root)
{
    bool is_rooted = counting == NCCL_FROM_ROOT || counting == NCCL_BLOCKS_AT_ROOT ||
                     call->id == CALL_ncclReduce || call->id == CALL_ncclGather;
    nccl_announce_found(call, communicator);
    if (nccl_is_message(call->id))
        announce_details(call, bytes, LEDGER_NO_RANK, LEDGER_NO_TAG);
    else
        announce_next(call, communicator, bytes, is_rooted ? root : LEDGER_NO_RANK);
}

HOT void nccl_count_message(const struct call *call, struct communicator *communicator, int peer,
                            uint64_t bytes)
{
    enum ledger_direction direction = call->id == CALL_ncclRecv ? LEDGER_RECEIVED : LEDGER_SENT;
    uint64_t key = peer_key_in(communicators_slot(communicator), peer, call->id, direction);
    account_message(call->thread, key, bytes, call_duration_ns(call));
}

/* Counts a finished call in its cell and returns its sample, NULL if it is not sampled. Its buffers
 * are in GPU memory. `root_or_peer` is the peer of a message, LEDGER_NO_RANK if unknown. */
HOT struct ledger_sample *nccl_account(const struct call *call, struct communicator *communicator,
                                       struct nccl_moved moved, int root_or_peer, bool is_captured)
{
    enum { ON_DEVICE = LEDGER_DEVICE | LEDGER_DEVICE << LEDGER_MEMORY_KIND_TO_BIT };
    enum ledger_measure measure = is_captured ? LEDGER_CAPTURED : LEDGER_CALL;
    uint64_t key = cell_key(call->id, communicators_slot(communicator), measure) |
                   cell_key_memory_kind(ON_DEVICE);
    bool has_room =
        account_count(call->thread, moved.bytes, key, call_duration_ns(call), moved.volume_bytes);
    if (nccl_is_message(call->id) && communicator && root_or_peer >= 0 && !is_captured)
        nccl_count_message(call, communicator, root_or_peer, moved.bytes);
    if (!has_room)
        return NULL;
    return account_sample(
        call,
        (struct traffic){.communicator = communicator, .bytes = moved.bytes, .peer = PEER_NONE});
}

/* Whether the calling thread is inside an NCCL call that was made through its wrapper. */
bool nccl_wrappers_inside(void);

/* The slot of the communicator of that call, or of all operations in the group that it ends; 0:
 * none, or several. */
unsigned nccl_wrappers_slot(void);

#endif
