/* The whole limit is mapped at once, beyond the end of the file; pages become usable as the file
 * grows. So nothing ever moves, and pointers into the ledger stay valid. Disk space is reserved in
 * steps (filesystems.h), so that a full disk is detected here, where the tables can fold instead,
 * and does not raise SIGBUS in the middle of a call.
 *
 *     mapped   |header|chunk|chunk|chunk| . . . . . . . . . . . . . . |   limit_bytes
 *     file     |header|chunk|chunk|chunk|                                
 * file_bytes */
#include "ledger.h"

#include "base/filesystems.h"
#include "base/mapped_file.h"
#include "base/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct ledger the_ledger;

static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t appending = PTHREAD_MUTEX_INITIALIZER;

enum {
    GROWTH_BYTES = 4 * LEDGER_CHUNK_BYTES,
    LEAST_BYTES = LEDGER_HEADER_BYTES + 8 * LEDGER_CHUNK_BYTES
};

static int grow_file(int file, size_t bytes)
{
    int error = filesystems_reserve(file, the_ledger.file_bytes, bytes);
    if (!error)
        the_ledger.file_bytes = bytes;
    return error;
}

static void write_header(struct ledger_header *header)
{
    header->version = LEDGER_VERSION;
    header->header_bytes = LEDGER_HEADER_BYTES;
    header->chunk_bytes = LEDGER_CHUNK_BYTES;
    header->chunk_header_bytes = LEDGER_CHUNK_HEADER_BYTES;
    header->cell_bytes = sizeof(struct ledger_cell);
    header->histogram_buckets = HISTOGRAM_BUCKETS;
    header->world_rank = -1;
    header->epoch = 1;
    header->thread_level = -1;
    header->pid = getpid();
    memcpy(header->magic, LEDGER_MAGIC, sizeof header->magic);
}

static size_t whole_chunks(size_t bytes)
{
    if (bytes < LEAST_BYTES)
        return LEAST_BYTES;
    size_t chunks = (bytes - LEDGER_HEADER_BYTES) / LEDGER_CHUNK_BYTES;
    return LEDGER_HEADER_BYTES +
           (chunks < LEDGER_MOST_CHUNKS ? chunks : LEDGER_MOST_CHUNKS) * LEDGER_CHUNK_BYTES;
}

/* Map `*limit` bytes, or as many as the address space allows (RLIMIT_AS). */
static void *map(int file, size_t *limit)
{
    void *memory;
    while ((memory = mmap(NULL, *limit, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file,
                          0)) == MAP_FAILED &&
           errno == ENOMEM && *limit > LEAST_BYTES)
        *limit = whole_chunks(*limit / 2);
    return memory;
}

int ledger_open(const char *path, size_t limit_bytes)
{
    size_t limit = whole_chunks(limit_bytes);
    if (strlen(path) >= sizeof the_ledger.path)
        return ENAMETOOLONG;

    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, filesystems_file_mode());
    if (file < 0)
        return errno;
    flock(file, LOCK_EX | LOCK_NB); /* held while the file is mapped: the mapping keeps the open
                                       file description alive */
    struct stat created;
    void *memory = MAP_FAILED;
    the_ledger.file_bytes = 0;
    int error = grow_file(file, LEDGER_HEADER_BYTES + GROWTH_BYTES);
    if (!error && fstat(file, &created) != 0)
        error = errno;
    if (!error)
        memory = map(file, &limit);
    if (!error && memory == MAP_FAILED)
        error = errno;
    close(file);
    if (error) {
        unlink(path);
        return error;
    }
    the_ledger.limit_bytes = limit;
    the_ledger.device = created.st_dev;
    the_ledger.inode = created.st_ino;
    memcpy(the_ledger.path, path, strlen(path) + 1);
    write_header(memory);
    the_ledger.header = memory;
    return 0;
}

static bool is_ours(const struct stat *there)
{
    return there->st_ino == the_ledger.inode && there->st_dev == the_ledger.device;
}

/* 0 or an errno. */
static int look_at(const char *path)
{
    struct stat there;
    return stat(path, &there) != 0 ? errno : is_ours(&there) ? 0 : ENOENT;
}

/* Called with `growing` held. `path`: where the file is, or was last. */
static enum ledger_place find(const char **path)
{
    static struct mapped_file file;
    *path = the_ledger.path;
    if (look_at(the_ledger.path) == 0)
        return LEDGER_THERE;
    if (!mapped_file_find(the_ledger.header, &file))
        return LEDGER_UNKNOWN;
    if (file.is_removed)
        return LEDGER_REMOVED;
    int error = look_at(file.path);
    bool is_known =
        error == 0 || error == EACCES ||
        strcmp(the_ledger.path, file.path) == 0; /* else its file system was unmounted */
    *path = is_known ? file.path : the_ledger.path;
    return error == 0 ? LEDGER_THERE : is_known ? LEDGER_HIDDEN : LEDGER_UNKNOWN;
}

enum ledger_place ledger_find(char path[PATH_MAX])
{
    const char *found;
    struct quiet before = quiet_lock(&growing);
    enum ledger_place place = find(&found);
    snprintf(path, PATH_MAX, "%s", found);
    quiet_unlock(&growing, &before);
    return place;
}

void ledger_renamed(const char *path)
{
    struct quiet before = quiet_lock(&growing);
    snprintf(the_ledger.path, sizeof the_ledger.path, "%s", path);
    quiet_unlock(&growing, &before);
}

bool ledger_describe(char *words, size_t bytes)
{
    const char *path;
    struct quiet before = quiet_lock(&growing);
    enum ledger_place place = find(&path);
    snprintf(words, bytes, "the ledger %s %s", path,
             place == LEDGER_THERE    ? "stays and can be read as well"
             : place == LEDGER_HIDDEN ? "stays and can be read as well, though not by this process"
             : place == LEDGER_REMOVED
                 ? "was removed, too"
                 : "cannot be seen from this process; it can be read as well if it is still there");
    quiet_unlock(&growing, &before);
    return place != LEDGER_REMOVED;
}

void ledger_remove(void)
{
    if (look_at(the_ledger.path) == 0)
        unlink(the_ledger.path);
}

static int open_ours(const char *path)
{
    struct stat there;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || (fstat(file, &there) == 0 && is_ours(&there)))
        return file;
    close(file);
    errno = ENOENT;
    return -1;
}

/* The file is open only while it grows, so the job hardly ever sees an extra descriptor. Called in
 * a quiet part: on file systems in memory a signal made the reservation fail (EINTR) for a long
 * time. */
static int grow_to(size_t bytes)
{
    const char *renamed;
    int file = open_ours(the_ledger.path);
    if (file < 0 && errno == ENOENT && find(&renamed) == LEDGER_THERE)
        file = open_ours(renamed);
    if (file < 0)
        return errno;
    int error = grow_file(file, bytes);
    close(file);
    return error;
}

/* Called with `growing` held. The buffer is static because a thread of the job may have a stack of
 * 16 kB. */
static void say_that_it_cannot_grow(int error)
{
    static char line[PATH_MAX + 256];
    snprintf(line, sizeof line, "cannot grow %s beyond %zu kB: %s; the rarest message sizes fold",
             the_ledger.path, the_ledger.file_bytes >> 10, strerror(error));
    if (the_ledger.complain)
        the_ledger.complain(line);
    the_ledger.complain = NULL; /* once */
}

size_t ledger_spare_bytes(void)
{
    return the_ledger.limit_bytes - LEAST_BYTES;
}

static bool room_for(uint32_t chunk_count)
{
    size_t needed = LEDGER_HEADER_BYTES + (size_t)chunk_count * LEDGER_CHUNK_BYTES;
    if (needed > the_ledger.limit_bytes)
        return false;
    if (needed <= the_ledger.file_bytes)
        return true;
    size_t step = the_ledger.file_bytes + GROWTH_BYTES;
    int error = grow_to(step < the_ledger.limit_bytes ? step : the_ledger.limit_bytes);
    if (error)
        say_that_it_cannot_grow(error);
    return error == 0;
}

struct ledger_chunk *ledger_chunk(enum ledger_kind kind, uint32_t entry_bytes, uint32_t thread)
{
    struct ledger_header *header = the_ledger.header;
    struct ledger_chunk *chunk = NULL;
    struct quiet before = quiet_lock(&growing);
    if (room_for(header->chunk_count + 1)) {
        chunk = ledger_chunk_at(header, header->chunk_count);
        chunk->kind = kind;
        chunk->entry_bytes = entry_bytes;
        chunk->thread = thread;
        __atomic_store_n(&header->chunk_count, header->chunk_count + 1, __ATOMIC_RELEASE);
    }
    quiet_unlock(&growing, &before);
    return chunk;
}

/* The chunk to which entries of this kind are appended. */
static struct ledger_chunk *last_chunk(enum ledger_kind kind)
{
    struct ledger_header *header = the_ledger.header;
    for (uint32_t i = __atomic_load_n(&header->chunk_count, __ATOMIC_ACQUIRE); i-- > 0;)
        if (ledger_chunk_at(header, i)->kind == kind)
            return ledger_chunk_at(header, i);
    return NULL;
}

void *ledger_append(enum ledger_kind kind, const void *entry, uint32_t entry_bytes)
{
    void *place = NULL;
    struct quiet before = quiet_lock(&appending);
    struct ledger_chunk *chunk = last_chunk(kind);
    if (!chunk || chunk->used == ledger_chunk_capacity(entry_bytes))
        chunk = ledger_chunk(kind, entry_bytes, 0);
    if (chunk) {
        place = ledger_entry(chunk, chunk->used);
        memcpy(place, entry, entry_bytes);
        __atomic_store_n(&chunk->used, chunk->used + 1, __ATOMIC_RELEASE);
    }
    quiet_unlock(&appending, &before);
    return place;
}

static size_t padded(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

void ledger_fact(const char *key, const char *value)
{
    enum { CAPACITY = LEDGER_CHUNK_BYTES - LEDGER_CHUNK_HEADER_BYTES };
    size_t key_bytes = strnlen(key, 256);
    size_t value_bytes = strnlen(value, CAPACITY - sizeof(struct ledger_fact) - 256 - 8);
    size_t bytes = padded(sizeof(struct ledger_fact) + key_bytes + value_bytes);

    struct quiet before = quiet_lock(&appending);
    struct ledger_chunk *chunk = last_chunk(LEDGER_FACTS);
    if (!chunk || chunk->used + bytes > CAPACITY)
        chunk = ledger_chunk(LEDGER_FACTS, 1, 0);
    if (chunk) {
        char *place = ledger_entry(chunk, chunk->used);
        struct ledger_fact fact = {(uint32_t)key_bytes, (uint32_t)value_bytes};
        memcpy(place, &fact, sizeof fact);
        memcpy(place + sizeof fact, key, key_bytes);
        memcpy(place + sizeof fact + key_bytes, value, value_bytes);
        __atomic_store_n(&chunk->used, chunk->used + (uint32_t)bytes, __ATOMIC_RELEASE);
    }
    quiet_unlock(&appending, &before);
}

struct ledger_look ledger_look(void)
{
    const struct ledger_header *header = the_ledger.header;
    struct ledger_look look;
    look.epoch = __atomic_load_n(&header->epoch, __ATOMIC_ACQUIRE);
    look.window_mask = __atomic_load_n(&header->window_mask, __ATOMIC_ACQUIRE);
    look.step_mask = __atomic_load_n(&header->step_mask, __ATOMIC_ACQUIRE);
    look.device_mask = __atomic_load_n(&header->device_mask, __ATOMIC_ACQUIRE);
    look.record_last = __atomic_load_n(&header->record_last, __ATOMIC_ACQUIRE);
    look.folds_ended = __atomic_load_n(&header->folds_ended, __ATOMIC_ACQUIRE);
    return look;
}

bool ledger_moved_since(struct ledger_look look)
{
    const struct ledger_header *header = the_ledger.header;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&header->folds_begun, __ATOMIC_RELAXED) != look.folds_ended ||
           __atomic_load_n(&header->epoch, __ATOMIC_RELAXED) != look.epoch ||
           __atomic_load_n(&header->window_mask, __ATOMIC_RELAXED) != look.window_mask ||
           __atomic_load_n(&header->step_mask, __ATOMIC_RELAXED) != look.step_mask ||
           __atomic_load_n(&header->device_mask, __ATOMIC_RELAXED) != look.device_mask ||
           __atomic_load_n(&header->record_last, __ATOMIC_RELAXED) != look.record_last;
}

/* A write that changes nothing: other threads may be writing. */
static void touch(void *from, size_t bytes)
{
    enum { PAGE_BYTES = 4096 };
    for (size_t at = 0; at < bytes; at += PAGE_BYTES)
        __atomic_fetch_or((uint8_t *)from + at, 0, __ATOMIC_RELAXED);
}

void ledger_touch(void)
{
    struct ledger_header *header = the_ledger.header;
    uint32_t count = __atomic_load_n(&header->chunk_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        struct ledger_chunk *chunk = ledger_chunk_at(header, i);
        if (chunk->kind == LEDGER_CELLS || chunk->kind == LEDGER_SAMPLES)
            touch(chunk, LEDGER_CHUNK_BYTES);
    }
    struct quiet before = quiet_lock(&growing);
    if (LEDGER_HEADER_BYTES + ((size_t)header->chunk_count + 1) * LEDGER_CHUNK_BYTES <=
        the_ledger.file_bytes)
        touch(ledger_chunk_at(header, header->chunk_count), 1);
    quiet_unlock(&growing, &before);
}

void ledger_count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}
