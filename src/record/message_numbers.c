/* An open hash table of envelopes, in memory that is touched only where envelopes are. They are
 * never removed: a program that uses ever new tags fills the table, and further envelopes have no
 * numbers. With MPI_THREAD_MULTIPLE there is a table of its own, so that the fast path, which is
 * not atomic, never finds an envelope. A key is written once, so threads may read it while another
 * adds one. */
#include "message_numbers.h"

enum { RECEIVER_WILDCARD = 1 << 16 };
static const uint32_t NEVER_CERTAIN = 1u << 31;

enum {
    PROBES = 16,
    ENVELOPES = 1 << MESSAGE_ENVELOPES_LOG2,
    MOST_PEERS = (1 << MESSAGE_PEER_BITS) - 2
};

struct envelope message_envelopes[ENVELOPES];
struct message_wildcards message_wildcards[MESSAGE_SLOTS];
bool message_numbers_are_concurrent;
static struct envelope shared_envelopes[ENVELOPES];
static uint32_t receivers[MESSAGE_SLOTS]; /* with MPI_THREAD_MULTIPLE: the only thread that has
                                             received, from 1; MESSAGE_SHARED; a flag */
static bool is_excluded[MESSAGE_SLOTS];
bool message_numbers_ended;

static struct envelope *table(void)
{
    return message_numbers_are_concurrent ? shared_envelopes : message_envelopes;
}

void message_numbers_begin(bool concurrent, int world_size)
{
    message_numbers_are_concurrent = concurrent;
    table()[0].key = UINT64_MAX; /* no message's */
    if (world_size > MOST_PEERS)
        message_numbers_end();
}

void message_numbers_end(void)
{
    __atomic_store_n(&message_numbers_ended, true, __ATOMIC_RELAXED);
    for (size_t i = 1; i < ENVELOPES && !message_numbers_are_concurrent; i++)
        if (message_envelopes[i].key != MESSAGE_FREE)
            message_envelopes[i].key = UINT64_MAX;
}

/* False: of a communicator that shares its slot or is excluded, or a peer outside
 * MPI_COMM_WORLD. */
static bool is_exact(uint64_t key)
{
    uint64_t peer = key >> MESSAGE_TAG_BITS & ((1 << MESSAGE_PEER_BITS) - 1),
             slot = key >> MESSAGE_SLOT_BIT;
    return slot > LEDGER_COMMUNICATOR_OTHER && peer < MOST_PEERS && !is_excluded[slot];
}

/* The envelope with this key, which is added if need be. NULL: no room, or none. */
static struct envelope *find(uint64_t key)
{
    for (size_t i = 0; i < PROBES && is_exact(key) && !message_numbers_have_ended(); i++) {
        struct envelope *envelope = &table()[(message_home(key) + i) % ENVELOPES];
        uint64_t seen = __atomic_load_n(&envelope->key, __ATOMIC_RELAXED);
        if (seen == MESSAGE_FREE && __atomic_compare_exchange_n(&envelope->key, &seen, key, false,
                                                                __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return envelope;
        if (seen == key)
            return envelope;
    }
    return NULL;
}

/* A thread as the only one of something: from 1. */
static uint16_t number_of(const struct ledger_thread *thread)
{
    return thread->thread + 1 < MESSAGE_SHARED ? (uint16_t)(thread->thread + 1) : MESSAGE_SHARED;
}

/* False: several threads use the envelope. */
static bool is_own(struct envelope *envelope, const struct ledger_thread *thread)
{
    uint16_t seen = __atomic_load_n(&envelope->thread, __ATOMIC_RELAXED);
    uint16_t mine = number_of(thread);
    if (seen == mine)
        return mine != MESSAGE_SHARED;
    if (!seen && __atomic_compare_exchange_n(&envelope->thread, &seen, mine, false,
                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return mine != MESSAGE_SHARED;
    __atomic_store_n(&envelope->thread, (uint16_t)MESSAGE_SHARED, __ATOMIC_RELAXED);
    return false;
}

__attribute__((noinline)) uint16_t message_count_slowly(uint64_t key,
                                                        const struct ledger_thread *thread)
{
    struct envelope *envelope = find(key);
    if (!envelope)
        return 0;
    if (message_numbers_are_concurrent && !is_own(envelope, thread))
        return 0;
    return ++envelope->number; /* only this thread does */
}

/* The number of an envelope that no other thread receives; -1: another may be receiving. */
static int last_number(const struct envelope *envelope, uint64_t key,
                       const struct ledger_thread *thread)
{
    uint32_t mine = number_of(thread), owner = __atomic_load_n(&envelope->thread, __ATOMIC_RELAXED);
    uint32_t receiver =
        __atomic_load_n(&receivers[key >> MESSAGE_SLOT_BIT], __ATOMIC_RELAXED) & MESSAGE_SHARED;
    if (!message_numbers_are_concurrent || (owner == mine && mine != MESSAGE_SHARED))
        return envelope->number;
    return !owner && (!receiver || (receiver == mine && mine != MESSAGE_SHARED)) ? 0 : -1;
}

uint16_t message_next(uint64_t key, const struct ledger_thread *thread)
{
    struct envelope *envelope = find(key);
    return envelope ? (uint16_t)(last_number(envelope, key, thread) + 1) : 0;
}

__attribute__((noinline)) void message_claim(uint64_t key, const struct ledger_thread *thread)
{
    struct envelope *envelope = find(key);
    if (envelope)
        is_own(envelope, thread);
}

void message_claim_receive(unsigned slot, bool is_wildcard, const struct ledger_thread *thread)
{
    uint32_t *receiver = &receivers[slot % MESSAGE_SLOTS];
    uint32_t mine = number_of(thread), seen = __atomic_load_n(receiver, __ATOMIC_RELAXED), claimed;
    do {
        uint32_t owner = seen & MESSAGE_SHARED;
        claimed = owner && owner != mine ? MESSAGE_SHARED : mine;
        claimed |= is_wildcard ? RECEIVER_WILDCARD : seen & RECEIVER_WILDCARD;
    } while (claimed != seen && !__atomic_compare_exchange_n(receiver, &seen, claimed, true,
                                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (claimed == (MESSAGE_SHARED | RECEIVER_WILDCARD))
        __atomic_or_fetch(&message_wildcards[slot % MESSAGE_SLOTS].in_progress, NEVER_CERTAIN,
                          __ATOMIC_RELAXED);
}

void message_numbers_exclude(unsigned slot)
{
    if (!message_numbers_are_concurrent)
        return;
    is_excluded[slot % MESSAGE_SLOTS] = true;
    __atomic_or_fetch(&message_wildcards[slot % MESSAGE_SLOTS].in_progress, NEVER_CERTAIN,
                      __ATOMIC_RELAXED);
}

/* False: one thread receives on this communicator, which is the one that asks. So nothing else
 * changes what is behind it. */
static bool is_never_certain(const struct message_wildcards *wildcards)
{
    return __atomic_load_n(&wildcards->in_progress, __ATOMIC_RELAXED) & NEVER_CERTAIN;
}

static void count_wildcards(struct message_wildcards *wildcards, uint32_t by)
{
    if (message_numbers_are_concurrent)
        __atomic_add_fetch(&wildcards->in_progress, by, __ATOMIC_RELAXED);
    else
        wildcards->in_progress += by;
}

uint16_t message_wildcard_begin(unsigned slot)
{
    struct message_wildcards *wildcards = &message_wildcards[slot % MESSAGE_SLOTS];
    bool is_first = message_order_is_certain(slot);
    count_wildcards(wildcards, 1);
    if (is_never_certain(wildcards))
        return 0;
    if (is_first)
        wildcards->is_out_of_order = false;
    return ++wildcards->posted;
}

bool message_wildcard_end(unsigned slot, uint16_t place, const struct ledger_thread *thread)
{
    struct message_wildcards *wildcards = &message_wildcards[slot % MESSAGE_SLOTS];
    if (message_numbers_are_concurrent)
        message_claim_receive(slot, true, thread);
    count_wildcards(wildcards, UINT32_MAX);
    if (is_never_certain(wildcards))
        return false;
    wildcards->is_out_of_order |= place != ++wildcards->completed;
    return !wildcards->is_out_of_order;
}

__attribute__((cold, noinline)) void message_wildcards_disturb(unsigned slot)
{
    struct message_wildcards *wildcards = &message_wildcards[slot % MESSAGE_SLOTS];
    if (!is_never_certain(wildcards))
        wildcards->is_out_of_order = true;
}

unsigned message_envelope(uint64_t key)
{
    struct envelope *envelope = find(key);
    return envelope ? (unsigned)(envelope - table()) : 0;
}

uint64_t message_key_of(unsigned envelope)
{
    return __atomic_load_n(&table()[envelope].key, __ATOMIC_RELAXED);
}

int32_t message_tag_of(unsigned envelope)
{
    return envelope ? (int32_t)(message_key_of(envelope) & INT32_MAX) : LEDGER_NO_TAG;
}
