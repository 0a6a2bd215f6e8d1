/* Large-count functions on top of libraries that have none (Open MPI before 6, MPICH before 4).
 *
 * Because we export MPI_Bcast_c and its like, programs that test for them find them under every library. Where the library has
 * no such function, the int form is called when all counts fit, and MPI_ERR_COUNT is returned otherwise. */
#ifndef COMMPROF_FALLBACK_H
#define COMMPROF_FALLBACK_H

#include "mpi/mpi_abi.h"

/* What stands in for a function that the library lacks; NULL if nothing can. */
void *fallback_for(unsigned function);

/* Arrays of counts that were converted for a nonblocking call must live until it completes: `request` has completed. */
extern unsigned fallback_kept;
void fallback_free(mpi_handle request);

static inline void fallback_release(mpi_handle request)
{
    if (__builtin_expect(__atomic_load_n(&fallback_kept, __ATOMIC_RELAXED) != 0, 0))
        fallback_free(request);
}

#endif
