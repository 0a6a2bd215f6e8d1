/* Every call that completes a request, and every unsuccessful poll. Rank 0 receives. If a message
 * must not have arrived yet, it is sent only after a message from rank 0; if it must have arrived,
 * it comes from MPI_PROC_NULL. So every count is certain. test_completion.py has the expected
 * counts. */
#include <mpi.h>

#include "check.h"

enum { GO = 100, ROOM = 100 };

static int numbers[ROOM], received[4][ROOM];
static MPI_Request requests[4];
static MPI_Status statuses[4];

static void post(int messages)
{
    for (int i = 0; i < messages; i++)
        MPI_Irecv(received[i], ROOM, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
}

static void post_what_is_there(int i)
{
    MPI_Irecv(received[i], ROOM, MPI_INT, MPI_PROC_NULL, i, MPI_COMM_WORLD, &requests[i]);
}

static void let_rank_1_send(void)
{
    MPI_Send(NULL, 0, MPI_INT, 1, GO, MPI_COMM_WORLD);
}

static void send_when_told(int messages, int count)
{
    MPI_Recv(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < messages; i++)
        MPI_Send(numbers, count, MPI_INT, 0, i, MPI_COMM_WORLD);
}

static void wait_in_every_way(void)
{
    int index, completed = 0, indices[4];

    post(2), let_rank_1_send();
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], &statuses[1]);
    CHECK(requests[0] == MPI_REQUEST_NULL && statuses[1].MPI_SOURCE == 1);

    post(3), let_rank_1_send();
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    CHECK(requests[2] == MPI_REQUEST_NULL);
    post(3), let_rank_1_send();
    MPI_Waitall(3, requests, statuses);
    CHECK(statuses[2].MPI_TAG == 2);

    post(3), let_rank_1_send();
    for (int i = 0; i < 3; i++)
        MPI_Waitany(3, requests, &index, i == 1 ? &statuses[0] : MPI_STATUS_IGNORE);
    CHECK(index >= 0 && requests[index] == MPI_REQUEST_NULL);

    for (int i = 0; i < 3; i++)
        post_what_is_there(i);
    MPI_Waitsome(3, requests, &completed, indices, MPI_STATUSES_IGNORE);
    CHECK(completed == 3);
    post(1), let_rank_1_send();
    MPI_Waitsome(1, requests, &completed, indices, statuses);
    CHECK(completed == 1 && statuses[0].MPI_SOURCE == 1);
}

static void test_in_every_way(void)
{
    int index, completed, indices[4], flag;

    post(1);
    for (int i = 0; i < 5; i++) {
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        CHECK(!flag);
    }
    for (int i = 0; i < 4; i++) {
        MPI_Testall(1, requests, &flag, MPI_STATUSES_IGNORE);
        CHECK(!flag);
    }
    for (int i = 0; i < 3; i++) {
        MPI_Testany(1, requests, &index, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag);
    }
    for (int i = 0; i < 2; i++) {
        MPI_Testsome(1, requests, &completed, indices, statuses);
        CHECK(completed == 0);
    }
    post_what_is_there(1);
    MPI_Testall(2, requests, &flag,
                statuses); /* one of two is complete: MPI_Testall completes none */
    CHECK(!flag);

    MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
    CHECK(flag);
    post_what_is_there(1), post_what_is_there(2);
    MPI_Testall(2, requests + 1, &flag, MPI_STATUSES_IGNORE);
    CHECK(flag);
    post_what_is_there(1);
    MPI_Testany(2, requests, &index, &flag, &statuses[0]);
    CHECK(flag && index == 1);
    post_what_is_there(1), post_what_is_there(2);
    MPI_Testsome(3, requests, &completed, indices, MPI_STATUSES_IGNORE);
    CHECK(completed == 2);

    let_rank_1_send();
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    if (rank == 0) {
        wait_in_every_way();
        test_in_every_way();
    } else {
        send_when_told(2, 10);
        send_when_told(3, 20);
        send_when_told(3, 30);
        send_when_told(3, 40);
        send_when_told(1, 50);
        send_when_told(1, 60);
    }
    MPI_Finalize();
    return 0;
}
