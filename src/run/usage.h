/* Usage of the host by this process so far, and the cores on which it may run. */
#ifndef COMMPROF_USAGE_H
#define COMMPROF_USAGE_H

#include "ledger/ledger_format.h"

/* Overwrites `usage`, a part of the ledger's header. Takes no lock and allocates nothing: it is
 * also called on the way out of MPI_Abort. */
void usage_read(struct ledger_usage *usage, int64_t start_ns);

#endif
