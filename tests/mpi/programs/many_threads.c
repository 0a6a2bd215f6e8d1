/* Sixty-four threads on each of two ranks. Each reduces on its own communicator, and exchanges
 * messages with the same thread of the other rank on a shared communicator, under its own tag. The
 * requests of a thread are completed by the next thread. */
#include <pthread.h>

#include <mpi.h>

#include "check.h"

enum { THREADS = 64, REDUCTIONS = 20, EXCHANGES = 20, HANDED_OVER = 10 };

static MPI_Comm own[THREADS];
static MPI_Request handed[THREADS][2 * HANDED_OVER];
static int arriving[THREADS][HANDED_OVER], leaving[THREADS][HANDED_OVER];
static pthread_barrier_t all_here;
static int rank;

static void exchange(int thread)
{
    int other = 1 - rank, sent = thread, received;
    for (int i = 0; i < EXCHANGES; i++) {
        MPI_Sendrecv(&sent, 1, MPI_INT, other, thread, &received, 1, MPI_INT, other, thread,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(received == thread);
    }
}

static void start_for_the_neighbour(int thread)
{
    int other = 1 - rank;
    for (int i = 0; i < HANDED_OVER; i++) {
        leaving[thread][i] = 1000 * thread + i;
        MPI_Irecv(&arriving[thread][i], 1, MPI_INT, other, 100 + thread, MPI_COMM_WORLD,
                  &handed[thread][i]);
        MPI_Isend(&leaving[thread][i], 1, MPI_INT, other, 100 + thread, MPI_COMM_WORLD,
                  &handed[thread][HANDED_OVER + i]);
    }
}

static void complete_the_neighbours(int thread)
{
    int neighbour = (thread + 1) % THREADS;
    for (int i = 0; i < HANDED_OVER; i++)
        MPI_Wait(&handed[neighbour][i], MPI_STATUS_IGNORE);
    MPI_Waitall(HANDED_OVER, &handed[neighbour][HANDED_OVER], MPI_STATUSES_IGNORE);
    for (int i = 0; i < HANDED_OVER; i++)
        CHECK(arriving[neighbour][i] == 1000 * neighbour + i);
}

static void *work(void *argument)
{
    int thread = *(int *)argument, one = 1, sum;
    for (int i = 0; i < REDUCTIONS; i++) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, own[thread]);
        CHECK(sum == 2);
    }
    exchange(thread);
    start_for_the_neighbour(thread);
    pthread_barrier_wait(&all_here);
    complete_the_neighbours(thread);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int level, numbers[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_barrier_init(&all_here, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&own[i]);
    MPI_Finalize();
    return 0;
}
