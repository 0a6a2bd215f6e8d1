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

static struct ledger_thinned *entry_at(const struct thinned *log, unsigned index)
{
    return ledger_entry(log->chunks[index / THINNED_IN_CHUNK], index % THINNED_IN_CHUNK);
}

static bool take_chunk(struct thinned *log)
{
    bool fits = log->count + THINNED_IN_CHUNK <= log->most;
    struct ledger_chunk *chunk =
        fits ? ledger_chunk(log->kind, sizeof(struct ledger_thinned), 0) : NULL;
    if (!chunk) {
        log->most = log->count;
        return false;
    }
    log->chunks[log->count / THINNED_IN_CHUNK] = chunk;
    log->count += THINNED_IN_CHUNK;
    __atomic_store_n(&chunk->used, THINNED_IN_CHUNK, __ATOMIC_RELEASE);
    return true;
}

static void thin(struct thinned *log)
{
    log->period *= 2;
    log->next = 0;
    for (unsigned i = 0; i < log->count; i++)
        if (!thinned_wants(log, entry_at(log, i)->tick))
            __atomic_store_n(&entry_at(log, i)->live, 0, __ATOMIC_RELEASE);
}

/* NULL: the log is full. */
static struct ledger_thinned *find_free(struct thinned *log)
{
    for (; log->next < log->count || take_chunk(log); log->next++)
        if (!entry_at(log, log->next)->live)
            return entry_at(log, log->next++);
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
