/* Communicates for a number of rounds, or until a fault ends it:
 *
 *     ends ROUNDS THREADS [FAULT AT VICTIM DELAY_NS]
 *
 * Each process counts its own calls in the file $TRUTH/<pid>, one row for each kind: how many it
 * has begun and how many have returned. However the process ends, every call that has returned must
 * be recorded, and none that had not begun.
 *
 * FAULT occurs on rank VICTIM (-1: all ranks) when it begins its AT-th call (1: MPI_Init, 0:
 * MPI_Finalize). Signals are sent DELAY_NS later, wherever the process is by then. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

#include "check.h"

enum { MOST_BYTES = 4096, MOST_THREADS = 8, MOST_COMMUNICATORS = 12 };
enum kind { INIT, SENDRECV, ISEND, RECV, WAIT, ALLREDUCE, COMM_DUP, COMM_FREE, FINALIZE, KINDS };

struct count {
    char name[24];
    uint64_t begun, returned;
};

static struct count *truth;

static const char *const NAMES[KINDS] = {"MPI_Init_thread", "MPI_Sendrecv",  "MPI_Isend",
                                         "MPI_Recv",        "MPI_Wait",      "MPI_Allreduce",
                                         "MPI_Comm_dup",    "MPI_Comm_free", "MPI_Finalize"};

static const char *fault = "none";
static uint64_t strikes_at, calls_begun;
static long delay_ns;
static int rounds;

/* The faults. */

static void raise_later(int number)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
    struct itimerspec once = {.it_value = {delay_ns / 1000000000, delay_ns % 1000000000 + 1}};
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    CHECK(timer_settime(timer, 0, &once, NULL) == 0);
}

static void crash(void)
{
    static int *volatile nothing; /* volatile: else the compiler would remove the invalid access */
    *nothing = 1;
}

static int overflow(int depth)
{
    volatile char frame[4096];
    frame[0] = (char)depth;
    return depth < 0 ? 0 : overflow(depth + 1) + frame[0];
}

/* From here on all allocations in this process fail. */
static void use_up_memory(void)
{
    struct rlimit no_more = {1 << 20, 1 << 20};
    CHECK(setrlimit(RLIMIT_AS, &no_more) == 0);
    for (size_t bytes = 1 << 20; bytes >= 16; bytes /= 2)
        while (malloc(bytes)) {
        }
}

/* The kernel kills this process or another one of its memory cgroup. */
static void use_too_much_memory(void)
{
    for (;;)
        memset(malloc(1 << 20), 1, 1 << 20);
}

static void strike(void)
{
    if (strcmp(fault, "SIGKILL") == 0)
        raise_later(SIGKILL);
    else if (strcmp(fault, "SIGTERM") == 0)
        raise_later(SIGTERM);
    else if (strcmp(fault, "crash") == 0)
        crash();
    else if (strcmp(fault, "overflow") == 0)
        overflow(0);
    else if (strcmp(fault, "abort") == 0)
        abort();
    else if (strcmp(fault, "MPI_Abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    else if (strcmp(fault, "exit") == 0)
        exit(3);
    else if (strcmp(fault, "_exit") == 0)
        _exit(3);
    else if (strcmp(fault, "no-memory") == 0)
        use_up_memory();
    else if (strcmp(fault, "too-much-memory") == 0)
        use_too_much_memory();
    while (strcmp(fault, "hang") == 0)
        pause();
}

/* The true counts. */

static void open_truth(void)
{
    char path[4096];
    CHECK(getenv("TRUTH") != NULL);
    snprintf(path, sizeof path, "%s/%d", getenv("TRUTH"), (int)getpid());
    int file = open(path, O_RDWR | O_CREAT | O_EXCL, 0666);
    CHECK(file >= 0 && ftruncate(file, KINDS * sizeof *truth) == 0);
    truth = mmap(NULL, KINDS * sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(truth != MAP_FAILED && close(file) == 0);
    for (int kind = 0; kind < KINDS; kind++)
        strcpy(truth[kind].name, NAMES[kind]);
}

static void begin(enum kind kind)
{
    __atomic_fetch_add(&truth[kind].begun, 1, __ATOMIC_RELAXED);
    uint64_t number = __atomic_add_fetch(&calls_begun, 1, __ATOMIC_RELAXED);
    if (strikes_at ? number == strikes_at : kind == FINALIZE)
        strike();
}

static void end(enum kind kind)
{
    __atomic_fetch_add(&truth[kind].returned, 1, __ATOMIC_RELAXED);
}

/* Makes a call and updates its two counts. */
#define TRULY(KIND, CALL) (begin(KIND), CALL, end(KIND))

/* The work: messages of many sizes, so that the ledger grows and then folds; communicators that are
 * created and freed. Ranks synchronize rarely, because there may be fewer cores than ranks. */

static void to_itself(int round, int tag)
{
    char sent[MOST_BYTES] = "", received[MOST_BYTES];
    int bytes = (int)(round * 2654435761u % MOST_BYTES);
    MPI_Request request;
    TRULY(ISEND, MPI_Isend(sent, bytes, MPI_BYTE, 0, tag, MPI_COMM_SELF, &request));
    TRULY(RECV, MPI_Recv(received, MOST_BYTES, MPI_BYTE, 0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    TRULY(WAIT, MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void around(int round, MPI_Comm comm)
{
    char sent[MOST_BYTES] = "", received[MOST_BYTES];
    int bytes = (int)(round * 2246822519u % MOST_BYTES), rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    TRULY(SENDRECV, MPI_Sendrecv(sent, bytes, MPI_BYTE, (rank + 1) % size, 0, received, bytes,
                                 MPI_BYTE, (rank + size - 1) % size, 0, comm, MPI_STATUS_IGNORE));
    TRULY(ALLREDUCE, MPI_Allreduce(sent, received, bytes / 8, MPI_UINT64_T, MPI_BOR, comm));
}

static void work(void)
{
    MPI_Comm comms[MOST_COMMUNICATORS];
    for (int round = 0; round < rounds; round++) {
        int made = round / 8;
        to_itself(round, 0);
        if (round % 8 == 0 && made < MOST_COMMUNICATORS) {
            TRULY(COMM_DUP, MPI_Comm_dup(MPI_COMM_WORLD, &comms[made]));
            around(round, comms[made]);
            if (made % 2)
                TRULY(COMM_FREE, MPI_Comm_free(&comms[made]));
        } else if (round % 8 == 0)
            around(round, MPI_COMM_WORLD);
    }
}

static void *work_of_a_thread(void *tag)
{
    for (int round = 0; round < rounds; round++)
        to_itself(round, (int)(intptr_t)tag);
    return NULL;
}

static void read_arguments(int argc, char **argv)
{
    const char *rank =
        getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    rounds = atoi(argv[1]);
    if (argc == 7 && rank && (atoi(argv[5]) < 0 || atoi(argv[5]) == atoi(rank))) {
        fault = argv[3];
        strikes_at = (uint64_t)atoll(argv[4]);
        delay_ns = atol(argv[6]);
    }
}

int main(int argc, char **argv)
{
    int threads = argc > 2 ? atoi(argv[2]) : 0, level;
    pthread_t thread[MOST_THREADS];
    CHECK((argc == 3 || argc == 7) && threads <= MOST_THREADS);
    read_arguments(argc, argv);
    open_truth();

    TRULY(INIT,
          MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level));
    for (int i = 0; i < threads; i++)
        CHECK(pthread_create(&thread[i], NULL, work_of_a_thread, (void *)(intptr_t)(i + 1)) == 0);
    work();
    for (int i = 0; i < threads; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    TRULY(FINALIZE, MPI_Finalize());
    return 0;
}
