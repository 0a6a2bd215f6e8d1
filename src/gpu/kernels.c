/* The tracing interface's strings may disappear or change, so each event's name is hashed and
 * compared in full: some 20 ns for a hundred characters. Names are stored in the ledger and never
 * change there. */
#include "kernels.h"

#include "communication.h"
#include "ledger/ledger.h"

#include <stdlib.h>
#include <string.h>

enum { INDEX_PLACES = 8192 }; /* at least twice KERNELS_MOST */

static struct {
    struct place {
        uint64_t hash;
        const struct ledger_kernel *entry; /* NULL: the slot is empty */
    } index[INDEX_PLACES];                 /* open addressing */
    char *communication[KERNELS_MOST + 1];
    struct ledger_chunk *chunk; /* names are appended to it */
    uint32_t chunks, most_chunks;
    uint16_t count;
    bool has_other;
} kernels;

void kernels_begin(void)
{
    for (unsigned i = 0; i <= KERNELS_MOST; i++)
        free(kernels.communication[i]);
    memset(&kernels, 0, sizeof kernels);
    kernels.most_chunks = KERNELS_MOST_CHUNKS;
}

/* Hashes eight characters at a time: names of templates are long. */
static uint64_t hash_of(const char *name, size_t bytes)
{
    uint64_t hash = bytes, word;
    for (; bytes >= sizeof word; bytes -= sizeof word, name += sizeof word) {
        memcpy(&word, name, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    word = 0;
    memcpy(&word, name, bytes);
    hash = (hash ^ word) * 0xd6e8feb86659fd93ull;
    return hash ^ hash >> 32;
}

static struct ledger_chunk *chunk_with_room(size_t bytes)
{
    enum { CAPACITY = LEDGER_CHUNK_BYTES - LEDGER_CHUNK_HEADER_BYTES };
    if (kernels.chunk && kernels.chunk->used + bytes <= CAPACITY)
        return kernels.chunk;
    struct ledger_chunk *fresh =
        kernels.chunks < kernels.most_chunks ? ledger_chunk(LEDGER_KERNELS, 1, 0) : NULL;
    if (!fresh) { /* do not ask a full ledger again for each event */
        kernels.most_chunks = kernels.chunks;
        return NULL;
    }
    kernels.chunks++;
    return kernels.chunk = fresh;
}

static const struct ledger_kernel *append(const struct ledger_kernel *kernel, const char *name)
{
    size_t bytes = (sizeof *kernel + kernel->name_bytes + 7) & ~(size_t)7;
    struct ledger_chunk *chunk = chunk_with_room(bytes);
    if (!chunk)
        return NULL;
    char *place = ledger_entry(chunk, chunk->used);
    memcpy(place, kernel, sizeof *kernel);
    memcpy(place + sizeof *kernel, name, kernel->name_bytes);
    __atomic_store_n(&chunk->used, chunk->used + (uint32_t)bytes, __ATOMIC_RELEASE);
    return (const struct ledger_kernel *)place;
}

static struct kernel other(const char *name)
{
    static const char NAME[] = "other kernels";
    struct ledger_kernel entry = {.kernel = LEDGER_KERNEL_OTHER, .name_bytes = sizeof NAME - 1};
    if (!kernels.has_other)
        append(&entry, NAME);
    kernels.has_other = true;
    return (struct kernel){LEDGER_KERNEL_OTHER, communication_has_kernel(name)};
}

static const struct ledger_kernel *enter(const char *name, size_t bytes)
{
    struct ledger_kernel entry = {.kernel = kernels.count + 1u, .name_bytes = (uint32_t)bytes};
    entry.is_communication = communication_has_kernel(name);
    const struct ledger_kernel *entered =
        kernels.count < KERNELS_MOST ? append(&entry, name) : NULL;
    if (!entered)
        return NULL;
    kernels.count++;
    if (entry.is_communication)
        kernels.communication[kernels.count] = strndup(name, bytes);
    return entered;
}

static bool is_it(const struct place *place, uint64_t hash, const char *name, size_t bytes)
{
    return place->hash == hash && place->entry->name_bytes == bytes &&
           memcmp(place->entry + 1, name, bytes) == 0;
}

struct kernel kernels_find(const char *name)
{
    name = name ? name : "unnamed kernel";
    size_t bytes = strnlen(name, KERNELS_LONGEST_NAME);
    uint64_t hash = hash_of(name, bytes), at = hash;
    while (kernels.index[at % INDEX_PLACES].entry &&
           !is_it(&kernels.index[at % INDEX_PLACES], hash, name, bytes))
        at++;
    struct place *place = &kernels.index[at % INDEX_PLACES];
    if (!place->entry)
        *place = (struct place){hash, enter(name, bytes)};
    if (!place->entry)
        return other(name);
    return (struct kernel){(uint16_t)place->entry->kernel, place->entry->is_communication};
}

const char *kernels_communication(uint16_t number)
{
    return number <= KERNELS_MOST ? kernels.communication[number] : NULL;
}
