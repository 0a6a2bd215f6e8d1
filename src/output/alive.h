/* Whether a process that writes to a run folder still runs, asked by another process, perhaps on another node.
 *
 * "Gone" is said only where it is known. A ledger on a local file system is locked by whoever has it mapped (ledger.h), so its lock
 * tells. Elsewhere a process is known by its node, its process id and its start time; only its own node can look for it. */
#ifndef COMMPROF_ALIVE_H
#define COMMPROF_ALIVE_H

#include <stdbool.h>
#include <stddef.h>

enum alive { ALIVE_NO, ALIVE_YES, ALIVE_UNKNOWN };

/* A process as text: "<host> <boot id> <pid namespace> <pid> <start>". */
enum { ALIVE_NAME_BYTES = 512 };
void alive_name_self(char name[ALIVE_NAME_BYTES]);

/* `is_local`: the name was found on a file system that only this node writes to, so one of another boot is gone. */
enum alive alive_process(const char *name, bool is_local);

/* The writer of a ledger, or of the copy of one. A file that is not there, or no ledger, has none. */
enum alive alive_ledger(const char *path);

#endif
