/* plants NAME[:PLAN] ROUNDS BASE_US DELAY_US RANKS: a program with a planted fault. In each round
 * every rank works for BASE_US; RANKS (such as 2,3) work DELAY_US longer where the plant NAME says
 * so, and the others wait for them. Without delay it is the plant's balanced twin.
 *
 * Each rank logs what it did by its own CLOCK_MONOTONIC, and writes the file log-RANK at the end, a
 * line an event:
 *     event KIND CALL WHERE PEER BYTES COMPLETED START_NS END_NS
 * KIND: work; call (collective); start (nonblocking or persistent collective); send, recv, isend,
 * irecv; wait; probe (until the message of the next recv is found); of an epoch of a window post,
 * access (Win_start), done (Win_complete), exposed (Win_wait). WHERE: the communicator, whose ranks
 * "communicator NAME RANK..." lists. PEER: the other rank of a message, the root of a collective,
 * else -1. COMPLETED: the event that completed this one, or -1. tests/truth computes from these
 * files who waited for whom. */
#include <commprof.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "mpi_4.h"
#include "tensor_lists.h"

enum {
    COUNT = 1024,
    EAGER = 64,
    RENDEZVOUS = 1 << 20,
    PAGE = 4096,
    EVENTS = 1 << 16,
    MOST_PENDING = 32,
    MICRO_BATCHES = 4,
    BUCKETS = 3,
    NOBODY = -1
};

struct event {
    const char *kind, *call, *where;
    int peer, bytes, completed;
    int64_t start_ns, end_ns;
};

struct pending {
    MPI_Request requests[MOST_PENDING];
    int events[MOST_PENDING];
    int count;
};

static struct event events[EVENTS];
static int event_count;
static int rank, size, rounds, first_late_rank, is_late_rank;
static int64_t base_ns, delay_ns;
static double values[COUNT], sums[BUCKETS][COUNT];
static char message[RENDEZVOUS], arrived[MOST_PENDING][RENDEZVOUS];
static MPI_Comm replicas_of_stage, beside_world;

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int event_begin(const char *kind, const char *call, const char *where, int peer, int bytes)
{
    CHECK(event_count < EVENTS);
    events[event_count] =
        (struct event){kind, call, where, peer, bytes, NOBODY, now_ns(CLOCK_MONOTONIC), 0};
    return event_count++;
}

static void event_end(int event)
{
    events[event].end_ns = now_ns(CLOCK_MONOTONIC);
}

#define LOGGED(kind, name, where, peer, bytes, ...)                      \
    do {                                                                 \
        int logged_event = event_begin(kind, #name, where, peer, bytes); \
        MPI_##name(__VA_ARGS__);                                         \
        event_end(logged_event);                                         \
    } while (0)

#define PENDING(pending, kind, name, where, peer, bytes, ...) \
    do {                                                      \
        CHECK((pending)->count < MOST_PENDING);               \
        (pending)->events[(pending)->count] = event_count;    \
        LOGGED(kind, name, where, peer, bytes, __VA_ARGS__,   \
               &(pending)->requests[(pending)->count]);       \
        (pending)->count++;                                   \
    } while (0)

static void complete(struct pending *pending)
{
    if (pending->count == 0)
        return;
    int event = event_begin("wait", pending->count == 1 ? "Wait" : "Waitall", "-", NOBODY, 0);
    if (pending->count == 1)
        MPI_Wait(pending->requests, MPI_STATUS_IGNORE);
    else
        MPI_Waitall(pending->count, pending->requests, MPI_STATUSES_IGNORE);
    event_end(event);
    for (int i = 0; i < pending->count; i++)
        events[pending->events[i]].completed = event;
    pending->count = 0;
}

/* Work: the rank sleeps, so that plants have cores enough; time is what the clock says. */

static void work(int64_t work_ns)
{
    int event = event_begin("work", "-", "-", NOBODY, 0);
    if (work_ns > 0)
        nanosleep(&(struct timespec){work_ns / 1000000000, work_ns % 1000000000}, NULL);
    event_end(event);
}

static void work_or_be_late(int is_late)
{
    work(base_ns + (is_late ? delay_ns : 0));
}

/* Work for the processor, the same amount on every rank: a neighbour on the core makes it last
 * longer. */
static void compute(int64_t cpu_ns)
{
    int event = event_begin("work", "-", "-", NOBODY, 0);
    for (int64_t end_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_ns;
         now_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns;)
        continue;
    event_end(event);
}

static void allreduce(void)
{
    LOGGED("call", Allreduce, "world", NOBODY, sizeof values, values, sums[0], COUNT, MPI_DOUBLE,
           MPI_SUM, MPI_COMM_WORLD);
}

static void barrier(void)
{
    LOGGED("call", Barrier, "world", NOBODY, 0, MPI_COMM_WORLD);
}

static unsigned random_number(void)
{
    static unsigned state;
    if (!state)
        state = 2463534242u + 97531u * (unsigned)rank;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

/* Collectives */

static void blocking(int round)
{
    (void)round;
    work_or_be_late(is_late_rank);
    allreduce();
}

static void nonblocking(int round)
{
    static struct pending pending;
    (void)round;
    work_or_be_late(is_late_rank);
    for (int i = 0; i < BUCKETS; i++)
        PENDING(&pending, "start", Iallreduce, "world", NOBODY, sizeof values, values, sums[i],
                COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    complete(&pending);
}

/* Late ranks work between the start and the completion. */
static void held_up(int round)
{
    static struct pending pending;
    (void)round;
    PENDING(&pending, "start", Iallreduce, "world", NOBODY, sizeof values, values, sums[0], COUNT,
            MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    work_or_be_late(is_late_rank);
    complete(&pending);
}

#if HAS_MPI_4
static void persistent(int round)
{
    static struct pending pending;
    work_or_be_late(is_late_rank);
    for (int i = 0; i < BUCKETS; i++) {
        if (round == 0)
            MPI_Allreduce_init(values, sums[i], COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                               MPI_INFO_NULL, &pending.requests[i]);
        pending.events[i] = event_begin("start", "Allreduce_init", "world", NOBODY, sizeof values);
        MPI_Start(&pending.requests[i]);
        event_end(pending.events[i]);
    }
    pending.count = BUCKETS;
    complete(&pending);
}
#endif

/* The root is the first late rank. */
static void late_root(int round)
{
    (void)round;
    work_or_be_late(is_late_rank);
    LOGGED("call", Bcast, "world", first_late_rank, sizeof values, values, COUNT, MPI_DOUBLE,
           first_late_rank, MPI_COMM_WORLD);
}

/* The root, rank 0, comes before a rank that it needs. */
static void early_reduce(int round)
{
    (void)round;
    work_or_be_late(is_late_rank);
    LOGGED("call", Reduce, "world", 0, sizeof values, values, sums[0], COUNT, MPI_DOUBLE, MPI_SUM,
           0, MPI_COMM_WORLD);
}

/* Rank 0 is the root; ranks that are inner ones of its tree may be late. */
static void late_inner(int round)
{
    (void)round;
    work_or_be_late(is_late_rank);
    LOGGED("call", Bcast, "world", 0, RENDEZVOUS, message, RENDEZVOUS, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void staircase(int round)
{
    (void)round;
    work(base_ns + delay_ns * rank / (size - 1));
    allreduce();
}

static void work_random(void)
{
    work(base_ns + (int64_t)(random_number() / 4294967296.0 * (double)delay_ns));
}

static void random_imbalance(int round)
{
    (void)round;
    work_random();
    allreduce();
}

static void rotation(int round)
{
    work_or_be_late(rank == round % size);
    allreduce();
}

/* Rank 1 is late before each Allreduce, rank 0 before each Barrier. */
static void by_call(int round)
{
    (void)round;
    work_or_be_late(rank == 1);
    allreduce();
    work_or_be_late(rank == 0);
    barrier();
}

/* The delay grows from nothing to twice DELAY_US. */
static void drift(int round)
{
    work(base_ns + (is_late_rank ? 2 * delay_ns * round / rounds : 0));
    allreduce();
}

/* Processes that compute on the cores of the late rank, from the first round to the last. */
static void neighbours(int round)
{
    static pid_t processes[6];
    for (size_t i = 0; i < sizeof processes / sizeof processes[0]; i++) {
        if (round == 0 && (processes[i] = fork()) == 0)
            for (;;)
                continue;
        if (round == rounds - 1) {
            kill(processes[i], SIGKILL);
            waitpid(processes[i], NULL, 0);
        }
    }
}

static void computing(int round)
{
    (void)round;
    compute(base_ns + (is_late_rank ? delay_ns : 0));
    allreduce();
}

/* The main thread waits for another one of its process, which computes. */
static void *help(void *unused)
{
    int64_t cpu_ns = base_ns + (is_late_rank ? delay_ns : 0);
    for (int64_t end_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_ns;
         now_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns;)
        continue;
    return unused;
}

static void helped(int round)
{
    (void)round;
    pthread_t helper;
    int event = event_begin("work", "-", "-", NOBODY, 0);
    CHECK(pthread_create(&helper, NULL, help, NULL) == 0);
    CHECK(pthread_join(helper, NULL) == 0);
    event_end(event);
    allreduce();
}

/* The second third of the run. */
static void one_third(int round)
{
    work_or_be_late(is_late_rank && round * 3 / rounds == 1);
    allreduce();
}

/* The sizes take turns; rank 0 to the last work alike. */
static void sizes(int round)
{
    int counts[] = {32, 256, COUNT};
    (void)round;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        work_or_be_late(is_late_rank);
        LOGGED("call", Allreduce, "world", NOBODY, counts[i] * (int)sizeof values[0], values,
               sums[0], counts[i], MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

/* Two threads communicate; late ranks are late on the second one, which alone is logged. */
static void *second_thread(void *unused)
{
    for (int round = 0; round < rounds; round++)
        blocking(round);
    return unused;
}

static void beside_second(int round)
{
    (void)round;
    nanosleep(&(struct timespec){0, base_ns}, NULL);
    MPI_Barrier(beside_world);
}

static void noisy_neighbour(int round)
{
    if (is_late_rank && delay_ns > 0)
        neighbours(round);
    compute(base_ns);
    allreduce();
}

/* Messages: even ranks send to the next rank. */

static void send_to(int peer, int bytes)
{
    LOGGED("send", Send, "world", peer, bytes, message, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
}

static void receive_from(int peer, int bytes)
{
    LOGGED("recv", Recv, "world", peer, bytes, arrived[0], bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
}

static void pass_message(int bytes)
{
    if (rank % 2 == 0)
        send_to(rank + 1, bytes);
    else
        receive_from(rank - 1, bytes);
}

static void pass(int bytes)
{
    work_or_be_late(is_late_rank);
    pass_message(bytes);
}

static void pass_eager(int round)
{
    (void)round;
    pass(EAGER);
}

/* The first late rank, which is not late, sends to all others. */
static void fan_out(int round)
{
    (void)round;
    work_random();
    if (rank != first_late_rank)
        receive_from(first_late_rank, EAGER);
    for (int other = 0; rank == first_late_rank && other < size; other++)
        if (other != rank)
            send_to(other, EAGER);
}

/* Rank 0 answers requests, and works for each if it is late. */
static void serve(int round)
{
    (void)round;
    if (rank > 0) {
        work(base_ns);
        send_to(0, EAGER);
        receive_from(0, EAGER);
    }
    for (int other = 1; rank == 0 && other < size; other++) {
        receive_from(other, EAGER);
        work(is_late_rank ? delay_ns / (size - 1) : 0);
        send_to(other, EAGER);
    }
}

/* Rank 0 gathers what all have found, and works like them; then all meet. */
static void collect(int round)
{
    (void)round;
    work_or_be_late(is_late_rank);
    if (rank > 0)
        send_to(0, EAGER);
    for (int other = 1; rank == 0 && other < size; other++)
        receive_from(other, EAGER);
    allreduce();
}

/* Each rank sends to the next one, and receives from the one before; then all meet. */
static void ring(int round)
{
    (void)round;
    work_or_be_late(is_late_rank);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    send_to(next, EAGER);
    receive_from(previous, EAGER);
    allreduce();
}

/* Messages to and from both neighbours, completed together. */
static void halo(int round)
{
    static struct pending pending;
    int neighbours_of[] = {(rank + 1) % size, (rank + size - 1) % size};
    (void)round;
    work_or_be_late(is_late_rank);
    for (int i = 0; i < 2; i++)
        PENDING(&pending, "irecv", Irecv, "world", neighbours_of[i], PAGE, arrived[i], PAGE,
                MPI_BYTE, neighbours_of[i], 0, MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++)
        PENDING(&pending, "isend", Isend, "world", neighbours_of[i], PAGE, message, PAGE, MPI_BYTE,
                neighbours_of[i], 0, MPI_COMM_WORLD);
    complete(&pending);
}

/* Ranks of the first half and of the second exchange messages; nothing else relates them. */
static void exchange(int round)
{
    (void)round;
    work_random();
    send_to((rank + size / 2) % size, EAGER);
    receive_from((rank + size / 2) % size, EAGER);
}

static void pass_rendezvous(int round)
{
    (void)round;
    pass(RENDEZVOUS);
}

static void pass_nonblocking(int round)
{
    static struct pending pending;
    (void)round;
    work_or_be_late(is_late_rank);
    if (rank % 2 == 0)
        PENDING(&pending, "isend", Isend, "world", rank + 1, EAGER, message, EAGER, MPI_BYTE,
                rank + 1, 0, MPI_COMM_WORLD);
    else
        PENDING(&pending, "irecv", Irecv, "world", rank - 1, EAGER, arrived[0], EAGER, MPI_BYTE,
                rank - 1, 0, MPI_COMM_WORLD);
    complete(&pending);
}

/* The receiver has posted before it works. */
static void pass_held_up(int round)
{
    static struct pending pending;
    (void)round;
    barrier();
    if (rank % 2 == 0)
        PENDING(&pending, "isend", Isend, "world", rank + 1, RENDEZVOUS, message, RENDEZVOUS,
                MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD);
    else
        PENDING(&pending, "irecv", Irecv, "world", rank - 1, RENDEZVOUS, arrived[0], RENDEZVOUS,
                MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD);
    work_or_be_late(is_late_rank);
    complete(&pending);
}

/* The same with persistent requests. */
static void pass_persistent(int round)
{
    static struct pending pending;
    int peer = rank % 2 ? rank - 1 : rank + 1;
    barrier();
    if (round == 0 && rank % 2 == 0)
        MPI_Send_init(message, PAGE, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &pending.requests[0]);
    if (round == 0 && rank % 2)
        MPI_Recv_init(arrived[0], PAGE, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &pending.requests[0]);
    pending.events[0] = event_begin(rank % 2 ? "irecv" : "isend", "Start", "world", peer, PAGE);
    MPI_Start(&pending.requests[0]);
    event_end(pending.events[0]);
    pending.count = 1;
    work_or_be_late(is_late_rank);
    complete(&pending);
}

/* The receiver looks for the message until it is there. */
static void pass_probed(int round)
{
    (void)round;
    work_or_be_late(is_late_rank);
    if (rank % 2 == 0) {
        send_to(rank + 1, EAGER);
        return;
    }
    int event = event_begin("probe", "Iprobe", "world", rank - 1, EAGER);
    for (int is_there = 0; !is_there;)
        MPI_Iprobe(rank - 1, 0, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    event_end(event);
    receive_from(rank - 1, EAGER);
}

/* Epochs of windows: even ranks put into the memory of the next rank, which waits until they are
 * done. */
static void put(int round)
{
    static MPI_Win window;
    static MPI_Group partner;
    int peer = rank % 2 ? rank - 1 : rank + 1;
    if (round == 0) {
        MPI_Group world;
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_incl(world, 1, &peer, &partner);
        LOGGED("call", Win_create, "world", NOBODY, 0, arrived[0], RENDEZVOUS, 1, MPI_INFO_NULL,
               MPI_COMM_WORLD, &window);
    }
    work_or_be_late(is_late_rank);
    if (rank % 2) {
        LOGGED("post", Win_post, "world", peer, 0, partner, 0, window);
        LOGGED("exposed", Win_wait, "world", peer, 0, window);
    } else {
        LOGGED("access", Win_start, "world", peer, 0, partner, 0, window);
        MPI_Put(message, PAGE, MPI_BYTE, peer, 0, PAGE, MPI_BYTE, window);
        LOGGED("done", Win_complete, "world", peer, 0, window);
    }
    if (round == rounds - 1)
        LOGGED("call", Win_free, "world", NOBODY, 0, &window);
}

/* Pipelines of training: rank = stage x replicas + replica. A round is a step: micro-batches go
 * forward, their gradients back, then each stage sums its gradients over the replicas. Late ranks
 * are late in each forward pass. */

static int stages, stage, replicas, before, after;
static struct pending sends, gradients;

static void receive(int source)
{
    struct pending pending = {.count = 0};
    if (source == MPI_PROC_NULL)
        return;
    PENDING(&pending, "irecv", Irecv, "world", source, EAGER, arrived[0], EAGER, MPI_BYTE, source,
            0, MPI_COMM_WORLD);
    complete(&pending);
}

static void forward(void)
{
    receive(before);
    work_or_be_late(is_late_rank);
    if (after != MPI_PROC_NULL)
        PENDING(&sends, "isend", Isend, "world", after, EAGER, message, EAGER, MPI_BYTE, after, 0,
                MPI_COMM_WORLD);
}

static void backward(void)
{
    receive(after);
    work(base_ns);
    if (before != MPI_PROC_NULL)
        PENDING(&sends, "isend", Isend, "world", before, EAGER, message, EAGER, MPI_BYTE, before, 0,
                MPI_COMM_WORLD);
}

static void sum_gradients(void)
{
    complete(&sends);
    for (int i = 0; i < BUCKETS; i++)
        PENDING(&gradients, "start", Iallreduce, "replicas", NOBODY, sizeof values, values, sums[i],
                COUNT, MPI_DOUBLE, MPI_SUM, replicas_of_stage);
    complete(&gradients);
}

static void gpipe(int round)
{
    (void)round;
    for (int i = 0; i < MICRO_BATCHES; i++)
        forward();
    for (int i = 0; i < MICRO_BATCHES; i++)
        backward();
    sum_gradients();
}

static void one_forward_one_backward(int round)
{
    int warm_up = stages - 1 - stage < MICRO_BATCHES ? stages - 1 - stage : MICRO_BATCHES;
    (void)round;
    for (int i = 0; i < warm_up; i++)
        forward();
    for (int i = warm_up; i < MICRO_BATCHES; i++) {
        forward();
        backward();
    }
    for (int i = 0; i < warm_up; i++)
        backward();
    sum_gradients();
}

/* Each stage sums, */
static void sum_in_stage(int round)
{
    (void)round;
    work_or_be_late(is_late_rank);
    LOGGED("call", Allreduce, "replicas", NOBODY, sizeof values, values, sums[0], COUNT, MPI_DOUBLE,
           MPI_SUM, replicas_of_stage);
}

/* then all do. */
static void sum_in_stages(int round)
{
    sum_in_stage(round);
    allreduce();
}

static void prepare_pipeline(int of_stages)
{
    stages = of_stages;
    replicas = size / stages;
    stage = rank / replicas;
    before = stage > 0 ? rank - replicas : MPI_PROC_NULL;
    after = stage < stages - 1 ? rank + replicas : MPI_PROC_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, stage, rank, &replicas_of_stage);
}

/* Training frameworks. The main thread computes gradients, hands them over and waits for their
 * sums; a background thread makes all MPI calls. One of the two threads logs. */

enum { TENSORS = 12, TENSORS_OF_BUCKET = 4, FLOATS = 1 << 15, CYCLE_NS = 1000000 };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int handed, summed; /* tensors, over all rounds */
    int is_over;
} training = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static float fused[FLOATS];

static void sleep_ns(int64_t duration_ns)
{
    nanosleep(&(struct timespec){duration_ns / 1000000000, duration_ns % 1000000000}, NULL);
}

static void training_add(int *counter, int number)
{
    pthread_mutex_lock(&training.mutex);
    *counter += number;
    pthread_cond_broadcast(&training.changed);
    pthread_mutex_unlock(&training.mutex);
}

static void compute_gradients(void)
{
    sleep_ns(is_late_rank ? delay_ns : 0);
    for (int tensor = 0; tensor < TENSORS; tensor++) {
        sleep_ns(base_ns / TENSORS);
        training_add(&training.handed, 1);
    }
}

static void wait_for_gradients(void)
{
    pthread_mutex_lock(&training.mutex);
    while (training.summed < training.handed)
        pthread_cond_wait(&training.changed, &training.mutex);
    pthread_mutex_unlock(&training.mutex);
}

/* Number of floats of the next tensors, from 128 B to 32 KB each. */
static int floats_of_next(int tensors)
{
    int floats = 0;
    for (int tensor = training.summed; tensor < training.summed + tensors; tensor++)
        floats += 32 << (tensor % TENSORS * 5 % 9);
    return floats;
}

/* DistributedDataParallel: an Allreduce for each bucket, as soon as its gradients are handed
 * over. */
static void *ddp_thread(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&training.mutex);
        while (training.handed - training.summed < TENSORS_OF_BUCKET && !training.is_over)
            pthread_cond_wait(&training.changed, &training.mutex);
        int is_over = training.is_over;
        pthread_mutex_unlock(&training.mutex);
        if (is_over)
            return unused;
        int floats = floats_of_next(TENSORS_OF_BUCKET);
        LOGGED("call", Allreduce, "world", NOBODY, floats * 4, MPI_IN_PLACE, fused, floats,
               MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        training_add(&training.summed, TENSORS_OF_BUCKET);
    }
}

static void ddp(int round)
{
    (void)round;
    compute_gradients();
    wait_for_gradients();
}

/* Horovod: in each cycle the ranks agree on which tensors all of them have, by words with a bit for
 * each, behind three status bits; a tensor's first time, and without the cache always, by name at
 * rank 0. What they agree on they sum in few messages, cut differently in each round. */
enum horovod_options {
    COMPUTING = 1,     /* the late rank computes longer, in place of sleeping */
    BACKWARD = 2,      /* it is late in the second half of the backward pass */
    SOME = 4,          /* it is late in every other epoch */
    EVALUATING = 8,    /* after each epoch the ranks agree on two metrics */
    WIDE = 16,         /* 130 tensors */
    BY_NAME = 32,      /* without the cache */
    HANGING = 64,      /* it does not hand over its last gradient, and never returns */
    MULTIPLE = 128,    /* of other plants: the main thread calls MPI at the same time */
    SLOW_SET_UP = 256, /* the last rank comes late to the first communicator */
};
enum { WORDS = 3, PLACES = 64, STATUS_BITS = 3, EPOCH = 8, RANKS_MOST = 8 };
enum { MESSAGE_BYTES = TENSOR_LIST_OF_NONE + PLACES * WORDS * TENSOR_BYTES };
typedef unsigned long long words_of[WORDS];
static int options, gradients_of_step = 31;
static words_of offered; /* places of what the program has handed over; under training.mutex */

static int ones(const words_of words)
{
    int sum = 0;
    for (int i = 0; i < WORDS; i++)
        sum += __builtin_popcountll(words[i]);
    return sum;
}

static int places_of(const words_of words, int *places)
{
    int count = 0;
    for (int place = 0; place < WORDS * PLACES; place++)
        if (words[place / PLACES] >> place % PLACES & 1)
            places[count++] = place;
    return count;
}

static int write_list(char *message, const words_of words, int is_answer, int is_over)
{
    int places[WORDS * PLACES], count = places_of(words, places);
    return (int)(is_answer ? list_responses(message, places, count, is_over)
                           : list_requests(message, places, count, is_over));
}

/* Rank 0 counts on how many ranks each tensor is, itself among them: it sends itself nothing.
 * Returns whether it was over on any rank. */
static int agree_by_name(MPI_Comm comm, const words_of added, int is_over, words_of answer)
{
    static char message[MESSAGE_BYTES], all[RANKS_MOST * MESSAGE_BYTES];
    static int counts[WORDS * PLACES];
    int length = write_list(message, added, 0, is_over), places[WORDS * PLACES];
    int lengths[RANKS_MOST] = {0}, offsets[RANKS_MOST] = {0};
    if (rank)
        MPI_Gather(&length, 1, MPI_INT, NULL, 1, MPI_INT, 0, comm);
    else
        MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, lengths, 1, MPI_INT, 0, comm);
    for (int other = 1; rank == 0 && other < size; other++)
        offsets[other] = offsets[other - 1] + lengths[other - 1];
    MPI_Gatherv(rank ? message : NULL, rank ? length : 0, MPI_BYTE, rank ? NULL : all, lengths,
                offsets, MPI_BYTE, 0, comm);
    memset(answer, 0, sizeof(words_of));
    for (int own = places_of(added, places); rank == 0 && own > 0; own--)
        counts[places[own - 1]]++;
    for (int other = 1; rank == 0 && other < size; other++) {
        is_over |= list_is_last(all + offsets[other]);
        for (int theirs = list_read(all + offsets[other], places, 0); theirs > 0; theirs--)
            counts[places[theirs - 1]]++;
    }
    for (int place = 0; rank == 0 && place < WORDS * PLACES; place++) {
        if (counts[place] == size) {
            answer[place / PLACES] |= 1ULL << place % PLACES;
            counts[place] = 0;
        }
    }
    length = write_list(message, answer, 1, is_over);
    MPI_Bcast(&length, 1, MPI_INT, 0, comm);
    MPI_Bcast(message, length, MPI_BYTE, 0, comm);
    memset(answer, 0, sizeof(words_of));
    for (int agreed = list_read(message, places, 1); agreed > 0; agreed--)
        answer[places[agreed - 1] / PLACES] |= 1ULL << places[agreed - 1] % PLACES;
    return list_is_last(message);
}

static void sum_agreed(MPI_Comm comm, const words_of agreed)
{
    int floats = 0;
    for (int place = STATUS_BITS; place < WORDS * PLACES; place++)
        floats += agreed[place / PLACES] >> place % PLACES & 1 ? 32 << (place * 5 % 9) : 0;
    for (int left = floats; left > 0; left -= FLOATS)
        MPI_Allreduce(MPI_IN_PLACE, fused, left < FLOATS ? left : FLOATS, MPI_FLOAT, MPI_SUM, comm);
    pthread_mutex_lock(&training.mutex);
    for (int i = 0; i < WORDS; i++)
        offered[i] &= ~agreed[i];
    training.summed += ones(agreed);
    pthread_cond_broadcast(&training.changed);
    pthread_mutex_unlock(&training.mutex);
}

/* One cycle. False: all are over. */
static int negotiate(MPI_Comm comm, words_of cached, words_of named)
{
    words_of given, added, answer = {0}, agreed;
    pthread_mutex_lock(&training.mutex);
    int is_over = training.is_over;
    for (int i = 0; i < WORDS; i++) {
        given[i] = offered[i] & cached[i];
        added[i] = offered[i] & ~cached[i] & ~named[i];
        named[i] |= added[i];
    }
    pthread_mutex_unlock(&training.mutex);
    given[0] |= (is_over ? 0 : 1) | (ones(added) ? 0 : 2) | 4;
    if (!(options & BY_NAME))
        MPI_Allreduce(MPI_IN_PLACE, given, options & WIDE ? 3 : 1, MPI_LONG_LONG_INT, MPI_BAND,
                      comm);
    if (options & BY_NAME || (given[0] & 1 && !(given[0] & 2)))
        is_over = agree_by_name(comm, added, is_over, answer);
    for (int i = 0; i < WORDS; i++) {
        agreed[i] = given[i] & cached[i];
        agreed[i] |= answer[i];
        named[i] &= ~answer[i];
        cached[i] |= options & BY_NAME ? 0 : answer[i];
    }
    sum_agreed(comm, agreed);
    return options & BY_NAME ? !is_over : (int)(given[0] & 1);
}

static void *horovod_thread(void *unused)
{
    MPI_Comm comm;
    words_of cached = {0}, named = {0};
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int tensor = 0; tensor < gradients_of_step; tensor++)
        MPI_Bcast(fused, 32 << ((tensor + STATUS_BITS) * 5 % 9), MPI_FLOAT, 0, comm);
    while (negotiate(comm, cached, named))
        sleep_ns(CYCLE_NS);
    MPI_Comm_free(&comm);
    return unused;
}

static void hand_over(int tensor)
{
    int place = tensor + STATUS_BITS;
    pthread_mutex_lock(&training.mutex);
    offered[place / PLACES] |= 1ULL << place % PLACES;
    training.handed++;
    pthread_mutex_unlock(&training.mutex);
}

/* The main thread's wait is logged like a collective: it lasts until all ranks have begun
 * theirs. */
static void wait_and_log(void)
{
    int event = event_begin("call", "gradients", "world", NOBODY, 0);
    wait_for_gradients();
    event_end(event);
}

static void be_late(int64_t late_ns)
{
    if (options & COMPUTING)
        compute(late_ns);
    else
        sleep_ns(late_ns);
}

static void train_step(int round)
{
    int is_late = is_late_rank && !(options & SOME && round / EPOCH % 2 == 0);
    int half = gradients_of_step / 2;
    int64_t late_ns = is_late ? delay_ns : 0;
    be_late(options & BACKWARD ? 0 : late_ns);
    for (int tensor = 0; tensor < gradients_of_step; tensor++) {
        sleep_ns(base_ns / gradients_of_step);
        be_late(options & BACKWARD && tensor >= half ? late_ns / (gradients_of_step - half) : 0);
        int is_last = round == rounds - 1 && tensor == gradients_of_step - 1;
        while (options & HANGING && is_late_rank && is_last)
            pause();
        hand_over(tensor);
    }
}

static void horovod(int round)
{
    train_step(round);
    wait_and_log();
    for (int metric = 0; metric < 2 && options & EVALUATING && round % EPOCH == EPOCH - 1;
         metric++) {
        hand_over(gradients_of_step + metric);
        wait_for_gradients();
    }
}

static void horovod_marks(int round)
{
    train_step(round);
    commprof_step();
    wait_and_log();
}

static void horovod_regions(int round)
{
    train_step(round);
    commprof_region_begin("wait for gradients");
    wait_and_log();
    commprof_region_end();
}

/* Plans: the letters after plan: are a round. LW/4: rank late in one round of 4. */

static char *plan;

static void bytes_call(int letter)
{
    int count = COUNT / size;
    switch (letter) {
    case 'a':
        LOGGED("call", Alltoall, "world", NOBODY, count * 8, values, count, MPI_DOUBLE, sums[0],
               count, MPI_DOUBLE, MPI_COMM_WORLD);
        break;
    case 'g':
        LOGGED("call", Allgather, "world", NOBODY, count * 8, values, count, MPI_DOUBLE, sums[0],
               count, MPI_DOUBLE, MPI_COMM_WORLD);
        break;
    case 's':
        LOGGED("call", Reduce_scatter_block, "world", NOBODY, count * 8, values, sums[0], count,
               MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        break;
    case 'r':
        LOGGED("call", Reduce, "world", 0, sizeof values, values, sums[0], COUNT, MPI_DOUBLE,
               MPI_SUM, 0, MPI_COMM_WORLD);
        break;
    case 'b':
        LOGGED("call", Bcast, "world", 0, sizeof values, values, COUNT, MPI_DOUBLE, 0,
               MPI_COMM_WORLD);
        break;
    default:
        CHECK(letter == 'q');
        LOGGED("call", Allreduce, "replicas", NOBODY, sizeof values, values, sums[0], COUNT,
               MPI_DOUBLE, MPI_SUM, replicas_of_stage);
    }
}

static void play_plan(int round)
{
    static struct pending pending;
    const char *every = strchr(plan, '/');
    int is_late = is_late_rank && (!every || round % atoi(every + 1) == 3);
    for (const char *at = plan; *at && at != every; at++) {
        switch (*at) {
        case 'w':
            work(base_ns);
            break;
        case 'L':
            work_or_be_late(is_late);
            break;
        case 'C':
            compute(base_ns + (is_late ? delay_ns : 0));
            break;
        case 'A':
            allreduce();
            break;
        case 'B':
            barrier();
            break;
        case 'I':
            PENDING(&pending, "start", Iallreduce, "world", NOBODY, sizeof values, values,
                    sums[pending.count], COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            break;
        case 'W':
            complete(&pending);
            break;
        case 'p':
            pass_message(EAGER);
            break;
        case 'P':
            pass_message(RENDEZVOUS);
            break;
        default:
            bytes_call(*at);
        }
    }
}

static const struct {
    const char *name;
    void (*round)(int round);
    int stages;
    void *(*thread)(void *); /* that makes all MPI calls; NULL: the main thread does */
    int options;             /* enum horovod_options */
} plants[] = {
    {"blocking", blocking, 0, NULL, 0},
    {"nonblocking", nonblocking, 0, NULL, 0},
    {"held_up", held_up, 0, NULL, 0},
#if HAS_MPI_4
    {"persistent", persistent, 0, NULL, 0},
#endif
    {"late_root", late_root, 0, NULL, 0},
    {"late_inner", late_inner, 0, NULL, 0},
    {"early_reduce", early_reduce, 0, NULL, 0},
    {"staircase", staircase, 0, NULL, 0},
    {"random", random_imbalance, 0, NULL, 0},
    {"rotation", rotation, 0, NULL, 0},
    {"by_call", by_call, 0, NULL, 0},
    {"drift", drift, 0, NULL, 0},
    {"computing", computing, 0, NULL, 0},
    {"helped", helped, 0, NULL, 0},
    {"one_third", one_third, 0, NULL, 0},
    {"sizes", sizes, 0, NULL, 0},
    {"second_thread", beside_second, 0, second_thread, MULTIPLE},
    {"noisy_neighbour", noisy_neighbour, 0, NULL, 0},
    {"pass_eager", pass_eager, 0, NULL, 0},
    {"fan_out", fan_out, 0, NULL, 0},
    {"halo", halo, 0, NULL, 0},
    {"serve", serve, 0, NULL, 0},
    {"collect", collect, 0, NULL, 0},
    {"ring", ring, 0, NULL, 0},
    {"exchange", exchange, 0, NULL, 0},
    {"pass_rendezvous", pass_rendezvous, 0, NULL, 0},
    {"pass_nonblocking", pass_nonblocking, 0, NULL, 0},
    {"pass_held_up", pass_held_up, 0, NULL, 0},
    {"pass_persistent", pass_persistent, 0, NULL, 0},
    {"pass_probed", pass_probed, 0, NULL, 0},
    {"put", put, 0, NULL, 0},
    {"gpipe", gpipe, 2, NULL, 0},
    {"independent_halves", sum_in_stage, 2, NULL, 0},
    {"pairs", sum_in_stages, 4, NULL, 0},
    {"1f1b", one_forward_one_backward, 4, NULL, 0},
    {"plan", play_plan, 2, NULL, 0},
    {"plan_set_up", play_plan, 2, NULL, SLOW_SET_UP},
    {"ddp", ddp, 0, ddp_thread, 0},
    {"horovod", horovod, 0, horovod_thread, 0},
    {"horovod_marks", horovod_marks, 0, horovod_thread, 0},
    {"horovod_regions", horovod_regions, 0, horovod_thread, 0},
    {"horovod_computing", horovod, 0, horovod_thread, COMPUTING},
    {"horovod_backward", horovod, 0, horovod_thread, BACKWARD},
    {"horovod_some", horovod, 0, horovod_thread, SOME},
    {"horovod_evaluating", horovod, 0, horovod_thread, EVALUATING},
    {"horovod_wide", horovod, 0, horovod_thread, WIDE | EVALUATING},
    {"horovod_by_name", horovod, 0, horovod_thread, BY_NAME},
    {"horovod_by_name_wide", horovod, 0, horovod_thread, BY_NAME | WIDE | EVALUATING},
    {"horovod_by_name_hanging", horovod, 0, horovod_thread, BY_NAME | HANGING},
    {"horovod_hanging", horovod, 0, horovod_thread, HANGING},
};

static int is_in(int number, const char *list)
{
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (*at && atoi(at) == number)
            return 1;
    return 0;
}

static void write_communicator(FILE *file, const char *name, MPI_Comm communicator)
{
    MPI_Group own, world;
    int members;
    MPI_Comm_group(communicator, &own);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_size(own, &members);
    fprintf(file, "communicator %s", name);
    for (int member = 0, world_rank; member < members; member++) {
        MPI_Group_translate_ranks(own, 1, &member, world, &world_rank);
        fprintf(file, " %d", world_rank);
    }
    fprintf(file, "\n");
}

static void write_log(void)
{
    char name[32];
    snprintf(name, sizeof name, "log-%d", rank);
    FILE *file = fopen(name, "w");
    CHECK(file);
    write_communicator(file, "world", MPI_COMM_WORLD);
    if (stages)
        write_communicator(file, "replicas", replicas_of_stage);
    for (const struct event *event = events; event < events + event_count; event++)
        fprintf(file, "event %s MPI_%s %s %d %d %d %lld %lld\n", event->kind, event->call,
                event->where, event->peer, event->bytes, event->completed,
                (long long)event->start_ns, (long long)event->end_ns);
    CHECK(fclose(file) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 6);
    size_t plant = 0;
    if ((plan = strchr(argv[1], ':')))
        *plan++ = 0;
    while (plant < sizeof plants / sizeof plants[0] && strcmp(plants[plant].name, argv[1]))
        plant++;
    CHECK(plant < sizeof plants / sizeof plants[0]);

    options = plants[plant].options;
    int wanted = plants[plant].thread ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE, provided;
    wanted = options & MULTIPLE ? MPI_THREAD_MULTIPLE : wanted;
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    CHECK(provided >= wanted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rounds = atoi(argv[2]);
    base_ns = atoi(argv[3]) * 1000LL;
    delay_ns = atoi(argv[4]) * 1000LL;
    first_late_rank = atoi(argv[5]);
    is_late_rank = is_in(rank, argv[5]);

    if (options & MULTIPLE)
        MPI_Comm_dup(MPI_COMM_WORLD, &beside_world);
    pthread_t thread;
    gradients_of_step = options & WIDE ? 130 : gradients_of_step;
    if (options & SLOW_SET_UP && rank == size - 1)
        sleep_ns(1350000000);
    if (plants[plant].stages)
        prepare_pipeline(plants[plant].stages);
    if (plants[plant].thread)
        CHECK(pthread_create(&thread, NULL, plants[plant].thread, NULL) == 0);
    for (int round = 0; round < rounds; round++)
        plants[plant].round(round);
    if (plants[plant].thread) {
        training_add(&training.is_over, 1);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    write_log();
    MPI_Finalize();
    return 0;
}
