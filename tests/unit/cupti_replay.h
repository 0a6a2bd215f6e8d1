/* Replays a dump that COMMPROF_GPU_DUMP wrote: the same code reads the same records, without
 * CUPTI. */
#ifndef CUPTI_REPLAY_H
#define CUPTI_REPLAY_H

#include "cupti/dump.h"
#include "cupti/records.h"
#include "cupti/walk.h"
#include "unit.h"

enum { REPLAY_MOST_RECORDS = 16384 };

/* One buffer with the offsets of its records, which without a dump only libcupti knows. */
static struct {
    uint8_t *buffer;
    uint32_t valid_bytes;
    uint64_t places[REPLAY_MOST_RECORDS];
    unsigned count;
} replayed;

static int replay_next(uint8_t *buffer, size_t valid_bytes, void **record)
{
    unsigned next = 0;
    while (*record && next < replayed.count && buffer + replayed.places[next] <= (uint8_t *)*record)
        next++;
    if (next == replayed.count || replayed.places[next] >= valid_bytes)
        return 12;
    *record = buffer + replayed.places[next];
    return 0;
}

static void replay_buffer(struct walk *walk)
{
    if (replayed.buffer)
        walk_buffer(walk, replayed.buffer, replayed.valid_bytes);
    free(replayed.buffer);
    memset(&replayed, 0, sizeof replayed);
}

static void replay_record(const uint8_t *item, uint32_t bytes)
{
    uint64_t place;
    CHECK(replayed.buffer && replayed.count < REPLAY_MOST_RECORDS && bytes >= sizeof place);
    memcpy(&place, item, sizeof place);
    CHECK(place % 8 == 0 && place + sizeof(uint64_t) <= replayed.valid_bytes);
    replayed.places[replayed.count++] = place;
    struct cupti_kernel *kernel = (struct cupti_kernel *)(replayed.buffer + place);
    if (kernel->kind == CUPTI_CONCURRENT_KERNEL) /* the name must stay in memory, as CUPTI's does */
        kernel->name = bytes > sizeof place
                           ? strndup((const char *)item + sizeof place, bytes - sizeof place)
                           : NULL;
}

/* Times are those of the records, not converted. Returns the version of CUPTI that wrote the
 * records. */
static inline uint32_t replay(const char *path, gpu_take take)
{
    struct dump_header header;
    struct dump_item item;
    FILE *file = fopen(path, "re");
    CHECK(file && fread(&header, sizeof header, 1, file) == 1 &&
          memcmp(header.magic, DUMP_MAGIC, sizeof header.magic) == 0);
    CHECK(fseek(file, header.header_bytes, SEEK_SET) == 0);
    struct walk walk = {.next = replay_next,
                        .version = header.cupti_version,
                        .devices = 64,
                        .until_ns = INT64_MAX,
                        .take = take};
    while (fread(&item, sizeof item, 1, file) == 1) {
        uint8_t *bytes = malloc(item.bytes + 8u);
        CHECK(bytes && fread(bytes, 1, (item.bytes + 7u) & ~7u, file) == ((item.bytes + 7u) & ~7u));
        if (item.kind == DUMP_BUFFER) {
            replay_buffer(&walk);
            replayed.buffer = bytes;
            replayed.valid_bytes = item.bytes;
            continue;
        }
        if (item.kind == DUMP_RECORD)
            replay_record(bytes, item.bytes);
        free(bytes);
    }
    replay_buffer(&walk);
    fclose(file);
    return header.cupti_version;
}

#endif
