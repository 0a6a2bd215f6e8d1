/* A thread looks up a name by parent and name in a small table of its own first. So a region in a
 * loop costs a hash of its name and a comparison, without a lock. Names are compared as text, not
 * by address, because programs reuse name buffers. */
#include "regions.h"

#include "base/memory.h"
#include "base/quiet.h"
#include "base/say.h"

#include <stdio.h>

const char REGIONS_OF_PROGRAM[] = "commprof";

/* All regions of the process. Entries lie in the ledger and are never changed. */
enum { INDEX_PLACES = 8192 }; /* at least twice REGIONS_MAX */
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;
static const struct ledger_region *entries[REGIONS_MAX + 1];
static uint16_t by_path[INDEX_PLACES]; /* open addressing by the hash of the path; 0: empty */
static uint16_t region_count;

enum { RECENT = 64 };
struct regions {
    uint32_t depth;
    uint32_t too_deep; /* begun on top of a full stack */
    struct open_region {
        uint64_t start_ticks;
        const void *owner;
        uint16_t region;
        bool is_named; /* false: it is the one around it */
    } open[REGIONS_DEEP];
    struct recent_region {
        uint64_t hash;
        uint16_t parent;
        uint16_t region; /* 0: the place is empty */
    } recent[RECENT];
};

static uint64_t hash_of(uint64_t hash, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
    return hash;
}

static void say_once_that_it_goes_on(const char *path)
{
    static bool said;
    if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        return;
    ledger_fact("region_refused", path);
    if (the_ledger.header->world_rank <= 0)
        say_line("region %s is counted in its parent: the limits are %d regions (fewer in a full "
                 "ledger), names of %d characters, %d "
                 "nested ones",
                 path, REGIONS_MAX, REGION_NAME_BYTES - 1, REGIONS_DEEP);
}

static uint16_t enter(const char *path)
{
    struct ledger_region entry = {.region = region_count + 1u};
    strcpy(entry.name, path); /* it fits: see find */
    const struct ledger_region *entered = ledger_append(LEDGER_REGIONS, &entry, sizeof entry);
    if (!entered)
        return 0;
    entries[++region_count] = entered;
    return region_count;
}

/* The number of a path; assigns one if the path is new. 0 when there is no room. */
static uint16_t find_or_enter(const char *path)
{
    uint64_t at = hash_of(0xcbf29ce484222325, path, strlen(path)) >> 16;
    for (; by_path[at % INDEX_PLACES]; at++)
        if (strcmp(entries[by_path[at % INDEX_PLACES]]->name, path) == 0)
            return by_path[at % INDEX_PLACES];
    uint16_t region = region_count < REGIONS_MAX ? enter(path) : 0;
    by_path[at % INDEX_PLACES] = region;
    return region;
}

static size_t path_bytes_before(uint16_t parent)
{
    return parent ? strlen(entries[parent]->name) + 1 : 0;
}

/* The region `name` within `parent`; the parent itself if there is no room for another. */
static uint16_t find(uint16_t parent, const char *name)
{
    char path[2 * REGION_NAME_BYTES];
    const char *around = parent ? entries[parent]->name : "";
    int bytes = snprintf(path, sizeof path, "%s%s%s", around, parent ? "/" : "", name);
    struct quiet before = quiet_lock(&naming);
    uint16_t region = bytes < REGION_NAME_BYTES ? find_or_enter(path) : 0;
    if (!region)
        say_once_that_it_goes_on(path);
    quiet_unlock(&naming, &before);
    return region ? region : parent;
}

static bool is_it(const struct recent_region *recent, uint64_t hash, uint16_t parent,
                  const char *name)
{
    return recent->region && recent->hash == hash && recent->parent == parent &&
           strcmp(entries[recent->region]->name + path_bytes_before(parent), name) == 0;
}

static uint16_t find_recent(struct regions *regions, uint16_t parent, const char *name)
{
    uint64_t hash = hash_of(parent + 1u, name, strnlen(name, REGION_NAME_BYTES));
    struct recent_region *recent = &regions->recent[(hash >> 32) % RECENT];
    if (is_it(recent, hash, parent, name))
        return recent->region;
    uint16_t region = find(parent, name);
    if (region != parent)
        *recent = (struct recent_region){hash, parent, region};
    return region;
}

static uint16_t innermost(const struct regions *regions)
{
    return regions->depth ? regions->open[regions->depth - 1].region : 0;
}

static int open_of(const struct regions *regions, const void *owner)
{
    int count = 0;
    for (uint32_t i = 0; i < regions->depth; i++)
        count += regions->open[i].owner == owner;
    return count;
}

static void take_up(struct thread *thread)
{
    thread->region = (uint64_t)innermost(thread->regions) << CELL_KEY_REGION_BIT;
}

int regions_begin(struct thread *thread, const char *name, const void *owner)
{
    struct regions *regions = thread->regions ? thread->regions : memory_take(sizeof *regions);
    thread->regions = regions;
    if (!regions)
        return 0;
    int level = open_of(regions, owner);
    if (regions->depth == REGIONS_DEEP) {
        if (regions->too_deep++ == 0)
            say_once_that_it_goes_on(name ? name : "");
        return level + (int)regions->too_deep - 1;
    }
    uint16_t parent = innermost(regions);
    uint16_t region = name && *name ? find_recent(regions, parent, name) : parent;
    regions->open[regions->depth++] =
        (struct open_region){clock_ticks(), owner, region, region != parent};
    take_up(thread);
    return level;
}

static void leave(struct thread *thread, uint32_t at, uint64_t ticks)
{
    struct regions *regions = thread->regions;
    struct open_region left = regions->open[at];
    regions->depth--;
    memmove(&regions->open[at], &regions->open[at + 1], (regions->depth - at) * sizeof left);
    take_up(thread);
    if (left.is_named && thread_epoch) /* a forked child's thread may end, too */
        samples_region(&thread->window, thread->cells.record, left.region, left.start_ticks, ticks);
}

/* Regions of different owners need not lie in each other: one that is left below others goes, and
 * those keep their names. */
int regions_end(struct thread *thread, const void *owner)
{
    struct regions *regions = thread->regions;
    if (!regions)
        return -1;
    if (regions->too_deep) {
        regions->too_deep--;
        return open_of(regions, owner) + (int)regions->too_deep;
    }
    for (uint32_t i = regions->depth; i-- > 0;)
        if (regions->open[i].owner == owner) {
            leave(thread, i, clock_ticks());
            return open_of(regions, owner);
        }
    return -1;
}

void regions_end_all(struct thread *thread)
{
    if (!thread->regions)
        return;
    uint64_t now = clock_ticks();
    while (thread->regions->depth)
        leave(thread, thread->regions->depth - 1, now);
    thread->regions->too_deep = 0;
}

void regions_step(struct thread *thread)
{
    samples_step(thread->cells.record->thread, clock_ticks());
}
