/* Where files may lie: which file systems a ledger can be mapped from, and the folders of a node that are always there.
 *
 * A store to a mapped page that the file system has no room for ends the process by SIGBUS. So a ledger lies where room that was
 * reserved stays reserved: on the file systems of the list in filesystems.c. Everything else (network and parallel file systems, those that
 * write each block to a new place, unknown ones) is not safe. */
#ifndef COMMPROF_FILESYSTEMS_H
#define COMMPROF_FILESYSTEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What speaks against a place, besides an errno. */
enum { FILESYSTEMS_FOREIGN = -1, FILESYSTEMS_UNSAFE = -2, FILESYSTEMS_SQUATTED = -3 };

/* An errno or one of the above, in words. */
const char *filesystems_reason(int error);

/* Whether stores to reserved pages of a mapped file cannot fail on the file system of this folder. */
bool filesystems_are_safe(const char *folder);

/* Whether a file of so many bytes is beyond the process's limit (RLIMIT_FSIZE), where the kernel would send SIGXFSZ. */
bool filesystems_exceed_file_limit(size_t bytes);

/* Reserve room for a file from `from` up to `bytes`. Returns 0 or an errno: EFBIG beyond the process's limit, ENOSPC also where a file
 * system in memory would be left with less than a quarter, EOPNOTSUPP where the file system cannot reserve. */
int filesystems_reserve(int file, size_t from, size_t bytes);

/* The folder for us alone in a folder that others may write to: <place>/commprof-<uid>, made if need be. Returns 0 or a reason:
 * FILESYSTEMS_SQUATTED if something of that name is there that will not do. */
int filesystems_private_folder(const char *place, char *path, size_t bytes);

/* What was found in its place last, and whose it is; "" if nothing ever was. */
const char *filesystems_in_the_way(void);

/* Whether a folder or link was put there by somebody else, among folders that anybody may make (/tmp). */
bool filesystems_foreign(const char *path);

/* The permissions to ask for files and folders of a run with: COMMPROF_UMASK is taken away, and the kernel takes away the process's. */
mode_t filesystems_file_mode(void);
mode_t filesystems_folder_mode(void);

/* Make a folder and those above it. No link on the way, nor any that such a link leads through, may be foreign, and not the folder itself.
 * Returns 0 or a reason. */
int filesystems_make_folders(const char *path);

/* Give a file another name, which must be free: nothing is ever replaced. Returns 0 or an errno (EEXIST). */
int filesystems_rename(const char *from, const char *to);

/* $TMPDIR, then /tmp, then NULL. */
const char *filesystems_temporary(unsigned index);

#endif
