/* How NCCL executed its collectives: algorithm, protocol and channels per call, communicator and
 * size (table nccl_algorithm). */
#ifndef COMMPROF_NCCL_ALGORITHMS_H
#define COMMPROF_NCCL_ALGORITHMS_H

#include "ledger/ledger_format.h"

/* Counts a collective that NCCL has launched; the fields of `launched` are the key. Thread-safe. */
void nccl_algorithms_count(const struct ledger_algorithm *launched);

#endif
