/* Four persistent sends on rank 0 and four receives on rank 1 with larger buffers than needed,
 * started three times. test_persistent.py has the expected counts. */
#include "large_counts.h"

#include "check.h"

enum { GO = 100, ROOM = 100, MESSAGES = 4, ROUNDS = 3 };

static int sent[ROOM], received[MESSAGES][ROOM];

static void send_persistently(void)
{
    static char attached[4096];
    MPI_Request requests[MESSAGES], never_started;
    MPI_Buffer_attach(attached, sizeof attached);
    MPI_Send_init(sent, 10, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Ssend_init(sent, 20, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Bsend_init(sent, 30, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Rsend_init(sent, 40, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[3]);
    MPI_Send_init(sent, 70, MPI_INT, 1, 4, MPI_COMM_WORLD, &never_started);

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Recv(NULL, 0, MPI_INT, 1, GO, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE); /* all receives are started */
        for (int i = 0; i < MESSAGES; i++)
            MPI_Start(&requests[i]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Waitall(MESSAGES - 1, requests + 1, MPI_STATUSES_IGNORE);
    }
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* an inactive request completes nothing */
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MESSAGES; i++)
        MPI_Request_free(&requests[i]);
    MPI_Request_free(&never_started);

    void *detached;
    count_t detached_bytes;
    MPI_Buffer_detach(&detached, &detached_bytes);
    CHECK(detached == attached && detached_bytes == sizeof attached);
}

static void receive_persistently(void)
{
    MPI_Request requests[MESSAGES];
    MPI_Status statuses[MESSAGES];
    int arrived;
    for (int i = 0; i < MESSAGES; i++)
        MPI_Recv_init(received[i], ROOM, MPI_INT, i == 3 ? MPI_ANY_SOURCE : 0, i, MPI_COMM_WORLD,
                      &requests[i]);

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Startall(MESSAGES, requests);
        MPI_Send(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD);
        MPI_Waitall(MESSAGES, requests, round == 0 ? statuses : MPI_STATUSES_IGNORE);
    }
    MPI_Get_count(&statuses[3], MPI_INT, &arrived);
    CHECK(arrived == 40 && received[3][39] == 39);
    for (int i = 0; i < MESSAGES; i++)
        MPI_Request_free(&requests[i]);
}

static void send_to_nobody(void)
{
    MPI_Request request;
    MPI_Send_init(sent, 11, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

static void cancel_receives(void)
{
    MPI_Request once, persistent;
    MPI_Status status;
    int is_cancelled;
    MPI_Irecv(received[0], ROOM, MPI_INT, 0, 99, MPI_COMM_WORLD, &once);
    MPI_Cancel(&once);
    MPI_Wait(&once, &status);
    MPI_Test_cancelled(&status, &is_cancelled);
    CHECK(is_cancelled);

    MPI_Recv_init(received[0], 90, MPI_INT, 0, 99, MPI_COMM_WORLD, &persistent);
    MPI_Start(&persistent);
    MPI_Cancel(&persistent);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    MPI_Request_free(&persistent);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ROOM; i++)
        sent[i] = i;

    if (rank == 0)
        send_persistently();
    else
        receive_persistently();
    send_to_nobody();
    cancel_receives();
    MPI_Finalize();
    return 0;
}
