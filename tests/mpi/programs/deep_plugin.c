/* A plugin that makes 20 Allreduces of 8 bytes, between MPI_Init and MPI_Finalize of its own if MPI
 * is not initialized. */
#include <stddef.h>

#include <mpi.h>

void work(void);

void work(void)
{
    int is_initialized;
    double sent = 1, received;
    MPI_Initialized(&is_initialized);
    if (!is_initialized)
        MPI_Init(NULL, NULL);
    for (int i = 0; i < 20; i++)
        MPI_Allreduce(&sent, &received, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (!is_initialized)
        MPI_Finalize();
}
