/* Rank 0 polls an array of two receives in vain, then waits for all of it. */
#include <mpi.h>
#include <stddef.h>

int main(int argc, char **argv)
{
    enum { POLLS = 50 };
    int rank, completed, numbers[2] = {0, 0}, indices[2];
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        for (int i = 0; i < 2; i++)
            MPI_Irecv(&numbers[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
        for (int i = 0; i < POLLS; i++)
            MPI_Testsome(2, requests, &completed, indices, MPI_STATUSES_IGNORE);
        MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2; i++)
            MPI_Send(&numbers[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
