/* Large-count functions on top of libraries that have none (Open MPI before 6, MPICH before 4).
 *
 * Because we export MPI_Bcast_c and its like, programs that test for them find them under every library. Where the library has
 * no such function, the int form is called when all counts fit, and MPI_ERR_COUNT is returned otherwise. */
#ifndef COMMPROF_FALLBACK_H
#define COMMPROF_FALLBACK_H

/* The replacement for a function that the library lacks; NULL if there is none. */
void *fallback_for(unsigned function);

#endif
