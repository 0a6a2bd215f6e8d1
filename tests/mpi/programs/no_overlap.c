/* no_overlap BYTES: rank 0 sends rank 1 messages of this size and waits for each at once: 20 by
 * Isend, 20 by a persistent request. */
#include <mpi.h>

#include "check.h"

enum { ROUNDS = 20 };

static void send_at_once(char *buffer, int bytes)
{
    MPI_Request request;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Isend(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void send_persistent(char *buffer, int bytes)
{
    MPI_Request request;
    MPI_Send_init(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Start(&request);
        MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(argc == 2);
    int bytes = atoi(argv[1]);
    char *buffer = calloc(1, (size_t)bytes);
    CHECK(buffer);
    if (rank == 0) {
        send_at_once(buffer, bytes);
        send_persistent(buffer, bytes);
    }
    for (int message = 0; rank == 1 && message < 2 * ROUNDS; message++)
        MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free(buffer);
    MPI_Finalize();
    return 0;
}
