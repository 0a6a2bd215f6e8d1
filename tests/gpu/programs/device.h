/* The GPU through CUDA's driver interface alone, for programs in C: as device.py for those in
 * Python. */
#ifndef DEVICE_H
#define DEVICE_H

#include "../../../src/ledger/ledger_format.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *cuda;

/* A function of the driver; NULL: it has none of this name. */
#define DRIVER(NAME, ...) int (*NAME)(__VA_ARGS__) = (int (*)(__VA_ARGS__))dlsym(cuda, #NAME)
#define LAUNCH_PARAMETERS                                                                          \
    void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, \
        void **

#define EMPTY_KERNEL                                                                          \
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry planted_empty()\n{\n    " \
    "ret;\n}\n"
#define SPIN_KERNEL                                                                                \
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry planted_gate(.param .u64 "     \
    "duration_ns)\n{\n"                                                                            \
    "    .reg .u64 %t<4>;\n    .reg .pred %p;\n    ld.param.u64 %t0, [duration_ns];\n    mov.u64 " \
    "%t1, %globaltimer;\n"                                                                         \
    "again:\n    mov.u64 %t2, %globaltimer;\n    sub.u64 %t3, %t2, %t1;\n    setp.lt.u64 %p, "     \
    "%t3, %t0;\n    @%p bra again;\n"                                                              \
    "    ret;\n}\n"

static inline int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline void sleep_ns(int64_t ns)
{
    nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

static inline void give_up(const char *why)
{
    printf("truth {\"failed\": \"%s\"}\n", why);
    exit(1);
}

/* The driver, and the first device's primary context. */
static inline void device_begin(void)
{
    void *context;
    cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!cuda)
        give_up("no libcuda.so.1");
    DRIVER(cuInit, unsigned);
    DRIVER(cuDevicePrimaryCtxRetain, void **, int);
    DRIVER(cuCtxSetCurrent, void *);
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        give_up("no context on the GPU");
}

static inline void *device_kernel(const char *ptx, const char *name)
{
    DRIVER(cuModuleLoadData, void **, const void *);
    DRIVER(cuModuleGetFunction, void **, void *, const char *);
    void *module, *function;
    if (cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, name))
        give_up("the kernel cannot be loaded");
    return function;
}

static inline void *device_stream(void)
{
    DRIVER(cuStreamCreate, void **, unsigned);
    void *stream;
    if (cuStreamCreate(&stream, 1))
        give_up("no stream can be created");
    return stream;
}

static inline void *device_memory(size_t bytes)
{
    DRIVER(cuMemAlloc_v2, void **, size_t);
    void *memory = NULL;
    if (cuMemAlloc_v2(&memory, bytes))
        give_up("no memory on the device");
    return memory;
}

/* The path of a file that this process has mapped; "" where there is none. */
static inline void find_mapped(const char *name, char path[4096])
{
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "re");
    *path = 0;
    while (maps && !*path && fgets(line, sizeof line, maps)) {
        line[strcspn(line, "\n")] = 0;
        if (strstr(line, name) && strchr(line, '/'))
            snprintf(path, 4096, "%s", strchr(line, '/'));
    }
    if (maps)
        fclose(maps);
}

/* The profile's GPU state, by its ledger; 0 where nobody profiles. */
enum {
    STATE_AT = offsetof(struct ledger_header, gpu_state),
    STATE_TRACING = LEDGER_GPU_TRACING,
    STATE_PAUSED = LEDGER_GPU_PAUSED,
    STATE_REFUSED = LEDGER_GPU_REFUSED,
};

static inline uint32_t profile_state(void)
{
    static char path[4096];
    uint32_t state = 0;
    if (!*path)
        find_mapped(".ledger", path);
    FILE *file = *path ? fopen(path, "re") : NULL;
    if (file && (fseek(file, STATE_AT, SEEK_SET) || fread(&state, sizeof state, 1, file) != 1))
        state = 0;
    if (file)
        fclose(file);
    return state;
}

static inline bool is_profiled(void)
{
    const char *gpu = getenv("COMMPROF_GPU");
    return getenv("COMMPROF_OUTPUT") && !(gpu && strcmp(gpu, "off") == 0);
}

/* At once where nobody profiles GPUs; gives up after 20 s. */
static inline void wait_for_state(uint32_t wanted)
{
    int64_t until_ns = now_ns() + INT64_C(20000000000);
    while (is_profiled() && profile_state() != wanted) {
        if (now_ns() > until_ns || profile_state() == STATE_REFUSED)
            give_up(wanted == STATE_TRACING ? "the profiler does not trace"
                                            : "the profiler does not stop tracing");
        sleep_ns(5000000);
    }
}

#endif
