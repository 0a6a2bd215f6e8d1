/* A member counts from its header on, which is written last:
 *
 *     lock -> find the end of the last member -> cut off the rest -> extend by zeros -> data ->
 *     header -> unlock -> fsync
 *
 * So a kill leaves zeros where the header would be, and zeros end an archive. Whatever a killed
 * rank, a full disk or a crash of the node has left behind the last whole member is cut off by the
 * next rank. The lock is on the file itself, so it keeps containers of a node apart, too; the
 * kernel releases it if its holder dies. The fsync is outside of it: one rank's fsync also writes
 * what the others have appended. */
#include "archive.h"

#include "base/filesystems.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 512, END_BYTES = 2 * BLOCK, PATIENCE_MS = 10000 };

#define MOST_BYTES ((off_t)1 << 33) /* eleven octal digits */

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100],
        magic[6], version[2], user[32], group[32], device[16], prefix[155], unused[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

static unsigned long checksum_of(const struct header *header)
{
    unsigned long sum = 0;
    for (size_t i = 0; i < sizeof *header; i++) {
        bool is_own = i >= offsetof(struct header, checksum) && i < offsetof(struct header, type);
        sum += is_own ? ' ' : ((const unsigned char *)header)[i];
    }
    return sum;
}

static struct header header_of(int world_rank, off_t bytes)
{
    struct header header = {.mode = "0000600",
                            .uid = "0000000",
                            .gid = "0000000",
                            .type = '0',
                            .magic = "ustar",
                            .version = {'0', '0'}};
    snprintf(header.name, sizeof header.name, "rank-%d.db", world_rank);
    snprintf(header.size, sizeof header.size, "%011llo", (unsigned long long)bytes);
    snprintf(header.mtime, sizeof header.mtime, "%011llo",
             (unsigned long long)time(NULL) & 077777777777);
    snprintf(header.checksum, sizeof header.checksum, "%06lo", checksum_of(&header));
    return header;
}

static off_t in_blocks(off_t bytes)
{
    return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

/* The member at `at`: where the next one begins; 0 if there is none, or not all of it. */
static off_t next_after(int file, off_t at, off_t file_bytes, struct header *header)
{
    if (pread(file, header, sizeof *header, at) != sizeof *header ||
        memcmp(header->magic, "ustar", sizeof header->magic) != 0 ||
        strtoull(header->checksum, NULL, 8) != checksum_of(header))
        return 0;
    off_t left = file_bytes - at - BLOCK, bytes = (off_t)strtoull(header->size, NULL, 8);
    return bytes >= 0 && bytes <= left && in_blocks(bytes) <= left ? at + BLOCK + in_blocks(bytes)
                                                                   : 0;
}

/* The end of the last member. `has`: whether this rank is among them. */
static off_t find_end(int file, off_t file_bytes, int world_rank, bool *has)
{
    struct header header, wanted = header_of(world_rank, 0);
    off_t end = 0;
    *has = false;
    for (off_t next; (next = next_after(file, end, file_bytes, &header)); end = next)
        *has |= strncmp(header.name, wanted.name, sizeof header.name) == 0;
    return end;
}

static int lock(int file)
{
    static const struct timespec MILLISECOND = {.tv_nsec = 1000000};
    for (int waited_ms = 0; flock(file, LOCK_EX | LOCK_NB) != 0; waited_ms++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return errno;
        if (waited_ms == PATIENCE_MS)
            return ETIMEDOUT;
        nanosleep(&MILLISECOND, NULL);
    }
    return 0;
}

static int write_member(int file, off_t end, int world_rank, const void *database, off_t bytes)
{
    struct header header = header_of(world_rank, bytes);
    if (ftruncate(file, end) != 0 ||
        ftruncate(file, end + BLOCK + in_blocks(bytes) + END_BYTES) != 0)
        return errno;
    int error = filesystems_write_at(file, (size_t)end + BLOCK, database, (size_t)bytes);
    if (!error)
        error = filesystems_write_at(file, (size_t)end, &header, sizeof header);
    if (error && ftruncate(file, end) != 0)
        return error; /* the next rank cuts it off */
    return error;
}

/* The archive's name is on the disk before anything is in it. */
static int append(int file, const char *archive, int world_rank, const void *database, off_t bytes)
{
    struct stat there;
    bool has;
    if (fstat(file, &there) != 0)
        return errno;
    if (!S_ISREG(there.st_mode) || filesystems_foreign(archive))
        return EPERM;
    off_t end = find_end(file, there.st_size, world_rank, &has);
    if (has)
        return EEXIST;
    int error = end ? 0 : filesystems_sync_folder_of(archive);
    return error ? error : write_member(file, end, world_rank, database, bytes);
}

/* LOCK_UN, because a child that another thread forks meanwhile has the lock, too. */
static int append_and_sync(int file, const char *archive, int world_rank, const void *database,
                           off_t bytes)
{
    int error = lock(file);
    if (error)
        return error;
    error = append(file, archive, world_rank, database, bytes);
    flock(file, LOCK_UN);
    return error ? error : fsync(file) == 0 ? 0 : errno;
}

int archive_append(const char *archive, int world_rank, int database)
{
    struct stat there;
    if (fstat(database, &there) != 0)
        return errno;
    if (there.st_size >= MOST_BYTES)
        return EFBIG;
    void *data = mmap(NULL, (size_t)there.st_size, PROT_READ, MAP_PRIVATE, database, 0);
    if (data == MAP_FAILED)
        return errno;
    int file = open(archive, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, filesystems_file_mode());
    int error = file >= 0 ? append_and_sync(file, archive, world_rank, data, there.st_size) : errno;
    if (file >= 0)
        close(file);
    munmap(data, (size_t)there.st_size);
    return error;
}

void archive_ranks(const char *archive, void (*take)(int world_rank, void *context), void *context)
{
    struct stat there;
    struct header header;
    int world_rank, file = open(archive, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return;
    if (fstat(file, &there) == 0 && S_ISREG(there.st_mode))
        for (off_t at = 0; (at = next_after(file, at, there.st_size, &header));)
            if (sscanf(header.name, "rank-%9d.", &world_rank) == 1)
                take(world_rank, context);
    close(file);
}

bool archive_has(const char *archive, int world_rank)
{
    struct stat there;
    bool has = false;
    int file = open(archive, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return false;
    if (fstat(file, &there) == 0 && S_ISREG(there.st_mode))
        find_end(file, there.st_size, world_rank, &has);
    close(file);
    return has;
}
