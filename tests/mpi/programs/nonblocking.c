/* Rank 1 posts receives with larger buffers than needed, rank 0 sends in every mode; then the
 * additions of MPI-4, if mpi.h has them. test_nonblocking.py has the expected counts. */
#include "large_counts.h"
#include "mpi_4.h"

#include "check.h"

enum { GO = 100, ROOM = 100, MESSAGES = 7 };

static int sent[ROOM], received[MESSAGES][ROOM];

static void send_in_every_mode(void)
{
    static char attached[4096];
    MPI_Request requests[MESSAGES];
    MPI_Buffer_attach(attached, sizeof attached);
    MPI_Recv(NULL, 0, MPI_INT, 1, GO, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE); /* all receives are posted */

    MPI_Isend(sent, 10, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(sent, 10, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Issend(sent, 20, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Issend(sent, 20, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[3]);
    MPI_Ibsend(sent, 30, MPI_INT, 1, 4, MPI_COMM_WORLD, &requests[4]);
    MPI_Ibsend(sent, 30, MPI_INT, 1, 5, MPI_COMM_WORLD, &requests[5]);
    MPI_Irsend(sent, 40, MPI_INT, 1, 6, MPI_COMM_WORLD, &requests[6]);
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);

    void *detached;
    count_t detached_bytes;
    MPI_Buffer_detach(&detached, &detached_bytes);
    CHECK(detached == attached && detached_bytes == sizeof attached);
}

static void receive_with_room_to_spare(void)
{
    MPI_Request requests[MESSAGES];
    for (int i = 0; i < MESSAGES; i++)
        MPI_Irecv(received[i], ROOM, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Send(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD);
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    CHECK(received[6][39] == 39);
}

static void send_and_receive_matched(int rank)
{
    MPI_Request request;
    if (rank == 0) {
        MPI_Isend(sent, 50, MPI_INT, 1, 10, MPI_COMM_WORLD, &request);
    } else {
        MPI_Message message;
        MPI_Mprobe(0, 10, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Imrecv(received[0], ROOM, MPI_INT, &message, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void send_and_receive_nothing(void)
{
    MPI_Request requests[4];
    MPI_Isend(sent, 9, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(sent, 8, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(received[0], 9, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Irecv(received[0], 8, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void exchange(int rank)
{
#if HAS_MPI_4
    int other = 1 - rank;
    MPI_Request requests[2];
    MPI_Isendrecv(sent, 60, MPI_INT, other, 20, received[0], ROOM, MPI_INT, other, 20,
                  MPI_COMM_WORLD, &requests[0]);
    MPI_Isendrecv_replace(received[1], 64, MPI_INT, other, 21, other, 21, MPI_COMM_WORLD,
                          &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
#else
    (void)rank;
#endif
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ROOM; i++)
        sent[i] = i;

    if (rank == 0)
        send_in_every_mode();
    else
        receive_with_room_to_spare();
    send_and_receive_matched(rank);
    send_and_receive_nothing();
    exchange(rank);
    MPI_Finalize();
    return 0;
}
