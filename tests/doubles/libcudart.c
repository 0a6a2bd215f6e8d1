/* Our double of libcudart.so.13 (and .12): little more than its name, which tells where CUDA is
 * installed. */
#include "gpu_double.h"

#define EXPORT __attribute__((visibility("default")))

#ifndef RUNTIME_VERSION
#define RUNTIME_VERSION 13000
#endif

EXPORT int cudaRuntimeGetVersion(int *version)
{
    *version = RUNTIME_VERSION;
    return 0;
}

/* As the real one does: the device's primary context becomes the thread's. */
EXPORT int cudaSetDevice(int device)
{
    CUcontext context;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, device))
        return 100; /* cudaErrorNoDevice */
    return cuCtxSetCurrent(context);
}
