/* Seven Allreduces, and five nonblocking messages to itself, completed by a wait. */
#include <mpi.h>

#include "check.h"

int main(int argc, char **argv)
{
    int one = 1, sum, number;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 7; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 5; i++) {
        MPI_Irecv(&number, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
        MPI_Send(&one, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
