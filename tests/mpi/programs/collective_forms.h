/* The collective programs are built in six forms (FORMS in harness.py): blocking, nonblocking or
 * persistent, each plain or large-count. COLLECTIVE(Bcast, bcast, ...) is MPI_Bcast(...); or
 * MPI_Ibcast(..., &request) and a wait; or MPI_Bcast_init(..., &request), ROUNDS times start and
 * wait, and a free. */
#ifndef COLLECTIVE_FORMS_H
#define COLLECTIVE_FORMS_H

#include "large_counts.h"

static inline void wait_for(MPI_Request request)
{
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* MPICH before 4.3 fails if a persistent scatter is started a second time. */
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40300000 && !defined ROUNDS
#define ROUNDS 1
#elif !defined ROUNDS
#define ROUNDS 2
#endif

static inline void run_prepared(MPI_Request request)
{
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

#if defined NONBLOCKING
static MPI_Request pending;
#define COLLECTIVE(name, after_i, ...) (MPI_I##after_i(__VA_ARGS__, &pending), wait_for(pending))
#elif defined PERSISTENT
static MPI_Request prepared;
#define COLLECTIVE(name, after_i, ...) \
    (MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &prepared), run_prepared(prepared))
#else
#define COLLECTIVE(name, after_i, ...) MPI_##name(__VA_ARGS__)
#endif

#endif
