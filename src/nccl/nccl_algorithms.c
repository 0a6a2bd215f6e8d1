/* One table for the process, in the ledger. `places` finds an entry without a lock; a new one is
 * entered under a lock. If a job uses too many sizes, later ones are rounded to powers of two, of
 * which there are few. */
#include "nccl_algorithms.h"

#include "base/quiet.h"
#include "ledger/ledger.h"
#include "record/call_table.h"
#include "record/communicators.h"
#include "record/thread.h"

#include <string.h>

enum {
    PLACES = 8192,
    MOST = 4096,
    MOST_EXACT = MOST / 2
}; /* places: at least twice MOST, so that a search ends */

static struct ledger_algorithm *places[PLACES];
static unsigned entered;
static pthread_mutex_t entering = PTHREAD_MUTEX_INITIALIZER;

static bool is_same(const struct ledger_algorithm *one, const struct ledger_algorithm *other)
{
    return one->bytes == other->bytes && one->call == other->call &&
           one->communicator == other->communicator && one->channels == other->channels &&
           one->is_folded == other->is_folded &&
           memcmp(one->algorithm, other->algorithm, sizeof one->algorithm) == 0 &&
           memcmp(one->protocol, other->protocol, sizeof one->protocol) == 0;
}

/* The slot of an entry, or the empty slot for it. */
static struct ledger_algorithm **place_of(const struct ledger_algorithm *wanted)
{
    uint64_t kind =
        communicators_mix((uint64_t)wanted->communicator << 16 | wanted->call, wanted->bytes);
    uint64_t at =
        communicators_mix(kind, (uint64_t)wanted->algorithm[0] << 24 |
                                    (uint64_t)wanted->protocol[2] << 16 | wanted->channels);
    for (;; at++) {
        struct ledger_algorithm **place = &places[at % PLACES];
        const struct ledger_algorithm *there = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        if (!there || is_same(there, wanted))
            return place;
    }
}

static struct ledger_algorithm folded(const struct ledger_algorithm *launched)
{
    struct ledger_algorithm fold = *launched;
    fold.is_folded = true;
    for (fold.bytes = 1; fold.bytes < launched->bytes && fold.bytes < (uint64_t)1 << 62;)
        fold.bytes *= 2;
    return fold;
}

static void note_full(void)
{
    static bool is_noted;
    if (!is_noted)
        ledger_fact("nccl.algorithms", "the table is full, some are missing");
    is_noted = true;
}

static struct ledger_algorithm *enter(const struct ledger_algorithm *fresh)
{
    struct ledger_algorithm **place = place_of(fresh);
    if (*place)
        return *place;
    struct ledger_algorithm *entry =
        entered < MOST ? ledger_append(LEDGER_ALGORITHMS, fresh, sizeof *fresh) : NULL;
    if (!entry) {
        note_full();
        return NULL;
    }
    entered++;
    __atomic_store_n(place, entry, __ATOMIC_RELEASE);
    return entry;
}

static struct ledger_algorithm *enter_or_fold(const struct ledger_algorithm *fresh)
{
    struct ledger_algorithm fold = folded(fresh);
    struct quiet before = quiet_lock(&entering);
    struct ledger_algorithm *entry =
        *place_of(fresh) || entered < MOST_EXACT ? enter(fresh) : enter(&fold);
    quiet_unlock(&entering, &before);
    return entry;
}

/* Zeroes the counts after a reset. */
static void catch_up(struct ledger_algorithm *entry, uint32_t epoch)
{
    struct quiet before = quiet_lock(&entering);
    if (entry->epoch != epoch) {
        __atomic_store_n(&entry->count, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->epoch, epoch, __ATOMIC_RELEASE);
    }
    quiet_unlock(&entering, &before);
}

void nccl_algorithms_count(const struct ledger_algorithm *launched)
{
    uint32_t epoch = __atomic_load_n(&thread_epoch, __ATOMIC_ACQUIRE);
    if (!epoch || !call_is_counted(launched->call))
        return;
    struct ledger_algorithm *entry = __atomic_load_n(place_of(launched), __ATOMIC_ACQUIRE);
    if (!entry)
        entry = enter_or_fold(launched);
    if (!entry)
        return;
    if (__atomic_load_n(&entry->epoch, __ATOMIC_ACQUIRE) != epoch)
        catch_up(entry, epoch);
    __atomic_add_fetch(&entry->count, 1, __ATOMIC_RELAXED);
}
