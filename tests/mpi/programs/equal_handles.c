/* Fifty small sends that are complete before they return, and therefore share a handle, are polled
 * a thousand times together with an incomplete receive. The blocked time of no send may exceed its
 * duration, and it must not be counted fifty times. */
#include <mpi.h>

#include "check.h"

enum { SENDS = 50, TESTS = 1000 };

static int sent[2], received[2];

static void test_in_vain_and_wait(void)
{
    MPI_Request requests[SENDS + 1];
    int flag;
    MPI_Isend(sent, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[0]);
    for (int i = 1; i < SENDS; i++)
        MPI_Isend(sent, 2, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[i]);
    MPI_Irecv(received, 2, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[SENDS]);
    for (int i = 0; i < TESTS; i++) {
        MPI_Testall(SENDS + 1, requests, &flag, MPI_STATUSES_IGNORE);
        CHECK(!flag);
    }
    MPI_Send(sent, 0, MPI_INT, 1, 2, MPI_COMM_WORLD);
    MPI_Waitall(SENDS + 1, requests, MPI_STATUSES_IGNORE);
}

static void receive_and_answer(void)
{
    for (int i = 0; i < SENDS; i++)
        MPI_Recv(received, 2, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(received, 0, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(sent, 2, MPI_INT, 0, 1, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        test_in_vain_and_wait();
    else
        receive_and_answer();
    MPI_Finalize();
    return 0;
}
