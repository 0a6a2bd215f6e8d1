/* late_messages LATE HOW BYTES BUSY_MS ROUNDS: in each round, after a Barrier, each even rank sends
 * a message to the next odd rank; rank LATE computes before (-1: all of them do). HOW: blocking,
 * nonblocking (Isend or Irecv, and Waitall), persistent (Start and Waitall), exchange (Sendrecv,
 * both ways), wildcard (Irecv of any source and tag), started-exchange (Isendrecv, and Waitall),
 * probed (Probe, Recv), matched (Mprobe, Imrecv, Waitall). Every rank reads CLOCK_MONOTONIC before
 * it posts its message, and around the call that completes it; at the end rank 0 prints all
 * readings: "reading round rank before_post after_post before_wait after_wait". */
#include <mpi.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "own_clock.h"

enum { ROUNDS = 64, READINGS = 4, MOST_BYTES = 1 << 22, TAG = 5 };

static char message[MOST_BYTES], other_message[MOST_BYTES];
static int64_t readings[ROUNDS][READINGS];
static int peer, is_sender, bytes;
static MPI_Request request;

int MPI_Isendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int,
                  MPI_Comm, MPI_Request *);
#pragma weak MPI_Isendrecv

static void wait_blocking(void)
{
    if (is_sender)
        MPI_Send(message, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    else
        MPI_Recv(message, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void probe_first(void)
{
    if (!is_sender)
        MPI_Probe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wait_blocking();
}

static void match_first(void)
{
    MPI_Message matched;
    if (is_sender) {
        wait_blocking();
        return;
    }
    MPI_Mprobe(peer, TAG, MPI_COMM_WORLD, &matched, MPI_STATUS_IGNORE);
    MPI_Imrecv(message, bytes, MPI_BYTE, &matched, &request);
    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
}

static void exchange(void)
{
    MPI_Sendrecv(message, bytes, MPI_BYTE, peer, TAG, other_message, bytes, MPI_BYTE, peer, TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void start(void)
{
    if (is_sender)
        MPI_Isend(message, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &request);
    else
        MPI_Irecv(message, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &request);
}

static void start_any(void)
{
    if (is_sender)
        start();
    else
        MPI_Irecv(message, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
}

static void start_exchange(void)
{
    if (MPI_Isendrecv)
        MPI_Isendrecv(message, bytes, MPI_BYTE, peer, TAG, other_message, bytes, MPI_BYTE, peer,
                      TAG, MPI_COMM_WORLD, &request);
}

static void start_again(void)
{
    MPI_Start(&request);
}

static void wait_all(void)
{
    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
}

static void prepare(void)
{
    if (is_sender)
        MPI_Send_init(message, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &request);
    else
        MPI_Recv_init(message, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &request);
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

static const struct {
    const char *name;
    void (*post)(void), (*complete)(void);
} HOW[] = {
    {"blocking", NULL, wait_blocking},     {"nonblocking", start, wait_all},
    {"persistent", start_again, wait_all}, {"exchange", NULL, exchange},
    {"wildcard", start_any, wait_all},     {"started-exchange", start_exchange, wait_all},
    {"probed", NULL, probe_first},         {"matched", NULL, match_first},
};

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc == 6 && size % 2 == 0);
    int late = atoi(argv[1]), rounds = atoi(argv[5]),
        is_persistent = strcmp(argv[2], "persistent") == 0;
    int64_t busy_ns = atoi(argv[4]) * 1000000LL;
    bytes = atoi(argv[3]);
    CHECK(rounds <= ROUNDS && bytes <= MOST_BYTES);
    is_sender = rank % 2 == 0;
    peer = is_sender ? rank + 1 : rank - 1;

    int how = 0;
    while (strcmp(HOW[how].name, argv[2]) != 0)
        how++;
    void (*post)(void) = HOW[how].post, (*complete)(void) = HOW[how].complete;
    if (is_persistent)
        prepare();
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == late || late < 0)
            compute(busy_ns);
        readings[round][0] = now_ns();
        if (post)
            post();
        readings[round][1] = now_ns();
        readings[round][2] = post ? readings[round][1] : readings[round][0];
        complete();
        readings[round][3] = now_ns();
    }
    if (is_persistent)
        MPI_Request_free(&request);

    if (rank > 0)
        MPI_Gather(readings, sizeof readings, MPI_BYTE, NULL, 0, MPI_BYTE, 0, MPI_COMM_WORLD);
    else {
        int64_t(*all)[ROUNDS][READINGS] = malloc((size_t)size * sizeof readings);
        MPI_Gather(readings, sizeof readings, MPI_BYTE, all, sizeof readings, MPI_BYTE, 0,
                   MPI_COMM_WORLD);
        for (int other = 0; other < size; other++) {
            memcpy(readings, all[other], sizeof readings);
            print_readings(other, rounds);
        }
        free(all);
    }
    MPI_Finalize();
    return 0;
}
