/* The ledger: the memory-mapped file with a process's measurements (ledger_format.h).
 *
 * Each process has one ledger, `the_ledger`, opened once; it grows by chunks up to its limit. These
 * functions are called rarely (a few times per communicator, thread or kilobyte of new cells); the
 * hot path writes to chunks through cells.h and peers.h. */
#ifndef COMMPROF_LEDGER_H
#define COMMPROF_LEDGER_H

#include "ledger_format.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ledger {
    struct ledger_header *header; /* NULL: not open */
    size_t limit_bytes;           /* mapped address space, and the file's maximum size */
    size_t file_bytes;            /* the file's current size */
    dev_t device;                 /* the file's identity: another file may take its path */
    ino_t inode;
    char path[PATH_MAX];
    void (*complain)(const char *line); /* called once with a message if the file cannot grow to its
                                           limit; may be NULL */
};
extern struct ledger the_ledger;

/* Create the file `path` and map it. `path` must not exist, and must be absolute, since the job may
 * change its working directory. The file may grow to limit_bytes, or to the available address
 * space. Returns 0 or an errno. No file descriptor stays open. The file stays locked (flock) while
 * this process or a forked child has it mapped, so other processes can check whether it is still in
 * use. */
int ledger_open(const char *path, size_t limit_bytes);

/* Bytes of the ledger beyond those that are there for counting, whatever its limit. */
size_t ledger_spare_bytes(void);

/* Location of the file now, by the kernel's record of the mapping: it follows renamed folders.
 * `path` is set to the newest known path. */
enum ledger_place {
    LEDGER_THERE,
    LEDGER_HIDDEN,  /* it exists, but this process cannot see it (setuid, chroot) */
    LEDGER_REMOVED, /* nothing of it remains when this process ends */
    LEDGER_UNKNOWN, /* neither seen nor removed, as far as can be known (an unmounted file system,
                       no /proc) */
};
enum ledger_place ledger_find(char path[PATH_MAX]);

/* The file belongs to this path from now on. */
void ledger_renamed(const char *path);

/* For a message about something else that cannot be written: "the ledger ... stays and can be read
 * as well". False: it was removed. */
bool ledger_describe(char *words, size_t bytes);

/* Delete the file if it is still at its path (it may have been moved). The memory stays mapped: a
 * thread of the job may still write the end of its last call. */
void ledger_remove(void);

/* For reading the ledger while threads count: call ledger_look, read, then call ledger_moved_since.
 * If it returns true, a fold or reset has moved counts, a mask of samples has got a bit or the
 * record has ended early (ledger_format.h), and the data must be read again, at most LEDGER_LOOKS
 * times. */
struct ledger_look {
    uint64_t folds_ended, window_mask, step_mask, device_mask, record_last;
    uint32_t epoch;
};
enum { LEDGER_LOOKS = 16 };
struct ledger_look ledger_look(void);
bool ledger_moved_since(struct ledger_look look);

/* Allocate a chunk; NULL if the limit is reached or the disk is full. Thread-safe. */
struct ledger_chunk *ledger_chunk(enum ledger_kind kind, uint32_t entry_bytes, uint32_t thread);

/* How many entries of entry_bytes a chunk holds. */
static inline uint32_t ledger_chunk_capacity(uint32_t entry_bytes)
{
    return (LEDGER_CHUNK_BYTES - LEDGER_CHUNK_HEADER_BYTES) / entry_bytes;
}

static inline void *ledger_entry(struct ledger_chunk *chunk, uint32_t index)
{
    return (char *)chunk + LEDGER_CHUNK_HEADER_BYTES + (size_t)index * chunk->entry_bytes;
}

static inline struct ledger_chunk *ledger_chunk_at(const struct ledger_header *header,
                                                   uint32_t index)
{
    return (struct ledger_chunk *)((char *)header + LEDGER_HEADER_BYTES +
                                   (size_t)index * LEDGER_CHUNK_BYTES);
}

/* Append one entry to the last chunk of its kind, for kinds without an owning thread; NULL if full.
 * Readers see the entry at once. */
void *ledger_append(enum ledger_kind kind, const void *entry, uint32_t entry_bytes);

/* Append a line of provenance. Values longer than a chunk are truncated. */
void ledger_fact(const char *key, const char *value);

/* Prefault the pages that a process's first calls write to: the allocated cells and samples, and
 * the start of the next chunk if the file already has it. */
void ledger_touch(void);

/* Increment one of the header's counters of unrecorded events. Thread-safe. */
void ledger_count(uint64_t *counter);

#endif
