/* Another, minimal profiler: a library to preload that counts MPI_Allreduce and MPI_Isend. */
#include <stdio.h>

#include <mpi.h>

static int allreduces, isends;

int MPI_Allreduce(const void *sent, void *received, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    allreduces++;
    return PMPI_Allreduce(sent, received, count, type, op, comm);
}

int MPI_Isend(const void *sent, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    isends++;
    return PMPI_Isend(sent, count, type, dest, tag, comm, request);
}

int MPI_Finalize(void)
{
    printf("other tool: %d MPI_Allreduce, %d MPI_Isend\n", allreduces, isends);
    return PMPI_Finalize();
}
