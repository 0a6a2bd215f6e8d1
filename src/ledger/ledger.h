/* The ledger: the file in which a process keeps what it has measured (ledger_format.h), mapped into memory.
 *
 * There is one ledger a process, `the_ledger`. It is opened once and grows by chunks up to its limit. The
 * functions here are the slow half (a few calls per communicator, thread or kilobyte of new cells); what the hot path does
 * with the chunks is in cells.h and peers.h. */
#ifndef COMMPROF_LEDGER_H
#define COMMPROF_LEDGER_H

#include "ledger_format.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ledger {
    struct ledger_header *header; /* NULL: not open */
    size_t limit_bytes;           /* how much address space is mapped, and how far the file may grow */
    size_t file_bytes;            /* how far it has grown */
    dev_t device;                 /* the file's identity: its path may be taken by another one */
    ino_t inode;
    char path[PATH_MAX];
    void (*complain)(const char *line); /* gets a line if it cannot grow as far; may be NULL */
};
extern struct ledger the_ledger;

/* Create the file `path` (absolute, for the job may change its directory; it must not exist) and map it; it may grow up to
 * limit_bytes, or what of them there is address space for. Returns 0 or an errno. No file descriptor stays open. The file is locked
 * (flock) as long as this process or a forked child has it mapped, so that others can tell whether it is still written to. */
int ledger_open(const char *path, size_t limit_bytes);

/* Whether the file is still at its path. */
bool ledger_is_there(void);

/* Delete the file, if it is still the one at its path (somebody may have moved it aside). The memory stays mapped: a thread of
 * the job may be at the end of its last call. */
void ledger_remove(void);

/* For whoever reads the ledger while threads count: what was read after a look is right unless a fold or a reset has moved counts since,
 * or a level of samples has grown (ledger_format.h). Then it is to be read again, LEDGER_LOOKS times at most. */
struct ledger_look {
    uint64_t folds_ended;
    uint32_t epoch, window_level, step_level, device_level;
};
enum { LEDGER_LOOKS = 16 };
struct ledger_look ledger_look(void);
bool ledger_moved_since(struct ledger_look look);

/* A fresh chunk, or NULL when the limit or the disk is full. Threads may call it at the same time. */
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

static inline struct ledger_chunk *ledger_chunk_at(const struct ledger_header *header, uint32_t index)
{
    return (struct ledger_chunk *)((char *)header + LEDGER_HEADER_BYTES + (size_t)index * LEDGER_CHUNK_BYTES);
}

/* Append one entry to the last chunk of its kind that has no owning thread; NULL when full. The entry counts at once. */
void *ledger_append(enum ledger_kind kind, const void *entry, uint32_t entry_bytes);

/* Append a line of provenance. Values longer than a chunk are cut. */
void ledger_fact(const char *key, const char *value);

/* Touches what the first calls of a process write to, so that they meet no page fault: cells and samples that have been handed out, and the
 * beginning of the next chunk, if the file has it. */
void ledger_touch(void);

/* Add to one of the header's counters of what was not recorded. Threads may call it at the same time. */
void ledger_count(uint64_t *counter);

#endif
