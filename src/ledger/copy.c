/* A fold moves counts between cells and a reset sets them to zero; a copy written meanwhile may be
 * inconsistent, so it is written again. A sample page that changed its owner during the copy gets
 * no owner in the copy. Everything else is only appended, and published by a final store
 * (ledger_format.h), so chunks allocated before the header was read are always consistent. After a
 * reset the GPU thread clears the GPU sums a little later; a copy taken at exactly that time may
 * have GPU sums without their counts. */
#include "copy.h"

#include "base/clock.h"
#include "base/filesystems.h"
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Identifies the current use of a sample page; differs after reuse. */
struct tenancy {
    uint64_t owner, first;
};

static struct tenancy tenancy_of(const struct ledger_page *page)
{
    uint64_t owner = __atomic_load_n(&page->owner, __ATOMIC_ACQUIRE);
    return (struct tenancy){owner, __atomic_load_n(&page->first, __ATOMIC_ACQUIRE)};
}

static int write_samples(int file, size_t at, struct ledger_chunk *chunk)
{
    enum { PAGES = (LEDGER_CHUNK_BYTES - LEDGER_CHUNK_HEADER_BYTES) / sizeof(struct ledger_page) };
    static const uint64_t nobody = LEDGER_NOBODY;
    struct tenancy before[PAGES];
    for (uint32_t i = 0; i < PAGES; i++)
        before[i] = tenancy_of(ledger_entry(chunk, i));
    int error = filesystems_write_at(file, at, chunk, LEDGER_CHUNK_BYTES);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < PAGES && !error; i++) {
        struct ledger_page *page = ledger_entry(chunk, i);
        struct tenancy after = tenancy_of(page);
        if (after.owner != before[i].owner || after.first != before[i].first)
            error = filesystems_write_at(file, at + (size_t)((char *)&page->owner - (char *)chunk),
                                         &nobody, sizeof nobody);
    }
    return error;
}

static int write_chunks(int file, uint32_t count)
{
    int error = 0;
    for (uint32_t i = 0; i < count && !error; i++) {
        struct ledger_chunk *chunk = ledger_chunk_at(the_ledger.header, i);
        size_t at = LEDGER_HEADER_BYTES + (size_t)i * LEDGER_CHUNK_BYTES;
        error = chunk->kind == LEDGER_SAMPLES
                    ? write_samples(file, at, chunk)
                    : filesystems_write_at(file, at, chunk, LEDGER_CHUNK_BYTES);
    }
    return error;
}

static int write_once(int file, enum ledger_ended ended)
{
    char page[LEDGER_HEADER_BYTES];
    struct ledger_header *header = (struct ledger_header *)page;
    memcpy(page, the_ledger.header, sizeof page);
    if (ended == LEDGER_SNAPSHOT) {
        header->ended = ended;
        header->end_ns = clock_monotonic_ns();
        header->end_unix_ns = 0;
    } else
        header->copied_unix_ns = clock_unix_ns();
    size_t bytes = (size_t)header->chunk_count * LEDGER_CHUNK_BYTES;
    if (filesystems_exceed_file_limit(sizeof page + bytes))
        return EFBIG;
    int error = filesystems_write_at(file, 0, page, sizeof page);
    return error ? error : write_chunks(file, header->chunk_count);
}

static int write_undisturbed(int file, enum ledger_ended ended)
{
    for (int i = 0; i < LEDGER_LOOKS; i++) {
        struct ledger_look look = ledger_look();
        int error = write_once(file, ended);
        if (error || !ledger_moved_since(look))
            return error ? error : fsync(file) == 0 ? 0 : errno;
    }
    return EAGAIN;
}

/* The last copy or stub written. Another file may have taken its path since, possibly with the same
 * inode number: compare the mtime, too. */
static struct stat last_copy;

static bool is_at(const char *path, const struct stat *last)
{
    struct stat there;
    return lstat(path, &there) == 0 && last->st_ino && there.st_ino == last->st_ino &&
           there.st_dev == last->st_dev && there.st_mtim.tv_sec == last->st_mtim.tv_sec &&
           there.st_mtim.tv_nsec == last->st_mtim.tv_nsec;
}

static int give_name(const char *aside, const char *path, int file, struct stat *last)
{
    struct stat written;
    if (fstat(file, &written) != 0)
        return errno;
    int error = is_at(path, last) ? (rename(aside, path) == 0 ? 0 : errno)
                                  : filesystems_rename(aside, path);
    if (!error)
        *last = written;
    return error;
}

static int create_aside(const char *path, char aside[PATH_MAX + 8])
{
    snprintf(aside, PATH_MAX + 8, "%s.tmp", path);
    unlink(aside);
    return open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, filesystems_file_mode());
}

/* Replaces the file that is `last`, and no other. */
static int publish(const char *aside, const char *path, int file, int error, struct stat *last)
{
    if (!error)
        error = give_name(aside, path, file, last);
    close(file);
    if (error)
        unlink(aside);
    return error;
}

static int copy_to(const char *path, enum ledger_ended ended, struct stat *last)
{
    char aside[PATH_MAX + 8];
    int file = create_aside(path, aside);
    if (file < 0)
        return errno;
    return publish(aside, path, file, write_undisturbed(file, ended), last);
}

int ledger_copy(const char *path)
{
    return copy_to(path, LEDGER_RUNNING, &last_copy);
}

int ledger_snapshot(const char *path)
{
    struct stat none = {0};
    return copy_to(path, LEDGER_SNAPSHOT, &none);
}

/* Not synced: the job would wait for it, and a node that fails takes the ledger with it. */
int ledger_copy_announce(const char *path, const char *process, const char *ledger)
{
    char aside[PATH_MAX + 8], stub[2 * PATH_MAX];
    size_t bytes = (size_t)snprintf(stub, sizeof stub, LEDGER_STUB "%s %s\n", process, ledger);
    if (bytes >= sizeof stub)
        return ENAMETOOLONG;
    if (filesystems_exceed_file_limit(bytes))
        return EFBIG;
    int file = create_aside(path, aside);
    return file < 0
               ? errno
               : publish(aside, path, file, filesystems_write_at(file, 0, stub, bytes), &last_copy);
}

bool ledger_copy_is_at(const char *path)
{
    return is_at(path, &last_copy);
}

/* A copy that was being written when the folder was renamed is still there under the name aside. */
void ledger_copy_remove(const char *path)
{
    char aside[PATH_MAX + 8];
    snprintf(aside, sizeof aside, "%s.tmp", path);
    unlink(aside);
    if (is_at(path, &last_copy))
        unlink(path);
}
