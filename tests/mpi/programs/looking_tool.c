/* Another profiler that finds the function behind its wrapper by dlsym: the next one (-DNEXT), or
 * through a handle of the MPI library. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include <mpi.h>

int MPI_Allreduce(const void *sent, void *received, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    static int (*real)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
#ifdef NEXT
    void *handle = RTLD_NEXT;
#else
    void *handle = dlopen(SONAME, RTLD_LAZY | RTLD_NOLOAD);
#endif
    if (!real)
        real = (int (*)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm))dlsym(
            handle, PREFIX "Allreduce");
    return real(sent, received, count, type, op, comm);
}
