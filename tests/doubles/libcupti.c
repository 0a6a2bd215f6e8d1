/* Our double of libcupti.so.13 (and .12): the Activity API over our double of libcuda. See
 * README.md.
 *
 *     launch (any thread)    room in this thread's buffer? else: full; ask the client for another
 *                            -> activity, reserved in it
 *     worker, FlushAll       buffers whose activities have all ended: records are written, in an
 *                            order of their own -> the client
 *
 * What a real library may do wrong, by environment variable (N: with each Nth activity; 0: never):
 *
 *     DOUBLE_CUPTI_VERSION      what cuptiGetVersion says (130001; libcupti.so.12: 28); records
 *                               have the sizes of that version
 *     DOUBLE_CUPTI_FAIL         function=code,...: what they answer instead of doing anything
 *     DOUBLE_CUPTI_HANG         function,...: they never return
 *     DOUBLE_CUPTI_UNSAFE       function,...: they end captures of other threads in global mode,
 *                               unless their thread is in another mode
 *     DOUBLE_CUPTI_UNSAFE_WITHIN  function,...: they end them in any mode, by a thread of CUPTI's
 *     DOUBLE_CUPTI_DROP         N: is not recorded, but counted as dropped
 *     DOUBLE_CUPTI_ZERO         N: has no time stamps, as when device buffers are exhausted
 *     DOUBLE_CUPTI_IMPLAUSIBLE  N: ends before it begins; or begins an hour ago; or ends in an
 *                               hour, in turn
 *     DOUBLE_CUPTI_LOSE_AFTER   after N activities none is recorded any more, and nobody is told
 *     DOUBLE_CUPTI_GRAPHS       0: what graphs launch is not recorded, and nobody is told (1)
 *     DOUBLE_CUPTI_HOLDER       this name subscribed before us: cuptiSubscribe answers 39
 *     DOUBLE_CUPTI_WORKER       0: full buffers wait for a flush
 *     DOUBLE_CUPTI_CORRELATION  0: correlation ids are there only with API records, as the
 *                               documentation says (1)
 *     DOUBLE_CUPTI_LOG          a file: one line a call, "pid tid function result"; buffers:
 *                               "request", "complete valid_bytes"; the bound of buffers in device
 *                               memory, as it is set: "device_buffers number" */
#include "gpu_double.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    SUCCESS = 0,
    INVALID_PARAMETER = 1,
    INVALID_CONTEXT = 3,
    INVALID_OPERATION = 7,
    MAX_LIMIT_REACHED = 12,
    NOT_COMPATIBLE = 14,
    INVALID_STREAM = 20,
    INVALID_KIND = 21,
    MULTIPLE_SUBSCRIBERS = 39,
    UNKNOWN = 999,
};
enum {
    KIND_COPY = 1,
    KIND_SET = 2,
    KIND_KERNEL_SERIALIZED = 3,
    KIND_DRIVER = 4,
    KIND_RUNTIME = 5,
    KIND_KERNEL = 10,
    KIND_PEER_COPY = 22,
    KINDS = 55,
};
enum {
    ATTRIBUTE_BUFFER_LIMIT = 2,
    ATTRIBUTE_ZEROED_OUT = 5,
    ATTRIBUTE_PER_THREAD = 9,
    FLUSH_FORCED = 1,
    MOST_NAMES = 4096
};
#define ENDED_ALL_THE_SAME \
    UINT32_MAX /* an activity with an implausible end in the future is complete */

#ifndef USUAL_VERSION
#define USUAL_VERSION 130001
#endif

typedef void (*request_function)(uint8_t **buffer, size_t *bytes, size_t *most_records);
typedef void (*complete_function)(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                  size_t valid_bytes);
typedef uint64_t (*timestamp_function)(void);

struct buffer {
    uint8_t *bytes;
    size_t size, used, most_records, count, room;
    struct double_activity *activities;
    bool is_full;
    struct buffer *next;
};

/* One for each thread that launches; before CUDA 13.0 one for all. */
struct queue {
    struct buffer *oldest, *newest;
    struct queue *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static struct queue common, *queues = &common;
static _Thread_local struct queue *own;
static bool per_thread, is_zeroed_by_client, has_worker;
static request_function request;
static complete_function complete;
static timestamp_function timestamp;
static bool enabled[KINDS];
static size_t dropped;
static uint64_t seen;
static char *names[MOST_NAMES];
static int subscribers; /* one at most */
static size_t device_buffers[] = {
    [0] = 3200000, [1] = 8388608, [ATTRIBUTE_BUFFER_LIMIT] = 250, [6] = 3}; /* attributes, each a
                                                                               size_t */

static size_t *device_buffer_attribute(int attribute)
{
    bool is_one = attribute >= 0 && attribute <= 6 && device_buffers[attribute];
    return is_one ? &device_buffers[attribute] : NULL;
}

/* The double of libcuda, once it is loaded. */
static struct {
    void (*trace)(void (*launched)(const struct double_activity *activity));
    int (*is_alive)(void);
    int (*stream_number)(CUcontext context, CUstream stream, uint32_t *number);
    uint32_t (*context_number)(CUcontext context);
    void (*unsafe_call)(void);
    struct double_tracing *tracing;
} cuda;
static pid_t began_in;

static long number_of(const char *variable, long usual)
{
    const char *text = getenv(variable);
    return text && *text ? atol(text) : usual;
}

static uint32_t version(void)
{
    return (uint32_t)number_of("DOUBLE_CUPTI_VERSION", USUAL_VERSION);
}

static void say(const char *what, long result)
{
    const char *path = getenv("DOUBLE_CUPTI_LOG");
    if (!path)
        return;
    char line[256];
    int bytes = snprintf(line, sizeof line, "%d %ld %s %ld\n", (int)getpid(), syscall(SYS_gettid),
                         what, result);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file >= 0 && write(file, line, (size_t)bytes) < 0)
        abort();
    close(file);
}

static bool find_cuda(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    struct double_tracing *(*tracing)(void) =
        library ? (struct double_tracing * (*)(void)) dlsym(library, "double_tracing") : NULL;
    if (!tracing)
        return false;
    cuda.is_alive = (int (*)(void))dlsym(library, "double_driver_is_alive");
    cuda.stream_number =
        (int (*)(CUcontext, CUstream, uint32_t *))dlsym(library, "double_stream_number");
    cuda.context_number = (uint32_t(*)(CUcontext))dlsym(library, "double_context_number");
    cuda.trace = (void (*)(void (*)(const struct double_activity *)))dlsym(library, "double_trace");
    cuda.unsafe_call = (void (*)(void))dlsym(library, "double_unsafe_call");
    cuda.tracing = tracing();
    began_in = getpid();
    return true;
}

/* The word of a list "a,b=3" that names this function; NULL. */
static const char *named(const char *list, const char *function)
{
    size_t length = strlen(function);
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, function, length) && strchr(",=", at[length]))
            return at + length;
    return NULL;
}

/* Checks at the start of a call: whether it hangs, or fails, by order; and the process must be one
 * that may call it. */
static bool fails_by_order(const char *function, int *result)
{
    if (began_in && began_in != getpid()) {
        fprintf(stderr, "double of libcupti: %s in a forked child (the real one may hang)\n",
                function);
        abort();
    }
    if (named(getenv("DOUBLE_CUPTI_HANG"), function)) {
        say(function, -1);
        if (find_cuda())
            __atomic_add_fetch(&cuda.tracing->hangs, 1, __ATOMIC_RELEASE);
        for (;;)
            pause();
    }
    if (named(getenv("DOUBLE_CUPTI_UNSAFE"), function) && find_cuda())
        cuda.unsafe_call();
    if (named(getenv("DOUBLE_CUPTI_UNSAFE_WITHIN"), function) && find_cuda())
        __atomic_add_fetch(&cuda.tracing->unsafe_calls, 1, __ATOMIC_RELEASE);
    const char *order = named(getenv("DOUBLE_CUPTI_FAIL"), function);
    *result = order ? atoi(order + 1) : SUCCESS;
    if (order)
        say(function, *result);
    return order;
}

static int said(const char *function, int result)
{
    say(function, result);
    return result;
}

/* Calls that need the driver say 999 where there is none (seen of the real library, 13.0). */
static int driver(void)
{
    if (!cuda.trace && !find_cuda())
        return UNKNOWN;
    if (!cuda.is_alive()) {
        fprintf(
            stderr,
            "double of libcupti: called after the end of the driver (the real one may crash)\n");
        abort();
    }
    return SUCCESS;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Records, as the version has them: our own layout of what NVIDIA's headers say
 * (tests/abi/test_cupti_records.py compares). */

static size_t record_bytes(uint32_t kind)
{
    uint32_t is = version();
    switch (kind) {
    case KIND_KERNEL:
        return is >= 130400   ? 248
               : is >= 130300 ? 232
               : is >= 130100 ? 224
               : is >= 130000 ? 216
               : is >= 18     ? 208
                              : 176;
    case KIND_COPY:
        return is >= 130400 ? 112 : is >= 26 ? 96 : 88;
    case KIND_PEER_COPY:
        return 96;
    case KIND_SET:
        return is >= 130400 ? 104 : 88;
    default:
        return 40; /* of an API call */
    }
}

static void put32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, 4);
}

static void put64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, 8);
}

/* Bit patterns in the fields that a reader has no use for: it shall not take them for anything. */
static void fill(uint8_t *record, size_t bytes)
{
    memset(record, 0xa5, bytes);
}

static void put_kernel(uint8_t *at, const struct double_activity *a, uint64_t start, uint64_t end)
{
    put64(at + 16, start);
    put64(at + 24, end);
    put64(at + 32, end);
    put32(at + 40, a->device);
    put32(at + 44, a->context);
    put32(at + 48, a->stream);
    for (int i = 0; i < 3; i++)
        put32(at + 52 + 4 * i, a->grid[i]);
    put32(at + 92, a->correlation);
    put64(at + 104, (uint64_t)(uintptr_t)a->name);
    put64(at + 144, a->graph_node);
    put32(at + 156, a->graph);
}

static void put_copy(uint8_t *at, const struct double_activity *a, uint64_t start, uint64_t end)
{
    at[4] = a->copy, at[5] = a->from, at[6] = a->to, at[7] = 1; /* asynchronous */
    put64(at + 8, a->bytes);
    put64(at + 16, start);
    put64(at + 24, end);
    put32(at + 32, a->device);
    put32(at + 36, a->context);
    put32(at + 40, a->stream);
    if (a->kind == KIND_PEER_COPY) {
        put32(at + 44, a->device);
        put32(at + 48, a->context);
        put32(at + 52, a->peer_device);
        put32(at + 56, a->peer_context);
        put32(at + 60, a->correlation);
        put64(at + 72, a->graph_node);
        put32(at + 80, a->graph);
    } else {
        put32(at + 44, a->correlation);
        put64(at + 64, a->graph_node);
        put32(at + 72, a->graph);
    }
}

static void put_set(uint8_t *at, const struct double_activity *a, uint64_t start, uint64_t end)
{
    put32(at + 4, a->value);
    put64(at + 8, a->bytes);
    put64(at + 16, start);
    put64(at + 24, end);
    put32(at + 32, a->device);
    put32(at + 36, a->context);
    put32(at + 40, a->stream);
    put32(at + 44, a->correlation);
    put64(at + 64, a->graph_node);
    put32(at + 72, a->graph);
}

static void put_api(uint8_t *at, const struct double_activity *a, uint64_t start, uint64_t end)
{
    put32(at + 4, 307); /* cuLaunchKernel */
    put64(at + 8, start);
    put64(at + 16, end);
    put32(at + 24, (uint32_t)getpid());
    put32(at + 28, (uint32_t)getpid());
    put32(at + 32, a->correlation);
    put32(at + 36, 0);
}

/* A kernel that still runs at a forced flush has no end. */
static void put_record(uint8_t *at, const struct double_activity *a)
{
    uint64_t start = (uint64_t)(a->span.start_ns + a->real_minus_monotonic_ns),
             end = (uint64_t)(a->span.end_ns + a->real_minus_monotonic_ns);
    if (a->span.end_ns == 0)
        start = end = 0;
    else if (a->span.end_ns > clock_ns(CLOCK_MONOTONIC) && a->kind != KIND_RUNTIME &&
             a->kind != KIND_DRIVER && a->value != ENDED_ALL_THE_SAME)
        end = 0;
    fill(at, record_bytes(a->kind));
    put32(at, a->kind);
    if (a->kind == KIND_KERNEL)
        put_kernel(at, a, start, end);
    else if (a->kind == KIND_SET)
        put_set(at, a, start, end);
    else if (a->kind == KIND_DRIVER || a->kind == KIND_RUNTIME)
        put_api(at, a, start, end);
    else
        put_copy(at, a, start, end);
}

/* Buffers. */

static bool is_complete(const struct buffer *buffer)
{
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < buffer->count; i++)
        if (buffer->activities[i].span.end_ns > now_ns &&
            buffer->activities[i].value != ENDED_ALL_THE_SAME)
            return false;
    return true;
}

/* The last first: no order can be relied on. */
static void deliver(struct buffer *buffer, complete_function to)
{
    size_t at = 0;
    for (size_t i = buffer->count; i-- > 0; at += record_bytes(buffer->activities[i].kind))
        put_record(buffer->bytes + at, &buffer->activities[i]);
    say("complete", (long)at);
    if (to)
        to(NULL, 0, buffer->bytes, buffer->size, at);
    free(buffer->activities);
    free(buffer);
}

/* Take what is to be delivered out of all queues; full ones alone, those without an activity that
 * runs, or all. */
static struct buffer *take(bool full_alone, bool even_incomplete)
{
    struct buffer *taken = NULL, **end = &taken;
    for (struct queue *queue = queues; queue; queue = queue->next) {
        struct buffer **at = &queue->oldest;
        queue->newest = NULL;
        while (*at) {
            struct buffer *buffer = *at;
            if ((buffer->is_full || !full_alone) && (even_incomplete || is_complete(buffer))) {
                *at = buffer->next;
                buffer->next = NULL;
                *end = buffer;
                end = &buffer->next;
            } else {
                queue->newest = buffer;
                at = &buffer->next;
            }
        }
    }
    return taken;
}

static void hand_over(bool full_alone, bool even_incomplete)
{
    pthread_mutex_lock(&lock);
    struct buffer *buffer = take(full_alone, even_incomplete);
    complete_function to = complete;
    pthread_mutex_unlock(&lock);
    while (buffer) {
        struct buffer *next = buffer->next;
        deliver(buffer, to);
        buffer = next;
    }
}

static void *worker(void *nothing)
{
    (void)nothing;
    for (;;) {
        struct timespec until = {.tv_sec = 0};
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 2000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&lock);
        pthread_cond_timedwait(&work, &lock, &until);
        pthread_mutex_unlock(&lock);
        hand_over(true, false);
    }
    return NULL;
}

static void worker_begin(void)
{
    pthread_t thread;
    if (!has_worker && number_of("DOUBLE_CUPTI_WORKER", 1)) {
        has_worker = true;
        pthread_create(&thread, NULL, worker, NULL);
        pthread_detach(thread);
    }
}

static struct queue *queue_of_this_thread(void)
{
    if (!per_thread)
        return &common;
    if (!own) {
        own = calloc(1, sizeof *own);
        own->next = queues;
        queues = own;
    }
    return own;
}

/* A buffer of the client's with room for `bytes`: its callback runs in the thread that launches,
 * with no lock of ours held. */
static struct buffer *buffer_for(size_t bytes)
{
    struct queue *queue = queue_of_this_thread();
    struct buffer *buffer = queue->newest;
    if (buffer && !buffer->is_full && buffer->used + bytes <= buffer->size &&
        !(buffer->most_records && buffer->count == buffer->most_records))
        return buffer;
    if (buffer)
        buffer->is_full = true;
    request_function ask = request;
    struct buffer *made = calloc(1, sizeof *made);
    pthread_mutex_unlock(&lock);
    if (ask)
        ask(&made->bytes, &made->size, &made->most_records);
    say("request", (long)made->size);
    if (ask && (made->bytes || version() < 27) && !is_zeroed_by_client)
        memset(made->bytes, 0,
               made->size ? made->size : 1); /* before 12.9 a buffer that is NULL crashes */
    pthread_mutex_lock(&lock);
    if (!made->bytes || made->size < bytes || (uintptr_t)made->bytes % 8) {
        free(made);
        return NULL;
    }
    queue->newest ? (queue->newest->next = made) : (queue->oldest = made);
    queue->newest = made;
    return made;
}

static void reserve(const struct double_activity *activity)
{
    size_t bytes = record_bytes(activity->kind);
    struct buffer *buffer = buffer_for(bytes);
    if (!buffer) {
        dropped++;
        return;
    }
    if (buffer->count == buffer->room) {
        buffer->room = buffer->room ? 2 * buffer->room : 64;
        buffer->activities = realloc(buffer->activities, buffer->room * sizeof *activity);
    }
    buffer->activities[buffer->count++] = *activity;
    buffer->used += bytes;
}

/* Names are ours, one copy each, until their module is gone: then their memory says something
 * else. */
static const char *name_kept(const char *name)
{
    for (int i = 0; i < MOST_NAMES; i++) {
        if (!names[i])
            names[i] = strdup(name);
        if (!strcmp(names[i], name))
            return names[i];
    }
    return "too_many_names_for_the_double";
}

static bool each(const char *variable)
{
    long n = number_of(variable, 0);
    return n && seen % (uint64_t)n == 0;
}

static void spoil(struct double_activity *a)
{
    static int turn;
    int64_t hour_ns = 3600 * 1000000000ll, duration_ns = a->span.end_ns - a->span.start_ns;
    if (each("DOUBLE_CUPTI_ZERO"))
        a->span = (struct double_span){0, 0};
    else if (each("DOUBLE_CUPTI_IMPLAUSIBLE"))
        switch (turn++ % 3) {
        case 0:
            a->span.end_ns = a->span.start_ns - 1000;
            break;
        case 1:
            a->span = (struct double_span){a->span.start_ns - hour_ns,
                                           a->span.start_ns - hour_ns + duration_ns};
            break;
        default:
            a->span.end_ns += hour_ns;
            a->value = ENDED_ALL_THE_SAME;
        }
}

/* With a callback for time stamps all stamps are in its clock; some versions give kernels none
 * then. */
static void stamp(struct double_activity *a)
{
    if (!timestamp)
        return;
    a->real_minus_monotonic_ns = (int64_t)timestamp() - clock_ns(CLOCK_MONOTONIC);
    bool has_the_bug = (version() >= 24 && version() <= 28) || version() == 130000;
    if (a->kind == KIND_KERNEL && has_the_bug)
        a->span = (struct double_span){0, 0};
}

static void launched(const struct double_activity *activity)
{
    struct double_activity a = *activity;
    pthread_mutex_lock(&lock);
    bool is_left_out = a.graph_node && !number_of("DOUBLE_CUPTI_GRAPHS", 1);
    if (enabled[a.kind] && !is_left_out) {
        seen++;
        long lose_after = number_of("DOUBLE_CUPTI_LOSE_AFTER", 0);
        bool has_api_records = enabled[KIND_DRIVER] || enabled[KIND_RUNTIME] || subscribers;
        if (!number_of("DOUBLE_CUPTI_CORRELATION", 1) && !has_api_records)
            a.correlation = 0;
        if (a.name)
            a.name = name_kept(a.name);
        stamp(&a);
        spoil(&a);
        if (each("DOUBLE_CUPTI_DROP"))
            dropped++;
        else if (!lose_after || seen <= (uint64_t)lose_after)
            reserve(&a);
    }
    if (a.kind && (enabled[KIND_RUNTIME] || enabled[KIND_DRIVER])) {
        a.kind = enabled[KIND_RUNTIME] ? KIND_RUNTIME : KIND_DRIVER;
        a.span.start_ns = a.span.end_ns = clock_ns(CLOCK_MONOTONIC);
        reserve(&a);
    }
    pthread_cond_signal(&work);
    pthread_mutex_unlock(&lock);
}

/* The interface. A function of it hangs, or fails, by order; what it answers is logged. */
#define FUNCTION(NAME, PARAMETERS, ARGUMENTS)                                            \
    static int NAME##_ PARAMETERS;                                                       \
    EXPORT int NAME PARAMETERS                                                           \
    {                                                                                    \
        int result;                                                                      \
        return fails_by_order(#NAME, &result) ? result : said(#NAME, NAME##_ ARGUMENTS); \
    }                                                                                    \
    static int NAME##_ PARAMETERS
#pragma GCC diagnostic ignored "-Wunused-parameter"

FUNCTION(cuptiGetVersion, (uint32_t * number), (number))
{
    *number = version();
    return SUCCESS;
}

FUNCTION(cuptiGetTimestamp, (uint64_t * now), (now))
{
    *now = timestamp ? timestamp() : (uint64_t)clock_ns(CLOCK_REALTIME);
    return SUCCESS;
}

EXPORT int cuptiGetResultString(int error, const char **text)
{
    *text = error == SUCCESS   ? "CUPTI_SUCCESS"
            : error == UNKNOWN ? "CUPTI_ERROR_UNKNOWN"
                               : "an error of the double";
    return SUCCESS;
}

FUNCTION(cuptiActivityRegisterCallbacks, (request_function requested, complete_function completed),
         (requested, completed))
{
    if (!requested || !completed)
        return INVALID_PARAMETER;
    pthread_mutex_lock(&lock);
    request = requested;
    complete = completed;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

FUNCTION(cuptiActivityRegisterTimestampCallback, (timestamp_function function), (function))
{
    timestamp = function ? function : timestamp;
    return function ? SUCCESS : INVALID_PARAMETER;
}

static int driver_for(uint32_t kind)
{
    return kind == 0 || kind >= KINDS ? INVALID_KIND : driver();
}

FUNCTION(cuptiActivityEnable, (uint32_t kind), (kind))
{
    static bool is_set;
    if ((kind == KIND_KERNEL && enabled[KIND_KERNEL_SERIALIZED]) ||
        (kind == KIND_KERNEL_SERIALIZED && enabled[KIND_KERNEL]))
        return NOT_COMPATIBLE;
    int result = driver_for(kind);
    if (result != SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    if (!is_set)
        per_thread = version() >= 130000;
    is_set = true;
    cuda.tracing->kinds += !enabled[kind];
    enabled[kind] = true;
    __atomic_store_n(&cuda.tracing->flushes, 0, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    cuda.trace(launched);
    worker_begin();
    return SUCCESS;
}

FUNCTION(cuptiActivityDisable, (uint32_t kind), (kind))
{
    int result = driver_for(kind);
    if (result != SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    cuda.tracing->kinds -= enabled[kind];
    enabled[kind] = false;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

FUNCTION(cuptiActivityFlushAll, (uint32_t flags), (flags))
{
    int result = driver();
    if (result != SUCCESS || !complete)
        return result != SUCCESS ? result : INVALID_OPERATION;
    hand_over(false, flags & FLUSH_FORCED);
    __atomic_add_fetch(&cuda.tracing->flushes, 1, __ATOMIC_RELEASE);
    return SUCCESS;
}

FUNCTION(cuptiActivityGetNumDroppedRecords, (CUcontext context, uint32_t stream, size_t *number),
         (context, stream, number))
{
    pthread_mutex_lock(&lock);
    *number = dropped;
    dropped = 0;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, void **record)
{
    if (!buffer)
        return INVALID_PARAMETER;
    uint8_t *next = buffer;
    uint32_t kind;
    if (*record) {
        memcpy(&kind, *record, 4);
        next = (uint8_t *)*record + record_bytes(kind);
    }
    if (next >= buffer + valid_bytes)
        return MAX_LIMIT_REACHED;
    memcpy(&kind, next, 4);
    if (kind == 0 || kind >= KINDS)
        return INVALID_KIND;
    *record = next;
    return SUCCESS;
}

FUNCTION(cuptiActivitySetAttribute, (int attribute, size_t *bytes, void *value),
         (attribute, bytes, value))
{
    if (!bytes || !value)
        return INVALID_PARAMETER;
    if (attribute == ATTRIBUTE_ZEROED_OUT)
        is_zeroed_by_client = *(uint8_t *)value;
    else if (attribute == ATTRIBUTE_PER_THREAD)
        per_thread = *(uint8_t *)value;
    else if (device_buffer_attribute(attribute))
        memcpy(device_buffer_attribute(attribute), value, sizeof(size_t));
    if (attribute == ATTRIBUTE_BUFFER_LIMIT)
        say("device_buffers", (long)device_buffers[attribute]);
    return SUCCESS;
}

FUNCTION(cuptiActivityGetAttribute, (int attribute, size_t *bytes, void *value),
         (attribute, bytes, value))
{
    if (attribute == ATTRIBUTE_PER_THREAD)
        *(uint8_t *)value = per_thread;
    else if (device_buffer_attribute(attribute))
        memcpy(value, device_buffer_attribute(attribute), sizeof(size_t));
    else
        return INVALID_PARAMETER;
    return SUCCESS;
}

FUNCTION(cuptiGetStreamIdEx,
         (CUcontext context, CUstream stream, uint8_t is_per_thread, uint32_t *number),
         (context, stream, is_per_thread, number))
{
    int result = number ? driver() : INVALID_PARAMETER;
    return result == SUCCESS && !cuda.stream_number(context, stream, number) ? INVALID_STREAM
                                                                             : result;
}

FUNCTION(cuptiGetContextId, (CUcontext context, uint32_t *number), (context, number))
{
    int result = context ? driver() : INVALID_CONTEXT;
    if (result == SUCCESS)
        *number = cuda.context_number(context);
    return result;
}

/* Subscribers: one at a time. */

FUNCTION(cuptiSubscribe, (void **subscriber, void *callback, void *user_data),
         (subscriber, callback, user_data))
{
    int result = driver();
    if (result == SUCCESS && (subscribers || getenv("DOUBLE_CUPTI_HOLDER")))
        return MULTIPLE_SUBSCRIBERS;
    if (result == SUCCESS) {
        subscribers = 1;
        *subscriber = &subscribers;
    }
    return result;
}

struct subscriber_parameters {
    size_t bytes;
    const char *name;
    char *holder;
    size_t holder_bytes;
};

EXPORT int cuptiSubscribe_v2(void **subscriber, void *callback, void *user_data,
                             struct subscriber_parameters *parameters)
{
    static char name[64];
    const char *holder = getenv("DOUBLE_CUPTI_HOLDER");
    if (parameters && parameters->bytes < sizeof *parameters)
        return INVALID_PARAMETER;
    int result = cuptiSubscribe(subscriber, callback, user_data);
    if (result == SUCCESS && parameters && parameters->name)
        snprintf(name, sizeof name, "CUPTI for %.53s", parameters->name);
    if (result == MULTIPLE_SUBSCRIBERS && parameters && parameters->holder)
        snprintf(parameters->holder, parameters->holder_bytes, "%s", holder ? holder : name);
    return result;
}

FUNCTION(cuptiUnsubscribe, (void *subscriber), (subscriber))
{
    int result = driver();
    if (result == SUCCESS && (subscriber != &subscribers || !subscribers))
        return INVALID_PARAMETER;
    subscribers = result == SUCCESS ? 0 : subscribers;
    return result;
}

FUNCTION(cuptiFinalize, (void), ())
{
    return driver();
}
