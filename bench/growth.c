/* Time that the profiler adds to a call of each family, in nanoseconds, and how that grows with the
 * number of message sizes, peers, communicators, threads and requests. Linked with toy_mpi.c, an
 * MPI library that does nothing; otherwise as overhead.c: wrapped and direct calls batch by batch
 * in turn, two bare readings of the processor's counter as the yardstick. Means, because a median
 * of batches does not see what only some of them pay; and the 99th percentile of single calls,
 * wrapped minus direct, where they need no preparation.
 *
 *     growth [rounds] */
#include "timing.h"
#include "toy_mpi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 1000, ROUNDS = 400, SINGLES = 20000, MANY = 1000, SIZES_MOST = 10000 };

#define EACH(DO)          \
    DO(Barrier)           \
    DO(Bcast)             \
    DO(Allreduce)         \
    DO(Alltoall)          \
    DO(Alltoallv)         \
    DO(Neighbor_alltoall) \
    DO(Iallreduce)        \
    DO(Send)              \
    DO(Recv)              \
    DO(Isend)             \
    DO(Irecv)             \
    DO(Send_init)         \
    DO(Start)             \
    DO(Pready)            \
    DO(Iprobe)            \
    DO(Wait) DO(Waitall) DO(Waitany) DO(Test) DO(Testsome) DO(Put) DO(Win_flush) DO(File_write_at)
#define REAL(NAME) static __typeof__(&MPI_##NAME) real_##NAME;
EACH(REAL)

static char data[SIZES_MOST + 1], answer[SIZES_MOST + 1];
static int requests[BATCH], indices[BATCH], starters[BATCH], comms[MANY], counts[TOY_RANKS],
    places[TOY_RANKS];
static int window, flag, sizes = 1, peers = 1, communicators = 1;
static void *file;

/* A value that varies from call to call, in an order that no processor predicts and no batch
 * repeats. */
static int varied(int many)
{
    static unsigned turn;
    return many == 1 ? 0 : (int)((turn++ * 2654435761u >> 7) % (unsigned)many);
}

#define SIZE 1 + varied(sizes)
#define PEER varied(peers)
#define COMM comms[varied(communicators)]

#define BOTH(NAME, ...)                   \
    static void wrapped_##NAME(int count) \
    {                                     \
        for (int i = 0; i < count; i++)   \
            MPI_##NAME(__VA_ARGS__);      \
    }                                     \
    static void direct_##NAME(int count)  \
    {                                     \
        for (int i = 0; i < count; i++)   \
            real_##NAME(__VA_ARGS__);     \
    }
#define ONE_CALL(NAME, ...)               \
    static void wrapped_##NAME(int count) \
    {                                     \
        MPI_##NAME(__VA_ARGS__);          \
    }                                     \
    static void direct_##NAME(int count)  \
    {                                     \
        real_##NAME(__VA_ARGS__);         \
    }

/* The batches of this loop go on where the one before ended. */
static unsigned turns;

static void wrapped_in_turn(int count)
{
    for (int i = 0; i < count; i++)
        MPI_Allreduce(data, answer, 1, TOY_BYTE, TOY_SUM, comms[turns++ % (unsigned)communicators]);
}

static void direct_in_turn(int count)
{
    for (int i = 0; i < count; i++)
        real_Allreduce(data, answer, 1, TOY_BYTE, TOY_SUM,
                       comms[turns++ % (unsigned)communicators]);
}

BOTH(Barrier, COMM)
BOTH(Bcast, data, SIZE, TOY_BYTE, 0, COMM)
BOTH(Allreduce, data, answer, SIZE, TOY_BYTE, TOY_SUM, COMM)
BOTH(Alltoall, data, SIZE, TOY_BYTE, answer, SIZE, TOY_BYTE, COMM)
BOTH(Alltoallv, data, counts, places, TOY_BYTE, answer, counts, places, TOY_BYTE, COMM)
BOTH(Neighbor_alltoall, data, SIZE, TOY_BYTE, answer, SIZE, TOY_BYTE, COMM)
BOTH(Iallreduce, data, answer, SIZE, TOY_BYTE, TOY_SUM, COMM, &requests[i])
BOTH(Send, data, SIZE, TOY_BYTE, PEER, 0, COMM)
BOTH(Recv, answer, SIZES_MOST, TOY_BYTE, PEER, 0, COMM, TOY_IGNORE)
BOTH(Isend, data, SIZE, TOY_BYTE, PEER, 0, COMM, &requests[i])
BOTH(Irecv, answer, SIZES_MOST, TOY_BYTE, PEER, 0, COMM, &requests[i])
BOTH(Start, &starters[i])
BOTH(Pready, 0, starters[0])
BOTH(Iprobe, 0, 0, COMM, &flag, TOY_IGNORE)
BOTH(Wait, &requests[i], TOY_IGNORE)
BOTH(Test, &requests[0], &flag, TOY_IGNORE)
BOTH(Put, data, SIZE, TOY_BYTE, PEER, 0, SIZE, TOY_BYTE, window)
BOTH(Win_flush, PEER, window)
BOTH(File_write_at, file, 0, data, SIZE, TOY_BYTE, TOY_IGNORE)
BOTH(Waitany, BATCH, requests, &indices[0], TOY_IGNORE)
ONE_CALL(Waitall, count, requests, TOY_IGNORE)
ONE_CALL(Testsome, count, requests, &indices[0], indices, TOY_IGNORE)

static void nothing(void)
{
}

static void post(void)
{
    wrapped_Irecv(BATCH);
}

static void complete(void)
{
    wrapped_Waitall(BATCH);
}

static void complete_started(void)
{
    int copy[BATCH];
    for (int i = 0; i < BATCH; i++)
        copy[i] = starters[i]; /* the toy forgets that they are persistent */
    MPI_Waitall(BATCH, copy, TOY_IGNORE);
}

struct subject {
    const char *name;
    void (*before)(void);
    void (*wrapped)(int);
    void (*direct)(int);
    void (*after)(void);
};

#define SUBJECT(TITLE, NAME, BEFORE, AFTER)                 \
    {                                                       \
        TITLE, BEFORE, wrapped_##NAME, direct_##NAME, AFTER \
    }

static const struct subject FAMILIES[] = {
    SUBJECT("Send", Send, nothing, nothing),
    SUBJECT("Recv", Recv, nothing, nothing),
    SUBJECT("Isend", Isend, nothing, complete),
    SUBJECT("Irecv", Irecv, nothing, complete),
    SUBJECT("Start", Start, nothing, complete_started),
    SUBJECT("Pready", Pready, nothing, nothing),
    SUBJECT("Iprobe, nothing there", Iprobe, nothing, nothing),
    SUBJECT("Wait", Wait, post, nothing),
    SUBJECT("Test, nothing done", Test, post, complete),
    SUBJECT("Waitall of 1000, each", Waitall, post, nothing),
    SUBJECT("Waitany of 1000", Waitany, post, nothing),
    SUBJECT("Testsome of 1000, each", Testsome, post, complete),
    SUBJECT("Barrier", Barrier, nothing, nothing),
    SUBJECT("Bcast", Bcast, nothing, nothing),
    SUBJECT("Allreduce", Allreduce, nothing, nothing),
    SUBJECT("Alltoall", Alltoall, nothing, nothing),
    SUBJECT("Alltoallv of 1024 ranks", Alltoallv, nothing, nothing),
    SUBJECT("Iallreduce", Iallreduce, nothing, complete),
    SUBJECT("Neighbor_alltoall", Neighbor_alltoall, nothing, nothing),
    SUBJECT("Put", Put, nothing, nothing),
    SUBJECT("Win_flush", Win_flush, nothing, nothing),
    SUBJECT("File_write_at", File_write_at, nothing, nothing),
};

struct cost {
    double mean, p99, clocks; /* p99: negative if there is none */
};

static double p99_of_singles(void (*run)(int))
{
    static double taken[SINGLES];
    for (int i = 0; i < SINGLES; i++)
        taken[i] = timed(run, 1);
    return percentile(taken, SINGLES, 99);
}

/* Requests posted through wrappers are completed through wrappers, also after direct calls, which
 * complete nothing here. */
static struct cost measure(const struct subject *subject, int rounds)
{
    double wrapped = 0, direct = 0, clocks = 0, p99 = -1;
    for (int i = 0; i < rounds; i++) {
        direct += timed(subject->direct, BATCH);
        clocks += timed(two_clock_reads, BATCH);
        subject->before();
        wrapped += timed(subject->wrapped, BATCH);
        subject->after();
    }
    if (subject->before == nothing && subject->after == nothing)
        p99 = p99_of_singles(subject->wrapped) - p99_of_singles(subject->direct);
    return (struct cost){(wrapped - direct) / rounds, p99, clocks / rounds};
}

static void print_p99(double p99)
{
    if (p99 < 0)
        printf(" %8s", "");
    else
        printf(" %8.0f", p99);
}

static void print_families(int rounds)
{
    printf("%-26s %8s %8s %8s %8s\n", "ns added per call", "mean", "p99", "2 clocks", "beyond");
    for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++) {
        struct cost cost = measure(&FAMILIES[i], rounds);
        printf("%-26s %8.1f", FAMILIES[i].name, cost.mean);
        print_p99(cost.p99);
        printf(" %8.1f %8.1f\n", cost.clocks, cost.mean - cost.clocks);
    }
}

static void print_growth(const char *title, const struct subject *subject, int *many, int most,
                         int rounds)
{
    double p99[5];
    int steps = 0;
    printf("%-26s", title);
    for (*many = 1; *many <= most; *many *= 10) {
        for (int calls = 0; calls < 8 * *many; calls += BATCH) { /* each has been there before */
            subject->before();
            subject->wrapped(BATCH);
            subject->after();
        }
        struct cost cost = measure(subject, rounds);
        p99[steps++] = cost.p99;
        printf(" %8.1f", cost.mean);
    }
    *many = 1;
    if (p99[0] >= 0)
        printf("\n%-26s", "    99th percentile");
    for (int i = 0; i < steps && p99[0] >= 0; i++)
        print_p99(p99[i]);
    printf("\n");
}

/* Each communicator in turn, once each has been used. */
static double added_in_turn(int rounds)
{
    double added = 0;
    int count = 2 * 64 * (communicators < 100 ? 100 : communicators);
    wrapped_in_turn(communicators);
    for (int i = 0; i < rounds; i++)
        added += timed(wrapped_in_turn, count) - timed(direct_in_turn, count);
    return added / rounds;
}

static void print_in_turn(const char *title, int rounds)
{
    printf("%-26s", title);
    for (communicators = 1; communicators <= 1000; communicators *= 10)
        printf(" %8.1f", added_in_turn(rounds));
    communicators = 1;
    printf("\n");
}

/* So many other threads are there, each with a call counted. */

static pthread_barrier_t all_there, all_leave;

static void *call_once(void *unused)
{
    wrapped_Allreduce(1);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_leave);
    return unused;
}

static double added_among_threads(const struct subject *subject, int many, int rounds)
{
    pthread_t *threads = calloc((size_t)many, sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    pthread_barrier_init(&all_there, NULL, (unsigned)many + 1);
    pthread_barrier_init(&all_leave, NULL, (unsigned)many + 1);
    for (int i = 0; i < many; i++)
        if (pthread_create(&threads[i], &small, call_once, NULL) != 0) {
            fprintf(stderr, "growth: cannot make %d threads\n", many);
            exit(1);
        }
    pthread_barrier_wait(&all_there);
    double added = measure(subject, rounds).mean;
    pthread_barrier_wait(&all_leave);
    for (int i = 0; i < many; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return added;
}

static void print_among_threads(const char *title, const struct subject *subject, int rounds)
{
    printf("%-26s", title);
    for (int many = 1; many <= 1000; many *= 10)
        printf(" %8.1f", added_among_threads(subject, many, rounds));
    printf("\n");
}

static void prepare(void)
{
    int provided;
    void *toy = dlopen("libtoy_mpi.so", RTLD_LAZY | RTLD_NOLOAD);
    if (!toy) {
        fprintf(stderr, "growth: %s\n", dlerror());
        exit(1);
    }
#define RESOLVE(NAME) real_##NAME = (__typeof__(real_##NAME))dlsym(toy, "PMPI_" #NAME);
    EACH(RESOLVE)
    MPI_Init_thread(NULL, NULL, 0, &provided); /* MPI_THREAD_SINGLE: the table of requests without
                                                  compare-and-swap, as most jobs have it */
    comms[0] = TOY_WORLD;
    for (int i = 1; i < MANY; i++)
        MPI_Comm_dup(TOY_WORLD, &comms[i]);
    for (int i = 0; i < BATCH; i++)
        MPI_Send_init(data, 8, TOY_BYTE, 1, 0, TOY_WORLD, &starters[i]);
    MPI_Win_create(data, sizeof data, 1, TOY_INFO_NULL, TOY_WORLD, &window);
    MPI_File_open(TOY_WORLD, "", 0, TOY_INFO_NULL, &file);
    for (int i = 0; i < TOY_RANKS; i++)
        counts[i] = 1;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    const struct subject allreduce = SUBJECT("Allreduce", Allreduce, nothing, nothing);
    const struct subject send = SUBJECT("Send", Send, nothing, nothing);
    const struct subject posted = SUBJECT("Isend", Isend, nothing, complete);
    prepare();
    print_families(rounds);
    printf("\n%-26s %8d %8d %8d %8d %8d\n", "ns added (mean), of so many", 1, 10, 100, 1000, 10000);
    print_growth("Allreduce, sizes", &allreduce, &sizes, SIZES_MOST, rounds);
    print_growth("Allreduce, communicators", &allreduce, &communicators, MANY, rounds);
    print_in_turn("Allreduce, in turn", rounds / 20 + 1);
    print_growth("Send, peers", &send, &peers, MANY, rounds);
    print_growth("Isend, peers", &posted, &peers, MANY, rounds);
    print_among_threads("Allreduce, threads", &allreduce, rounds);
    MPI_Finalize();
    return 0;
}
