/* train STEPS [LATE_RANK DELAY_MS] [MARKS]: training as Horovod does it over MPI. The main thread
 * computes and hands each gradient over to a background thread, which makes all MPI calls: every
 * millisecond the ranks agree, in 16 bytes, on which gradients all of them have, and those are
 * summed in fused buffers. One rank can be made to sleep in each forward pass. MARKS is what the
 * main thread tells the profiler: "none", "steps" (a mark when all gradients are handed over) or
 * "regions" ("forward", "backward", "wait for gradients"). At the end rank 0 prints when each rank
 * had ended its forward pass, handed all gradients over, and had all sums: "step STEP RANK
 * FORWARD_NS HANDED_NS REDUCED_NS". */
#define _GNU_SOURCE
#include <commprof.h>
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TENSORS = 24, FUSED_FLOATS = 64 * 1024, MOST_STEPS = 2000, TIMES = 3 };
enum {
    CYCLE_NS = 1000000,
    FORWARD_NS = 4000000,
    BACKWARD_NS = 150000
};                               /* backward: of each tensor */
enum { STOP = 1, UNCACHED = 2 }; /* what a rank has to say; inverted in a message */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t ready; /* a bit for each gradient that this rank has handed over */
    int is_begun, is_done;
} shared = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int floats[TENSORS];
static float *gradients[TENSORS], fused[FUSED_FLOATS + 64 * 1024];
static int64_t times[MOST_STEPS][TIMES];
static int rank, size, steps;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void sleep_until(int64_t end_ns)
{
    struct timespec end = {.tv_sec = end_ns / 1000000000, .tv_nsec = end_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL))
        continue;
}

/* A GPU computes, and the main thread waits for it. */
static void compute(int64_t duration_ns)
{
    sleep_until(now_ns() + duration_ns);
}

/* The background thread. */

/* Which gradients every rank has, and what any rank has to say: as in Horovod one word, of which
 * the first three bits say something and are inverted. */
static uint64_t agree(MPI_Comm comm, uint64_t ready, uint64_t *says)
{
    enum { SAID_BITS = 3, SAID = (1 << SAID_BITS) - 1 };
    uint64_t message = ready << SAID_BITS | (~*says & SAID), agreed;
    MPI_Allreduce(&message, &agreed, 1, MPI_UINT64_T, MPI_BAND, comm);
    *says = ~agreed & SAID;
    return agreed >> SAID_BITS;
}

/* Tensors that are new: rank 0 collects what each rank has, and answers. */
static void negotiate(MPI_Comm comm, uint64_t new_tensors)
{
    int number = __builtin_popcountll(new_tensors) * (int)sizeof(uint64_t), numbers[64],
        offsets[64] = {0};
    uint64_t names[TENSORS] = {0};
    static uint64_t all_names[64 * TENSORS];
    for (int tensor = 0, at = 0; tensor < TENSORS; tensor++)
        if (new_tensors >> tensor & 1)
            names[at++] = (uint64_t)tensor;
    MPI_Gather(&number, 1, MPI_INT, numbers, 1, MPI_INT, 0, comm);
    for (int other = 1; rank == 0 && other < size; other++)
        offsets[other] = offsets[other - 1] + numbers[other - 1];
    MPI_Gatherv(names, number, MPI_BYTE, all_names, numbers, offsets, MPI_BYTE, 0, comm);
    MPI_Bcast(names, sizeof *names, MPI_BYTE, 0, comm);
}

static void reduce_fused(MPI_Comm comm, const int *tensors, int number, int sum)
{
    float *at = fused;
    for (int i = 0; i < number; at += floats[tensors[i++]])
        memcpy(at, gradients[tensors[i]], (size_t)floats[tensors[i]] * sizeof *at);
    MPI_Allreduce(MPI_IN_PLACE, fused, sum, MPI_FLOAT, MPI_SUM, comm);
    at = fused;
    for (int i = 0; i < number; at += floats[tensors[i++]])
        memcpy(gradients[tensors[i]], at, (size_t)floats[tensors[i]] * sizeof *at);
}

static void reduce(MPI_Comm comm, uint64_t agreed)
{
    int tensors[TENSORS], number = 0, sum = 0;
    for (int tensor = 0; tensor < TENSORS; tensor++) {
        if (!(agreed >> tensor & 1))
            continue;
        if (number && sum + floats[tensor] > FUSED_FLOATS) {
            reduce_fused(comm, tensors, number, sum);
            number = sum = 0;
        }
        tensors[number++] = tensor;
        sum += floats[tensor];
    }
    if (number)
        reduce_fused(comm, tensors, number, sum);
    pthread_mutex_lock(&shared.mutex);
    shared.ready &= ~agreed;
    pthread_cond_broadcast(&shared.changed);
    pthread_mutex_unlock(&shared.mutex);
}

static void print_times(MPI_Comm comm)
{
    int64_t *all = calloc((size_t)size, sizeof times);
    MPI_Gather(times, sizeof times, MPI_BYTE, all, sizeof times, MPI_BYTE, 0, comm);
    for (int step = 0; rank == 0 && step < steps; step++)
        for (int of = 0; of < size; of++) {
            const int64_t *own = all + (of * MOST_STEPS + step) * TIMES;
            printf("step %d %d %lld %lld %lld\n", step + 1, of, (long long)own[0],
                   (long long)own[1], (long long)own[2]);
        }
    free(all);
}

static void *communicate(void *nothing)
{
    int provided;
    MPI_Comm comm;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    pthread_mutex_lock(&shared.mutex);
    shared.is_begun = 1;
    pthread_cond_broadcast(&shared.changed);
    pthread_mutex_unlock(&shared.mutex);

    uint64_t known = 0, says = 0;
    for (int64_t cycle_ns = now_ns(); !(says & STOP); cycle_ns = now_ns()) {
        pthread_mutex_lock(&shared.mutex);
        uint64_t ready = shared.ready, unknown = ready & ~known;
        says = (unknown ? UNCACHED : 0) | (shared.is_done ? STOP : 0);
        pthread_mutex_unlock(&shared.mutex);
        uint64_t agreed = agree(comm, ready, &says);
        if (says & UNCACHED)
            negotiate(comm, unknown);
        known |= unknown;
        if (agreed)
            reduce(comm, agreed);
        if (cycle_ns + CYCLE_NS > now_ns())
            sleep_until(cycle_ns + CYCLE_NS);
    }
    print_times(comm);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return nothing;
}

/* The main thread. */

static void wait_until(const int *is_true, uint64_t not_ready)
{
    pthread_mutex_lock(&shared.mutex);
    while ((is_true && !*is_true) || shared.ready & not_ready)
        pthread_cond_wait(&shared.changed, &shared.mutex);
    pthread_mutex_unlock(&shared.mutex);
}

static void backward(void)
{
    for (int tensor = 0; tensor < TENSORS; tensor++) {
        compute(BACKWARD_NS);
        for (int i = 0; i < floats[tensor]; i++)
            gradients[tensor][i] = (float)(tensor + 1);
        pthread_mutex_lock(&shared.mutex);
        shared.ready |= (uint64_t)1 << tensor;
        pthread_mutex_unlock(&shared.mutex);
    }
}

static int is_summed(void)
{
    for (int tensor = 0; tensor < TENSORS; tensor++)
        for (int i = 0; i < floats[tensor]; i++)
            if (gradients[tensor][i] != (float)(size * (tensor + 1)))
                return 0;
    return 1;
}

int main(int argc, char **argv)
{
    steps = argc > 1 ? atoi(argv[1]) : 40;
    int late = argc > 3 ? atoi(argv[2]) : -1;
    int64_t delay_ns = argc > 3 ? atoi(argv[3]) * 1000000LL : 0;
    const char *marks = argc > 4 ? argv[4] : "none";
    if (steps > MOST_STEPS)
        return 2;
    for (int tensor = 0; tensor < TENSORS; tensor++) {
        floats[tensor] = tensor % 2
                             ? 100 + tensor
                             : 2000 * (tensor + 1) + tensor; /* a layer's bias and its weights */
        gradients[tensor] = calloc((size_t)floats[tensor], sizeof(float));
    }
    pthread_t background;
    pthread_create(&background, NULL, communicate, NULL);
    wait_until(&shared.is_begun, 0);

    int is_right = 1, has_regions = !strcmp(marks, "regions");
    for (int step = 0; step < steps; step++) {
        if (has_regions)
            commprof_region_begin("forward");
        compute(FORWARD_NS + (rank == late ? delay_ns : 0));
        times[step][0] = now_ns();
        if (has_regions) {
            commprof_region_end();
            commprof_region_begin("backward");
        }
        backward();
        if (has_regions)
            commprof_region_end();
        if (!strcmp(marks, "steps"))
            commprof_step();
        if (has_regions)
            commprof_region_begin("wait for gradients");
        times[step][1] = now_ns();
        wait_until(NULL, ~(uint64_t)0);
        times[step][2] = now_ns();
        if (has_regions)
            commprof_region_end();
        is_right &= is_summed();
    }
    pthread_mutex_lock(&shared.mutex);
    shared.is_done = 1;
    pthread_mutex_unlock(&shared.mutex);
    pthread_join(background, NULL);
    if (!is_right)
        fprintf(stderr, "rank %d: wrong sums\n", rank);
    return !is_right;
}
