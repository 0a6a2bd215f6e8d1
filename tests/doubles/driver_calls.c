/* Our double of libcuda.so.1, continued: the driver's calls by which a program launches kernels of
 * its own, as tests/gpu/programs do.
 *
 * A module is PTX text with one kernel. Nothing of it is carried out: a kernel with a parameter
 * lasts as many nanoseconds as its first parameter says (tests/gpu/programs: SPIN), one without
 * lasts EMPTY_NS. Durations of copies and memsets are invented. */
#include "gpu_double.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { EMPTY_NS = 1000, COPY_NS = 20000, SET_NS = 5000 };

struct CUfunc_st {
    char name[256];
    bool has_duration;
};

struct CUevent_st {
    int64_t at_ns;
};

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *ptx)
{
    const char *entry = strstr(ptx, ".entry ");
    CUmodule made = calloc(1, sizeof *made);
    if (!entry || sscanf(entry, ".entry %255[^(]", made->name) != 1) {
        free(made);
        return CUDA_ERROR_INVALID_VALUE;
    }
    made->has_duration = strstr(entry, ".param") != NULL;
    *module = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    *function = module;
    return strcmp(module->name, name) == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes, CUstream stream,
                               void **parameters, void **extra)
{
    (void)block_x, (void)block_y, (void)block_z, (void)shared_bytes, (void)extra;
    int64_t ns = function->has_duration ? *(int64_t *)parameters[0] : EMPTY_NS;
    double_launch_grid(stream, function->name, ns, grid_x, grid_y, grid_z);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    double_copy(stream, (void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, COPY_NS);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    double_set(stream, (void *)(uintptr_t)to, value, bytes, SET_NS);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof **event);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    event->at_ns = double_free_ns(stream);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
    while (double_now_ns() < event->at_ns)
        ;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent first, CUevent last)
{
    *ms = (float)(last->at_ns - first->at_ns) / 1e6f;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)flags;
    double_wait_until(stream, event->at_ns);
    return CUDA_SUCCESS;
}
