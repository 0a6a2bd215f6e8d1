/* How long the first calls of a process take: each of the first ten Allreduces and Sends (to
 * itself, received before it counts) in nanoseconds, one line a call. bench/first_calls.py runs
 * many processes, with and without the profiler.
 *
 *     first_calls */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { CALLS = 10 };

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    double allreduce[CALLS], send[CALLS], value = 1, sum;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < CALLS; i++) {
        double before = now_ns();
        MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        allreduce[i] = now_ns() - before;
    }
    for (int i = 0; i < CALLS; i++) {
        MPI_Request request;
        MPI_Irecv(&sum, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, &request);
        double before = now_ns();
        MPI_Send(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF);
        send[i] = now_ns() - before;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < CALLS; i++)
        printf("Allreduce %d %.0f\nSend %d %.0f\n", i + 1, allreduce[i], i + 1, send[i]);
    MPI_Finalize();
    return 0;
}
