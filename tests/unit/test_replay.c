/* Every dump in tests/gpu/buffers (or in the folder UNIT_BUFFERS), recorded on a real GPU, must be
 * read as when it was added: NAME.expected beside NAME.dump has a line "COUNT WHAT" for each kernel
 * name, and for the copies and memsets. */
#include "cupti_replay.h"

#include <dirent.h>
#include <limits.h>

enum { MOST_NAMES = 256 };

static struct counted {
    unsigned count;
    char what[512];
} seen[MOST_NAMES], expected[MOST_NAMES];

static unsigned *count_of(struct counted *table, const char *what)
{
    unsigned i = 0;
    while (i < MOST_NAMES && table[i].count && strcmp(table[i].what, what) != 0)
        i++;
    CHECK(i < MOST_NAMES);
    snprintf(table[i].what, sizeof table[i].what, "%s", what);
    return &table[i].count;
}

static void take(const struct gpu_event *event)
{
    bool is_kernel = event->kind == LEDGER_ACTIVITY_KERNEL;
    CHECK(event->start_ns > 0 && event->end_ns >= event->start_ns &&
          event->end_ns - event->start_ns < INT64_C(600000000000));
    CHECK(event->device < 64);
    CHECK(!is_kernel || (event->name && *event->name));
    ++*count_of(seen, is_kernel                            ? event->name
                      : event->kind == LEDGER_ACTIVITY_SET ? "memset"
                                                           : "copy");
}

static void read_expected(const char *path)
{
    unsigned count;
    char what[512];
    FILE *file = fopen(path, "re");
    CHECK(file);
    while (fscanf(file, "%u %511[^\n]", &count, what) == 2)
        *count_of(expected, what) = count;
    fclose(file);
}

static void replay_one(const char *folder, const char *name)
{
    char path[2 * PATH_MAX], context[512];
    memset(seen, 0, sizeof seen);
    memset(expected, 0, sizeof expected);
    snprintf(context, sizeof context, "%s: ", name);
    unit_context = context;
    snprintf(path, sizeof path, "%s/%.*s.expected", folder, (int)(strlen(name) - strlen(".dump")),
             name);
    read_expected(path);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(replay(path, take) > 0);
    for (unsigned i = 0; i < MOST_NAMES; i++) {
        if (expected[i].count)
            CHECK_EQUAL(*count_of(seen, expected[i].what), expected[i].count);
        if (seen[i].count)
            CHECK_EQUAL(*count_of(expected, seen[i].what), seen[i].count);
    }
    unit_context = "";
}

TEST(what_real_gpus_gave_is_read_as_ever)
{
    const char *asked = getenv("UNIT_BUFFERS");
    const char *folder = asked ? asked : UNIT_TOP "/tests/gpu/buffers";
    unsigned replayed_files = 0;
    DIR *files = opendir(folder);
    for (struct dirent *entry; files && (entry = readdir(files));) {
        const char *end = strrchr(entry->d_name, '.');
        if (end && strcmp(end, ".dump") == 0) {
            replay_one(folder, entry->d_name);
            replayed_files++;
        }
    }
    if (files)
        closedir(files);
    if (replayed_files == 0)
        unit_skip("no GPU has given any yet");
}
