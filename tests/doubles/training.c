/* Trains nothing: the shape of a training job, on the doubles, whose every kernel and copy is
 * known. At the end each rank says what it did, in one line: "truth {...}".
 *
 *     training STEPS staged|aware [then...]
 *
 *     staged    gradients are copied to pinned memory, reduced there, and copied back
 *     aware     MPI_Allreduce gets device memory
 *     graph     forward kernels are captured into a graph in the first step, and launched as one
 *     kineto    another client of CUPTI traces the steps in the middle third; they are not part of
 *               the truth
 *     threads   backward kernels are launched by a thread of their own, as PyTorch's autograd does
 *     chatty    makes many short calls of MPI after each step
 *     fork      a child is forked in the middle, and does nothing but exit
 *     exit      ends by exit(0), without MPI_Finalize
 *     killed    the last rank kills itself with SIGKILL when its last step has been collected
 *     sensors   goes on until the sensors of the device have been read three times
 *     refused   begins when a profiler has found that it cannot trace: its thread commprof-gpu has
 *               gone
 *     hangs     begins when a profiler hangs in a call of CUPTI's
 *     alone     begins at once. Without any of these three: when a profiler traces */
#include "gpu_double.h"

#include <mpi.h>

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHANNELS = 16 }; /* of NCCL: blocks of its kernels */
enum {
    LAYERS = 3,
    MOST_NAMES = 16,
    MOST_SPANS = 100000,
    GRADIENT_BYTES = 262144,
    BATCH_BYTES = 65536
};
enum { CHATTER = 2000, PATIENCE_MS = 20000 };
enum { COMPUTING = 1, COMMUNICATING = 2, COPYING = 4, STATES = 8 }; /* as enum ledger_busy */

struct sum {
    char name[96];
    long count, bytes;
    int64_t total_ns, min_ns, max_ns;
};

static struct sum kernels[MOST_NAMES], copies[MOST_NAMES], sets[1];
static struct {
    struct double_span span;
    int state;
} spans[MOST_SPANS];
static int span_count;
static bool is_part_of_the_truth = true;

static CUstream compute, copying, communicating;
static CUdeviceptr batch, gradients;
static float *host_batch, *host_gradients;
static CUgraphExec forward_graph;
static long reductions, profiler_thread;

static bool has(int argc, char **argv, const char *word)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return false;
}

/* The truth. */

static void note(struct sum *sums, const char *name, long bytes, struct double_span span, int state)
{
    if (!is_part_of_the_truth)
        return;
    int at = 0;
    while (*sums[at].name && strcmp(sums[at].name, name) != 0)
        at++;
    struct sum *sum = &sums[at];
    int64_t ns = span.end_ns - span.start_ns;
    snprintf(sum->name, sizeof sum->name, "%s", name);
    sum->min_ns = !sum->count || ns < sum->min_ns ? ns : sum->min_ns;
    sum->max_ns = ns > sum->max_ns ? ns : sum->max_ns;
    sum->count++;
    sum->bytes += bytes;
    sum->total_ns += ns;
    if (span_count < MOST_SPANS) {
        spans[span_count].span = span;
        spans[span_count++].state = state;
    }
}

struct edge {
    int64_t ns;
    int state, change;
};

static int earlier(const void *left, const void *right)
{
    int64_t a = ((const struct edge *)left)->ns, b = ((const struct edge *)right)->ns;
    return (a > b) - (a < b);
}

static void sum_states(int64_t state_ns[STATES])
{
    struct edge *edges = malloc(2 * (size_t)span_count * sizeof *edges + 1);
    for (int i = 0; i < span_count; i++) {
        edges[2 * i] = (struct edge){spans[i].span.start_ns, spans[i].state, 1};
        edges[2 * i + 1] = (struct edge){spans[i].span.end_ns, spans[i].state, -1};
    }
    qsort(edges, 2 * (size_t)span_count, sizeof *edges, earlier);
    int running[STATES] = {0};
    for (int i = 0; i < 2 * span_count; i++) {
        int state = (running[COMPUTING] ? COMPUTING : 0) |
                    (running[COMMUNICATING] ? COMMUNICATING : 0) | (running[COPYING] ? COPYING : 0);
        if (i)
            state_ns[state] += edges[i].ns - edges[i - 1].ns;
        running[edges[i].state] += edges[i].change;
    }
    free(edges);
}

static char *say_sums(char *at, const char *what, const struct sum *sums, int how_many)
{
    at += sprintf(at, ", \"%s\": {", what);
    for (int i = 0; i < how_many && *sums[i].name; i++)
        at += sprintf(at, "%s\"%s\": [%ld, %ld, %ld, %ld, %ld]", i ? ", " : "", sums[i].name,
                      sums[i].count, sums[i].bytes, (long)sums[i].total_ns, (long)sums[i].min_ns,
                      (long)sums[i].max_ns);
    return at + sprintf(at, "}");
}

/* One write: lines of ranks do not mix. */
static void say_truth(int rank, long kineto_kernels)
{
    static char line[4096];
    int64_t state_ns[STATES] = {0};
    sum_states(state_ns);
    char *at =
        line + sprintf(line, "truth {\"rank\": %d, \"reductions\": %ld, \"kineto_kernels\": %ld",
                       rank, reductions, kineto_kernels);
    at = say_sums(at, "kernels", kernels, MOST_NAMES);
    at = say_sums(at, "copies", copies, MOST_NAMES);
    at = say_sums(at, "sets", sets, 1);
    at += sprintf(at, ", \"busy_ns\": [");
    for (int state = 0; state < STATES; state++)
        at += sprintf(at, "%s%ld", state ? ", " : "", (long)state_ns[state]);
    at += sprintf(at, "]}\n");
    if (write(STDOUT_FILENO, line, (size_t)(at - line)) < 0)
        abort();
}

/* The training. */

static void kernel(CUstream stream, const char *name, int64_t ns, int state)
{
    unsigned channels = state == COMMUNICATING ? CHANNELS : 1;
    note(kernels, name, 0, double_launch_grid(stream, name, ns, channels, 1, 1), state);
}

static void copy(CUstream stream, const char *kind, void *to, const void *from, size_t bytes,
                 int64_t ns)
{
    note(copies, kind, (long)bytes, double_copy(stream, to, from, bytes, ns), COPYING);
}

static void forward(void)
{
    for (int layer = 0; layer < LAYERS; layer++)
        kernel(compute, "_Z12forward_gemmPKfS0_Pfi", 400000 + 100000 * layer, COMPUTING);
}

/* The kernels of a graph run one after the other, each as long as it was captured. */
static void forward_by_graph(void)
{
    if (!forward_graph) {
        CUgraph graph;
        bool noted = is_part_of_the_truth;
        is_part_of_the_truth = false;
        cuStreamBeginCapture_v2(compute, 0);
        forward();
        cuStreamEndCapture(compute, &graph);
        cuGraphInstantiateWithFlags(&forward_graph, graph, 0);
        is_part_of_the_truth = noted;
    }
    cuGraphLaunch(forward_graph, compute);
    int64_t start_ns = double_graph_span(forward_graph).start_ns;
    for (int layer = 0; layer < LAYERS; layer++) {
        struct double_span span = {start_ns, start_ns + 400000 + 100000 * layer};
        note(kernels, "_Z12forward_gemmPKfS0_Pfi", 0, span, COMPUTING);
        start_ns = span.end_ns;
    }
}

/* The reduction of a layer's gradients runs beside the next layer's backward kernel. */
static void *backward(void *context)
{
    cuCtxSetCurrent(context);
    for (int layer = 0; layer < LAYERS; layer++) {
        kernel(compute, "_Z13backward_gemmPKfS0_Pfi", 700000, COMPUTING);
        double_wait(communicating, compute);
        kernel(communicating,
               "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
               500000, COMMUNICATING);
    }
    return NULL;
}

static void backward_in_a_thread(CUcontext context)
{
    pthread_t thread;
    pthread_create(&thread, NULL, backward, context);
    pthread_join(thread, NULL);
}

static void reduce_staged(void)
{
    copy(copying, "to_host", host_gradients, (void *)(uintptr_t)gradients, GRADIENT_BYTES, 60000);
    cuStreamSynchronize(copying);
    MPI_Allreduce(MPI_IN_PLACE, host_gradients, GRADIENT_BYTES / 4, MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    copy(copying, "to_device", (void *)(uintptr_t)gradients, host_gradients, GRADIENT_BYTES, 50000);
}

static void reduce_on_the_device(void)
{
    cuStreamSynchronize(copying);
    MPI_Allreduce(MPI_IN_PLACE, (void *)(uintptr_t)gradients, GRADIENT_BYTES / 4, MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
}

static void step(int argc, char **argv, CUcontext context)
{
    copy(copying, "to_device", (void *)(uintptr_t)batch, host_batch, BATCH_BYTES, 30000);
    double_wait(compute, copying);
    note(sets, "set", GRADIENT_BYTES,
         double_set(compute, (void *)(uintptr_t)gradients, 0, GRADIENT_BYTES, 5000), COPYING);
    has(argc, argv, "graph") ? forward_by_graph() : forward();
    has(argc, argv, "threads") ? backward_in_a_thread(context) : (void)backward(context);
    double_wait(copying, communicating);
    has(argc, argv, "aware") ? reduce_on_the_device() : reduce_staged();
    reductions++;
    double_wait(compute, copying);
    kernel(compute, "_Z9optimizerPfPKff", 200000, COMPUTING);
    cuCtxSynchronize();
    for (int i = 0; i < CHATTER && has(argc, argv, "chatty"); i++)
        MPI_Barrier(MPI_COMM_WORLD);
}

static void allocate(void)
{
    void *pinned;
    cuMemAlloc_v2(&batch, BATCH_BYTES);
    cuMemAlloc_v2(&gradients, GRADIENT_BYTES);
    cuMemHostAlloc(&pinned, GRADIENT_BYTES, 0);
    host_gradients = pinned;
    host_batch = calloc(1, BATCH_BYTES); /* pageable */
    cuStreamCreate(&compute, 0);
    cuStreamCreate(&copying, 0);
    cuStreamCreate(&communicating, 0);
}

static void fork_a_child(void)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        exit(0);
    int status = -1;
    waitpid(child, &status, 0);
    if (status)
        fprintf(stderr, "training: the child ended with %d\n", status);
}

/* The number of the profiler's thread, once it has its name; 0: there is none. (A real libcupti's
 * threads get the same name.) */
static long find_thread(void)
{
    DIR *tasks = opendir("/proc/self/task");
    long found = 0;
    for (struct dirent *task; !found && (task = readdir(tasks));) {
        char path[512], name[64] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file) && strcmp(name, "commprof-gpu\n") == 0)
            found = atol(task->d_name);
        if (file)
            fclose(file);
    }
    closedir(tasks);
    return found;
}

static void await_thread(void)
{
    for (int ms = 0; ms < PATIENCE_MS && !(profiler_thread = find_thread()); ms++)
        usleep(1000);
}

static bool await_refusal(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld", profiler_thread);
    for (int ms = 0; ms < PATIENCE_MS && access(path, F_OK) == 0; ms++)
        usleep(1000);
    return profiler_thread && access(path, F_OK) != 0;
}

static void await_readings(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    long *readings = library ? dlsym(library, "double_nvml_readings") : NULL;
    for (int ms = 0;
         ms < PATIENCE_MS && readings && __atomic_load_n(readings, __ATOMIC_ACQUIRE) <= 3; ms++)
        usleep(1000); /* the last one may not be kept yet */
}

static void await_profiler(int argc, char **argv)
{
    bool has_come = has(argc, argv, "alone")     ? true
                    : has(argc, argv, "refused") ? await_refusal()
                    : has(argc, argv, "hangs")   ? double_await_hang()
                                                 : double_await_tracing();
    if (!has_come)
        fprintf(stderr, "training: the profiler does not do what it was expected to\n");
}

static long with_kineto(int argc, char **argv, CUcontext context, int steps)
{
    void *library = dlopen("libkineto.so", RTLD_NOW | RTLD_LOCAL);
    int (*start)(void) = (int (*)(void))dlsym(library, "kineto_start");
    int (*stop)(void) = (int (*)(void))dlsym(library, "kineto_stop");
    long (*seen)(void) = (long (*)(void))dlsym(library, "kineto_kernels");
    int error = start();
    is_part_of_the_truth = false;
    for (int i = 0; i < steps; i++)
        step(argc, argv, context);
    is_part_of_the_truth = true;
    error = error ? error : stop();
    if (error)
        fprintf(stderr, "training: the other client failed with %d\n", error);
    await_profiler(argc, argv);
    return seen();
}

int main(int argc, char **argv)
{
    int rank, size, steps = argc > 1 ? atoi(argv[1]) : 0;
    long kineto_kernels = 0;
    CUcontext context;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (has(argc, argv, "refused"))
        await_thread(); /* it cannot go before there is a context */
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 1;
    allocate();
    await_profiler(argc, argv);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < steps; i++) {
        if (i == steps / 3 && has(argc, argv, "kineto"))
            kineto_kernels = with_kineto(argc, argv, context, steps / 3);
        if (i == steps / 2 && has(argc, argv, "fork"))
            fork_a_child();
        step(argc, argv, context);
    }
    if (has(argc, argv, "sensors"))
        await_readings();
    say_truth(rank, kineto_kernels);
    if (has(argc, argv, "exit")) {
        MPI_Barrier(MPI_COMM_WORLD); /* the launcher may kill the others once one has exited */
        exit(0);
    }
    if (has(argc, argv, "killed") && rank == size - 1) {
        __atomic_store_n(&double_tracing()->flushes, 0, __ATOMIC_RELEASE);
        await_profiler(argc, argv);
        raise(SIGKILL);
    }
    MPI_Finalize();
    return 0;
}
