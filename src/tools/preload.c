#include "preload.h"

#include "base/filesystems.h"
#include "doctor/program.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool can_be_listed(const char *path)
{
    return !strpbrk(path, " :$");
}

/* Ranks may make it at the same time. Its name follows from its target (FNV-1a), so one that is
 * there is the same. Returns 0 or a reason. */
static int link_in(const char *place, const char *library, char *path, size_t bytes)
{
    char folder[PATH_MAX], target[PATH_MAX], there[PATH_MAX];
    uint64_t hash = 0xcbf29ce484222325;
    int length = (int)(program_name(library) - library);
    int error = filesystems_private_folder(place, folder, sizeof folder);
    if (error)
        return error;
    for (int i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)library[i]) * 0x100000001b3;
    snprintf(target, sizeof target, "%.*s", length, library);
    if (snprintf(path, bytes, "%s/lib-%016llx", folder, (unsigned long long)hash) >= (int)bytes)
        return ENAMETOOLONG;
    if (symlink(target, path) != 0 && errno != EEXIST)
        return errno;
    if (readlink(path, there, sizeof there) != length || memcmp(there, target, (size_t)length) != 0)
        return EEXIST;
    size_t used = strlen(path);
    return snprintf(path + used, bytes - used, "/%s", program_name(library)) < (int)(bytes - used)
               ? 0
               : ENAMETOOLONG;
}

const char *preload_path(const char *library, char *path, size_t bytes)
{
    static char why[512];
    const char *place, *reason = "no temporary folder has a path without them";
    snprintf(path, bytes, "%s", library);
    if (can_be_listed(path))
        return NULL;
    for (unsigned i = 0; (place = filesystems_temporary(i)); i++) {
        if (!can_be_listed(place))
            continue;
        int error = link_in(place, library, path, bytes);
        if (!error)
            return NULL;
        reason =
            error == FILESYSTEMS_SQUATTED ? filesystems_in_the_way() : filesystems_reason(error);
    }
    snprintf(why, sizeof why,
             "cannot be preloaded: the loader splits paths at blanks and colons and expands dollar "
             "signs, and no link to it can be made: %s",
             reason);
    return why;
}

bool preload_is_sanitizer(const char *library)
{
    static const char *const NAMES[] = {"libasan",  "libhwasan", "libtsan",     "liblsan",
                                        "libubsan", "libmsan",   "libclang_rt."};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strncmp(program_name(library), NAMES[i], strlen(NAMES[i])) == 0)
            return true;
    return false;
}

static void append(char *list, const char *entry)
{
    sprintf(list + strlen(list), "%s%s", *list ? ":" : "", entry);
}

char *preload_first(const char *before, const char *library)
{
    char *others = strdup(before ? before : ""),
         *list = calloc(1, strlen(library) + (before ? strlen(before) : 0) + 2);
    bool is_in = false;
    char *rest = NULL;
    for (char *entry = others && list ? strtok_r(others, ": ", &rest) : NULL; entry;
         entry = strtok_r(NULL, ": ", &rest)) {
        if (!is_in && !preload_is_sanitizer(entry)) {
            append(list, library);
            is_in = true;
        }
        if (strcmp(program_name(entry), program_name(library)) != 0)
            append(list, entry);
    }
    if (list && others && !is_in)
        append(list, library);
    free(others);
    return list;
}

void preload_before_asan(void)
{
    static const char OPTION[] = PRELOAD_ASAN_OPTION "=0";
    const char *before = getenv("ASAN_OPTIONS");
    char *options = NULL;
    if (before && strstr(before, OPTION))
        return;
    if (asprintf(&options, "%s:%s", before ? before : "", OPTION) < 0)
        return;
    setenv("ASAN_OPTIONS", options + (*options == ':'), 1);
    free(options);
}
