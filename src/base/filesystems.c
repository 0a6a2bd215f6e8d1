/* btrfs and ZFS are local but not safe: they write every block to a new location (copy on write),
 * so a reserved page needs free space again whenever it is written. FUSE is not safe: only its
 * server knows whether a reservation holds. Network and parallel file systems (NFS, Lustre, GPFS,
 * CephFS, CIFS) may lose their server, or the space that it reserved, at any store. */
#include "filesystems.h"

#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    EXT = 0xef53,
    XFS = 0x58465342,
    TMPFS = 0x01021994,
    OVERLAYFS = 0x794c7630,
    FUSE = 0x65735546
}; /* statfs(2) */

static char in_the_way[PATH_MAX + 128];

const char *filesystems_in_the_way(void)
{
    return in_the_way;
}

const char *filesystems_reason(int error)
{
    return error == FILESYSTEMS_FOREIGN  ? "a part of the path belongs to another user and is in a "
                                           "folder where anybody may create files"
           : error == FILESYSTEMS_UNSAFE ? "the file system is not safe for mapped files"
           : error == FILESYSTEMS_SQUATTED   ? in_the_way
           : error == FILESYSTEMS_MOVED      ? "the folder was renamed or removed"
           : error == FILESYSTEMS_REPLACED   ? "another folder has taken its place"
           : error == FILESYSTEMS_OTHER_ROOT ? "this process has another root folder by now"
                                             : strerror(error);
}

static bool is_safe(const struct statfs *system)
{
    switch ((unsigned)system->f_type) {
    case EXT: /* 2, 3 and 4 */
    case XFS:
    case TMPFS:
    case OVERLAYFS: /* of containers; it is usually backed by one of the others */
        return true;
    }
    return false;
}

bool filesystems_are_safe(const char *folder)
{
    struct statfs system;
    return statfs(folder, &system) == 0 && is_safe(&system);
}

bool filesystems_exceed_file_limit(size_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           bytes > limit.rlim_cur;
}

/* MPI libraries put their shared memory on tmpfs and fail if there is none left. A tmpfs without a
 * limit reports 0 blocks. */
static bool takes_the_last_quarter(const struct statfs *system, size_t bytes)
{
    return system->f_type == TMPFS && system->f_blocks &&
           system->f_bavail < system->f_blocks / 4 + bytes / (size_t)system->f_bsize;
}

int filesystems_write_at(int file, size_t at, const void *from, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = pwrite(file, from, bytes, (off_t)at);
        if (written <= 0)
            return written < 0 ? errno : ENOSPC;
        from = (const char *)from + written;
        at += (size_t)written;
        bytes -= (size_t)written;
    }
    return 0;
}

/* A page that has been written is much faster to touch in a mapping (docs/OVERHEAD.md: while the
 * sample log grows). */
static void write_zeros(int file, size_t from, size_t bytes)
{
    static const char ZEROS[1 << 16];
    for (int error = 0; from < bytes && !error; from += sizeof ZEROS)
        error = filesystems_write_at(file, from, ZEROS,
                                     bytes - from < sizeof ZEROS ? bytes - from : sizeof ZEROS);
}

int filesystems_reserve(int file, size_t from, size_t bytes)
{
    struct statfs system;
    if (filesystems_exceed_file_limit(bytes))
        return EFBIG;
    if (fstatfs(file, &system) != 0)
        return errno;
    if (takes_the_last_quarter(&system, bytes - from))
        return ENOSPC;
    if (is_safe(&system)) {
        int error = posix_fallocate(
            file, (off_t)from,
            (off_t)(bytes - from)); /* glibc writes zeros if the file system cannot reserve */
        if (!error && system.f_type != TMPFS) /* where nothing is faster */
            write_zeros(file, from, bytes);
        return error;
    }
    return fallocate(file, 0, (off_t)from, (off_t)(bytes - from)) == 0 ? 0 : errno;
}

int filesystems_private_folder(const char *place, char *path, size_t bytes)
{
    struct stat there;
    if (snprintf(path, bytes, "%s/commprof-%u", place, (unsigned)geteuid()) >= (int)bytes)
        return ENAMETOOLONG;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return errno;
    if (lstat(path, &there) != 0)
        return errno;
    if (S_ISDIR(there.st_mode) && there.st_uid == geteuid() &&
        !(there.st_mode & (S_IRWXG | S_IRWXO)))
        return 0;
    snprintf(in_the_way, sizeof in_the_way, "%s is in the way: %s of user %u, mode %03o", path,
             S_ISDIR(there.st_mode)   ? "a folder"
             : S_ISLNK(there.st_mode) ? "a link"
                                      : "a file",
             (unsigned)there.st_uid, (unsigned)there.st_mode & 0777);
    return FILESYSTEMS_SQUATTED;
}

/* The kernel checks the same before it follows a link in such a folder, if fs.protected_symlinks is
 * on. */
bool filesystems_foreign(const char *path)
{
    char above[PATH_MAX];
    struct stat there, parent;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    const char *slash = memrchr(path, '/', length);
    snprintf(above, sizeof above, "%.*s",
             slash == path ? 1
             : slash       ? (int)(slash - path)
                           : 1,
             slash ? path : ".");
    if (lstat(path, &there) != 0 || stat(above, &parent) != 0)
        return false;
    bool for_anybody = (parent.st_mode & S_ISVTX) && (parent.st_mode & S_IWOTH);
    return for_anybody && there.st_uid != geteuid() && there.st_uid != 0;
}

struct filesystems_folder filesystems_folder_at(const char *path)
{
    struct stat there = {0};
    stat(path, &there);
    return (struct filesystems_folder){there.st_dev, there.st_ino};
}

/* A FUSE server may number a folder anew when the kernel has forgotten it. */
static bool keeps_its_numbers(const char *path)
{
    struct statfs system;
    return statfs(path, &system) != 0 || (unsigned)system.f_type != FUSE;
}

int filesystems_find(const struct filesystems_folder *folder, const char *path)
{
    struct stat there;
    if (stat(path, &there) != 0)
        return errno == ENOENT ? FILESYSTEMS_MOVED : errno;
    bool is_same = there.st_dev == folder->device && there.st_ino == folder->inode;
    return is_same || !keeps_its_numbers(path) ? 0 : FILESYSTEMS_REPLACED;
}

mode_t filesystems_file_mode(void)
{
    return 0666 & ~settings.umask;
}

mode_t filesystems_folder_mode(void)
{
    return 0777 & ~settings.umask;
}

/* Moves the first component of the path `rest` to the end of `done`. */
static bool step(char done[PATH_MAX], char rest[PATH_MAX])
{
    size_t used = strlen(done), slashes = strspn(rest, "/"),
           length = slashes + strcspn(rest + slashes, "/");
    if (length == slashes || used + length >= PATH_MAX)
        return false;
    memcpy(done + used, rest, length);
    done[used + length] = '\0';
    memmove(rest, rest + length, strlen(rest + length) + 1);
    return true;
}

/* `done` is a link: replaces it by its target, which is put in front of `rest`. */
static bool follow(char done[PATH_MAX], char rest[PATH_MAX])
{
    static char target[PATH_MAX];
    ssize_t length = readlink(done, target, sizeof target - 1);
    if (length < 0 || (size_t)length + 1 + strlen(rest) >= PATH_MAX)
        return false;
    memmove(rest + length, rest, strlen(rest) + 1); /* begins with a slash, or is empty */
    memcpy(rest, target, (size_t)length);
    char *slash = strrchr(done, '/');
    if (target[0] == '/' || !slash)
        done[0] = '\0';
    else
        slash[1] = '\0';
    return true;
}

/* Resolves the path as the kernel does, and checks each link as fs.protected_symlinks does. A part
 * that does not exist ends the walk; too many links count as foreign. */
static bool leads_through_foreign_link(const char *path)
{
    static char done[PATH_MAX], rest[PATH_MAX]; /* MPI_Init and snapshots, one at a time */
    enum { LINKS = 40 };
    struct stat there;
    int links = 0;
    done[0] = '\0';
    snprintf(rest, sizeof rest, "%s", path);
    while (step(done, rest) && lstat(done, &there) == 0)
        if (S_ISLNK(there.st_mode) &&
            (filesystems_foreign(done) || ++links > LINKS || !follow(done, rest)))
            return true;
    return false;
}

static int make_each(const char *path)
{
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *at = part + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(part, filesystems_folder_mode()) != 0 && errno != EEXIST && errno != EISDIR &&
            errno != EROFS && errno != EACCES)
            return errno;
        *at = '/';
    }
    struct stat there;
    if (mkdir(part, filesystems_folder_mode()) == 0)
        return 0;
    if (errno != EEXIST || stat(part, &there) != 0)
        return errno;
    return !S_ISDIR(there.st_mode) ? ENOTDIR : filesystems_foreign(part) ? FILESYSTEMS_FOREIGN : 0;
}

int filesystems_make_folders(const char *path)
{
    if (leads_through_foreign_link(path))
        return FILESYSTEMS_FOREIGN;
    int error = make_each(path);
    return !error && leads_through_foreign_link(path)
               ? FILESYSTEMS_FOREIGN
               : error; /* another process may have created a link meanwhile */
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return lstat(a, &of_a) == 0 && lstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

/* NFS has no RENAME_NOREPLACE. Its link may report EEXIST although it succeeded, if the server's
 * reply was lost. */
static int link_and_unlink(const char *from, const char *to)
{
    if (link(from, to) != 0 && !(errno == EEXIST && is_same_file(from, to)))
        return errno;
    return unlink(from) == 0 ? 0 : errno;
}

int filesystems_rename(const char *from, const char *to)
{
    enum { NOREPLACE = 1 }; /* RENAME_NOREPLACE; glibc has the function since 2.28 */
    struct stat there;
    if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != EPERM)
        return errno;
    int error = link_and_unlink(from, to);
    if (error != EPERM && error != EOPNOTSUPP && error != ENOSYS && error != EMLINK)
        return error;
    if (lstat(to, &there) == 0) /* no links either (FAT): another process may still create `to`
                                   between here and the rename */
        return EEXIST;
    return rename(from, to) == 0 ? 0 : errno;
}

int filesystems_sync_folder_of(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    int file = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return errno;
    int error = fsync(file) == 0 || errno == EINVAL
                    ? 0
                    : errno; /* EINVAL: this file system does not sync folders */
    close(file);
    return error;
}

const char *filesystems_temporary(unsigned index)
{
    const char *chosen = getenv("TMPDIR");
    if (index == 0 && chosen && *chosen == '/')
        return chosen;
    return index <= 1 ? "/tmp" : NULL;
}
