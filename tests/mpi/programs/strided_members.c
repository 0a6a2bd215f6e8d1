/* Communicators whose members are not a contiguous range of world ranks, on five ranks. */
#include <mpi.h>

#include "check.h"

int main(int argc, char **argv)
{
    int rank;
    MPI_Comm backwards, halves;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards);
    MPI_Comm_set_name(backwards, "backwards");
    MPI_Barrier(backwards);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &halves);
    MPI_Comm_set_name(halves, rank % 2 == 0 ? "even" : "odd");
    MPI_Barrier(halves);
    MPI_Finalize();
    return 0;
}
