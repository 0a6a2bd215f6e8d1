/* Whether a process that writes to a run folder still runs; the caller may be on another node.
 *
 * ALIVE_NO is returned only if it is certain. On a local file system the writer of a ledger holds a
 * lock on it (ledger.h). Elsewhere a process is identified by its node, process id and start time,
 * and only a process on the same node can check it. */
#ifndef COMMPROF_ALIVE_H
#define COMMPROF_ALIVE_H

#include <stdbool.h>
#include <stddef.h>

enum alive { ALIVE_NO, ALIVE_YES, ALIVE_UNKNOWN };

/* A process as text: "<host> <boot id> <pid namespace> <pid> <start>". */
enum { ALIVE_NAME_BYTES = 512 };
void alive_name_self(char name[ALIVE_NAME_BYTES]);

/* `is_local`: the name is from a file system that only this node writes to, so a process of another
 * boot has ended. */
enum alive alive_process(const char *name, bool is_local);

/* The same for the writer of a ledger, of a ledger's copy or of a stub (ledger_format.h). ALIVE_NO
 * if the file does not exist. */
enum alive alive_ledger(const char *path);

#endif
