/* A rank that ends meanwhile gets its new file before it loses the old one. So a folder is listed
 * twice, which finds one of them, and archives are read after that. */
#include "presence.h"

#include "output/archive.h"
#include "run_folder.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_SPAN = 32 };

struct ranks {
    bool *are_there;
    int world_size;
};

static void see_rank(int world_rank, void *context)
{
    struct ranks *ranks = context;
    if (world_rank >= 0 && world_rank < ranks->world_size)
        ranks->are_there[world_rank] = true;
}

static void see_file(struct ranks *ranks, const char *name)
{
    int world_rank, at = 0;
    if (sscanf(name, "rank-%9d.%n", &world_rank, &at) == 1 && at &&
        (strcmp(name + at, "db") == 0 || strcmp(name + at, "ledger") == 0))
        see_rank(world_rank, ranks);
}

static bool is_archive(const char *name)
{
    const char *ending = strrchr(name, '.');
    return strncmp(name, "node-", 5) == 0 && ending && strcmp(ending, ".tar") == 0;
}

static int see_folder(struct ranks *ranks, const char *path)
{
    char archive[2 * PATH_MAX];
    DIR *entries = opendir(path);
    if (!entries)
        return errno;
    for (int i = 0; i < 2; i++, rewinddir(entries))
        for (struct dirent *entry; (entry = readdir(entries));)
            see_file(ranks, entry->d_name);
    for (struct dirent *entry; (entry = readdir(entries));)
        if (is_archive(entry->d_name) &&
            snprintf(archive, sizeof archive, "%s/%s", path, entry->d_name) > 0)
            archive_ranks(archive, see_rank, ranks);
    closedir(entries);
    return 0;
}

static void pattern_of(char *pattern, size_t bytes, const char *folders)
{
    size_t used = 0;
    for (; *folders && used + 3 < bytes; folders++) {
        if (strchr("*?[]\\", *folders))
            pattern[used++] = '\\';
        pattern[used++] = *folders == ANY_RANK ? '*' : *folders;
    }
    pattern[used] = '\0';
}

static int see_folders(struct ranks *ranks, const char *folders)
{
    static char pattern[2 * PATH_MAX];
    glob_t found = {0};
    if (!strchr(folders, ANY_RANK))
        return see_folder(ranks, folders);
    pattern_of(pattern, sizeof pattern, folders);
    /* Looked up: since glibc 2.27 there is a second version, which a build would bind to. */
    __typeof__(&glob) glob_here = (__typeof__(&glob))dlsym(RTLD_DEFAULT, "glob");
    if (glob_here && glob_here(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            see_folder(ranks, found.gl_pathv[i]);
    globfree(&found);
    return 0;
}

/* "1, 4-7" into `spans`; returns how many are missing. */
static int find_missing(const struct ranks *ranks, bool (*is_expected)(int rank), char *spans,
                        size_t bytes)
{
    size_t used = 0;
    int count = 0;
    spans[0] = '\0';
    for (int low = 0, high; low < ranks->world_size; low = high + 1) {
        for (high = low; high < ranks->world_size && !ranks->are_there[high] && is_expected(high);
             high++)
            continue;
        count += high - low;
        if (high == low)
            continue;
        if (used + LONGEST_SPAN <= bytes)
            used +=
                (size_t)snprintf(spans + used, bytes - used, high - low > 1 ? "%s%d-%d" : "%s%d",
                                 used ? ", " : "", low, high - 1);
        else
            snprintf(spans + used, bytes - used, " ...");
    }
    return count;
}

static enum presence describe(const struct ranks *ranks, bool (*is_expected)(int rank), char *text,
                              size_t bytes)
{
    char spans[256];
    int missing = find_missing(ranks, is_expected, spans, sizeof spans), there = 0;
    for (int rank = 0; rank < ranks->world_size; rank++)
        there += ranks->are_there[rank];
    const char *plural = missing > 1 ? "s" : "";
    if (there)
        snprintf(text, bytes, "%d of %d ranks (there is no file of rank%s %s)", there,
                 ranks->world_size, plural, spans);
    else
        snprintf(text, bytes, "there is no file of rank%s %s", plural, spans);
    return !there ? PRESENCE_NONE : missing ? PRESENCE_SOME : PRESENCE_ALL;
}

enum presence presence_find(const char *folders, int world_size, bool (*is_expected)(int rank),
                            char *text, size_t bytes, int *error)
{
    struct ranks ranks = {calloc((size_t)world_size, sizeof(bool)), world_size};
    if (!ranks.are_there)
        return PRESENCE_ALL;
    *error = see_folders(&ranks, folders);
    enum presence presence = describe(&ranks, is_expected, text, bytes);
    free(ranks.are_there);
    return presence;
}
