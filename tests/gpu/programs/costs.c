/* What calls cost here, in nanoseconds; linked with tests/gpu's MPI of one rank. Times of the double of libcuda are nobody's. */
#include "mpi.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 1000000, LAUNCHES = 100000, NODES = 1000, REPLAYS = 50, BYTES = 1 << 20 };

static void *cuda;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void tell(const char *what, int64_t began_ns, double count)
{
    printf("truth {\"%s\": %.1f}\n", what, (double)(now_ns() - began_ns) / count);
    fflush(stdout);
}

/* A function of the driver; without it the part ends that needs it. */
#define DRIVER(NAME, ...) int (*NAME)(__VA_ARGS__) = (int (*)(__VA_ARGS__))dlsym(cuda, #NAME)

static void *begin(void)
{
    DRIVER(cuInit, unsigned);
    DRIVER(cuDevicePrimaryCtxRetain, void **, int);
    DRIVER(cuCtxSetCurrent, void *);
    DRIVER(cuMemAlloc_v2, void **, size_t);
    void *context, *memory = NULL;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuMemAlloc_v2(&memory, BYTES))
        exit(1);
    return memory;
}

/* A file that this process has mapped; "" where there is none. */
static void find_mapped(const char *name, char path[4096])
{
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "re");
    *path = 0;
    while (maps && !*path && fgets(line, sizeof line, maps)) {
        line[strcspn(line, "\n")] = 0;
        if (strstr(line, name) && strchr(line, '/'))
            strcpy(path, strchr(line, '/'));
    }
    if (maps)
        fclose(maps);
}

/* Until the profiler traces, as its ledger says (programs/device.py), for 20 s at most. */
static void wait_until_traced(void)
{
    enum { STATE_AT = 272, TRACING = 2, REFUSED = 5 };
    char path[4096];
    uint32_t state = 0;
    const char *gpu = getenv("COMMPROF_GPU");
    find_mapped(".ledger", path);
    if (!*path || (gpu && strcmp(gpu, "off") == 0))
        return;
    for (int i = 0; i < 2000 && state != TRACING && state != REFUSED; i++, usleep(10000)) {
        FILE *file = fopen(path, "re");
        if (!file || fseek(file, STATE_AT, SEEK_SET) || fread(&state, sizeof state, 1, file) != 1)
            state = 0;
        if (file)
            fclose(file);
    }
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
    static const char EMPTY[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry planted_empty()\n{\n    ret;\n}\n";
    DRIVER(cuModuleLoadData, void **, const void *);
    DRIVER(cuModuleGetFunction, void **, void *, const char *);
    DRIVER(cuLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
    DRIVER(cuStreamCreate, void **, unsigned);
    DRIVER(cuStreamSynchronize, void *);
    DRIVER(cuStreamBeginCapture_v2, void *, int);
    DRIVER(cuStreamEndCapture, void *, void **);
    DRIVER(cuGraphInstantiateWithFlags, void **, void *, unsigned long long);
    DRIVER(cuGraphLaunch, void *, void *);
    void *module, *function, *stream, *graph, *instance;
    if (!cuLaunchKernel || cuModuleLoadData(&module, EMPTY) || cuModuleGetFunction(&function, module, "planted_empty") ||
        cuStreamCreate(&stream, 1))
        return;
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
    if (cuStreamEndCapture(stream, &graph) || cuGraphInstantiateWithFlags(&instance, graph, 0) || cuGraphLaunch(instance, stream))
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
    int (*flush)(uint32_t) = cupti ? (int (*)(uint32_t))dlsym(cupti, "cuptiActivityFlushAll") : NULL;
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
    cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cuda || !on_host)
        return 1;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    mpi_calls("MPI call, host memory, before there is a context", on_host, on_host);
    char *on_device = begin();
    wait_until_traced();
    mpi_calls("MPI call, host memory", on_host, on_host);
    mpi_calls("MPI call, device memory", on_device, on_device);
    pointer_queries(on_device);
    launches();
    if (getenv("COMMPROF_OUTPUT"))
        flushes();
    MPI_Finalize();
    return 0;
}
