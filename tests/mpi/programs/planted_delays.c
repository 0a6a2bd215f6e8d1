/* Rank 0 makes rank 1 wait 20 ms each time, in a receive and in a barrier. Rank 1 measures each call by MPI_Wtime and prints the
 * durations in nanoseconds, one line per call. */
#include <mpi.h>
#include <stdio.h>

#include "check.h"

enum { ROUNDS = 10 };

static void delay(void)
{
    double until = MPI_Wtime() + 0.020;
    while (MPI_Wtime() < until)
        ;
}

static void keep_waiting(void)
{
    int token = 0;
    for (int i = 0; i < ROUNDS; i++) {
        delay();
        MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        delay();
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void wait_and_print(void)
{
    int token;
    for (int i = 0; i < ROUNDS; i++) {
        double begin = MPI_Wtime();
        MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double between = MPI_Wtime();
        MPI_Barrier(MPI_COMM_WORLD);
        double end = MPI_Wtime();
        printf("MPI_Recv %.0f\nMPI_Barrier %.0f\n", (between - begin) * 1e9, (end - between) * 1e9);
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
