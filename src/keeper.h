/* The keeper: the one thread of ours, for what has its time and not its call: refreshing the copy of a ledger that lies on the node
 * (COMMPROF_COPY_S), and the time window in which calls are counted (COMMPROF_BEGIN_S, COMMPROF_END_S). Where there is nothing to do
 * there is no thread. */
#ifndef COMMPROF_KEEPER_H
#define COMMPROF_KEEPER_H

#include <stdbool.h>

/* From now on copy the ledger to `copy` (absolute; NULL: there is nothing to copy), the first time at once, and keep the time window.
 * `complain` gets one line about what cannot be done. */
void keeper_begin(const char *copy, int world_rank, void (*complain)(const char *line));

/* Stop. With `last_copy` the ledger is copied once more; true if that was done. Returns within seconds also where a file system hangs. */
bool keeper_end(bool last_copy);

#endif
