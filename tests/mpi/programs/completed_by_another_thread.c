/* One thread starts receives, another one completes them: requests belong to the process, not to a
 * thread. */
#include <pthread.h>

#include <mpi.h>

#include "check.h"

enum { MESSAGES = 50 };

static MPI_Request requests[MESSAGES];
static int rank, numbers[MESSAGES];

static void *start(void *unused)
{
    for (int i = 0; i < MESSAGES; i++) {
        if (rank == 0)
            MPI_Isend(&numbers[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Irecv(&numbers[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(pthread_create(&thread, NULL, start, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    MPI_Finalize();
    return 0;
}
