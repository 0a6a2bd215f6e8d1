/* From a ledger to a rank's SQLite database (schema.sql). Knows nothing of MPI. */
#ifndef COMMPROF_STORE_H
#define COMMPROF_STORE_H

#include "ledger/ledger_format.h"

#include <stdbool.h>
#include <stddef.h>

/* Write the ledger's contents to `path`, complete or not at all: it is written as <path>.tmp and renamed once it is on the disk.
 * Returns true, or false with a reason in `why`. libsqlite3 is the copy that the process has loaded, else the system's. The time
 * since began_ns (clock_monotonic_ns) is added to what finalizing has cost, up to the last row written. */
bool store_write(const struct ledger_header *ledger, const char *path, int64_t began_ns, char *why, size_t why_bytes);

#endif
