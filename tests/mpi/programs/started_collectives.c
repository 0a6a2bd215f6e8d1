/* started_collectives ROUNDS: persistent collectives on two communicators, which each rank starts
 * in an order of its own; now and then they are set up anew, and counting pauses in between. Prints
 * a line for each start into $TRUTH/truth-RANK: CLOCK_MONOTONIC before and after the call, which
 * operation, its how manyth start. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi_4.h"
#include "own_clock.h"

#if HAS_MPI_4
enum { OPERATIONS = 3, COMMUNICATORS = 2, ALL = OPERATIONS * COMMUNICATORS, ROOT = 1, LIFE = 7 };

static int rank, values[ALL], sums[ALL], starts[ALL], set_up;
static MPI_Request requests[ALL];
static FILE *out;

static void begin(MPI_Comm comm, int first)
{
    MPI_Request message;
    MPI_Allreduce_init(&values[first], &sums[first], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL,
                       &requests[first]);
    if (rank == 0) {
        MPI_Send_init(values, 1, MPI_INT, ROOT, 0, comm,
                      &message); /* none of the persistent collectives */
        MPI_Request_free(&message);
    }
    MPI_Bcast_init(&values[first + 1], 1, MPI_INT, ROOT, comm, MPI_INFO_NULL, &requests[first + 1]);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &requests[first + 2]);
}

static void play(int round, MPI_Comm comms[COMMUNICATORS])
{
    if (round % LIFE == 0) {
        for (int i = 0; i < ALL; i++) {
            starts[i] = 0;
            if (round)
                MPI_Request_free(&requests[i]);
        }
        for (int i = 0; i < COMMUNICATORS; i++)
            begin(comms[i], i * OPERATIONS);
        set_up += ALL;
    }
    for (int i = 0; i < ALL; i++) {
        int which = rank ? (i + round) % ALL : ALL - 1 - i;
        long long before = now_ns();
        if (i % 2)
            MPI_Start(&requests[which]);
        else
            MPI_Startall(1, &requests[which]);
        fprintf(out, "%lld %lld %d %d\n", before, (long long)now_ns(), set_up + which,
                ++starts[which]);
    }
    if (round % 2)
        MPI_Waitall(ALL, requests, MPI_STATUSES_IGNORE);
    else
        for (int i = 0; i < ALL; i++)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
}
#endif

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
#if HAS_MPI_4
    char name[4096];
    int rounds = atoi(argv[1]);
    MPI_Comm comms[COMMUNICATORS] = {MPI_COMM_WORLD};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    snprintf(name, sizeof name, "%s/truth-%d", getenv("TRUTH"), rank);
    out = fopen(name, "w");
    for (int i = 0; i < rounds; i++) {
        if (i == rounds / 3 || i == rounds / 2)
            MPI_Pcontrol(i == rounds / 2);
        play(i, comms);
    }
    for (int i = 0; i < ALL; i++)
        MPI_Request_free(&requests[i]);
    fclose(out);
#endif
    MPI_Finalize();
    return 0;
}
