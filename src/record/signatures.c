/* One table for all threads. Entries are never changed, so a look-up takes no lock: it reads a
 * number, and compares the key of that number.
 *
 *     numbers    open addressing by the key's hash; a number is stored last, when its key and its
 *                entry in the ledger are complete
 *     keys       by number
 *
 * The table of numbers grows. Smaller ones, used before, stay: threads may still be reading them,
 * and those that miss an entry look again under the lock. So a job of few signatures touches few
 * pages:
 *
 *     numbers    |       | 2,048 places | 4,096 places | ... | 131,072 places |
 *
 * Keys hold values, never handles that may be freed and reused: of a derived type its description,
 * for which MPI is asked at each sampled call, and of an operation of the user's whether it
 * commutes.
 *
 * A job that is to be recorded remembers no number with a call, so that each call in the record can
 * be told by its buffers. Before and after the record a part of the room is used, and where buffers
 * fill most of it, later ones are not told apart. */
#include "signatures.h"

#include "base/quiet.h"
#include "mpi/datatypes.h"

#include <stdio.h>

enum { MOST = UINT16_MAX, FEWEST_PLACES = 1 << 11, MOST_PLACES = 1 << 17 };

/* `type`: the handle of a predefined type, or a hash of a derived one's description. `op`: the
 * handle of a predefined operation, USERS, or USERS_COMMUTATIVE, which are no handles. */
struct key {
    uint64_t type, op, count, counts_hash;
    uint64_t buffers; /* a hash; 0: not told apart by them */
    uint64_t how;     /* signature_how, and whether the type is derived */
};
enum { USERS = 1, USERS_COMMUTATIVE = 2 };
enum { HOW_DERIVED = 1 << 16 };

static uint16_t numbers[2 * MOST_PLACES]; /* the table of n places begins at the n-th */
static uint32_t place_count = FEWEST_PLACES;
static struct key keys[MOST + 1];
static unsigned entered, most;
static bool is_full;
static pthread_mutex_t entering = PTHREAD_MUTEX_INITIALIZER;
static bool will_record;
static size_t counts_room; /* bytes of the ledger that vectors may still take */

void signatures_begin(size_t ledger_bytes, bool is_recorded)
{
    enum { SHARE = 8 }; /* at most an eighth of the ledger */
    size_t room = ledger_bytes / SHARE / sizeof(struct ledger_signature);
    most = room < MOST ? (unsigned)room : MOST;
    will_record = is_recorded;
    counts_room = is_recorded ? ledger_bytes / SHARE : 0;
    mpi_ops_learn();
}

static bool is_in_record(const struct thread *thread)
{
    const struct ledger_page *page = thread->window.page;
    return will_record && page && samples_record_pages_have(the_ledger.header, page->first);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32;
}

/* A count; with a type for each, in bytes. */
static uint64_t amount_at(struct counts counts, const void *types, int index)
{
    mpi_count at = traffic_count_at(counts, index);
    return types ? traffic_bytes(at, mpi_handle_load(types, (size_t)index)) : (uint64_t)at;
}

/* Four independent hashes, so that multiplications overlap in the pipeline. */
static uint64_t hash_of_counts(struct counts counts, const void *types, int length)
{
    uint64_t lanes[4] = {1, 2, 3, 4};
    for (int i = 0; i < length; i++)
        lanes[i % 4] = mix(lanes[i % 4], amount_at(counts, types, i));
    return mix(mix(mix(mix((uint64_t)length, lanes[0]), lanes[1]), lanes[2]), lanes[3]);
}

/* MPI allocates memory for the answer. */
static bool ask_quietly(mpi_handle type, struct mpi_datatype *datatype)
{
    struct quiet before = quiet_begin();
    bool is_known = mpi_datatype_ask(type, datatype);
    quiet_end(&before);
    return is_known;
}

/* A type that a call has just moved. For predefined ones, only the constructor is set. False: MPI
 * cannot be asked. */
static bool ask_type(mpi_handle type, struct mpi_datatype *datatype)
{
    uint64_t bytes;
    *datatype = (struct mpi_datatype){.constructor = NULL};
    return traffic_known_size(mpi_handle_bits(type), &bytes) || ask_quietly(type, datatype);
}

static uint64_t key_of_type(mpi_handle type, const struct mpi_datatype *datatype)
{
    if (!datatype->constructor)
        return mpi_handle_bits(type);
    uint64_t constructor = (uint64_t)(uintptr_t)datatype->constructor;
    return mix(mix(mix(mix(0, constructor), traffic_bytes(1, type)), (uint64_t)datatype->extent),
               datatype->blocks);
}

/* All elements; 0: there is more than one datatype. */
static uint64_t count_of(const struct signature_arguments *arguments)
{
    if (arguments->length <= 0)
        return (uint64_t)arguments->count;
    uint64_t type_bytes = arguments->type ? traffic_bytes(1, arguments->type) : 0;
    return type_bytes ? arguments->bytes / type_bytes : 0;
}

static uint64_t key_of_op(mpi_handle op)
{
    return !op || mpi_op_name(op)      ? mpi_handle_bits(op)
           : mpi_op_is_commutative(op) ? USERS_COMMUTATIVE
                                       : USERS;
}

static bool are_equal(const struct key *key, const struct key *other)
{
    return !((key->type ^ other->type) | (key->op ^ other->op) | (key->count ^ other->count) |
             (key->counts_hash ^ other->counts_hash) | (key->buffers ^ other->buffers) |
             (key->how ^ other->how));
}

/* The number of a key in the table of so many places, and its place; 0: there is none, and it could
 * be stored there. The last table is at most half full, the others a quarter. */
HOT uint16_t find(const struct key *key, uint32_t places, uint16_t **place)
{
    uint64_t at = key->type * 0x9e3779b97f4a7c15 + key->op * 0xc2b2ae3d27d4eb4f +
                  key->count * 0xff51afd7ed558ccd + key->counts_hash * 0xd6e8feb86659fd93 +
                  key->how * 0xa0761d6478bd642f + key->buffers;
    uint16_t number;
    for (at ^= at >> 32;; at++) {
        *place = &numbers[places + (at & (places - 1))];
        number = __atomic_load_n(*place, __ATOMIC_ACQUIRE);
        if (!number || are_equal(&keys[number], key))
            return number;
    }
}

/* 0: no buffer, or none whose address says where the data is. */
static uint64_t address_of(const void *buffer)
{
    return buffer == mpi_abi.in_place ? 0 : (uint64_t)(uintptr_t)buffer;
}

/* 0: there is little room left. */
static uint64_t key_of_buffers(const struct signature_arguments *arguments)
{
    uint64_t buffer = address_of(arguments->buffer), received = address_of(arguments->received);
    bool has_room = __atomic_load_n(&entered, __ATOMIC_RELAXED) < most - most / 4;
    return has_room && (buffer | received) ? mix(mix(0, buffer), received) : 0;
}

/* The entry of a new signature, without its number. */
static struct ledger_signature describe(const struct signature_arguments *arguments,
                                        const struct key *key, struct mpi_datatype datatype)
{
    struct ledger_signature entry = {.memory_kind = arguments->memory_kind,
                                     .count = key->count,
                                     .counts_hash = key->counts_hash};
    if (key->buffers) {
        entry.buffer_at = address_of(arguments->buffer);
        entry.received_at = address_of(arguments->received);
    }
    const char *op = arguments->op ? mpi_op_name(arguments->op) : "";
    bool commutes = arguments->op && mpi_op_is_commutative(arguments->op);
    entry.flags = (arguments->is_in_place ? LEDGER_SIGNATURE_IN_PLACE : 0) |
                  (commutes ? LEDGER_SIGNATURE_COMMUTATIVE : 0) |
                  (arguments->length ? LEDGER_SIGNATURE_COUNTS : 0);
    snprintf(entry.op, sizeof entry.op, "%s", op ? op : "user");
    if (!arguments->type)
        return entry;
    if (datatype.constructor)
        snprintf(entry.datatype, sizeof entry.datatype, "%s", datatype.constructor);
    else
        mpi_datatype_name(arguments->type, entry.datatype, sizeof entry.datatype);
    if (!datatype.blocks) /* the types of which the size alone is known */
        ask_quietly(arguments->type, &datatype);
    entry.type_bytes = traffic_bytes(1, arguments->type);
    entry.extent = datatype.extent;
    entry.blocks = datatype.blocks;
    return entry;
}

/* The counts of the last signature as a fact. Vectors that are too long are left out. */
static void append_counts(const struct signature_arguments *arguments)
{
    static char text[LEDGER_CHUNK_BYTES / 2];
    enum { DIGITS_MOST = 21 };
    size_t bytes = 0;
    char key[32];
    for (int i = 0; i < arguments->length; i++) {
        if (bytes + DIGITS_MOST >= sizeof text || bytes >= counts_room)
            return;
        bytes +=
            (size_t)sprintf(text + bytes, i ? " %llu" : "%llu",
                            (unsigned long long)amount_at(arguments->counts, arguments->types, i));
    }
    counts_room -= bytes;
    snprintf(key, sizeof key, "counts.%u", entered);
    ledger_fact(key, text);
}

/* Appends an entry. 0: there is no room. */
static uint16_t append(struct ledger_signature *entry, unsigned room)
{
    char text[16];
    if (!is_full && entered >= room && room < most)
        return 0;
    entry->signature = entered + 1;
    if (!is_full && entered < most && ledger_append(LEDGER_SIGNATURES, entry, sizeof *entry)) {
        __atomic_store_n(&entered, entered + 1, __ATOMIC_RELAXED);
        return (uint16_t)entered;
    }
    snprintf(text, sizeof text, "%u", entered);
    if (!is_full)
        ledger_fact("signatures_full", text);
    __atomic_store_n(&is_full, true, __ATOMIC_RELAXED);
    return 0;
}

static void fill_larger_table(void)
{
    uint32_t larger = 2 * place_count;
    uint16_t *place;
    for (unsigned number = 1; number <= entered; number++) {
        find(&keys[number], larger, &place);
        *place = (uint16_t)number;
    }
    __atomic_store_n(&place_count, larger, __ATOMIC_RELEASE);
}

static uint16_t enter(const struct key *key, const struct signature_arguments *arguments,
                      struct ledger_signature *entry, unsigned room)
{
    uint16_t *place;
    struct quiet before = quiet_lock(&entering);
    if (place_count < MOST_PLACES && entered >= place_count / 4)
        fill_larger_table();
    uint16_t number = find(key, place_count, &place);
    if (!number && (number = append(entry, room))) {
        keys[number] = *key;
        __atomic_store_n(place, number, __ATOMIC_RELEASE);
        if (arguments->length > 0 && counts_room)
            append_counts(arguments);
    }
    quiet_unlock(&entering, &before);
    return number;
}

HOT bool may_be_remembered(const struct signature_arguments *arguments,
                           const struct mpi_datatype *datatype)
{
    return !will_record && arguments->type && !arguments->length && !datatype->constructor &&
           (!arguments->op || mpi_op_name(arguments->op));
}

HOT uint16_t find_or_enter(const struct signature_arguments *arguments,
                           const struct mpi_datatype *datatype, bool is_recorded)
{
    struct key key = {
        .type = arguments->type ? key_of_type(arguments->type, datatype) : 0,
        .op = key_of_op(arguments->op),
        .count = count_of(arguments),
        .counts_hash = arguments->length > 0
                           ? hash_of_counts(arguments->counts, arguments->types, arguments->length)
                           : 0,
        .buffers = is_recorded ? key_of_buffers(arguments) : 0,
        .how = signature_how(arguments) | (datatype->constructor ? HOW_DERIVED : 0),
    };
    uint16_t *place;
    uint16_t number = find(&key, __atomic_load_n(&place_count, __ATOMIC_ACQUIRE), &place);
    if (!number && !__atomic_load_n(&is_full, __ATOMIC_RELAXED)) {
        struct ledger_signature entry = describe(arguments, &key, *datatype);
        number = enter(&key, arguments, &entry, will_record && !is_recorded ? most / 2 : most);
    }
    return number;
}

/* A call's entry is its own until a call with other arguments takes its place. */
static bool is_of(const struct recent *recent, const struct signature_arguments *arguments)
{
    return recent->type == arguments->type && recent->op == arguments->op &&
           recent->count == (uint64_t)arguments->count &&
           recent->how >> 16 == arguments->is_in_place;
}

/* Asks for it. Sets *may_remember if what the arguments mean will not change. */
HOT uint16_t look_up(const struct thread *thread, const struct signature_arguments *arguments,
                     bool *may_remember)
{
    struct mpi_datatype datatype = {.constructor = NULL};
    *may_remember = false;
    if (arguments->type && !ask_type(arguments->type, &datatype))
        return 0;
    *may_remember = may_be_remembered(arguments, &datatype);
    return find_or_enter(arguments, &datatype, is_in_record(thread));
}

static uint16_t look_up_in_own(struct thread *thread, const struct signature_arguments *arguments)
{
    struct recent own = {.type = arguments->type,
                         .op = arguments->op,
                         .count = (uint64_t)arguments->count,
                         .how = signature_how(arguments) | RECENT_SIGNATURE};
    struct recent *place = recent_place(thread->recent, &own);
    bool may_remember;
    if (!arguments->length && recent_is(place, &own))
        return (uint16_t)place->signature;
    own.signature = look_up(thread, arguments, &may_remember);
    own.cell = place->cell; /* a call's: it may still be read */
    if (may_remember)
        *place = own;
    return (uint16_t)own.signature;
}

uint16_t signature_number(struct thread *thread, struct recent *recent,
                          const struct signature_arguments *arguments)
{
    bool may_remember;
    if (!recent)
        return look_up_in_own(thread, arguments);
    uint16_t number = look_up(thread, arguments, &may_remember);
    if (may_remember && is_of(recent, arguments))
        recent->signature = number;
    return number;
}
