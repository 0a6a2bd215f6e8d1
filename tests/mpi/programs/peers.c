/* Four ranks send on MPI_COMM_WORLD, on a communicator with the ranks in reverse order, on pairs,
 * to MPI_PROC_NULL, and to receives with MPI_ANY_SOURCE. test_peers.py has the expected senders and
 * receivers. */
#include <mpi.h>

#include "check.h"

enum { ROOM = 32 };

static int rank, sent[ROOM], received[4][ROOM];

static void everyone_to_rank_0(void)
{
    if (rank == 0) {
        for (int i = 0; i < 3; i++)
            MPI_Recv(received[0], ROOM, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    } else {
        MPI_Send(sent, rank, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
}

static void everyone_to_rank_0_nonblocking(void)
{
    MPI_Request requests[3];
    if (rank == 0) {
        for (int i = 0; i < 3; i++)
            MPI_Irecv(received[i], ROOM, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    } else {
        MPI_Isend(sent, 10 + rank, MPI_INT, 0, 2, MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
}

static void around_a_backward_ring(MPI_Comm backwards)
{
    int comm_rank;
    MPI_Comm_rank(backwards, &comm_rank);
    CHECK(comm_rank == 3 - rank);
    MPI_Sendrecv(sent, 5, MPI_INT, (comm_rank + 1) % 4, 3, received[0], ROOM, MPI_INT,
                 (comm_rank + 3) % 4, 3, backwards, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(sent, 6, MPI_INT, (comm_rank + 1) % 4, 4, MPI_ANY_SOURCE, 4, backwards,
                         MPI_STATUS_IGNORE);
}

static void within_pairs(MPI_Comm pair)
{
    MPI_Request request;
    MPI_Send_init(sent, 7, MPI_INT, 1, 5, pair, &request);
    int pair_rank;
    MPI_Comm_rank(pair, &pair_rank);
    for (int i = 0; i < 2; i++) {
        if (pair_rank == 0) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Message message;
            MPI_Mprobe(MPI_ANY_SOURCE, 5, pair, &message, MPI_STATUS_IGNORE);
            MPI_Mrecv(received[0], ROOM, MPI_INT, &message, MPI_STATUS_IGNORE);
        }
    }
    MPI_Request_free(&request);
}

static void to_nobody(void)
{
    MPI_Send(sent, 8, MPI_INT, MPI_PROC_NULL, 6, MPI_COMM_WORLD);
    MPI_Recv(received[0], 8, MPI_INT, MPI_PROC_NULL, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(sent, 8, MPI_INT, MPI_PROC_NULL, 6, received[0], 8, MPI_INT, MPI_PROC_NULL, 6,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void to_myself(void)
{
    MPI_Request request;
    MPI_Irecv(received[0], ROOM, MPI_INT, 0, 7, MPI_COMM_SELF, &request);
    MPI_Ssend(sent, 9, MPI_INT, 0, 7, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm backwards, pair;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);

    everyone_to_rank_0();
    everyone_to_rank_0_nonblocking();
    around_a_backward_ring(backwards);
    within_pairs(pair);
    to_nobody();
    to_myself();
    MPI_Finalize();
    return 0;
}
