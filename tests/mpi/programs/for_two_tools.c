/* Seven Allreduces and five Isends, which complete at the end. */
#include <mpi.h>

#include "check.h"

int main(int argc, char **argv)
{
    int one = 1, sum, number;
    MPI_Request requests[5];
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 7; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 5; i++)
        MPI_Isend(&one, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[i]);
    for (int i = 0; i < 5; i++)
        MPI_Recv(&number, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    MPI_Finalize();
    return 0;
}
