/* HAS_MPI_4: whether the library has the functions of MPI-4.0, except large counts. Open MPI 5 has
 * them but reports version 3.1. */
#ifndef MPI_4_H
#define MPI_4_H

#include <mpi.h>

#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define HAS_MPI_4 1
#else
#define HAS_MPI_4 0
#endif

#endif
