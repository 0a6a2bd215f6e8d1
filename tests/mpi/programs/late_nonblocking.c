/* late_nonblocking RANK BUSY_MS ROUNDS: this rank computes before it starts three Allreduces that
 * Waitall completes. Every rank reads CLOCK_MONOTONIC around the start of the last one and around
 * Waitall; at the end rank 0 prints all readings: "reading round rank before_start after_start
 * before_wait after_wait". */
#include <mpi.h>
#include <stdint.h>

#include "check.h"
#include "own_clock.h"

enum { OPERATIONS = 3, COUNT = 1024, ROUNDS = 64, READINGS = 4 };

static double values[COUNT], sums[OPERATIONS][COUNT];
static int64_t readings[ROUNDS][READINGS];

static void reduce_and_wait(int64_t *reading)
{
    MPI_Request requests[OPERATIONS];
    for (int i = 0; i < OPERATIONS; i++) {
        reading[0] = now_ns();
        MPI_Iallreduce(values, sums[i], COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
        reading[1] = now_ns();
    }
    reading[2] = now_ns();
    MPI_Waitall(OPERATIONS, requests, MPI_STATUSES_IGNORE);
    reading[3] = now_ns();
}

static void print_readings(int of_rank, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        printf("reading %d %d", round, of_rank);
        for (int i = 0; i < READINGS; i++)
            printf(" %lld", (long long)readings[round][i]);
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc == 4);
    int late = atoi(argv[1]), rounds = atoi(argv[3]);
    int64_t busy_ns = atoi(argv[2]) * 1000000LL;
    CHECK(rounds <= ROUNDS);

    for (int round = 0; round < rounds; round++) {
        if (rank == late)
            compute(busy_ns);
        reduce_and_wait(readings[round]);
    }

    if (rank > 0)
        MPI_Send(readings, sizeof readings, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    else
        print_readings(0, rounds);
    for (int other = 1; rank == 0 && other < size; other++) {
        MPI_Recv(readings, sizeof readings, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        print_readings(other, rounds);
    }
    MPI_Finalize();
    return 0;
}
