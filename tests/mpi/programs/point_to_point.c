/* Rank 0 sends, rank 1 receives: every blocking send, receive and probe, each message with a
 * different tag. test_point_to_point.py has the expected counts. */
#include "large_counts.h"

#include "check.h"

enum { GO = 100, FIRST_TAG = 1, ROOM = 100 };

static int sent[ROOM], received[ROOM];

static void send_in_every_mode(void)
{
    static char attached[4096];
    MPI_Buffer_attach(attached, sizeof attached);

    for (int i = 0; i < 3; i++)
        MPI_Send(sent, 10, MPI_INT, 1, 1, MPI_COMM_WORLD);
    MPI_Send(sent, 0, MPI_INT, 1, 2, MPI_COMM_WORLD);
    MPI_Send(sent, 5, MPI_DOUBLE, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
    MPI_Send(sent, 6, MPI_DOUBLE, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
    MPI_Ssend(sent, 20, MPI_INT, 1, 4, MPI_COMM_WORLD);
    MPI_Ssend(sent, 20, MPI_INT, 1, 4, MPI_COMM_WORLD);
    MPI_Bsend(sent, 30, MPI_INT, 1, 5, MPI_COMM_WORLD);
    MPI_Bsend(sent, 30, MPI_INT, 1, 5, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_INT, 1, GO, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE); /* the receive for the ready send is posted */
    MPI_Rsend(sent, 40, MPI_INT, 1, 6, MPI_COMM_WORLD);

    void *detached;
    count_t detached_bytes;
    MPI_Buffer_detach(&detached, &detached_bytes);
    CHECK(detached == attached && detached_bytes == sizeof attached);
}

static void receive_in_every_mode(void)
{
    MPI_Status status;
    MPI_Request ready;
    int arrived;

    MPI_Recv(received, 10, MPI_INT, 0, 1, MPI_COMM_WORLD, &status);
    MPI_Recv(received, ROOM, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(received, ROOM, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &arrived);
    CHECK(arrived == 10 && status.MPI_SOURCE == 0 && status.MPI_TAG == 1 && received[9] == 9);
    MPI_Recv(received, ROOM, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(received, ROOM, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Recv(received, ROOM, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(received, ROOM, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(received, ROOM, MPI_INT, 0, 4, MPI_COMM_WORLD, &status);
    MPI_Recv(received, ROOM, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(received, 30, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(received[29] == 29);
    MPI_Irecv(received, ROOM, MPI_INT, 0, 6, MPI_COMM_WORLD, &ready);
    MPI_Send(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD);
    MPI_Wait(&ready, MPI_STATUS_IGNORE);
    CHECK(received[39] == 39);
}

static void send_what_is_probed(void)
{
    for (int tag = 10; tag < 14; tag++)
        MPI_Send(sent, 50, MPI_INT, 1, tag, MPI_COMM_WORLD);
    MPI_Send(sent, 7, MPI_CHAR, 1, 14, MPI_COMM_WORLD);
}

static void receive_what_is_probed(void)
{
    MPI_Status status;
    MPI_Message message;
    int found, arrived;

    for (int i = 0; i < 5; i++) {
        MPI_Iprobe(0, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        CHECK(!found);
    }
    for (int i = 0; i < 4; i++) {
        MPI_Improbe(0, 99, MPI_COMM_WORLD, &found, &message, &status);
        CHECK(!found);
    }
    MPI_Probe(0, 10, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &arrived);
    CHECK(arrived == 50);
    MPI_Iprobe(0, 10, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    CHECK(found);
    MPI_Recv(received, ROOM, MPI_INT, 0, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

    MPI_Probe(MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Improbe(0, 11, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
    CHECK(found);
    MPI_Mrecv(received, ROOM, MPI_INT, &message, MPI_STATUS_IGNORE);
    CHECK(message == MPI_MESSAGE_NULL);

    MPI_Mprobe(0, 12, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(received, ROOM, MPI_INT, &message, &status);
    MPI_Get_count(&status, MPI_INT, &arrived);
    CHECK(arrived == 50);
    MPI_Mprobe(0, 13, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(received, 50, MPI_INT, &message, MPI_STATUS_IGNORE);

    MPI_Probe(0, 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &status);
    CHECK(found && status.MPI_TAG == 14);
    MPI_Recv(received, ROOM, MPI_CHAR, 0, 14, MPI_COMM_WORLD, &status);

    MPI_Probe(MPI_PROC_NULL, 15, MPI_COMM_WORLD, &status);
    MPI_Mprobe(MPI_PROC_NULL, 15, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    CHECK(message == MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(received, ROOM, MPI_INT, &message, MPI_STATUS_IGNORE);
}

static void exchange(int rank)
{
    int other = 1 - rank;
    MPI_Sendrecv(sent, rank == 0 ? 60 : 30, MPI_INT, other, 20, received, ROOM, MPI_INT, other, 20,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(received[29] == 29);
    MPI_Sendrecv(sent, 61, MPI_INT, MPI_PROC_NULL, 20, received, ROOM, MPI_INT, MPI_PROC_NULL, 20,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(sent, 64, MPI_INT, other, 21, other, 21, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    CHECK(sent[63] == 63);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ROOM; i++)
        sent[i] = i;

    if (rank == 0) {
        send_in_every_mode();
        send_what_is_probed();
    } else {
        receive_in_every_mode();
        receive_what_is_probed();
    }
    exchange(rank);
    MPI_Finalize();
    return 0;
}
