/* Counts NCCL's operations through its profiler plugin interface. This serves copies of NCCL whose functions bypass our wrappers because
 * they are looked up by dlsym or are part of the program.
 *
 * NCCL_PROFILER_PLUGIN=STATIC_PLUGIN (commprof-run --nccl-plugin) makes NCCL look for the symbols below in the process, the newest first:
 *
 *     version 5   an event for each call, on the calling thread; it says whether the call is captured. Another event for each collective
 *                 at its launch gives algorithm, protocol and number of channels (nccl_algorithms.h)
 *     version 4   an event for each operation at its launch, inside a group: in the call, at the end of the job's group, on a thread
 *                 of NCCL's, or on the driver's when a graph runs again
 *
 * From start to stop, such an event measures the host's time of enqueueing. Only kernelCh events give times on the device; they cost NCCL
 * something and are requested only by COMMPROF_NCCL_TIMES (nccl_times.h). The event of a call is counted at its stop, which NCCL calls on
 * the same thread shortly after.
 *
 * Calls that our wrappers see are not counted twice. With version 5, a call through a wrapper raises its event inside that wrapper; with
 * version 4, events of every copy of NCCL that has been called through us are ignored. Only the plugin knows how a collective was executed:
 * this is always counted, on the communicator of the wrapper in which the event was raised. */
#include "base/quiet.h"
#include "base/settings.h"
#include "gpu/gpu.h"
#include "nccl_algorithms.h"
#include "nccl_communicators.h"
#include "nccl_counting.h"
#include "nccl_library.h"
#include "nccl_profiler_abi.h"
#include "nccl_times.h"
#include "run/runtime.h"

#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

enum { EVENTS = 512, EVENTS_TRIED = 16 };

/* A communicator of NCCL's; its address is also the handle in the table of communicators. */
struct context {
    struct communicator *communicator;
    unsigned wrapped_slot; /* slot of the same communicator in our wrappers; 0: not seen there yet */
    const void *caller;    /* an address in NCCL */
    unsigned libraries;    /* number of libraries known when is_wrapped was set */
    bool is_wrapped;
};

/* An event between its start and its stop. `context` is written last and cleared first. */
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
static uint64_t group; /* its address is the handle of all groups: if a group gets no handle, NCCL reports none of its operations */

static const struct operation {
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

/* In the order of NCCL's type numbers. */
static const char *const DATATYPES[NCCL_DATATYPES] = {"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
                                                      "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
                                                      "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

static uint64_t type_bytes(const char *name)
{
    if (strcmp(name, "Unknown") == 0)
        name = "ncclUint8"; /* the only type that NCCL (up to 2.30) does not name */
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
    struct call call UNTIL_RETURN;
    call_enter(&call, event->call, SITE_JOB);
    if (call.thread)
        nccl_announce(&call, communicator, event->counting, event->has_bytes ? event->moved.bytes : LEDGER_BYTES_UNKNOWN,
                      event->root_or_peer);
    call.start = event->start;
    call_end(&call, MPI_SUCCESS);
    if (call.thread && call_is_counted(call.id))
        nccl_account(&call, communicator, event->moved, event->root_or_peer, event->is_captured);
}

/* NULL: too many events are open. */
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

/* NULL: unknown to us. */
static const struct operation *find_operation(const char *name)
{
    for (size_t at = 0; at < sizeof OPERATIONS / sizeof *OPERATIONS; at++)
        if (strcmp(OPERATIONS[at].name, name) == 0)
            return &OPERATIONS[at];
    return NULL;
}

/* An event that is raised inside a wrapper belongs to the communicator that the wrapper was called with. */
static void learn_communicator(struct context *context)
{
    unsigned slot = nccl_wrappers_slot();
    if (slot && slot != context->wrapped_slot)
        __atomic_store_n(&context->wrapped_slot, slot, __ATOMIC_RELAXED);
}

static unsigned slot_of(struct context *context)
{
    unsigned slot = __atomic_load_n(&context->wrapped_slot, __ATOMIC_RELAXED);
    return slot ? slot : communicators_slot(context->communicator);
}

static void copy_name(char name[16], const char *theirs)
{
    snprintf(name, 16, "%s", theirs ? theirs : "");
}

/* Counts how a launched collective is executed. */
static void count_algorithm(struct context *context, const char *function, const char *datatype, uint64_t count, int root,
                            unsigned channels, const char *algorithm, const char *protocol)
{
    const struct operation *operation = find_operation(function);
    if (!operation)
        return;
    uint64_t bytes = nccl_count_bytes(context->communicator, operation->counting, count * type_bytes(datatype), root).bytes;
    struct ledger_algorithm launched = {
        .bytes = bytes, .call = operation->call, .communicator = (uint16_t)slot_of(context), .channels = (uint16_t)channels};
    copy_name(launched.algorithm, algorithm);
    copy_name(launched.protocol, protocol);
    nccl_algorithms_count(&launched);
}

struct launched {
    const char *function, *datatype;
    size_t count;
    int root_or_peer;
    unsigned channels;
    const void *group;
};

/* NULL: its time is not wanted. */
static void *add_to_launch(struct context *context, const struct launched *launched)
{
    const struct operation *operation = settings.nccl_times ? find_operation(launched->function) : NULL;
    if (!operation)
        return NULL;
    struct nccl_moved moved = nccl_count_bytes(context->communicator, operation->counting, launched->count * type_bytes(launched->datatype),
                                               launched->root_or_peer);
    return nccl_times_add(launched->group, &(struct nccl_timed){.bytes = moved.bytes,
                                                                .volume_bytes = moved.volume_bytes,
                                                                .call = operation->call,
                                                                .slot = (uint16_t)slot_of(context),
                                                                .channels = launched->channels});
}

/* The fields of a Collective or Message event of either version. */
#define LAUNCHED(PART, ROOT_OR_PEER, GROUP)                                                                                   \
    &(struct launched)                                                                                                        \
    {                                                                                                                         \
        .function = (PART).function, .datatype = (PART).datatype, .count = (PART).count, .root_or_peer = (PART).ROOT_OR_PEER, \
        .channels = (PART).channels, .group = (GROUP)                                                                         \
    }

struct reported {
    const char *function, *datatype;
    size_t count;
    int root_or_peer;
    bool is_captured;
};

static void *start(struct context *context, const struct reported *reported)
{
    static bool is_function_noted, is_datatype_noted;
    const struct operation *operation = find_operation(reported->function);
    if (!operation) {
        note_once(&is_function_noted, "nccl.unknown_operation", reported->function);
        return NULL;
    }
    uint64_t bytes = type_bytes(reported->datatype);
    if (!bytes)
        note_once(&is_datatype_noted, "nccl.unknown_datatype", reported->datatype);
    struct event fresh = {
        .is_taken = true,
        .is_captured = reported->is_captured,
        .has_bytes = bytes > 0,
        .call = operation->call,
        .counting = operation->counting,
        .root_or_peer = reported->root_or_peer,
        .start = clock_ticks(),
        .moved = nccl_count_bytes(context->communicator, operation->counting, reported->count * bytes, reported->root_or_peer)};
    struct event *event = take();
    if (!event) {
        account(&fresh, context->communicator);
        return NULL;
    }
    *event = fresh;
    __atomic_store_n(&event->context, context, __ATOMIC_RELEASE);
    return event;
}

/* The library may be called through us for the first time later. */
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
    *handle = NULL;
    if (event->type == NCCL_EVENT_GROUP)
        *handle = settings.nccl_times ? nccl_times_launch(context) : &group;
    else if (event->type == NCCL_EVENT_CHANNEL)
        *handle = nccl_times_channel_begin(event->parent, event->channel.gpu_ns);
    if (!context || !(event->type & (NCCL_EVENT_COLLECTIVE | NCCL_EVENT_MESSAGE)))
        return NCCL_SUCCESS;
    learn_communicator(context);
    if (event->type == NCCL_EVENT_COLLECTIVE)
        count_algorithm(context, event->collective.function, event->collective.datatype, event->collective.count, event->collective.root,
                        event->collective.channels, event->collective.algorithm, event->collective.protocol);
    void *timed = event->type == NCCL_EVENT_COLLECTIVE ? add_to_launch(context, LAUNCHED(event->collective, root, event->parent))
                                                       : add_to_launch(context, LAUNCHED(event->message, peer, event->parent));
    *handle = timed;
    if (is_wrapped(context))
        return NCCL_SUCCESS;
    struct reported reported = event->type == NCCL_EVENT_COLLECTIVE ? (struct reported){.function = event->collective.function,
                                                                                        .datatype = event->collective.datatype,
                                                                                        .count = event->collective.count,
                                                                                        .root_or_peer = event->collective.root}
                                                                    : (struct reported){.function = event->message.function,
                                                                                        .datatype = event->message.datatype,
                                                                                        .count = event->message.count,
                                                                                        .root_or_peer = event->message.peer};
    struct event *counted = start(context, &reported);
    if (timed && counted)
        finish(counted); /* NCCL uses one handle as the parent of a channel; here that is the launch's */
    else if (!timed)
        *handle = counted;
    return NCCL_SUCCESS;
}

static nccl_result start_v5(void *context, void **handle, const struct nccl_event_v5 *event)
{
    *handle = NULL;
    if (event->type == NCCL_EVENT_GROUP && settings.nccl_times)
        *handle = nccl_times_launch(context);
    else if (event->type == NCCL_EVENT_CHANNEL)
        *handle = nccl_times_channel_begin(event->parent, event->channel.gpu_ns);
    if (!context)
        return NCCL_SUCCESS;
    learn_communicator(context);
    if (event->type == NCCL_EVENT_COLLECTIVE)
        count_algorithm(context, event->collective.function, event->collective.datatype, event->collective.count, event->collective.root,
                        event->collective.channels, event->collective.algorithm, event->collective.protocol);
    if (event->type == NCCL_EVENT_COLLECTIVE)
        *handle = add_to_launch(context, LAUNCHED(event->collective, root, event->collective.group));
    else if (event->type == NCCL_EVENT_MESSAGE)
        *handle = add_to_launch(context, LAUNCHED(event->message, peer, event->message.group));
    if (!(event->type & (NCCL_EVENT_COLLECTIVE_CALL | NCCL_EVENT_MESSAGE_CALL)) || nccl_wrappers_inside())
        return NCCL_SUCCESS;
    struct reported reported = event->type == NCCL_EVENT_COLLECTIVE_CALL
                                   ? (struct reported){.function = event->collective_call.function,
                                                       .datatype = event->collective_call.datatype,
                                                       .count = event->collective_call.count,
                                                       .root_or_peer = event->collective_call.root,
                                                       .is_captured = event->collective_call.is_captured}
                                   : (struct reported){.function = event->message_call.function,
                                                       .datatype = event->message_call.datatype,
                                                       .count = event->message_call.count,
                                                       .root_or_peer = LEDGER_NO_RANK, /* not in the event */
                                                       .is_captured = event->message_call.is_captured};
    *handle = start(context, &reported);
    return NCCL_SUCCESS;
}

static nccl_result stop(void *handle)
{
    if (nccl_times_is_ours(handle))
        nccl_times_stop(handle);
    else if (handle && handle != &group)
        finish(handle);
    return NCCL_SUCCESS;
}

static nccl_result record_state(void *handle, int state, void *details)
{
    if (state == NCCL_STATE_CHANNEL_END && details)
        nccl_times_channel_end(handle, ((const union nccl_state *)details)->channel.gpu_ns);
    return NCCL_SUCCESS;
}

/* One mask applies to all communicators of a copy of NCCL. */
static void *init(int *mask, int wanted, uint64_t hash, const char *name, int nranks, int rank, const void *caller)
{
    static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER; /* NCCL may create communicators on several threads at once */
    struct quiet before = quiet_lock(&beginning);
    runtime_begin_without_mpi(rank, nranks);
    quiet_unlock(&beginning, &before);
    if (settings.nccl && settings.nccl_times) {
        nccl_times_take_over();
        wanted |= NCCL_EVENT_GROUP | NCCL_EVENT_COLLECTIVE | NCCL_EVENT_MESSAGE | NCCL_EVENT_CHANNEL;
    }
    *mask = settings.nccl ? wanted : 0;
    struct context *context = settings.nccl ? malloc(sizeof *context) : NULL;
    if (!context)
        return NULL;
    gpu_wake();
    *context = (struct context){.communicator = nccl_communicators_reported(context, hash, name, nranks, rank), .caller = caller};
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
    int wanted = NCCL_EVENT_COLLECTIVE_CALL | NCCL_EVENT_MESSAGE_CALL | NCCL_EVENT_COLLECTIVE;
    *context = init(mask, wanted, hash, name, nranks, rank, __builtin_return_address(0));
    return NCCL_SUCCESS;
}

/* Events that have not stopped by now never will. */
static nccl_result finalize(void *handle)
{
    struct context *context = handle;
    if (!context)
        return NCCL_SUCCESS;
    for (struct event *event = events; event < events + EVENTS; event++)
        if (__atomic_load_n(&event->context, __ATOMIC_ACQUIRE) == context)
            finish(event);
    nccl_times_forget(context);
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
