/* Files and mounts of a test, in its own folder. */
#ifndef FILES_H
#define FILES_H

#include "unit.h"

#include <sched.h>
#include <sys/mount.h>

/* A link that leads nowhere is there, too. */
static inline bool is_there(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

static inline void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Its first 4095 bytes, up to the next call. */
static inline const char *content_of(const char *path)
{
    static char text[4096];
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* Private mounts, which end with this process. */
static inline void mount_here(const char *path, const char *type, const char *options)
{
    static bool alone;
    alone = alone || unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    mkdir(path, 0700);
    if (!alone || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(type, path, type, 0, options) != 0)
        unit_skip("cannot mount here: needs root or user namespaces");
}

#endif
