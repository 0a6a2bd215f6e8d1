/* Generalized requests, which the job completes itself, with callbacks that call MPI; cancelled and
 * freed requests of all kinds. */
#include <pthread.h>

#include <mpi.h>

#include "check.h"

static int freed, cancelled;

static int query(void *state, MPI_Status *status)
{
    MPI_Barrier(MPI_COMM_SELF); /* nested in the call that completes the request */
    MPI_Status_set_elements(status, MPI_INT, *(int *)state);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 0;
    status->MPI_TAG = 42;
    return MPI_SUCCESS;
}

static int release(void *state)
{
    (void)state;
    freed++;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    cancelled++;
    return MPI_SUCCESS;
}

static void *complete_later(void *request)
{
    MPI_Grequest_complete(*(MPI_Request *)request);
    return NULL;
}

static void show(const char *what, const MPI_Status *status)
{
    int elements, is_cancelled;
    MPI_Get_count(status, MPI_INT, &elements);
    MPI_Test_cancelled(status, &is_cancelled);
    printf("%s: count %d cancelled %d\n", what, is_cancelled ? 0 : elements, is_cancelled);
}

static void complete_our_own(int threads)
{
    int state = 3, flag = -1, number = 0, one = 1;
    MPI_Request requests[2], one_of_ours;
    MPI_Status statuses[2];
    MPI_Grequest_start(query, release, cancel, &state, &requests[0]);
    MPI_Test(&requests[0], &flag, &statuses[0]);
    CHECK(!flag);
    MPI_Grequest_complete(requests[0]);
    MPI_Wait(&requests[0], &statuses[0]);
    CHECK(freed == 1 && requests[0] == MPI_REQUEST_NULL);
    show("Wait for a generalized one", &statuses[0]);

    MPI_Grequest_start(query, release, cancel, &state, &requests[0]);
    MPI_Irecv(&number, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[1]);
    MPI_Send(&one, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Grequest_complete(requests[0]);
    MPI_Waitall(2, requests, statuses);
    show("Waitall with a generalized one", &statuses[0]);
    show("Waitall with a receive", &statuses[1]);

    MPI_Grequest_start(query, release, cancel, &state, &one_of_ours);
    requests[0] = one_of_ours;
    MPI_Request_free(&requests[0]);
    MPI_Grequest_complete(one_of_ours);
    CHECK(freed == 3);

    MPI_Grequest_start(query, release, cancel, &state, &requests[0]);
    MPI_Cancel(&requests[0]);
    CHECK(cancelled == 1);
    MPI_Grequest_complete(requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);

    if (threads) {
        pthread_t thread;
        MPI_Grequest_start(query, release, cancel, &state, &requests[0]);
        one_of_ours = requests[0];
        CHECK(pthread_create(&thread, NULL, complete_later, &one_of_ours) == 0);
        MPI_Wait(&requests[0], &statuses[0]);
        pthread_join(thread, NULL);
        show("Wait for another thread", &statuses[0]);
    }
}

static void cancel_receives(void)
{
    int number = 0, flag = 0, one = 1, index;
    MPI_Request requests[2];
    MPI_Status status;
    for (int i = 0; i < 3; i++) {
        MPI_Irecv(&number, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &requests[0]);
        MPI_Cancel(&requests[0]);
        if (i == 0)
            MPI_Wait(&requests[0], &status);
        else if (i == 1)
            MPI_Waitany(1, requests, &index, &status);
        else
            while (!flag)
                MPI_Test(&requests[0], &flag, &status);
        show("a cancelled receive", &status);
    }
    MPI_Irecv(&number, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);

    MPI_Recv_init(&number, 1, MPI_INT, 0, 6, MPI_COMM_SELF, &requests[1]);
    MPI_Start(&requests[1]);
    MPI_Cancel(&requests[1]);
    MPI_Wait(&requests[1], &status);
    show("a cancelled persistent receive", &status);
    MPI_Start(&requests[1]);
    MPI_Send(&one, 1, MPI_INT, 0, 6, MPI_COMM_SELF);
    MPI_Wait(&requests[1], &status);
    show("the same one, used again", &status);
    MPI_Request_free(&requests[1]);
}

/* An operation whose request is freed while active still takes place, but its completion is not
 * observed. */
static void free_active_ones(void)
{
    static int sent[4] = {1, 2, 3, 4}, received[4];
    int number = 0;
    MPI_Request request, persistent;
    MPI_Isend(&sent[0], 1, MPI_INT, 0, 7, MPI_COMM_SELF, &request);
    MPI_Request_free(&request);
    MPI_Recv(&number, 1, MPI_INT, 0, 7, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    CHECK(number == 1);

    MPI_Irecv(&received[1], 1, MPI_INT, 0, 8, MPI_COMM_SELF, &request);
    MPI_Request_free(&request);
    MPI_Send(&sent[1], 1, MPI_INT, 0, 8, MPI_COMM_SELF);
    CHECK(received[1] == 2);

    MPI_Recv_init(&received[2], 1, MPI_INT, 0, 9, MPI_COMM_SELF, &persistent);
    MPI_Start(&persistent);
    MPI_Request_free(&persistent);
    MPI_Send(&sent[2], 1, MPI_INT, 0, 9, MPI_COMM_SELF);
    CHECK(received[2] == 3);

    MPI_Send_init(&sent[3], 1, MPI_INT, 0, 10, MPI_COMM_SELF, &persistent);
    MPI_Start(&persistent);
    MPI_Request_free(&persistent);
    MPI_Recv(&number, 1, MPI_INT, 0, 10, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    CHECK(number == 4);
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    complete_our_own(level == MPI_THREAD_MULTIPLE);
    cancel_receives();
    free_active_ones();
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
