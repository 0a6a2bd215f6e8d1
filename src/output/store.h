/* Writes a ledger as a rank's SQLite database (schema.sql). Does not depend on MPI. */
#ifndef COMMPROF_STORE_H
#define COMMPROF_STORE_H

#include "ledger/ledger_format.h"

#include <stdbool.h>
#include <stddef.h>

/* Writes the ledger's contents to `path`, complete or not at all: to <path>.tmp, which is renamed
 * when it is on the disk. With an `archive` (else NULL) it is appended to that one instead
 * (archive.h), and nothing has the name `path`. Returns true, or false with a reason in `why`. Uses
 * the libsqlite3 that the process has loaded, else the system's. The time since began_ns
 * (clock_monotonic_ns) is added to the cost of MPI_Finalize. */
bool store_write(const struct ledger_header *ledger, const char *path, const char *archive,
                 int64_t began_ns, char *why, size_t why_bytes);

#endif
