/* A rank that ends meanwhile gets its new file before it loses the old one. So a folder is listed
 * twice, which finds one of them, and archives are read after that. */
#include "presence.h"

#include "ledger/ledger_format.h"
#include "output/archive.h"
#include "run_folder.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ledgers are opened to know stubs; many would take long on a slow file system. */
enum { LONGEST_SPAN = 32, MOST_OPENED = 256 };

enum place { NOWHERE, ON_NODE, HERE };

struct ranks {
    unsigned char *places;
    int world_size, opened;
};

static void see_rank_at(struct ranks *ranks, int world_rank, enum place place)
{
    if (world_rank >= 0 && world_rank < ranks->world_size && ranks->places[world_rank] < place)
        ranks->places[world_rank] = (unsigned char)place;
}

static void see_rank(int world_rank, void *context)
{
    see_rank_at(context, world_rank, HERE);
}

static bool is_stub(struct ranks *ranks, int folder, const char *name)
{
    char text[sizeof LEDGER_STUB - 1];
    int file = ranks->opened++ < MOST_OPENED
                   ? openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
                   : -1;
    bool is = file >= 0 && read(file, text, sizeof text) == (ssize_t)sizeof text &&
              memcmp(text, LEDGER_STUB, sizeof text) == 0;
    if (file >= 0)
        close(file);
    return is;
}

static void see_file(struct ranks *ranks, int folder, const char *name)
{
    int world_rank, at = 0;
    if (sscanf(name, "rank-%9d.%n", &world_rank, &at) != 1 || !at)
        return;
    if (strcmp(name + at, "db") == 0)
        see_rank_at(ranks, world_rank, HERE);
    else if (strcmp(name + at, "ledger") == 0)
        see_rank_at(ranks, world_rank, is_stub(ranks, folder, name) ? ON_NODE : HERE);
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
            see_file(ranks, dirfd(entries), entry->d_name);
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

/* "1, 4-7", the expected ranks at this place, into `spans`; returns how many they are. */
static int find_ranks(const struct ranks *ranks, enum place place, bool (*is_expected)(int rank),
                      char *spans, size_t bytes)
{
    size_t used = 0;
    int count = 0;
    spans[0] = '\0';
    for (int low = 0, high; low < ranks->world_size; low = high + 1) {
        for (high = low;
             high < ranks->world_size && ranks->places[high] == place && is_expected(high); high++)
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
    int missing = find_ranks(ranks, NOWHERE, is_expected, spans, sizeof spans), there = 0;
    for (int rank = 0; rank < ranks->world_size; rank++)
        there += ranks->places[rank] != NOWHERE;
    const char *plural = missing > 1 ? "s" : "";
    if (there)
        snprintf(text, bytes, "%d of %d ranks (there is no file of rank%s %s)", there,
                 ranks->world_size, plural, spans);
    else
        snprintf(text, bytes, "there is no file of rank%s %s", plural, spans);
    return !there ? PRESENCE_NONE : missing ? PRESENCE_SOME : PRESENCE_ALL;
}

enum presence presence_find(const char *folders, int world_size, bool (*is_expected)(int rank),
                            struct presence_text *text, int *error)
{
    char spans[256];
    struct ranks ranks = {calloc((size_t)world_size, 1), world_size, 0};
    *text = (struct presence_text){"", ""};
    if (!ranks.places)
        return PRESENCE_ALL;
    *error = see_folders(&ranks, folders);
    enum presence presence = describe(&ranks, is_expected, text->ranks, sizeof text->ranks);
    int on_nodes = find_ranks(&ranks, ON_NODE, is_expected, spans, sizeof spans);
    if (on_nodes)
        snprintf(text->on_nodes, sizeof text->on_nodes,
                 on_nodes > 1 ? ", so far without ranks %s, which are on their nodes alone"
                              : ", so far without rank %s, which is on its node alone",
                 spans);
    free(ranks.places);
    return presence;
}
