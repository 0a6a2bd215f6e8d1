/* Our double of libcuda.so.1: contexts, memory and streams of up to eight devices that do not
 * exist. See README.md.
 *
 * Nothing runs in the background. A launch computes when it begins (when its stream is free, now at
 * the earliest) and ends, and who waits for it sleeps until then.
 *
 *     DOUBLE_DEVICES           how many devices there are (1)
 *     DOUBLE_DRIVER_VERSION    what cuDriverGetVersion says (13000) */
#include "gpu_double.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { MOST_DEVICES = 8, MOST_RANGES = 4096, MOST_NODES = 1024 };
#define DEVICE_BYTES ((size_t)16 << 30)
enum { KIND_COPY = 1, KIND_SET = 2, KIND_PEER_COPY = 22, KIND_KERNEL = 10 };
enum { CAPTURE_GLOBAL = 0 };
enum {
    COPY_TO_DEVICE = 1,
    COPY_TO_HOST = 2,
    COPY_ON_DEVICE = 8,
    COPY_ON_HOST = 9,
    COPY_TO_PEER = 10
};
enum memory { PAGEABLE = 1, PINNED = 2, DEVICE = 3, MANAGED = 5 }; /* CUPTI's numbers */

struct CUstream_st {
    CUcontext context;
    uint32_t number;
    int64_t free_ns;
    CUgraph capturing;
    bool is_destroyed;
    CUstream next, next_destroyed;
};

struct CUctx_st {
    CUdevice device;
    uint32_t number, streams_made;
    int retained;
    struct CUstream_st default_stream;
};

struct CUgraph_st {
    uint32_t number;
    int nodes, mode, unsafe_calls; /* when its capture began */
    struct double_span span;
    struct double_activity node[MOST_NODES];
};

static struct range {
    uintptr_t begin;
    size_t bytes;
    enum memory memory;
    CUcontext context;
    bool is_mapped; /* by us */
} ranges[MOST_RANGES];
static int ranges_used;

static struct double_tracing tracing;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_initialized, is_gone;
static pid_t initialized_by;
static struct CUctx_st primary[MOST_DEVICES];
static uint32_t contexts_made, graphs_made, nodes_made, correlations;
static void (*traced)(const struct double_activity *activity);
static _Thread_local CUcontext current;

static int number_of(const char *variable, int usual)
{
    const char *text = getenv(variable);
    return text && *text ? atoi(text) : usual;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

EXPORT int64_t double_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* The shortest of several readings: a busy machine may stop the process between the two clocks. */
static int64_t real_minus_monotonic_ns(void)
{
    int64_t least_ns = INT64_MAX, difference_ns = 0;
    for (int i = 0; i < 5; i++) {
        int64_t before_ns = double_now_ns(), real_ns = clock_ns(CLOCK_REALTIME),
                span_ns = double_now_ns() - before_ns;
        if (span_ns < least_ns) {
            least_ns = span_ns;
            difference_ns = real_ns - before_ns - span_ns / 2;
        }
    }
    return difference_ns;
}

static void driver_ends(void)
{
    is_gone = true;
}

EXPORT CUresult cuInit(unsigned flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    if (!is_initialized) {
        is_initialized = true;
        initialized_by = getpid();
        atexit(driver_ends);
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* Result that every call checks first. A forked child has no driver: its state is the parent's. */
static CUresult state(void)
{
    if (is_gone)
        return CUDA_ERROR_DEINITIALIZED;
    return is_initialized && initialized_by == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

EXPORT int double_driver_is_alive(void)
{
    return !is_gone;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    *version = number_of("DOUBLE_DRIVER_VERSION", 13000);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    *count = number_of("DOUBLE_DEVICES", 1);
    return state();
}

static CUresult device_state(CUdevice device)
{
    int count = 0;
    CUresult error = cuDeviceGetCount(&count);
    if (error)
        return error;
    return device >= 0 && device < count && device < MOST_DEVICES ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return device_state(ordinal);
}

EXPORT CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    CUresult error = device_state(device);
    if (!error)
        snprintf(name, (size_t)bytes, "Double of a GPU");
    return error;
}

/* As many multiprocessors as an H100 has. */
EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    CUresult error = device_state(device);
    if (!error && attribute != CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        return CUDA_ERROR_INVALID_VALUE;
    *value = 132;
    return error;
}

EXPORT CUresult cuDeviceGetUuid_v2(unsigned char uuid[16], CUdevice device)
{
    CUresult error = device_state(device);
    for (int i = 0; !error && i < 16; i++)
        uuid[i] = (unsigned char)(16 * device + i);
    return error;
}

EXPORT CUresult cuDeviceGetUuid(unsigned char uuid[16], CUdevice device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

static void context_begin(CUcontext context, CUdevice device)
{
    *context = (struct CUctx_st){.device = device, .number = ++contexts_made, .streams_made = 7};
    context->default_stream =
        (struct CUstream_st){.context = context, .number = 7}; /* as CUPTI numbers it */
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult error = device_state(device);
    if (error)
        return error;
    pthread_mutex_lock(&lock);
    if (!primary[device].retained++)
        context_begin(&primary[device], device), primary[device].retained = 1;
    *context = &primary[device];
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* Whoever holds it holds nothing any more. */
EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUresult error = device_state(device);
    if (!error)
        primary[device].retained = 0;
    return error;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    CUresult error = device_state(device);
    if (!error) {
        *flags = 0;
        *active = primary[device].retained > 0;
    }
    return error;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult error = state();
    if (!error)
        current = context;
    return error;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult error = state();
    if (!error)
        *context = current;
    return error;
}

EXPORT uint32_t double_context_number(CUcontext context)
{
    return context->number;
}

/* Streams. */

static CUstream streams;     /* of all contexts */
static CUstream destroyed;   /* of these: the next ones to be handed out again */
static int64_t abandoned_ns; /* when the last of what destroyed streams were given ends */

static CUstream stream_of(CUstream stream)
{
    if (stream && stream->is_destroyed) {
        fprintf(stderr, "double of libcuda: a destroyed stream is used\n");
        abort();
    }
    return stream ? stream : current ? &current->default_stream : NULL;
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    CUresult error = state();
    if (!error && !current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (error)
        return error;
    pthread_mutex_lock(&lock);
    CUstream made = destroyed;
    if (made)
        destroyed = made->next_destroyed;
    else {
        made = calloc(1, sizeof(struct CUstream_st));
        made->next = streams;
        streams = made;
    }
    *made = (struct CUstream_st){
        .context = current, .number = ++current->streams_made, .next = made->next};
    pthread_mutex_unlock(&lock);
    *stream = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
    CUstream going = stream_of(stream); /* what it was given runs to its end, in CUDA too */
    pthread_mutex_lock(&lock);
    going->is_destroyed = true;
    going->next_destroyed = destroyed;
    destroyed = going;
    abandoned_ns = going->free_ns > abandoned_ns ? going->free_ns : abandoned_ns;
    pthread_mutex_unlock(&lock);
    return state();
}

/* In CUDA, too, it is given to one stream alone while the process lives. */
EXPORT CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
    CUresult error = state();
    CUstream found = stream_of(stream);
    if (!error && !found)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!error)
        *id = (unsigned long long)found->context->number << 32 | found->number;
    return error;
}

EXPORT int double_stream_number(CUcontext context, CUstream stream, uint32_t *number)
{
    CUstream found = stream || !context ? stream_of(stream) : &context->default_stream;
    if (!found || (context && found->context != context))
        return 0;
    *number = found->number;
    return 1;
}

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    CUresult error = state();
    CUstream found = stream_of(stream);
    if (!error && !found)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!error)
        *context = found->context;
    return error;
}

static void sleep_until(int64_t ns)
{
    struct timespec until = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    CUresult error = state();
    CUstream found = stream_of(stream);
    if (!error && found)
        sleep_until(found->free_ns);
    return error;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    CUresult error = state();
    if (error || !current)
        return error ? error : CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    int64_t last_ns = current->default_stream.free_ns > abandoned_ns
                          ? current->default_stream.free_ns
                          : abandoned_ns;
    for (CUstream stream = streams; stream; stream = stream->next)
        if (stream->context == current && stream->free_ns > last_ns)
            last_ns = stream->free_ns;
    pthread_mutex_unlock(&lock);
    sleep_until(last_ns);
    return CUDA_SUCCESS;
}

EXPORT void double_wait(CUstream stream, CUstream other)
{
    stream = stream_of(stream);
    other = stream_of(other);
    pthread_mutex_lock(&lock);
    if (stream->free_ns < other->free_ns)
        stream->free_ns = other->free_ns;
    pthread_mutex_unlock(&lock);
}

EXPORT int64_t double_free_ns(CUstream stream)
{
    CUstream found = stream_of(stream);
    int64_t now_ns = double_now_ns();
    return found && found->free_ns > now_ns ? found->free_ns : now_ns;
}

EXPORT void double_wait_until(CUstream stream, int64_t ns)
{
    stream = stream_of(stream);
    pthread_mutex_lock(&lock);
    if (stream->free_ns < ns)
        stream->free_ns = ns;
    pthread_mutex_unlock(&lock);
}

/* Launches. */

EXPORT void double_trace(void (*launched)(const struct double_activity *activity))
{
    __atomic_store_n(&traced, launched, __ATOMIC_RELEASE);
}

static struct double_span run(CUstream stream, struct double_activity *activity,
                              int64_t duration_ns)
{
    stream = stream_of(stream);
    if (!stream || state() != CUDA_SUCCESS) {
        fprintf(stderr, "double of libcuda: a launch without a context\n");
        abort();
    }
    pthread_mutex_lock(&lock);
    if (stream->capturing) {
        activity->span.end_ns = duration_ns;
        if (stream->capturing->nodes < MOST_NODES)
            stream->capturing->node[stream->capturing->nodes++] = *activity;
        pthread_mutex_unlock(&lock);
        return (struct double_span){0, 0};
    }
    int64_t now_ns = double_now_ns();
    activity->span.start_ns = stream->free_ns > now_ns ? stream->free_ns : now_ns;
    activity->span.end_ns = stream->free_ns = activity->span.start_ns + duration_ns;
    pthread_mutex_unlock(&lock);
    activity->real_minus_monotonic_ns = real_minus_monotonic_ns();
    activity->device = (uint32_t)stream->context->device;
    activity->context = stream->context->number;
    activity->stream = stream->number;
    if (!activity->correlation)
        activity->correlation = __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED);
    void (*launched)(const struct double_activity *) = __atomic_load_n(&traced, __ATOMIC_ACQUIRE);
    if (launched)
        launched(activity);
    return activity->span;
}

EXPORT struct double_span double_launch(CUstream stream, const char *name, int64_t duration_ns)
{
    return double_launch_grid(stream, name, duration_ns, 1, 1, 1);
}

EXPORT struct double_span double_launch_grid(CUstream stream, const char *name, int64_t duration_ns,
                                             unsigned x, unsigned y, unsigned z)
{
    return run(stream,
               &(struct double_activity){.kind = KIND_KERNEL, .name = name, .grid = {x, y, z}},
               duration_ns);
}

/* Memory. */

static struct range *range_of(uintptr_t address)
{
    for (int i = 0; i < ranges_used; i++)
        if (address - ranges[i].begin < ranges[i].bytes)
            return &ranges[i];
    return NULL;
}

static bool range_add(void *begin, size_t bytes, enum memory memory, bool is_mapped)
{
    pthread_mutex_lock(&lock);
    int at = 0;
    while (at < ranges_used && ranges[at].bytes)
        at++;
    bool fits = at < MOST_RANGES;
    if (fits) {
        ranges[at] = (struct range){(uintptr_t)begin, bytes, memory, current, is_mapped};
        ranges_used += at == ranges_used;
    }
    pthread_mutex_unlock(&lock);
    return fits;
}

static CUresult allocate(void **address, size_t bytes, enum memory memory)
{
    CUresult error = state();
    if (error || !current || !bytes)
        return error ? error : current ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return *address != MAP_FAILED && range_add(*address, bytes, memory, true)
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult forget(void *address)
{
    CUresult error = state();
    pthread_mutex_lock(&lock);
    struct range *range = range_of((uintptr_t)address);
    if (!error && (!range || range->begin != (uintptr_t)address))
        error = CUDA_ERROR_INVALID_VALUE;
    if (!error) {
        if (range->is_mapped)
            munmap(address, range->bytes);
        *range = (struct range){0};
    }
    pthread_mutex_unlock(&lock);
    return error;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    pthread_mutex_lock(&lock);
    *available = *total = DEVICE_BYTES;
    for (int i = 0; i < ranges_used; i++)
        *available -= ranges[i].memory == DEVICE ? ranges[i].bytes : 0;
    pthread_mutex_unlock(&lock);
    return state();
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    void *made = NULL;
    CUresult error = allocate(&made, bytes, DEVICE);
    *address = (CUdeviceptr)(uintptr_t)made;
    return error;
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags)
{
    (void)flags;
    void *made = NULL;
    CUresult error = allocate(&made, bytes, MANAGED);
    *address = (CUdeviceptr)(uintptr_t)made;
    return error;
}

EXPORT CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocate(address, bytes, PINNED);
}

EXPORT CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags)
{
    (void)flags;
    CUresult error = state();
    return error                                      ? error
           : range_add(address, bytes, PINNED, false) ? CUDA_SUCCESS
                                                      : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemHostUnregister(void *address)
{
    return forget(address);
}

static struct range described(CUdeviceptr address)
{
    pthread_mutex_lock(&lock);
    struct range *range = range_of((uintptr_t)address);
    struct range copy = range ? *range : (struct range){0};
    pthread_mutex_unlock(&lock);
    return copy;
}

static CUresult attribute_of(const struct range *range, int attribute, void *data)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: /* managed memory says device: cuda.h of
                                              cuPointerGetAttribute */
        *(unsigned *)data = !range->bytes             ? 0
                            : range->memory == PINNED ? CU_MEMORYTYPE_HOST
                                                      : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = range->memory == MANAGED;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* For an address that CUDA does not know, all are 0 and there is no error. */
EXPORT CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **data,
                                       CUdeviceptr address)
{
    CUresult error = state();
    struct range range = described(address);
    for (unsigned i = 0; !error && i < count; i++)
        error = attribute_of(&range, attributes[i], data[i]);
    return error;
}

static enum memory memory_at(const void *address, CUcontext *context)
{
    struct range range = described((CUdeviceptr)(uintptr_t)address);
    *context = range.context;
    return range.bytes ? range.memory : PAGEABLE;
}

static uint8_t copy_kind(enum memory from, enum memory to)
{
    if (from == MANAGED || to == MANAGED)
        return COPY_ON_DEVICE;
    if (from == DEVICE)
        return to == DEVICE ? COPY_ON_DEVICE : COPY_TO_HOST;
    return to == DEVICE ? COPY_TO_DEVICE : COPY_ON_HOST;
}

EXPORT struct double_span double_copy(CUstream stream, void *to, const void *from, size_t bytes,
                                      int64_t duration_ns)
{
    CUcontext source, target;
    struct double_activity activity = {.kind = KIND_COPY, .bytes = bytes};
    activity.from = (uint8_t)memory_at(from, &source);
    activity.to = (uint8_t)memory_at(to, &target);
    activity.copy = copy_kind(activity.from, activity.to);
    if (activity.copy == COPY_ON_DEVICE && source && target && source->device != target->device) {
        activity.kind = KIND_PEER_COPY;
        activity.copy = COPY_TO_PEER;
        activity.peer_device = (uint32_t)target->device;
        activity.peer_context = target->number;
    }
    memmove(to, from, bytes);
    return run(stream, &activity, duration_ns);
}

EXPORT struct double_span double_set(CUstream stream, void *to, int value, size_t bytes,
                                     int64_t duration_ns)
{
    CUcontext context;
    struct double_activity activity = {.kind = KIND_SET, .bytes = bytes, .value = (uint32_t)value};
    activity.to = (uint8_t)memory_at(to, &context);
    memset(to, value, bytes);
    return run(stream, &activity, duration_ns);
}

/* Graphs: what a stream captures, launched as often as one likes. */

EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    CUstream found = stream_of(stream);
    *status =
        found && found->capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return state();
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    CUgraph graph = calloc(1, sizeof *graph);
    graph->mode = mode;
    graph->unsafe_calls = __atomic_load_n(&tracing.unsafe_calls, __ATOMIC_ACQUIRE);
    graph->number = __atomic_add_fetch(&graphs_made, 1, __ATOMIC_RELAXED);
    stream_of(stream)->capturing = graph;
    return state();
}

/* Only a thread in global mode, where each begins, is forbidden anything by captures of other
 * threads. */
static _Thread_local int capture_mode = CAPTURE_GLOBAL;

EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return state();
}

EXPORT void double_unsafe_call(void)
{
    if (capture_mode == CAPTURE_GLOBAL)
        __atomic_add_fetch(&tracing.unsafe_calls, 1, __ATOMIC_RELEASE);
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    *graph = stream_of(stream)->capturing;
    stream_of(stream)->capturing = NULL;
    int unsafe_calls = __atomic_load_n(&tracing.unsafe_calls, __ATOMIC_ACQUIRE);
    if ((*graph)->mode == CAPTURE_GLOBAL && unsafe_calls != (*graph)->unsafe_calls)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    for (int i = 0; i < (*graph)->nodes; i++)
        (*graph)->node[i].graph_node = __atomic_add_fetch(&nodes_made, 1, __ATOMIC_RELAXED);
    return state();
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *instance, CUgraph graph,
                                            unsigned long long flags)
{
    (void)flags;
    *instance = graph;
    return state();
}

EXPORT CUresult cuGraphLaunch(CUgraphExec instance, CUstream stream)
{
    uint32_t correlation = __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < instance->nodes; i++) {
        struct double_activity node = instance->node[i];
        node.graph = instance->number;
        node.correlation = correlation;
        struct double_span span = run(stream, &node, node.span.end_ns);
        if (i == 0)
            instance->span.start_ns = span.start_ns;
        instance->span.end_ns = span.end_ns;
    }
    return state();
}

EXPORT struct double_span double_graph_span(CUgraphExec instance)
{
    return instance->span;
}

EXPORT struct double_tracing *double_tracing(void)
{
    return &tracing;
}

static int has_collected(void)
{
    return __atomic_load_n(&tracing.kinds, __ATOMIC_ACQUIRE) >= 4 &&
           __atomic_load_n(&tracing.flushes, __ATOMIC_ACQUIRE) >= 2;
}

static int hangs(void)
{
    return __atomic_load_n(&tracing.hangs, __ATOMIC_ACQUIRE) > 0;
}

static int await(int (*has_come)(void))
{
    int64_t until_ns = double_now_ns() + 20000000000ll;
    while (!has_come() && double_now_ns() < until_ns)
        sleep_until(double_now_ns() + 1000000);
    return has_come();
}

EXPORT int double_await_tracing(void)
{
    return await(has_collected);
}

EXPORT int double_await_hang(void)
{
    return await(hangs);
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error ? "an error of the double" : "no error";
    return CUDA_SUCCESS;
}
