/* numbered_messages ROUNDS THREADS (0: one, with MPI_THREAD_MULTIPLE): messages in most of the ways
 * that MPI has. Each carries an id that no other has. Prints a line for each message that a rank
 * sends or receives: direction, thread, CLOCK_MONOTONIC before and after the call that posts it,
 * peer, tag, id. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "own_clock.h"

static int rank, size, rounds;
static FILE *out;

struct party {
    pthread_t thread;
    int number, serial;
    MPI_Comm comms[3];
};

static int fresh_id(struct party *party)
{
    return (rank * 4 + party->number) * 1000000 + party->serial++;
}

static void note(const struct party *party, const char *direction, long long before,
                 long long after, int peer, int tag, int id)
{
    fprintf(out, "%s %d %lld %lld %d %d %d\n", direction, party->number, before, after, peer, tag,
            id);
}

/* Three receives are posted in another order of tags than the messages are sent in; one message of
 * the middle tag more. */
static void out_of_order(struct party *party, MPI_Comm comm, int first)
{
    int tags[4] = {first + 2, first, first + 1, first + 1}, sent[4], received[4];
    long long before[9];
    MPI_Request requests[8];
    for (int i = 0; i < 4; i++) {
        before[i] = now_ns();
        MPI_Irecv(&received[i], 1, MPI_INT, 1 - rank, tags[i], comm, &requests[i]);
    }
    for (int i = 0; i < 4; i++) {
        sent[i] = fresh_id(party);
        before[4 + i] = now_ns();
        if (i % 2)
            MPI_Issend(&sent[i], 1, MPI_INT, 1 - rank, tags[3 - i], comm, &requests[4 + i]);
        else
            MPI_Isend(&sent[i], 1, MPI_INT, 1 - rank, tags[3 - i], comm, &requests[4 + i]);
    }
    before[8] = now_ns();
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 4; i++)
        note(party, "received", before[i], before[i + 1], 1 - rank, tags[i], received[i]);
    for (int i = 0; i < 4; i++)
        note(party, "sent", before[4 + i], before[5 + i], 1 - rank, tags[3 - i], sent[i]);
}

static void blocking(struct party *party, MPI_Comm comm, int tag, int is_any)
{
    int id = fresh_id(party), received;
    long long before = now_ns();
    if (rank == 0) {
        MPI_Send(&id, 1, MPI_INT, 1, tag, comm);
        note(party, "sent", before, now_ns(), 1, tag, id);
    } else {
        MPI_Recv(&received, 1, MPI_INT, is_any ? MPI_ANY_SOURCE : 0, is_any ? MPI_ANY_TAG : tag,
                 comm, MPI_STATUS_IGNORE);
        note(party, "received", before, now_ns(), 0, tag, received);
    }
}

/* A receive that may match anything, and one that it may rob of its message. */
static void pending_wildcard(struct party *party, MPI_Comm comm, int tag)
{
    int ids[2] = {fresh_id(party), fresh_id(party)}, received[2];
    long long before = now_ns(), between;
    MPI_Request requests[2];
    if (rank == 0) {
        MPI_Send(&ids[0], 1, MPI_INT, 1, tag, comm);
        between = now_ns();
        MPI_Send(&ids[1], 1, MPI_INT, 1, tag, comm);
        note(party, "sent", before, between, 1, tag, ids[0]);
        note(party, "sent", between, now_ns(), 1, tag, ids[1]);
    } else {
        MPI_Irecv(&received[0], 1, MPI_INT, MPI_ANY_SOURCE, tag, comm, &requests[0]);
        between = now_ns();
        MPI_Irecv(&received[1], 1, MPI_INT, 0, tag, comm, &requests[1]);
        long long after = now_ns();
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        note(party, "received", before, between, 0, tag, received[0]);
        note(party, "received", between, after, 0, tag, received[1]);
    }
}

/* Three receives of any source. All are completed at once, or the last one first. */
static void wildcards(struct party *party, MPI_Comm comm, int tag, int is_last_first)
{
    enum { COUNT = 3 };
    int ids[COUNT], received[COUNT];
    long long before[COUNT + 1];
    MPI_Request requests[COUNT];
    for (int i = 0; i < COUNT; i++) {
        before[i] = now_ns();
        ids[i] = fresh_id(party);
        if (rank == 0)
            MPI_Isend(&ids[i], 1, MPI_INT, 1, tag, comm, &requests[i]);
        else
            MPI_Irecv(&received[i], 1, MPI_INT, MPI_ANY_SOURCE, i == 1 ? MPI_ANY_TAG : tag, comm,
                      &requests[i]);
    }
    before[COUNT] = now_ns();
    if (is_last_first)
        MPI_Wait(&requests[COUNT - 1], MPI_STATUS_IGNORE);
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COUNT; i++)
        note(party, rank == 0 ? "sent" : "received", before[i], before[i + 1], 1 - rank, tag,
             rank == 0 ? ids[i] : received[i]);
}

/* The receiver finds two messages, and receives them in the other order. */
static void matched(struct party *party, MPI_Comm comm, int tag)
{
    int ids[2] = {fresh_id(party), fresh_id(party)}, received[2];
    long long before = now_ns(), between;
    MPI_Message messages[2];
    MPI_Request request;
    if (rank == 0) {
        MPI_Send(&ids[0], 1, MPI_INT, 1, tag, comm);
        between = now_ns();
        MPI_Send(&ids[1], 1, MPI_INT, 1, tag, comm);
        note(party, "sent", before, between, 1, tag, ids[0]);
        note(party, "sent", between, now_ns(), 1, tag, ids[1]);
        return;
    }
    MPI_Probe(0, tag, comm, MPI_STATUS_IGNORE);
    MPI_Mprobe(MPI_ANY_SOURCE, tag, comm, &messages[0], MPI_STATUS_IGNORE);
    MPI_Mprobe(0, tag, comm, &messages[1], MPI_STATUS_IGNORE);
    before = now_ns();
    MPI_Imrecv(&received[1], 1, MPI_INT, &messages[1], &request);
    between = now_ns();
    MPI_Mrecv(&received[0], 1, MPI_INT, &messages[0], MPI_STATUS_IGNORE);
    long long after = now_ns();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    note(party, "received", before, between, 0, tag, received[1]);
    note(party, "received", between, after, 0, tag, received[0]);
}

static void exchange_nonblocking(struct party *party, MPI_Comm comm, int tag)
{
#if MPI_VERSION >= 4
    int id = fresh_id(party), received;
    MPI_Request request;
    long long before = now_ns();
    MPI_Isendrecv(&id, 1, MPI_INT, 1 - rank, tag, &received, 1, MPI_INT, 1 - rank, tag, comm,
                  &request);
    long long after = now_ns();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    note(party, "sent", before, after, 1 - rank, tag, id);
    note(party, "received", before, after, 1 - rank, tag, received);
#else
    (void)party, (void)comm, (void)tag;
#endif
}

static void exchange(struct party *party, MPI_Comm comm, int tag)
{
    int id = fresh_id(party), received;
    long long before = now_ns();
    MPI_Sendrecv(&id, 1, MPI_INT, 1 - rank, tag, &received, 1, MPI_INT, 1 - rank, tag, comm,
                 MPI_STATUS_IGNORE);
    long long after = now_ns();
    note(party, "sent", before, after, 1 - rank, tag, id);
    note(party, "received", before, after, 1 - rank, tag, received);
}

static void persistent(struct party *party, MPI_Request requests[2], int messages[2], int tag)
{
    messages[0] = fresh_id(party);
    long long before = now_ns();
    MPI_Startall(2, requests);
    long long after = now_ns();
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    note(party, "sent", before, after, 1 - rank, tag, messages[0]);
    note(party, "received", before, after, 1 - rank, tag, messages[1]);
}

static void *communicate(void *argument)
{
    struct party *party = argument;
    int first = 100 * party->number, messages[2], others[2];
    MPI_Request requests[2], any[2];
    MPI_Comm alone = party->comms[2];
    MPI_Send_init(&others[0], 1, MPI_INT, 1 - rank, first + 51, alone, &any[0]);
    MPI_Recv_init(&others[1], 1, MPI_INT, MPI_ANY_SOURCE, first + 51, alone, &any[1]);
    MPI_Send_init(&messages[0], 1, MPI_INT, 1 - rank, first + 50, party->comms[1], &requests[0]);
    MPI_Recv_init(&messages[1], 1, MPI_INT, 1 - rank, first + 50, party->comms[1], &requests[1]);
    for (int i = 0; i < rounds; i++) {
        MPI_Comm comm = party->comms[i % 3];
        out_of_order(party, comm, first);
        blocking(party, comm, first + 10, 0);
        blocking(party, party->comms[2], first + 11, party->number == 0);
        if (i % 4 == 1)
            pending_wildcard(party, comm, first + 12);
        exchange(party, comm, first + 13);
        persistent(party, requests, messages, first + 50);
        persistent(party, any, others, first + 51);
        wildcards(party, alone, first + 20, 0);
        if (i % 4 == 2)
            wildcards(party, alone, first + 21, 1);
        matched(party, alone, first + 22);
        exchange_nonblocking(party, alone, first + 23);
        if (i == rounds / 3 || i == rounds / 2)
            MPI_Pcontrol(i == rounds / 2);
        exchange(party, party->comms[0], 7); /* both threads use it */
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Request_free(&any[0]);
    MPI_Request_free(&any[1]);
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = atoi(argv[argc - 1]), provided;
    static struct party parties[2];
    rounds = atoi(argv[argc - 2]);
    MPI_Init_thread(&argc, &argv, threads != 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char name[4096];
    snprintf(name, sizeof name, "%s/truth-%d", getenv("TRUTH"), rank);
    out = fopen(name, "w");
    MPI_Comm both, own;
    MPI_Comm_dup(MPI_COMM_WORLD, &both);
    for (int i = 0; i == 0 || i < threads; i++) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank,
                       &own); /* ranks in the other order: the peer 1 - rank is its own number */
        MPI_Comm_free(&own);
        MPI_Comm_dup(both, &own); /* alone receives of any source may be on it */
        parties[i] = (struct party){.number = i, .comms = {MPI_COMM_WORLD, both, own}};
    }
    for (int i = 1; i < threads; i++)
        pthread_create(&parties[i].thread, NULL, communicate, &parties[i]);
    communicate(&parties[0]);
    for (int i = 1; i < threads; i++)
        pthread_join(parties[i].thread, NULL);
    fclose(out);
    MPI_Finalize();
    return 0;
}
