/* opens_mpi LIBRARY: is not linked with MPI; opens a library in this MODE and looks its functions
 * up, as foreign-function interfaces do. Per rank it makes 7 Allreduces by the MPI_ name and 2 by
 * the PMPI_ name, 3 Sends and 3 Recvs of 40 bytes, and 1 Barrier. It prints what it found. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

#define FIND(NAME) __typeof__(&NAME) real_##NAME = (__typeof__(&NAME))find(#NAME)

static void *find(const char *name)
{
    dlerror();
    void *function = dlsym(library, name);
    const char *error = dlerror(); /* as POSIX recommends: dlerror decides */
    if (error) {
        fprintf(stderr, "no %s: %s\n", name, error);
        exit(1);
    }
    return function;
}

#ifdef OPEN_MPI
#define HANDLE(NAME, SYMBOL) find(SYMBOL)
#else
#define HANDLE(NAME, SYMBOL) NAME
#endif

int main(int count, char **arguments)
{
    library = dlopen(arguments[count - 1], RTLD_NOW | MODE);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    FIND(MPI_Init);
    FIND(MPI_Finalize);
    FIND(MPI_Comm_rank);
    FIND(MPI_Comm_size);
    FIND(MPI_Allreduce);
    FIND(PMPI_Allreduce);
    FIND(MPI_Send);
    FIND(MPI_Recv);
    FIND(MPI_Barrier);
    MPI_Comm world = HANDLE(MPI_COMM_WORLD, "ompi_mpi_comm_world");
    MPI_Datatype type = HANDLE(MPI_INT, "ompi_mpi_int");
    MPI_Op sum = HANDLE(MPI_SUM, "ompi_mpi_op_sum");
    int rank, size, of_all = 0, buffer[10] = {0};

    real_MPI_Init(&count, &arguments);
    real_MPI_Comm_rank(world, &rank);
    real_MPI_Comm_size(world, &size);
    for (int i = 0; i < 9; i++) {
        int mine = rank + i, all = 0;
        (i < 7 ? real_MPI_Allreduce : real_PMPI_Allreduce)(&mine, &all, 1, type, sum, world);
        of_all += all;
    }
    for (int i = 0; i < 3; i++) {
        int peer = rank ^ 1;
        if (rank % 2 == 0)
            real_MPI_Send(buffer, 10, type, peer, i, world);
        real_MPI_Recv(buffer, 10, type, peer, i, world, MPI_STATUS_IGNORE);
        if (rank % 2 == 1)
            real_MPI_Send(buffer, 10, type, peer, i, world);
    }
    real_MPI_Barrier(world);
    const char *missing = dlsym(library, "MPI_No_such_function") ? "found"
                          : dlerror()                            ? "not found, and said so"
                                                                 : "not found";
    const char *large = dlsym(library, "MPI_Allreduce_c") ? "found"
                        : dlerror()                       ? "not found, and said so"
                                                          : "not found";
    printf("rank %d of %d: %d; MPI_No_such_function %s, MPI_Allreduce_c %s\n", rank, size, of_all,
           missing, large);
    return real_MPI_Finalize();
}
