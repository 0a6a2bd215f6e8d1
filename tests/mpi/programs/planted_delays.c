/* Rank 0 makes rank 1 wait 20 ms each time, in a receive and in a barrier. Rank 1 measures each
 * call by CLOCK_MONOTONIC and prints the durations in nanoseconds, one line per call. */
#include <mpi.h>
#include <stdio.h>

#include "own_clock.h"

enum { ROUNDS = 10, DELAY_NS = 20000000 };

static void keep_waiting(void)
{
    int token = 0;
    for (int i = 0; i < ROUNDS; i++) {
        compute(DELAY_NS);
        MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        compute(DELAY_NS);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void wait_and_print(void)
{
    int token;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t begin_ns = now_ns();
        MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int64_t between_ns = now_ns();
        MPI_Barrier(MPI_COMM_WORLD);
        int64_t end_ns = now_ns();
        printf("MPI_Recv %lld\nMPI_Barrier %lld\n", (long long)(between_ns - begin_ns),
               (long long)(end_ns - between_ns));
    }
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        keep_waiting();
    if (rank == 1)
        wait_and_print();
    MPI_Finalize();
    return 0;
}
