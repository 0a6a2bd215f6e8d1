/* A signal handler that calls MPI, two thousand times a second, during calls of 64 sizes. Prints
 * how many calls each has made. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <mpi.h>

#include "check.h"

static volatile long interruptions;

static void reduce(int signal)
{
    (void)signal;
    if (syscall(SYS_gettid) != getpid())
        return; /* Open MPI's own threads take signals while the main one is here */
    double one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    interruptions++;
}

static void every(int microseconds)
{
    CHECK(setitimer(ITIMER_REAL, &(struct itimerval){{0, microseconds}, {0, microseconds}}, NULL) ==
          0);
}

int main(int argc, char **argv)
{
    long calls = 0;
    int rank;
    char buffer[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(sigaction(SIGALRM, &(struct sigaction){.sa_handler = reduce, .sa_flags = SA_RESTART},
                    NULL) == 0);
    every(500);
    for (; interruptions < 200; calls++)
        MPI_Bcast(buffer, (int)(calls % 64), MPI_CHAR, 0, MPI_COMM_SELF);
    every(0);
    MPI_Finalize();
    printf("rank %d: %ld interrupted %ld\n", rank, interruptions, calls);
    return 0;
}
