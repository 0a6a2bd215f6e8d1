/* Cost of calls here, in nanoseconds; linked with tests/gpu's MPI of one rank. Times of the double
 * of libcuda are nobody's. */
#include "device.h"
#include "mpi.h"

enum { CALLS = 1000000, LAUNCHES = 100000, NODES = 1000, REPLAYS = 50, BYTES = 1 << 20 };

static void tell(const char *what, int64_t began_ns, double count)
{
    printf("truth {\"%s\": %.1f}\n", what, (double)(now_ns() - began_ns) / count);
    fflush(stdout);
}

static void mpi_calls(const char *what, const char *from, char *to)
{
    int64_t began_ns = now_ns();
    for (int i = 0; i < CALLS; i++)
        MPI_Allreduce(from, to, 1000, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    tell(what, began_ns, CALLS);
}

static void pointer_queries(const void *address)
{
    DRIVER(cuPointerGetAttributes, unsigned, int *, void **, uint64_t);
    enum { CONTEXT = 1, MEMORY_TYPE = 2, IS_MANAGED = 8 };
    int attributes[] = {CONTEXT, MEMORY_TYPE, IS_MANAGED}, type, managed;
    void *context, *values[] = {&context, &type, &managed};
    int64_t began_ns = now_ns();
    for (int i = 0; i < CALLS; i++)
        cuPointerGetAttributes(3, attributes, values, (uintptr_t)address + (unsigned)i % BYTES);
    tell("cuPointerGetAttributes", began_ns, CALLS);
}

static void launches(void)
{
    DRIVER(cuLaunchKernel, LAUNCH_PARAMETERS);
    DRIVER(cuStreamSynchronize, void *);
    DRIVER(cuStreamBeginCapture_v2, void *, int);
    DRIVER(cuStreamEndCapture, void *, void **);
    DRIVER(cuGraphInstantiateWithFlags, void **, void *, unsigned long long);
    DRIVER(cuGraphLaunch, void *, void *);
    void *graph, *instance, *stream = device_stream(),
                            *function = device_kernel(EMPTY_KERNEL, "planted_empty");
#define LAUNCH() cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL)
    for (int i = 0; i < 1000; i++)
        LAUNCH();
    cuStreamSynchronize(stream);

    int64_t began_ns = now_ns();
    for (int i = 0; i < LAUNCHES; i++)
        LAUNCH();
    cuStreamSynchronize(stream);
    tell("launch of an empty kernel", began_ns, LAUNCHES);

    if (cuStreamBeginCapture_v2(stream, 1))
        return;
    for (int i = 0; i < NODES; i++)
        LAUNCH();
    if (cuStreamEndCapture(stream, &graph) || cuGraphInstantiateWithFlags(&instance, graph, 0) ||
        cuGraphLaunch(instance, stream))
        return;
    cuStreamSynchronize(stream);
    began_ns = now_ns();
    for (int i = 0; i < REPLAYS; i++)
        cuGraphLaunch(instance, stream);
    cuStreamSynchronize(stream);
    tell("replay of a graph of 1000 empty kernels", began_ns, REPLAYS);
}

/* Beside what the profiler collects. */
static void flushes(void)
{
    char path[4096];
    find_mapped("libcupti.so", path);
    if (!*path)
        return;
    void *cupti = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    int (*flush)(uint32_t) =
        cupti ? (int (*)(uint32_t))dlsym(cupti, "cuptiActivityFlushAll") : NULL;
    int64_t began_ns = now_ns();
    for (int i = 0; flush && i < 100; i++)
        flush(0);
    if (flush)
        tell("cuptiActivityFlushAll", began_ns, 100);
}

int main(void)
{
    int provided;
    char *on_host = malloc(BYTES);
    if (!on_host)
        return 1;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    mpi_calls("MPI call, host memory, before there is a context", on_host, on_host);
    device_begin();
    char *on_device = device_memory(BYTES);
    wait_for_state(STATE_TRACING);
    mpi_calls("MPI call, host memory", on_host, on_host);
    mpi_calls("MPI call, device memory", on_device, on_device);
    pointer_queries(on_device);
    launches();
    if (getenv("COMMPROF_OUTPUT"))
        flushes();
    MPI_Finalize();
    return 0;
}
