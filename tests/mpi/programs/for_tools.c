/* Seven Allreduces, and five messages to itself: a receive is waited for, the sends at the end. */
#include <mpi.h>

#include "check.h"

int main(int argc, char **argv)
{
    int one = 1, sum, number;
    MPI_Request received, sent[5];
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 7; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 5; i++) {
        MPI_Irecv(&number, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &received);
        MPI_Isend(&one, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &sent[i]);
        MPI_Wait(&received, MPI_STATUS_IGNORE);
    }
    MPI_Waitall(5, sent, MPI_STATUSES_IGNORE);
    MPI_Finalize();
    return 0;
}
