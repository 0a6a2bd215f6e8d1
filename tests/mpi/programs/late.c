/* late RANK BUSY_MS ROUNDS: this rank computes before each collective in which others wait for it.
 * Every rank reads CLOCK_MONOTONIC around its calls; at the end rank 0 prints all readings:
 * "reading call round rank before after". The root of Bcast is the late rank, that of Reduce the
 * next one. */
#include <mpi.h>
#include <stdint.h>

#include "check.h"
#include "own_clock.h"

enum { ALLREDUCE, BCAST, REDUCE, BARRIER, CALLS, ROUNDS = 64 };
static const char *const names[CALLS] = {"MPI_Allreduce", "MPI_Bcast", "MPI_Reduce", "MPI_Barrier"};

static int rank, size, late;
static double values[1024], sums[1024];
static int64_t readings[CALLS][ROUNDS][2];

static void synchronize(int call)
{
    if (call == ALLREDUCE)
        MPI_Allreduce(values, sums, 1024, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (call == BCAST)
        MPI_Bcast(values, 1024, MPI_DOUBLE, late, MPI_COMM_WORLD);
    if (call == REDUCE)
        MPI_Reduce(values, sums, 1024, MPI_DOUBLE, MPI_SUM, (late + 1) % size, MPI_COMM_WORLD);
    if (call == BARRIER)
        MPI_Barrier(MPI_COMM_WORLD);
}

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
    CHECK(argc == 4);
    late = atoi(argv[1]);
    int64_t busy_ns = atoi(argv[2]) * 1000000LL;
    int rounds = atoi(argv[3]);
    CHECK(rounds <= ROUNDS);

    for (int round = 0; round < rounds; round++)
        for (int call = 0; call < CALLS; call++) {
            if (rank == late)
                compute(busy_ns);
            readings[call][round][0] = now_ns();
            synchronize(call);
            readings[call][round][1] = now_ns();
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
