/* NCCL's operations as NCCL itself tells of them, to its profiler plugin: for a copy of NCCL whose functions do not come through our
 * wrappers, because they were looked up by dlsym or are part of the program.
 *
 * NCCL_PROFILER_PLUGIN=STATIC_PLUGIN (commprof-run --nccl-plugin) makes NCCL look for the symbols below in the process, the newest first:
 *
 *     version 5   an event for each call, on the thread that calls; it says whether the call is captured
 *     version 4   an event for each operation as it is launched, inside a group: in the call, at the end of the job's group, on a thread
 *                 of NCCL's, or of the driver's when a graph runs again
 *
 * No event says how long anything takes on the device: from its start to its stop is the host's time of enqueueing. An event is counted at
 * its stop, which NCCL calls on the same thread a moment later.
 *
 * What our wrappers see is not counted twice. A call of version 5 that comes through one raises its event inside of it; with version 4 the
 * events of every copy of NCCL that has been called through us are left out. */
#include "gpu/gpu.h"
#include "nccl_communicators.h"
#include "nccl_counting.h"
#include "nccl_library.h"
#include "nccl_profiler_abi.h"
#include "runtime.h"
#include "settings.h"

#include <pthread.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

enum { EVENTS = 512, EVENTS_TRIED = 16 };

/* A communicator of NCCL's; also the handle that it has in the table of communicators. */
struct context {
    struct communicator *communicator;
    const void *caller; /* an address in NCCL */
    unsigned libraries; /* known when is_wrapped was found out */
    bool is_wrapped;
};

/* Between its start and its stop. Whose it is, is written last and taken back first. */
struct event {
    bool is_taken;
    bool is_captured, has_bytes;
    uint16_t call;
    uint8_t counting;
    int root_or_peer;
    uint64_t start;
    struct nccl_moved moved;
    struct context *context;
};

static struct event events[EVENTS];
static unsigned next_event;
static char group; /* its address is the handle of all groups: without one, NCCL tells nothing of what is in them */

static const struct {
    const char *name;
    uint16_t call;
    uint8_t counting;
} OPERATIONS[] = {
    {"AllReduce", CALL_ncclAllReduce, NCCL_BUFFER},
    {"Send", CALL_ncclSend, NCCL_BUFFER},
    {"Recv", CALL_ncclRecv, NCCL_INCOMING},
    {"AllGather", CALL_ncclAllGather, NCCL_BUFFER},
    {"ReduceScatter", CALL_ncclReduceScatter, NCCL_BLOCKS_REDUCED},
    {"Broadcast", CALL_ncclBroadcast, NCCL_FROM_ROOT},
    {"Reduce", CALL_ncclReduce, NCCL_BUFFER},
    {"AlltoAll", CALL_ncclAlltoAll, NCCL_BLOCKS},
    {"Gather", CALL_ncclGather, NCCL_BUFFER},
    {"Scatter", CALL_ncclScatter, NCCL_BLOCKS_AT_ROOT},
};

/* In the order of their numbers. */
static const char *const DATATYPES[NCCL_DATATYPES] = {"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
                                                      "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
                                                      "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

static uint64_t type_bytes(const char *name)
{
    if (strcmp(name, "Unknown") == 0)
        name = "ncclUint8"; /* the only type of its own that NCCL, up to 2.30, has no name for */
    for (int number = 0; number < NCCL_DATATYPES; number++)
        if (strcmp(DATATYPES[number], name) == 0)
            return nccl_type_bytes(number);
    return 0;
}

static void note_once(bool *is_noted, const char *fact, const char *name)
{
    if (!__atomic_exchange_n(is_noted, true, __ATOMIC_RELAXED))
        ledger_fact(fact, name);
}

static void account(const struct event *event, struct communicator *communicator)
{
    struct call call;
    call_enter(&call, event->call, SITE_JOB);
    if (call.thread)
        nccl_announce(&call, communicator, event->counting, event->has_bytes ? event->moved.bytes : LEDGER_BYTES_UNKNOWN,
                      event->root_or_peer);
    call.start = event->start;
    call_end(&call, MPI_SUCCESS);
    if (call.thread && call_is_counted(call.id))
        nccl_account(&call, communicator, event->moved, event->root_or_peer, event->is_captured);
}

/* NULL: too many have started at once. */
static struct event *take(void)
{
    for (int i = 0; i < EVENTS_TRIED; i++) {
        struct event *event = &events[__atomic_fetch_add(&next_event, 1, __ATOMIC_RELAXED) % EVENTS];
        if (!__atomic_exchange_n(&event->is_taken, true, __ATOMIC_ACQUIRE))
            return event;
    }
    return NULL;
}

static void finish(struct event *event)
{
    account(event, event->context->communicator);
    __atomic_store_n(&event->context, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&event->is_taken, false, __ATOMIC_RELEASE);
}

struct told {
    const char *function, *datatype;
    size_t count;
    int root_or_peer;
    bool is_captured;
};

static void *start(struct context *context, const struct told *told)
{
    static bool is_function_noted, is_datatype_noted;
    size_t at = 0, all = sizeof OPERATIONS / sizeof *OPERATIONS;
    while (at < all && strcmp(OPERATIONS[at].name, told->function) != 0)
        at++;
    if (at == all) {
        note_once(&is_function_noted, "nccl.unknown_operation", told->function);
        return NULL;
    }
    uint64_t bytes = type_bytes(told->datatype);
    if (!bytes)
        note_once(&is_datatype_noted, "nccl.unknown_datatype", told->datatype);
    struct event fresh = {.is_taken = true,
                          .is_captured = told->is_captured,
                          .has_bytes = bytes > 0,
                          .call = OPERATIONS[at].call,
                          .counting = OPERATIONS[at].counting,
                          .root_or_peer = told->root_or_peer,
                          .start = clock_ticks(),
                          .moved =
                              nccl_count_bytes(context->communicator, OPERATIONS[at].counting, told->count * bytes, told->root_or_peer)};
    struct event *event = take();
    if (!event) {
        account(&fresh, context->communicator);
        return NULL;
    }
    *event = fresh;
    __atomic_store_n(&event->context, context, __ATOMIC_RELEASE);
    return event;
}

/* The library may be called through us only later. */
static bool is_wrapped(struct context *context)
{
    unsigned libraries = nccl_libraries_known();
    if (context->libraries != libraries) {
        context->is_wrapped = nccl_library_is_known(context->caller);
        context->libraries = libraries;
    }
    return context->is_wrapped || nccl_wrappers_inside();
}

static nccl_result start_v4(void *context, void **handle, const struct nccl_event_v4 *event)
{
    *handle = event->type == NCCL_EVENT_GROUP ? &group : NULL;
    if (!context || !(event->type & (NCCL_EVENT_COLLECTIVE | NCCL_EVENT_MESSAGE)) || is_wrapped(context))
        return NCCL_SUCCESS;
    struct told told = event->type == NCCL_EVENT_COLLECTIVE ? (struct told){.function = event->collective.function,
                                                                            .datatype = event->collective.datatype,
                                                                            .count = event->collective.count,
                                                                            .root_or_peer = event->collective.root}
                                                            : (struct told){.function = event->message.function,
                                                                            .datatype = event->message.datatype,
                                                                            .count = event->message.count,
                                                                            .root_or_peer = event->message.peer};
    *handle = start(context, &told);
    return NCCL_SUCCESS;
}

static nccl_result start_v5(void *context, void **handle, const struct nccl_event_v5 *event)
{
    *handle = NULL;
    if (!context || !(event->type & (NCCL_EVENT_COLLECTIVE_CALL | NCCL_EVENT_MESSAGE_CALL)) || nccl_wrappers_inside())
        return NCCL_SUCCESS;
    struct told told = event->type == NCCL_EVENT_COLLECTIVE_CALL ? (struct told){.function = event->collective_call.function,
                                                                                 .datatype = event->collective_call.datatype,
                                                                                 .count = event->collective_call.count,
                                                                                 .root_or_peer = event->collective_call.root,
                                                                                 .is_captured = event->collective_call.is_captured}
                                                                 : (struct told){.function = event->message_call.function,
                                                                                 .datatype = event->message_call.datatype,
                                                                                 .count = event->message_call.count,
                                                                                 .root_or_peer = LEDGER_NO_RANK, /* it is not said */
                                                                                 .is_captured = event->message_call.is_captured};
    *handle = start(context, &told);
    return NCCL_SUCCESS;
}

static nccl_result stop(void *handle)
{
    if (handle && handle != &group)
        finish(handle);
    return NCCL_SUCCESS;
}

static nccl_result record_state(void *handle, int state, void *details)
{
    (void)handle, (void)state, (void)details;
    return NCCL_SUCCESS;
}

/* One mask holds for all communicators of a copy of NCCL. */
static void *init(int *mask, int wanted, uint64_t hash, const char *name, int nranks, int rank, const void *caller)
{
    static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER; /* NCCL may make several communicators at once, each on a thread */
    pthread_mutex_lock(&beginning);
    runtime_begin_without_mpi(rank, nranks);
    pthread_mutex_unlock(&beginning);
    *mask = settings.nccl ? wanted : 0;
    struct context *context = settings.nccl ? malloc(sizeof *context) : NULL;
    if (!context)
        return NULL;
    gpu_wake();
    *context = (struct context){.communicator = nccl_communicators_told(context, hash, name, nranks, rank), .caller = caller};
    if (context->communicator)
        return context;
    free(context);
    return NULL;
}

static nccl_result init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes, int nranks, int rank, void *log)
{
    (void)nodes, (void)log;
    int wanted = NCCL_EVENT_GROUP | NCCL_EVENT_COLLECTIVE | NCCL_EVENT_MESSAGE;
    *context = init(mask, wanted, hash, name, nranks, rank, __builtin_return_address(0));
    return NCCL_SUCCESS;
}

static nccl_result init_v5(void **context, uint64_t hash, int *mask, const char *name, int nodes, int nranks, int rank, void *log)
{
    (void)nodes, (void)log;
    int wanted = NCCL_EVENT_COLLECTIVE_CALL | NCCL_EVENT_MESSAGE_CALL;
    *context = init(mask, wanted, hash, name, nranks, rank, __builtin_return_address(0));
    return NCCL_SUCCESS;
}

/* What has not stopped by then never will. */
static nccl_result finalize(void *handle)
{
    struct context *context = handle;
    if (!context)
        return NCCL_SUCCESS;
    for (struct event *event = events; event < events + EVENTS; event++)
        if (__atomic_load_n(&event->context, __ATOMIC_ACQUIRE) == context)
            finish(event);
    struct communicator *communicator = communicators_detach(communicators_key_of_nccl(context));
    if (communicator)
        communicators_freed(communicator);
    free(context);
    return NCCL_SUCCESS;
}

extern const struct nccl_profiler_v4 ncclProfiler_v4;
EXPORT const struct nccl_profiler_v4 ncclProfiler_v4 = {"commprof", init_v4, start_v4, stop, record_state, finalize};
extern const struct nccl_profiler_v5 ncclProfiler_v5;
EXPORT const struct nccl_profiler_v5 ncclProfiler_v5 = {"commprof", init_v5, start_v5, stop, record_state, finalize};
