/* The ledger copier: a service thread for timed actions. It refreshes the copy of a ledger on the
 * node (COMMPROF_COPY_S), and begins and ends the time window in which calls are counted
 * (COMMPROF_BEGIN_S, COMMPROF_END_S). The thread is started only if one of these is needed. The GPU
 * side has its own service thread (gpu.h). */
#ifndef COMMPROF_LEDGER_COPIER_H
#define COMMPROF_LEDGER_COPIER_H

#include <stdbool.h>

/* Start: copy the ledger to `copy` (absolute; NULL: no copies), the first time at once, and apply
 * the time window. `complain` gets one message about each failure. */
void ledger_copier_begin(const char *copy, int world_rank, void (*complain)(const char *line));

/* Stop. With `last_copy` the ledger is copied once more; true if that succeeded. Returns within
 * seconds even if a file system hangs. */
bool ledger_copier_end(bool last_copy);

#endif
