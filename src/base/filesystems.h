/* Places for files: the file systems from which a ledger can be mapped, and the temporary folders
 * that every node has.
 *
 * A store to a mapped page for which the file system has no space kills the process with SIGBUS. A
 * ledger is therefore put only on file systems where reserved space stays reserved (the list in
 * filesystems.c). All others (network, parallel, copy-on-write, unknown) are not safe. */
#ifndef COMMPROF_FILESYSTEMS_H
#define COMMPROF_FILESYSTEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Reasons not to use a folder, in addition to the values of errno. */
enum {
    FILESYSTEMS_FOREIGN = -1,
    FILESYSTEMS_UNSAFE = -2,
    FILESYSTEMS_SQUATTED = -3,
    FILESYSTEMS_MOVED = -4,
    FILESYSTEMS_REPLACED = -5,
    FILESYSTEMS_OTHER_ROOT = -6
};

/* An errno or one of the above as text. */
const char *filesystems_reason(int error);

/* Whether stores to reserved pages of a mapped file cannot fail on the file system of this
 * folder. */
bool filesystems_are_safe(const char *folder);

/* Whether a file of this size exceeds the process's limit (RLIMIT_FSIZE), so that the kernel would
 * send SIGXFSZ. */
bool filesystems_exceed_file_limit(size_t bytes);

/* Reserve a file's space from offset `from` up to `bytes`. Returns 0 or an errno: EFBIG beyond the
 * process's limit, ENOSPC also if less than a quarter of a tmpfs would remain free, EOPNOTSUPP if
 * the file system cannot reserve. */
int filesystems_reserve(int file, size_t from, size_t bytes);

/* A private folder in a folder that others may write to: <place>/commprof-<uid>, created if it is
 * missing. Returns 0 or a reason: FILESYSTEMS_SQUATTED if something else has that name, or the
 * folder belongs to another user or is open to others. */
int filesystems_private_folder(const char *place, char *path, size_t bytes);

/* Describes what last had that name, with its owner; "" if nothing did. */
const char *filesystems_in_the_way(void);

/* Whether another user (not root) created this folder or link in a folder where anybody may create
 * files (/tmp). */
bool filesystems_foreign(const char *path);

/* A folder, whatever its path means later. */
struct filesystems_folder {
    dev_t device;
    ino_t inode;
};

/* Remember the folder at this path. */
struct filesystems_folder filesystems_folder_at(const char *path);

/* Whether it is still at this path. Returns 0 or a reason: FILESYSTEMS_MOVED or _REPLACED if there
 * is nothing or something else. */
int filesystems_find(const struct filesystems_folder *folder, const char *path);

/* The mode with which files and folders of a run are created: without the bits of COMMPROF_UMASK.
 * The kernel applies the umask. */
mode_t filesystems_file_mode(void);
mode_t filesystems_folder_mode(void);

/* Create a folder and those above it. Neither the folder nor any link that leads to it, directly or
 * through other links, may be foreign. Returns 0 or a reason. */
int filesystems_make_folders(const char *path);

/* Rename a file. Never replaces another one: returns EEXIST then. Returns 0 or an errno. */
int filesystems_rename(const char *from, const char *to);

/* Write all of it. Returns 0 or an errno. */
int filesystems_write_at(int file, size_t at, const void *from, size_t bytes);

/* Bring the names in a file's folder to the disk. Returns 0 or an errno. */
int filesystems_sync_folder_of(const char *path);

/* The temporary folders in order of preference, then NULL: $TMPDIR (if absolute) and /tmp. */
const char *filesystems_temporary(unsigned index);

#endif
