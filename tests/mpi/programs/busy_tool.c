/* Another profiler that itself calls MPI often: a library that is preloaded, or linked into the
 * program. Its MPI_Allreduce first synchronizes, once by the MPI_ name and once by the PMPI_ name.
 * At the end it sums the counts of all ranks. */
#include <stdio.h>

#include <mpi.h>

static int allreduces, waits;

int MPI_Allreduce(const void *sent, void *received, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    int size;
    allreduces++;
    PMPI_Comm_size(comm, &size);
    PMPI_Barrier(comm);
    MPI_Barrier(comm);
    return PMPI_Allreduce(sent, received, count, type, op, comm);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    int flag = 0;
    waits++;
    while (!flag)
        PMPI_Test(request, &flag, status);
    return MPI_SUCCESS;
}

int MPI_Finalize(void)
{
    int rank, of_all = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Reduce(&allreduces, &of_all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("busy tool: %d MPI_Allreduce on all ranks, %d MPI_Wait here\n", of_all, waits);
    return PMPI_Finalize();
}
