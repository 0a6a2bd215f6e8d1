/* One file for the databases of a node's ranks, a tar archive (POSIX ustar): any tool lists and
 * unpacks it. The ranks append to it themselves, one after the other, and none waits for a rank
 * that does not come. */
#ifndef COMMPROF_ARCHIVE_H
#define COMMPROF_ARCHIVE_H

#include <stdbool.h>

/* Appends the file `database` as rank-<n>.db and syncs the archive, which is created if it is
 * missing. Returns 0, or an errno: EEXIST if that rank is in it, ETIMEDOUT if others hold its lock
 * for too long. */
int archive_append(const char *archive, int world_rank, int database);

/* Calls `take` for each rank in it. */
void archive_ranks(const char *archive, void (*take)(int world_rank, void *context), void *context);

/* Whether that rank is in it. */
bool archive_has(const char *archive, int world_rank);

#endif
