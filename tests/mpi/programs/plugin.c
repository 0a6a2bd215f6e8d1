/* A library that uses MPI, to be loaded by a program that does not (programs/two_libraries.c).
 * Compiled once for each MPI. */
#include <stddef.h>

#include <mpi.h>

__attribute__((visibility("default"))) int plugin_run(int reductions)
{
    int initialized, one = 1, sum = 0, size;
    MPI_Initialized(&initialized);
    if (!initialized)
        MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < reductions; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Request request;
    MPI_Status status;
    int received = 0;
    MPI_Irecv(&received, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &request);
    MPI_Send(&one, 1, MPI_INT, 0, 3, MPI_COMM_SELF);
    MPI_Wait(&request, &status);
    if (received != 1 || status.MPI_TAG != 3)
        return -1;
    return sum == size ? size : -1;
}

__attribute__((visibility("default"))) int plugin_end(void)
{
    int finalized;
    MPI_Finalized(&finalized);
    return finalized ? 1 : MPI_Finalize();
}
