/* Four threads on each of two ranks. At the same time, each sends, receives and reduces on its own
 * communicator, and exchanges messages on MPI_COMM_WORLD under its own tag. */
#include <pthread.h>

#include <mpi.h>

#include "check.h"

enum { THREADS = 4, MESSAGES = 500, REDUCTIONS = 200 };

static MPI_Comm comms[THREADS];
static int rank;

static void *communicate(void *argument)
{
    int thread = *(int *)argument, numbers[8] = {0}, sums[8];
    MPI_Request request;
    for (int i = 0; i < MESSAGES; i++) {
        if (rank == 0) {
            MPI_Send(numbers, thread + 1, MPI_INT, 1, thread, MPI_COMM_WORLD);
        } else {
            MPI_Irecv(numbers, 8, MPI_INT, 0, thread, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    for (int i = 0; i < REDUCTIONS; i++)
        MPI_Allreduce(numbers, sums, 8, MPI_INT, MPI_SUM, comms[thread]);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int level, indices[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);

    for (int i = 0; i < THREADS; i++) {
        indices[i] = i;
        CHECK(pthread_create(&threads[i], NULL, communicate, &indices[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);

    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
    MPI_Finalize();
    return 0;
}
