/* Cost of launches of an empty kernel, and how long they are held up; linked with tests/gpu's MPI
 * of one rank.
 *
 *     launches rates             ns a launch, block by block; under the profiler in turns traced
 *                                and between windows
 *     launches cupti LIBRARY     the same by CUPTI alone, without the profiler: before it is
 *                                loaded, traced, off, detached
 *     launches graphs COUNT S    so many kernels by replays of a graph, or those of S seconds
 *     launches busy RATE S       RATE kernels a second on two streams that never idle, and then
 *                                SIGKILL
 *     launches stalls            the longest call while tracing begins, goes off and on, and in
 *                                between
 *
 * Times with the double of libcuda are nobody's. */
#include "device.h"
#include "mpi.h"

#include <signal.h>

enum {
    LAUNCHES_A_BLOCK = 20000,
    BLOCKS = 10,
    LAUNCHES_A_WAIT = 256,
    SWITCHES = 10,
    QUIET_MS = 1000,
    AFTER_MS = 200
};

static int (*launch)(LAUNCH_PARAMETERS);
static int (*wait_for)(void *stream);
static void *function, *stream;

static void begin(void)
{
    device_begin();
    *(void **)&launch = dlsym(cuda, "cuLaunchKernel");
    *(void **)&wait_for = dlsym(cuda, "cuStreamSynchronize");
    function = device_kernel(EMPTY_KERNEL, "planted_empty");
    stream = device_stream();
}

static void launch_one(void)
{
    if (launch(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL))
        give_up("a kernel cannot be launched");
}

/* A line {"KIND": ns a launch}. */
static void block(const char *kind)
{
    for (int i = 0; i < LAUNCHES_A_WAIT; i++)
        launch_one();
    wait_for(stream);
    int64_t began_ns = now_ns();
    for (int i = 0; i < LAUNCHES_A_BLOCK; i++)
        launch_one();
    wait_for(stream);
    printf("block %s %.1f\n", kind, (double)(now_ns() - began_ns) / LAUNCHES_A_BLOCK);
    fflush(stdout);
}

static void switch_tracing(bool is_on)
{
    MPI_Pcontrol(is_on);
    wait_for_state(is_on ? STATE_TRACING : STATE_PAUSED);
}

static void rates(void)
{
    begin();
    wait_for_state(STATE_TRACING);
    for (int i = 0; i < BLOCKS; i++) {
        if (is_profiled())
            switch_tracing(true);
        block(is_profiled() ? "traced" : "launches");
        if (is_profiled()) {
            switch_tracing(false);
            block("off");
        }
    }
}

/* CUPTI by itself */

enum { KERNEL = 10, BUFFER_BYTES = 2 << 20 };

static long buffers_requested;
static uint64_t bytes_completed;

static void request(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *bytes = BUFFER_BYTES;
    *most_records = 0;
    __atomic_add_fetch(&buffers_requested, 1, __ATOMIC_RELAXED);
}

static void complete(void *context, uint32_t number, uint8_t *buffer, size_t bytes,
                     size_t valid_bytes)
{
    (void)context, (void)number, (void)bytes;
    __atomic_add_fetch(&bytes_completed, valid_bytes, __ATOMIC_RELAXED);
    free(buffer);
}

static void *cupti;

static void must(const char *what, int result)
{
    char why[256];
    snprintf(why, sizeof why, "%s: %d", what, result);
    if (result)
        give_up(why);
}

#define CUPTI(NAME, ...) int (*NAME)(__VA_ARGS__) = (int (*)(__VA_ARGS__))dlsym(cupti, #NAME)

static void cupti_by_itself(const char *path)
{
    begin();
    block("without");
    cupti = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!cupti)
        give_up("the library cannot be opened");
    CUPTI(cuptiGetVersion, uint32_t *);
    CUPTI(cuptiActivityRegisterCallbacks, void (*)(uint8_t **, size_t *, size_t *),
          void (*)(void *, uint32_t, uint8_t *, size_t, size_t));
    CUPTI(cuptiActivityEnable, int);
    CUPTI(cuptiActivityDisable, int);
    CUPTI(cuptiActivityFlushAll, uint32_t);
    CUPTI(cuptiFinalize, void);
    uint32_t version = 0;
    must("cuptiGetVersion", cuptiGetVersion(&version));
    must("cuptiActivityRegisterCallbacks", cuptiActivityRegisterCallbacks(request, complete));
    block("registered");
    for (int i = 0; i < BLOCKS; i++) {
        must("cuptiActivityEnable", cuptiActivityEnable(KERNEL));
        block("traced");
        must("cuptiActivityDisable", cuptiActivityDisable(KERNEL));
        must("cuptiActivityFlushAll", cuptiActivityFlushAll(1));
        block("off");
    }
    printf("truth {\"version\": %u, \"buffers\": %ld, \"bytes\": %llu, \"kernels\": %d}\n", version,
           buffers_requested, (unsigned long long)bytes_completed,
           BLOCKS * (LAUNCHES_A_BLOCK + LAUNCHES_A_WAIT));
    fflush(stdout);
    must("cuptiFinalize", cuptiFinalize());
    for (int i = 0; i < BLOCKS; i++)
        block("detached");
    puts("truth {\"detached\": true}");
}

/* Stalls */

static int64_t longest_ns;

static void timed(int64_t *at_ns)
{
    int64_t now = now_ns();
    longest_ns = now - *at_ns > longest_ns ? now - *at_ns : longest_ns;
    *at_ns = now;
}

/* Launches for so long after the profile is in this state (0: in any); the longest call goes out
 * under this name. */
static void launch_until(const char *what, uint32_t state, int64_t after_ms)
{
    int64_t at_ns = now_ns(), until_ns = 0, patience_ns = at_ns + INT64_C(20000000000);
    for (longest_ns = 0; !until_ns || at_ns < until_ns;) {
        if (!until_ns && (!state || !is_profiled() || profile_state() == state))
            until_ns = now_ns() + after_ms * 1000000;
        if (now_ns() > patience_ns)
            give_up("the profiler does not go off or on");
        at_ns = now_ns(); /* what it took to look into the profile is no call of the driver's */
        for (int i = 0; i < LAUNCHES_A_WAIT; i++) {
            launch_one();
            timed(&at_ns);
        }
        wait_for(stream);
        timed(&at_ns);
    }
    printf("stall %s %lld\n", what, (long long)longest_ns);
    fflush(stdout);
}

static void stalls(void)
{
    begin();
    launch_until("first_on", STATE_TRACING, AFTER_MS);
    launch_until("traced", 0, QUIET_MS);
    for (int i = 0; i < SWITCHES; i++) {
        MPI_Pcontrol(0);
        launch_until("off", STATE_PAUSED, AFTER_MS);
        MPI_Pcontrol(1);
        launch_until("on", STATE_TRACING, AFTER_MS);
    }
    MPI_Pcontrol(0);
    launch_until("off", STATE_PAUSED, AFTER_MS);
    launch_until("between", 0, QUIET_MS);
}

/* Replays of a graph of NODES kernels, a few at a time. */
static void graphs(long count, int64_t seconds)
{
    enum { NODES = 1000, REPLAYS_A_WAIT = 20 };
    DRIVER(cuStreamBeginCapture_v2, void *, int);
    DRIVER(cuStreamEndCapture, void *, void **);
    DRIVER(cuGraphInstantiateWithFlags, void **, void *, unsigned long long);
    DRIVER(cuGraphLaunch, void *, void *);
    void *graph, *instance;
    wait_for_state(STATE_TRACING);
    cuStreamBeginCapture_v2(stream, 1);
    for (int i = 0; i < NODES; i++)
        launch_one();
    if (cuStreamEndCapture(stream, &graph) || cuGraphInstantiateWithFlags(&instance, graph, 0))
        give_up("the graph cannot be created");
    long replays = 0;
    for (int64_t until_ns = now_ns() + seconds * 1000000000; replays < count / NODES; replays++) {
        if (cuGraphLaunch(instance, stream))
            give_up("the graph cannot be replayed");
        if (replays % REPLAYS_A_WAIT)
            continue;
        wait_for(stream);
        if (now_ns() > until_ns)
            count = 0;
    }
    wait_for(stream);
    printf("truth {\"launched\": %ld}\n", replays * NODES);
}

/* The host is AHEAD_NS ahead of both streams. Before the kill it tells how many have ended. */
static void busy(int64_t a_second, int64_t seconds)
{
    enum { AHEAD_NS = 20000000 };
    device_begin();
    void *spin = device_kernel(SPIN_KERNEL, "planted_gate");
    void *streams[] = {device_stream(), device_stream()};
    DRIVER(cuLaunchKernel, LAUNCH_PARAMETERS);
    int64_t duration_ns = 2 * INT64_C(1000000000) / a_second, launched = 0;
    void *parameters[] = {&duration_ns};
    wait_for_state(STATE_TRACING);
    int64_t began_ns = now_ns(), passed_ns = 0;
    for (; passed_ns < seconds * 1000000000; passed_ns = now_ns() - began_ns) {
        for (; launched / 2 * duration_ns < passed_ns + AHEAD_NS; launched++)
            if (cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, streams[launched % 2], parameters, NULL))
                give_up("a kernel cannot be launched");
        sleep_ns(duration_ns);
    }
    printf("truth {\"ended\": %lld}\n", (long long)(2 * (passed_ns / duration_ns)));
    fflush(stdout);
    kill(getpid(), SIGKILL);
}

int main(int argc, char **argv)
{
    int provided;
    const char *what = argc > 1 ? argv[1] : "";
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    if (strcmp(what, "rates") == 0)
        rates();
    else if (strcmp(what, "graphs") == 0 && argc > 3)
        begin(), graphs(atol(argv[2]), atol(argv[3]));
    else if (strcmp(what, "busy") == 0 && argc > 3)
        busy(atol(argv[2]), atol(argv[3]));
    else if (strcmp(what, "stalls") == 0)
        stalls();
    else if (strcmp(what, "cupti") == 0 && argc > 2)
        cupti_by_itself(argv[2]);
    else
        give_up("rates, stalls, graphs COUNT S, busy RATE S, or cupti LIBRARY");
    MPI_Finalize();
    return 0;
}
