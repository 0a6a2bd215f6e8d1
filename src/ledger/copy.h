/* A copy of the ledger, for readers that cannot access the ledger itself. */
#ifndef COMMPROF_COPY_H
#define COMMPROF_COPY_H

#include <stdbool.h>

/* Write the_ledger to `path` atomically while the job keeps counting; calls counted meanwhile may
 * or may not be in the copy. Returns 0 or an errno: EAGAIN if cells were folded or reset during
 * every attempt, EEXIST if `path` is a file that is not our copy. Takes no lock and allocates no
 * memory. Call it from one thread at a time, always with the same path. */
int ledger_copy(const char *path);

/* The same for a file that stays: marked as LEDGER_SNAPSHOT, at a path where no file is. A handler
 * that has interrupted malloc may call it. */
int ledger_snapshot(const char *path);

/* Write a stub to `path`, atomically as well: it names the process (alive.h) and its ledger on this
 * node until the first copy replaces it. Call it before the ledger is created, so that a kill at
 * any time leaves a file that leads to the ledger. Returns 0 or an errno. */
int ledger_copy_announce(const char *path, const char *process, const char *ledger);

/* Whether the last copy or stub is at this path. */
bool ledger_copy_is_at(const char *path);

/* Delete the copy or the stub, if the file at `path` is ours. */
void ledger_copy_remove(const char *path);

#endif
