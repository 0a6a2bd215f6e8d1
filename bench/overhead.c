/* Time that the profiler adds to a call, in nanoseconds: each function is called through its
 * wrapper and directly in the MPI library, batch by batch in turn, within one process, so that both
 * see the same machine. Run it with the profiler preloaded, on one rank; it works with any MPI.
 * Everything happens on MPI_COMM_WORLD, where a call is short and its overhead shows best.
 *
 *     overhead [rounds]             a table. The floor are two bare readings of the processor's
 *                                   counter for each call
 *     overhead --count CALL N       call it N times and nothing else (for counting
 * instructions) */
#define _GNU_SOURCE
#include "timing.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, ROUNDS = 4000, SIZES_MAX = 1000, LOG_CALLS = 128000 };

static int (*real_Allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
static int (*real_Bcast)(void *, int, MPI_Datatype, int, MPI_Comm);
static int (*real_Send)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
static int (*real_Recv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
static int (*real_Isend)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
static int (*real_Irecv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
static int (*real_Wait)(MPI_Request *, MPI_Status *);
static int (*real_Waitall)(int, MPI_Request *, MPI_Status *);
static int (*real_Test)(MPI_Request *, int *, MPI_Status *);
static int (*real_Iprobe)(int, int, MPI_Comm, int *, MPI_Status *);
static int (*real_Barrier)(MPI_Comm);

static char *out, *in;
static MPI_Request requests[BATCH];
static int flag, spread;

/* With `spread`, sizes differ from call to call: 1 to SIZES_MAX bytes. */
static int size_of(int i)
{
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return spread ? 1 + (int)((state >> 8) % SIZES_MAX) : 8 + 0 * i;
}

static void post_receives(void)
{
    for (int i = 0; i < BATCH; i++)
        real_Irecv(in, SIZES_MAX, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
}

static void post_sends(void)
{
    for (int i = 0; i < BATCH; i++)
        real_Isend(out, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
}

static void post_pairs(void)
{
    for (int i = 0; i < BATCH / 2; i++) {
        MPI_Irecv(in, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Isend(out, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
}

static void receive_rest(void)
{
    for (int i = 0; i < BATCH; i++)
        real_Recv(in, SIZES_MAX, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(BATCH, requests, MPI_STATUSES_IGNORE);
}

static void wait_all(void)
{
    real_Waitall(BATCH, requests, MPI_STATUSES_IGNORE);
}

/* A request started through a wrapper is completed through one, or the profiler would wait for it
 * for ever. */
static void send_and_wait(void)
{
    for (int i = 0; i < BATCH; i++)
        real_Send(out, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    MPI_Waitall(BATCH, requests, MPI_STATUSES_IGNORE);
}

static void nothing(void)
{
}

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

BOTH(Allreduce, out, in, size_of(i), MPI_BYTE, MPI_BOR, MPI_COMM_WORLD)
BOTH(Bcast, out, size_of(i), MPI_BYTE, 0, MPI_COMM_WORLD)
BOTH(Barrier, MPI_COMM_WORLD)
BOTH(Send, out, size_of(i), MPI_BYTE, 0, 1, MPI_COMM_WORLD)
BOTH(Recv, in, SIZES_MAX, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
BOTH(Isend, out, size_of(i), MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i])
BOTH(Irecv, in, SIZES_MAX, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i])
BOTH(Wait, &requests[i], MPI_STATUS_IGNORE)
BOTH(Test, &requests[0], &flag, MPI_STATUS_IGNORE)
BOTH(Iprobe, 0, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE)

/* Three calls: their cost is that of all. */
#define TRIPLE(PREFIX)                                                        \
    for (int i = 0; i < count; i++) {                                         \
        PREFIX##_Irecv(in, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[0]);  \
        PREFIX##_Isend(out, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[1]); \
        PREFIX##_Waitall(2, requests, MPI_STATUSES_IGNORE);                   \
    }

static void wrapped_triple(int count)
{
    TRIPLE(MPI)
}

static void direct_triple(int count)
{
    TRIPLE(real)
}

/* One call for the whole batch: its cost is divided by the number of requests. */
static void wrapped_Waitall(int count)
{
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void direct_Waitall(int count)
{
    real_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static const struct subject {
    const char *name;
    int spread;
    void (*before)(void);
    void (*wrapped)(int);
    void (*direct)(int);
    void (*after)(void);
} SUBJECTS[] = {
    {"Allreduce", 0, nothing, wrapped_Allreduce, direct_Allreduce, nothing},
    {"Allreduce, 1000 sizes", 1, nothing, wrapped_Allreduce, direct_Allreduce, nothing},
    {"Bcast", 0, nothing, wrapped_Bcast, direct_Bcast, nothing},
    {"Barrier", 0, nothing, wrapped_Barrier, direct_Barrier, nothing},
    {"Send", 0, post_receives, wrapped_Send, direct_Send, wait_all},
    {"Recv", 0, post_sends, wrapped_Recv, direct_Recv, wait_all},
    {"Irecv", 0, nothing, wrapped_Irecv, direct_Irecv, send_and_wait},
    {"Isend", 0, nothing, wrapped_Isend, direct_Isend, receive_rest},
    {"Wait", 0, post_pairs, wrapped_Wait, direct_Wait, nothing},
    {"Waitall, per request", 0, post_pairs, wrapped_Waitall, direct_Waitall, nothing},
    {"Irecv, Isend, Waitall", 0, nothing, wrapped_triple, direct_triple, nothing},
    {"Test, nothing there", 0, post_receives, wrapped_Test, direct_Test, send_and_wait},
    {"Iprobe, nothing there", 0, nothing, wrapped_Iprobe, direct_Iprobe, nothing},
};
enum { SUBJECT_COUNT = sizeof SUBJECTS / sizeof SUBJECTS[0] };

/* Medians of batches: each batch has all that a call may meet, one new page of samples included,
 * and a batch that another process interrupted does not show. */
static void measure(const struct subject *subject, int rounds)
{
    double *wrapped = malloc((size_t)rounds * sizeof *wrapped),
           *direct = malloc((size_t)rounds * sizeof *direct);
    double *clocks = malloc((size_t)rounds * sizeof *clocks);
    spread = subject->spread;
    for (int i = 0; i < rounds; i++) {
        subject->before();
        direct[i] = timed(subject->direct, BATCH);
        subject->after();
        clocks[i] = timed(two_clock_reads, BATCH);
        subject->before();
        wrapped[i] = timed(subject->wrapped, BATCH);
        subject->after();
    }
    int calls = subject->wrapped == wrapped_triple    ? 3
                : subject->wrapped == wrapped_Waitall ? 0
                                                      : 1;
    double p99 = percentile(wrapped, rounds, 99) - percentile(direct, rounds, 99);
    double without = percentile(direct, rounds, 50);
    printf("%-34s %8.1f %8.1f %8.1f %8.1f\n", subject->name, without,
           percentile(wrapped, rounds, 50) - without, calls * percentile(clocks, rounds, 50), p99);
    free(wrapped);
    free(direct);
    free(clocks);
}

static void *library(void)
{
    static const char *const NAMES[] = {"libmpi.so.40",    "libmpich.so.12", "libmpi.so.12",
                                        "libmpi_abi.so.1", "libmpi.so.0",    NULL};
    for (const char *const *name = NAMES; *name; name++) {
        void *handle = dlopen(*name, RTLD_LAZY | RTLD_NOLOAD);
        if (handle)
            return handle;
    }
    fprintf(stderr, "overhead: no MPI library that it knows is loaded\n");
    exit(1);
}

static void resolve(void)
{
    void *handle = library();
#define REAL(NAME) real_##NAME = (__typeof__(real_##NAME))dlsym(handle, "PMPI_" #NAME)
    REAL(Allreduce);
    REAL(Bcast);
    REAL(Send);
    REAL(Recv);
    REAL(Isend);
    REAL(Irecv);
    REAL(Wait);
    REAL(Waitall);
    REAL(Test);
    REAL(Iprobe);
    REAL(Barrier);
    Dl_info found;
    if (dladdr((void *)real_Barrier, &found) && strstr(found.dli_fname, "commprof")) {
        fprintf(stderr, "overhead: COMMPROF_DLSYM=off is needed to call MPI directly\n");
        exit(1);
    }
}

__attribute__((noinline)) static int count_only(const char *name, long calls)
{
    for (int i = 0; i < SUBJECT_COUNT; i++) {
        const struct subject *subject = &SUBJECTS[i];
        if (strcmp(subject->name, name) != 0)
            continue;
        spread = subject->spread;
        for (long done = 0; done < calls; done += BATCH) {
            subject->before();
            subject->wrapped(BATCH);
            subject->after();
        }
        return 0;
    }
    fprintf(stderr, "overhead: no subject is called %s\n", name);
    return 1;
}

static int is_asked(const char *name, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return argc <= 2;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    resolve();
    out = calloc(1, SIZES_MAX);
    in = calloc(1, SIZES_MAX);
    int result = 0;
    if (argc == 4 && strcmp(argv[1], "--count") == 0)
        result = count_only(argv[2], atol(argv[3]));
    else {
        int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
        printf("%-34s %8s %8s %8s %8s\n", "ns per call", "without", "added", "floor", "p99");
        for (int i = 0; i < LOG_CALLS; i += BATCH)
            wrapped_Bcast(BATCH); /* the log of samples is full then */
        for (int i = 0; i < SUBJECT_COUNT; i++)
            if (is_asked(SUBJECTS[i].name, argc, argv))
                measure(&SUBJECTS[i], rounds);
    }
    MPI_Finalize();
    return result;
}
