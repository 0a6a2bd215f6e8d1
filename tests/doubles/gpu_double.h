/* A GPU that is none: what test programs use of our double of libcuda.so.1 (README.md says what it
 * stands on).
 *
 * Streams run what is launched into them in order, in real time, each kernel and copy as long as
 * the program says. The times of each are known at the launch, and returned: the truth that a
 * profile of the program must meet. All moments are nanoseconds of CLOCK_MONOTONIC. */
#ifndef GPU_DOUBLE_H
#define GPU_DOUBLE_H

#include <stddef.h>
#include <stdint.h>

/* Declarations of cuda.h that programs need, where that is not there. */
#ifndef CUDA_VERSION
typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraph_st *CUgraphExec;
typedef struct CUfunc_st *CUfunction, *CUmodule;
typedef struct CUevent_st *CUevent;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
};
enum { CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16 };
enum {
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
};
enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2 };
enum { CU_STREAM_CAPTURE_STATUS_NONE = 0, CU_STREAM_CAPTURE_STATUS_ACTIVE = 1 };

CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetName(char *name, int bytes, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuDeviceGetUuid_v2(unsigned char uuid[16], CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxSynchronize(void);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamGetId(CUstream stream, unsigned long long *id);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
CUresult cuStreamIsCapturing(CUstream stream, int *status);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuThreadExchangeStreamCaptureMode(int *mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *instance, CUgraph graph,
                                     unsigned long long flags);
CUresult cuGraphLaunch(CUgraphExec instance, CUstream stream);
CUresult cuMemGetInfo_v2(size_t *available, size_t *total);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags);
CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags);
CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags);
CUresult cuMemHostUnregister(void *address);
CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **data, CUdeviceptr address);
CUresult cuGetErrorString(CUresult error, const char **text);
CUresult cuModuleLoadData(CUmodule *module, const void *ptx);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void **parameters, void **extra);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream);
CUresult cuEventCreate(CUevent *event, unsigned flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *ms, CUevent first, CUevent last);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
#endif

/* A time on the device. */
struct double_span {
    int64_t start_ns, end_ns;
};

int64_t double_now_ns(void);

/* Run a kernel, of one block unless the grid is given. NULL is the current context's default
 * stream, here as in CUDA; unlike CUDA's it waits for no other stream. While the stream captures,
 * nothing runs, and the span is 0, 0. */
struct double_span double_launch(CUstream stream, const char *name, int64_t duration_ns);
struct double_span double_launch_grid(CUstream stream, const char *name, int64_t duration_ns,
                                      unsigned grid_x, unsigned grid_y, unsigned grid_z);

/* Copy, or set, `bytes` bytes: they are there at once, the device takes its time. The addresses
 * decide the kind of copy. */
struct double_span double_copy(CUstream stream, void *to, const void *from, size_t bytes,
                               int64_t duration_ns);
struct double_span double_set(CUstream stream, void *to, int value, size_t bytes,
                              int64_t duration_ns);

/* Makes later launches into `stream` begin after those already launched into `other`. */
void double_wait(CUstream stream, CUstream other);

/* When what has been launched into the stream has ended; now, where it is idle. Later launches
 * begin at `ns` or later. */
int64_t double_free_ns(CUstream stream);
void double_wait_until(CUstream stream, int64_t ns);

/* When the graph that was launched last into the stream has begun and ended, all of it. */
struct double_span double_graph_span(CUgraphExec instance);

/* A profiler's use of the doubles. */
struct double_tracing {
    int kinds;        /* of activities that are traced */
    long flushes;     /* since the last of them was enabled */
    int hangs;        /* calls of the tracing library that will not return */
    int unsafe_calls; /* that have ended captures in global mode (DOUBLE_CUPTI_UNSAFE) */
};
struct double_tracing *double_tracing(void);

/* Wait until a profiler traces kernels, copies and memsets and has collected since then: what is
 * launched from here on is in its profile. 0: none does within 20 s. Likewise until a call
 * hangs. */
int double_await_tracing(void);
int double_await_hang(void);

/* For the double of the tracing library. */
struct double_activity {
    struct double_span span;
    int64_t real_minus_monotonic_ns; /* at the launch */
    uint64_t bytes, graph_node;
    const char *name;
    uint32_t kind; /* CUPTI's */
    uint32_t device, context, stream, correlation, graph;
    uint32_t grid[3];                   /* of a kernel */
    uint32_t peer_device, peer_context; /* of a copy to another device */
    uint32_t value;                     /* of a memset */
    uint8_t copy, from, to;             /* CUPTI's numbers */
};
void double_trace(void (*launched)(const struct double_activity *activity));
uint32_t double_context_number(CUcontext context);
int double_stream_number(CUcontext context, CUstream stream, uint32_t *number);
int double_driver_is_alive(void);

/* The calling thread does what a capture of another thread may forbid, by its mode. */
void double_unsafe_call(void);

#endif
