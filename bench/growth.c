/* Time that the profiler adds to a call of each family, in nanoseconds, and how that grows with the
 * number of message sizes, peers, communicators, threads and requests. Linked with toy_mpi.c, an
 * MPI library that does nothing; otherwise as overhead.c: medians of batches, wrapped and direct in
 * turn. And the 99th percentile of single calls, wrapped minus direct, where they need no
 * preparation.
 *
 *     growth [rounds] */
#include "timing.h"
#include "toy_mpi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BATCH = 1000,
    ROUNDS = 400,
    SINGLES = 20000,
    MANY = 1000,
    SIZES_MOST = 10000,
    REQUESTS_MOST = 100000,
    LOG_CALLS = 128000
};

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
    int is_each; /* the call's time is that of a thousand requests */
};

#define SUBJECT(TITLE, NAME, BEFORE, AFTER)                    \
    {                                                          \
        TITLE, BEFORE, wrapped_##NAME, direct_##NAME, AFTER, 0 \
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
    {"Waitall of 1000, each", post, wrapped_Waitall, direct_Waitall, nothing, 1},
    SUBJECT("Waitany of 1000", Waitany, post, nothing),
    {"Testsome of 1000, each", post, wrapped_Testsome, direct_Testsome, complete, 1},
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
    double median, p99, clocks; /* p99: negative if there is none */
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
    double wrapped[ROUNDS], direct[ROUNDS], clocks[ROUNDS], p99 = -1;
    for (int i = 0; i < rounds; i++) {
        int next_request = toy_next_request, freed_count = toy_freed_count;
        direct[i] = timed(subject->direct, BATCH);
        toy_next_request = next_request;
        toy_freed_count = freed_count;
        clocks[i] = timed(two_clock_reads, BATCH);
        subject->before();
        wrapped[i] = timed(subject->wrapped, BATCH);
        subject->after();
    }
    if (subject->before == nothing && subject->after == nothing)
        p99 = p99_of_singles(subject->wrapped) - p99_of_singles(subject->direct);
    return (struct cost){percentile(wrapped, rounds, 50) - percentile(direct, rounds, 50), p99,
                         percentile(clocks, rounds, 50)};
}

static void print(const char *name, int many, struct cost cost, int calls)
{
    char row[64];
    snprintf(row, sizeof row, many ? "%s %d" : "%s", name, many);
    printf("%-34s %8s %8.1f %8.1f", row, "", cost.median, calls * cost.clocks);
    printf(cost.p99 < 0 ? "\n" : " %8.0f\n", cost.p99);
}

static void print_families(int rounds)
{
    printf("%-34s %8s %8s %8s %8s\n", "ns per call", "", "added", "floor", "p99");
    for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++)
        print(FAMILIES[i].name, 0, measure(&FAMILIES[i], rounds), !FAMILIES[i].is_each);
}

/* One of them, and most. */
static void print_growth(const char *title, const struct subject *subject, int *many, int most,
                         int rounds)
{
    for (*many = 1; *many; *many = *many == 1 ? most : 0) {
        for (int calls = 0; calls < 8 * *many; calls += BATCH) { /* each has been there before */
            subject->before();
            subject->wrapped(BATCH);
            subject->after();
        }
        print(title, *many, measure(subject, rounds), 1);
    }
    *many = 1;
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

static void print_among_threads(const char *title, const struct subject *subject, int many,
                                int rounds)
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
    print(title, many, measure(subject, rounds), 1);
    pthread_barrier_wait(&all_leave);
    for (int i = 0; i < many; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}

/* So many other requests are open. */

static void wrapped_pair(int count)
{
    for (int i = 0; i < count; i++) {
        MPI_Irecv(answer, SIZES_MOST, TOY_BYTE, 0, 0, TOY_WORLD, &requests[0]);
        MPI_Wait(&requests[0], TOY_IGNORE);
    }
}

static void direct_pair(int count)
{
    for (int i = 0; i < count; i++) {
        real_Irecv(answer, SIZES_MOST, TOY_BYTE, 0, 0, TOY_WORLD, &requests[0]);
        real_Wait(&requests[0], TOY_IGNORE);
    }
}

static void print_among_requests(const char *title, int many, int rounds)
{
    static int open[REQUESTS_MOST];
    const struct subject pair = {title, nothing, wrapped_pair, direct_pair, nothing, 0};
    for (int i = 0; i < many; i++)
        MPI_Irecv(answer, SIZES_MOST, TOY_BYTE, 0, 0, TOY_WORLD, &open[i]);
    print(title, many, measure(&pair, rounds), 2);
    MPI_Waitall(many, open, TOY_IGNORE);
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
    for (int i = 0; i < LOG_CALLS; i += BATCH)
        wrapped_Bcast(BATCH); /* the log of samples is full then */
    print_families(rounds);
    print_growth("Allreduce, sizes at random:", &allreduce, &sizes, SIZES_MOST, rounds);
    print_growth("Allreduce, communicators:", &allreduce, &communicators, MANY, rounds);
    print_growth("Send, peers:", &send, &peers, MANY, rounds);
    print_growth("Isend, peers:", &posted, &peers, MANY, rounds);
    print_among_threads("Allreduce, other threads:", &allreduce, 1, rounds);
    print_among_threads("Allreduce, other threads:", &allreduce, 64, rounds);
    print_among_requests("Irecv, Wait, open requests:", 1, rounds);
    print_among_requests("Irecv, Wait, open requests:", REQUESTS_MOST, rounds);
    MPI_Finalize();
    return 0;
}
