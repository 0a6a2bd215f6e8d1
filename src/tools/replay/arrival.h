/* When the ranks of a communicator enter its blocking collectives: as the calls before let them, or
 * all at once. */
#ifndef COMMPROF_ARRIVAL_H
#define COMMPROF_ARRIVAL_H

#include "mpi/mpi_abi.h"

enum arrival { ARRIVAL_RECORDED, ARRIVAL_TOGETHER, ARRIVAL_BARRIER };

/* CLOCK_MONOTONIC of this host. */
int64_t arrival_now_ns(void);

/* The same time on the clock of rank 0; after arrival_begin. */
int64_t arrival_common_ns(void);

/* On all ranks, uncounted, before each pass: clocks of hosts drift. `compares`: also if no arrival
 * needs it. */
void arrival_begin(enum arrival arrival, bool compares, int rank, int ranks);

/* Before a collective on `comm`; not counted. Returns when this rank is to enter it. */
void arrival_wait(enum arrival arrival, mpi_handle comm, bool is_counted);

#endif
