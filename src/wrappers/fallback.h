/* Large-count functions for libraries that have none (Open MPI before 6, MPICH before 4).
 *
 * The profiler exports MPI_Bcast_c and the like, so programs that check for them find them under
 * every library. If the library lacks the function, the int form is called if all counts fit into
 * int; otherwise MPI_ERR_COUNT is returned. */
#ifndef COMMPROF_FALLBACK_H
#define COMMPROF_FALLBACK_H

/* The replacement for a function that the library lacks; NULL if there is none. */
void *fallback_for(unsigned function);

#endif
