/* late_grid RANK BUSY_MS ROUNDS: four ranks as a 2 x 2 grid. In each round this rank computes, then
 * the rows {0,1} and {2,3} sum up, then the columns {0,2} and {1,3}: some wait only because a rank
 * before them waited. Every rank reads CLOCK_MONOTONIC around its calls; at the end rank 0 prints
 * all readings: "reading call round rank before after". */
#include <mpi.h>
#include <stdint.h>

#include "check.h"
#include "own_clock.h"

enum { ROW, COLUMN, CALLS, ROUNDS = 64 };
static const char *const names[CALLS] = {"row", "column"};

static int rank, size;
static double values[1024], sums[1024];
static int64_t readings[CALLS][ROUNDS][2];

static void print_readings(int of_rank, int rounds)
{
    for (int call = 0; call < CALLS; call++)
        for (int round = 0; round < rounds; round++)
            printf("reading %s %d %d %lld %lld\n", names[call], round, of_rank,
                   (long long)readings[call][round][0], (long long)readings[call][round][1]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc == 4 && size == 4);
    int late = atoi(argv[1]);
    int64_t busy_ns = atoi(argv[2]) * 1000000LL;
    int rounds = atoi(argv[3]);
    CHECK(rounds <= ROUNDS);
    MPI_Comm lines[CALLS];
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &lines[ROW]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &lines[COLUMN]);

    for (int round = 0; round < rounds; round++) {
        if (rank == late)
            compute(busy_ns);
        for (int call = 0; call < CALLS; call++) {
            readings[call][round][0] = now_ns();
            MPI_Allreduce(values, sums, 1024, MPI_DOUBLE, MPI_SUM, lines[call]);
            readings[call][round][1] = now_ns();
        }
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
