/* The file is open only during a collection, so that the job sees no descriptor of ours at other
 * times. */
#include "dump.h"

#include "base/host.h"
#include "base/settings.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static FILE *file;

void dump_open(uint32_t cupti_version)
{
    char path[SETTING_TEXT_BYTES + 256];
    struct dump_header header = {.header_bytes = sizeof header, .cupti_version = cupti_version};
    if (!*settings.gpu_dump)
        return;
    snprintf(path, sizeof path, "%s/cupti-%s-%d.dump", settings.gpu_dump, host_name(),
             (int)getpid());
    file = fopen(path, "ae");
    if (!file || ftell(file) > 0)
        return;
    memcpy(header.magic, DUMP_MAGIC, sizeof header.magic);
    fwrite(&header, sizeof header, 1, file);
}

void dump_close(void)
{
    if (file)
        fclose(file);
    file = NULL;
}

/* Writes an item that consists of two parts. */
static void write_item(enum dump_kind kind, const void *head, size_t head_bytes, const void *rest,
                       size_t rest_bytes)
{
    static const char PADDING[8];
    struct dump_item item = {(uint32_t)kind, (uint32_t)(head_bytes + rest_bytes)};
    if (!file)
        return;
    fwrite(&item, sizeof item, 1, file);
    fwrite(head, 1, head_bytes, file);
    fwrite(rest, 1, rest_bytes, file);
    fwrite(PADDING, 1, -item.bytes % sizeof PADDING, file);
}

void dump_pair(uint64_t theirs, int64_t monotonic_ns)
{
    struct dump_pair pair = {theirs, monotonic_ns};
    write_item(DUMP_PAIR, &pair, sizeof pair, "", 0);
}

void dump_buffer(const uint8_t *buffer, size_t valid_bytes)
{
    write_item(DUMP_BUFFER, buffer, valid_bytes, "", 0);
}

void dump_record(size_t offset, const char *name)
{
    uint64_t place = offset;
    write_item(DUMP_RECORD, &place, sizeof place, name ? name : "", name ? strlen(name) : 0);
}
