/* Numbers of point-to-point messages: the n-th with this tag to (from) this peer on this
 * communicator. MPI delivers such messages in order (MPI-4.1, 3.5), so sender and receiver count
 * alike, and a reader of both ranks' samples can match them exactly.
 *
 * A message is counted where MPI orders it: at the call that posts it, a blocking receive with
 * MPI_ANY_SOURCE or MPI_ANY_TAG at its return, a nonblocking one at its completion, a matched
 * receive at its probe. Where the order is not certain, it is counted, but its number is 0: not
 * known.
 *
 * All messages are counted, also while calls are not (MPI_Pcontrol, excluded calls). */
#ifndef COMMPROF_MESSAGE_NUMBERS_H
#define COMMPROF_MESSAGE_NUMBERS_H

#include "base/hot.h"
#include "ledger/ledger_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MESSAGE_ENVELOPES_LOG2 = 16,
    MESSAGE_TAG_BITS = 31,
    MESSAGE_PEER_BITS = 20,
    MESSAGE_DIRECTION_BIT = MESSAGE_TAG_BITS + MESSAGE_PEER_BITS,
    MESSAGE_SLOT_BIT,
    MESSAGE_SLOTS = 1 << (64 - MESSAGE_SLOT_BIT),
};

/* Communicator, direction, peer and tag, and the number of the last message. */
struct envelope {
    uint64_t key;    /* MESSAGE_FREE */
    uint16_t number; /* of the last message. One in 65536 has none */
    uint16_t thread; /* with MPI_THREAD_MULTIPLE: the only thread that has used it, from 1;
                        MESSAGE_SHARED */
    uint32_t reserved;
};
enum { MESSAGE_FREE = 0, MESSAGE_SHARED = UINT16_MAX };

/* Envelopes of a process whose threads do not call at the same time. */
extern struct envelope message_envelopes[1 << MESSAGE_ENVELOPES_LOG2];

/* Threads may call at the same time (MPI_THREAD_MULTIPLE). */
extern bool message_numbers_are_concurrent;

void message_numbers_begin(bool concurrent, int world_size);

/* From now on no number is known: a message may have been counted that was not sent or received, or
 * the other way round. */
void message_numbers_end(void);
extern bool message_numbers_ended;

HOT bool message_numbers_have_ended(void)
{
    return __builtin_expect(__atomic_load_n(&message_numbers_ended, __ATOMIC_RELAXED), 0);
}

/* `slot` is the communicator's, `peer` a world rank or LEDGER_PEER_OUTSIDE, `tag` not negative. A
 * key that is not exact has no envelope. */
HOT uint64_t message_key(unsigned slot, unsigned direction, int32_t peer, int32_t tag)
{
    return ((uint64_t)(2 * slot + direction) << MESSAGE_DIRECTION_BIT) +
           ((uint64_t)(int64_t)peer << MESSAGE_TAG_BITS) + (uint64_t)tag;
}

HOT size_t message_home(uint64_t key)
{
    return key * 0x9e3779b97f4a7c15ull >> (64 - MESSAGE_ENVELOPES_LOG2);
}

/* The general case: an envelope that is not at home, or new; several threads. */
uint16_t message_count_slowly(uint64_t key, const struct ledger_thread *thread);

/* Counts a message, and returns its number. */
HOT uint16_t message_count(uint64_t key, const struct ledger_thread *thread)
{
    struct envelope *home = &message_envelopes[message_home(key)];
    if (__builtin_expect(home->key != key, 0))
        return message_count_slowly(key, thread);
    return ++home->number;
}

/* The number that the next message of an envelope will have, which a probe has found. */
uint16_t message_next(uint64_t key, const struct ledger_thread *thread);

/* With MPI_THREAD_MULTIPLE: a thread is about to send or receive. If two threads use an envelope,
 * its numbers are not known from there on: MPI may order their messages in another way. */
void message_claim(uint64_t key, const struct ledger_thread *thread);

/* With MPI_THREAD_MULTIPLE: a thread is about to receive on a communicator. If several threads do,
 * and one of them from any source or with any tag, the order is not certain from there on: other
 * threads may be receiving at any time. */
void message_claim_receive(unsigned slot, bool is_wildcard, const struct ledger_thread *thread);

/* A communicator was first seen in use. With MPI_THREAD_MULTIPLE its messages have no numbers:
 * several threads may have used it without a claim. */
void message_numbers_exclude(unsigned slot);

/* Receives of any source or tag in progress on a communicator: which messages later receives match
 * is not certain. Their own messages are, as long as they complete in the order in which they were
 * posted, and no other receive is posted meanwhile. */
struct message_wildcards {
    uint32_t in_progress;
    uint16_t posted, completed;
    bool is_out_of_order; /* since the last time that none was in progress */
};
extern struct message_wildcards message_wildcards[MESSAGE_SLOTS];

/* Returns the receive's place among those in progress; pass it on at its end, with the thread that
 * completes it. Returns whether its message is certain. */
uint16_t message_wildcard_begin(unsigned slot);
bool message_wildcard_end(unsigned slot, uint16_t place, const struct ledger_thread *thread);

/* A receive is posted while others of any source or tag are in progress. */
void message_wildcards_disturb(unsigned slot);

HOT bool message_order_is_certain(unsigned slot)
{
    return __builtin_expect(__atomic_load_n(&message_wildcards[slot % MESSAGE_SLOTS].in_progress,
                                            __ATOMIC_RELAXED) == 0,
                            1);
}

/* The index of an envelope, for a persistent request; 0: its messages have no numbers. And the way
 * back. */
unsigned message_envelope(uint64_t key);
uint64_t message_key_of(unsigned envelope);
int32_t message_tag_of(unsigned envelope); /* LEDGER_NO_TAG of 0 */

#endif
