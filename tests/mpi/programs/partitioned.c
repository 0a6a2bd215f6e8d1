/* Rank 0 sends 4 partitions of 5 ints to rank 1 three times; rank 1 polls their arrival.
 * test_persistent.py has the expected counts. */
#include <mpi.h>

#include "check.h"

enum { PARTITIONS = 4, COUNT = 5, ROUNDS = 3 };

static int numbers[PARTITIONS * COUNT];

static void send(void)
{
    MPI_Request request;
    int last[1] = {3};
    for (int i = 0; i < PARTITIONS * COUNT; i++)
        numbers[i] = i;
    MPI_Psend_init(numbers, PARTITIONS, COUNT, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &request);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Start(&request);
        MPI_Pready(0, request);
        MPI_Pready_range(1, 2, request);
        MPI_Pready_list(1, last, request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

static void receive(void)
{
    MPI_Request request;
    MPI_Precv_init(numbers, PARTITIONS, COUNT, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &request);
    for (int round = 0; round < ROUNDS; round++) {
        int has_arrived = 0;
        MPI_Start(&request);
        while (!has_arrived)
            MPI_Parrived(request, 2, &has_arrived);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(numbers[PARTITIONS * COUNT - 1] == PARTITIONS * COUNT - 1);
    }
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        send();
    else
        receive();
    MPI_Finalize();
    return 0;
}
