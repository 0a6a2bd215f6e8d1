#include "thinned.h"

#include "ledger.h"

#include <stddef.h>
#include <string.h>

void thinned_begin(struct thinned *log, enum ledger_kind kind, unsigned most)
{
    memset(log, 0, sizeof *log);
    log->kind = kind;
    log->period = 1;
    log->most = most;
}

static bool take_chunk(struct thinned *log)
{
    uint32_t capacity = ledger_chunk_capacity(sizeof(struct ledger_thinned));
    bool fits = log->count + capacity <= log->most;
    struct ledger_chunk *chunk =
        fits ? ledger_chunk(log->kind, sizeof(struct ledger_thinned), 0) : NULL;
    if (!chunk) {
        log->most = log->count;
        return false;
    }
    for (uint32_t i = 0; i < capacity; i++)
        log->entries[log->count++] = ledger_entry(chunk, i);
    __atomic_store_n(&chunk->used, capacity, __ATOMIC_RELEASE);
    return true;
}

static void thin(struct thinned *log)
{
    log->period *= 2;
    log->next = 0;
    for (unsigned i = 0; i < log->count; i++)
        if (!thinned_wants(log, log->entries[i]->tick))
            __atomic_store_n(&log->entries[i]->live, 0, __ATOMIC_RELEASE);
}

/* NULL: the log is full. */
static struct ledger_thinned *find_free(struct thinned *log)
{
    for (; log->next < log->count || take_chunk(log); log->next++)
        if (!log->entries[log->next]->live)
            return log->entries[log->next++];
    return NULL;
}

void thinned_add(struct thinned *log, const void *entry)
{
    struct ledger_thinned *place = find_free(log);
    if (!place)
        thin(log);
    if (!place && !(place = find_free(log)))
        return;
    memcpy(place, entry, offsetof(struct ledger_thinned, live));
    __atomic_store_n(&place->live, 1, __ATOMIC_RELEASE);
}
