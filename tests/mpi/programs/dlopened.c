/* Is not linked with MPI: opens the MPI library given as argument with RTLD_GLOBAL and calls it
 * through function pointers, as Julia does. */
#include <dlfcn.h>
#include <stdint.h>

#include "check.h"

typedef intptr_t handle;

static void *library;

static void *function(const char *name)
{
    void *found = dlsym(library, name);
    CHECK(found != NULL);
    return found;
}

int main(int argc, char **argv)
{
    int rank = -1, size = 0;
    CHECK(argc == 2);
    library = dlopen(argv[1], RTLD_LAZY | RTLD_GLOBAL);
    CHECK(library != NULL);
    int (*init)(int *, char ***) = (int (*)(int *, char ***))function("MPI_Init");
    int (*comm_rank)(handle, int *) = (int (*)(handle, int *))function("MPI_Comm_rank");
    int (*comm_size)(handle, int *) = (int (*)(handle, int *))function("MPI_Comm_size");
    int (*barrier)(handle) = (int (*)(handle))function("MPI_Barrier");
    int (*finalize)(void) = (int (*)(void))function("MPI_Finalize");

    CHECK(init(NULL, NULL) == 0);
    void *world = dlsym(library, "ompi_mpi_comm_world");
    handle comm = world ? (handle)world : 0x44000000; /* that of MPICH */
    CHECK(comm_rank(comm, &rank) == 0 && comm_size(comm, &size) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(barrier(comm) == 0);
    printf("rank %d of %d\n", rank, size);
    fflush(stdout);
    CHECK(finalize() == 0);
    return 0;
}
