/* The collective programs are written once and built in four forms: blocking or nonblocking, plain or large-count.
 * COLLECTIVE(Bcast, bcast, ...) is MPI_Bcast(...), or MPI_Ibcast(..., &request) and a wait. */
#ifndef COLLECTIVE_FORMS_H
#define COLLECTIVE_FORMS_H

#include "large_counts.h"

#ifndef NONBLOCKING
#define COLLECTIVE(name, after_i, ...) MPI_##name(__VA_ARGS__)
#else
static MPI_Request pending;
#define COLLECTIVE(name, after_i, ...) (MPI_I##after_i(__VA_ARGS__, &pending), MPI_Wait(&pending, MPI_STATUS_IGNORE))
#endif

#endif
