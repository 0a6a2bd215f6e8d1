/* The name that the file behind a mapping has now: the kernel follows it when the file, or a folder
 * above it, is renamed, also where this process may no longer look (setuid) or has another root
 * folder (chroot). */
#ifndef COMMPROF_MAPPED_FILE_H
#define COMMPROF_MAPPED_FILE_H

#include <limits.h>
#include <stdbool.h>

struct mapped_file {
    char path[PATH_MAX]; /* the last one, if it was removed */
    bool is_removed;
};

/* Finds the file of the mapping that begins at `address`. False if there is none, or no /proc.
 * Allocates no memory; one call at a time. */
bool mapped_file_find(const void *address, struct mapped_file *file);

#endif
