/* Counts how often a program's first calls ask the dynamic linker for the object of an address, by
 * its own dladdr. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static int asked;

int dladdr(const void *address, Dl_info *info)
{
    static int (*real)(const void *, Dl_info *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "dladdr");
    asked++;
    return real(address, info);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, value = 1, sum, before = asked;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int after = asked;
    if (rank == 0)
        printf("%s in MPI_Init, %d times in the first calls\n", before ? "asked" : "not asked",
               after - before);
    MPI_Finalize();
    return 0;
}
