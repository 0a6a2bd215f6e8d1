/* Counts NCCL's operations through its profiler plugin interface. This serves copies of NCCL whose
 * functions bypass our wrappers because they are looked up by dlsym or are part of the program.
 *
 * NCCL_PROFILER_PLUGIN=STATIC_PLUGIN (commprof-run --nccl-plugin) makes NCCL look for the symbols
 * below in the process, the newest first:
 *
 *     version 6   as version 5, and an event for each collective that copy engines carry out, at
 *                 its launch: it has no kernel, and none of the events of one
 *     version 5   an event for each call, on the calling thread; it says whether the call is
 *                 captured. Another event for each collective at its launch gives algorithm,
 *                 protocol and number of channels (nccl_algorithms.h)
 *     version 4   an event for each operation at its launch, inside a group: in the call, at the
 *                 end of the job's group, on a thread of NCCL's, or on the driver's when a graph
 *                 runs again
 *
 * From start to stop, such an event measures the host's time of enqueueing. Only kernelCh events
 * give times on the device; they cost NCCL something and are requested only by COMMPROF_NCCL_TIMES
 * (nccl_times.h). The event of a call is counted at its stop, which NCCL calls on the same thread
 * shortly after.
 *
 * Calls that our wrappers see are not counted twice. With version 5, a call through a wrapper
 * raises its event inside that wrapper; with version 4, events of every copy of NCCL that has been
 * called through us are ignored. Only the plugin knows how a collective was executed: this is
 * always counted, on the communicator of the wrapper in which the event was raised. */
#include "base/memory.h"
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

#define EXPORT __attribute__((visibility("default")))

enum { EVENTS = 512, EVENTS_TRIED = 16 };

/* A communicator of NCCL's; its address is also the handle in the table of communicators. */
struct context {
    struct communicator *communicator;
    unsigned
        wrapped_slot;   /* slot of the same communicator in our wrappers; 0: not seen there yet */
    const void *caller; /* an address in NCCL */
    unsigned libraries; /* number of libraries known when is_wrapped was set */
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
static uint64_t group; /* its address is the handle of all groups: if a group gets no handle, NCCL
                          reports none of its operations */

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
static const char *const DATATYPES[NCCL_DATATYPES] = {
    "ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
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
        nccl_announce(&call, communicator, event->counting,
                      event->has_bytes ? event->moved.bytes : LEDGER_BYTES_UNKNOWN,
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
        struct event *event =
            &events[__atomic_fetch_add(&next_event, 1, __ATOMIC_RELAXED) % EVENTS];
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
        if (name && strcmp(OPERATIONS[at].name, name) == 0)
            return &OPERATIONS[at];
    return NULL;
}

/* An event that is raised inside a wrapper belongs to the communicator that the wrapper was called
 * with. */
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

/* Fields of an operation that an event reports. */
struct reported {
    const char *function, *datatype;
    size_t count;
    int root_or_peer;
    bool is_captured;
    unsigned channels;
    const char *algorithm, *protocol; /* NULL: the event does not say */
};

/* `function` is NULL: the event is not of an operation. */
static struct reported read_event(const struct nccl_event *event, unsigned type)
{
    switch (type) {
    case NCCL_EVENT_COLLECTIVE_CALL:
        return (struct reported){.function = event->collective_call.function,
                                 .datatype = event->collective_call.datatype,
                                 .count = event->collective_call.count,
                                 .root_or_peer = event->collective_call.root,
                                 .is_captured = event->collective_call.is_captured};
    case NCCL_EVENT_MESSAGE_CALL:
        return (struct reported){.function = event->message_call.function,
                                 .datatype = event->message_call.datatype,
                                 .count = event->message_call.count,
                                 .root_or_peer = LEDGER_NO_RANK, /* not in the event */
                                 .is_captured = event->message_call.is_captured};
    case NCCL_EVENT_COLLECTIVE:
        return (struct reported){.function = event->collective.function,
                                 .datatype = event->collective.datatype,
                                 .count = event->collective.count,
                                 .root_or_peer = event->collective.root,
                                 .channels = event->collective.channels,
                                 .algorithm = event->collective.algorithm,
                                 .protocol = event->collective.protocol};
    case NCCL_EVENT_MESSAGE:
        return (struct reported){.function = event->message.function,
                                 .datatype = event->message.datatype,
                                 .count = event->message.count,
                                 .root_or_peer = event->message.peer,
                                 .channels = event->message.channels};
    case NCCL_EVENT_COPY_ENGINES:
        return (struct reported){.function = event->copy_engines.function,
                                 .datatype = event->copy_engines.datatype,
                                 .count = event->copy_engines.count,
                                 .root_or_peer = event->copy_engines.root,
                                 .algorithm = "COPY_ENGINE"};
    default:
        return (struct reported){.function = NULL, .datatype = ""};
    }
}

static struct nccl_moved moved_by(struct context *context, const struct operation *operation,
                                  const struct reported *reported)
{
    return nccl_count_bytes(context->communicator, operation->counting,
                            reported->count * type_bytes(reported->datatype),
                            reported->root_or_peer);
}

/* Counts how a launched collective is executed. */
static void count_algorithm(struct context *context, const struct reported *reported)
{
    const struct operation *operation = find_operation(reported->function);
    if (!operation)
        return;
    struct ledger_algorithm launched = {.bytes = moved_by(context, operation, reported).bytes,
                                        .call = operation->call,
                                        .communicator = (uint16_t)slot_of(context),
                                        .channels = (uint16_t)reported->channels};
    copy_name(launched.algorithm, reported->algorithm);
    copy_name(launched.protocol, reported->protocol);
    nccl_algorithms_count(&launched);
}

/* NULL: its time is not wanted. */
static void *add_to_launch(struct context *context, const void *launch,
                           const struct reported *reported)
{
    const struct operation *operation =
        settings.nccl_times ? find_operation(reported->function) : NULL;
    if (!operation)
        return NULL;
    struct nccl_moved moved = moved_by(context, operation, reported);
    return nccl_times_add(launch, &(struct nccl_timed){.bytes = moved.bytes,
                                                       .volume_bytes = moved.volume_bytes,
                                                       .call = operation->call,
                                                       .slot = (uint16_t)slot_of(context),
                                                       .channels = reported->channels});
}

static void *start_call(struct context *context, const struct reported *reported)
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
    struct event fresh = {.is_taken = true,
                          .is_captured = reported->is_captured,
                          .has_bytes = bytes > 0,
                          .call = operation->call,
                          .counting = operation->counting,
                          .root_or_peer = reported->root_or_peer,
                          .start = clock_ticks(),
                          .moved =
                              nccl_count_bytes(context->communicator, operation->counting,
                                               reported->count * bytes, reported->root_or_peer)};
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

/* The parts of a launch. Returns the handle of the event, or NULL. */
static void *start_launch(struct context *context, const struct nccl_event *event, unsigned type,
                          const void *launch)
{
    if (type == NCCL_EVENT_GROUP)
        return settings.nccl_times ? nccl_times_launch(context) : NULL;
    if (type == NCCL_EVENT_CHANNEL)
        return nccl_times_channel_begin(event->parent, event->channel.gpu_ns);
    if (!context)
        return NULL;
    struct reported reported = read_event(event, type);
    learn_communicator(context);
    if (reported.algorithm)
        count_algorithm(context, &reported);
    bool has_kernel = type & (NCCL_EVENT_COLLECTIVE | NCCL_EVENT_MESSAGE);
    return has_kernel ? add_to_launch(context, launch, &reported) : NULL;
}

static nccl_result start_v4(void *context, void **handle, const struct nccl_event *event)
{
    unsigned type = (uint8_t)event->type;
    *handle = start_launch(context, event, type, event->parent);
    if (type == NCCL_EVENT_GROUP && !*handle)
        *handle = &group;
    struct reported reported = read_event(event, type);
    if (!context || !reported.function || is_wrapped(context))
        return NCCL_SUCCESS;
    struct event *counted = start_call(context, &reported);
    if (*handle && counted)
        finish(counted); /* NCCL uses one handle as the parent of a channel; here that is the
                            launch's */
    else if (counted)
        *handle = counted;
    return NCCL_SUCCESS;
}

/* Versions 5 and 6. */
static nccl_result start_v5(void *context, void **handle, const struct nccl_event *event)
{
    bool is_call = event->type & (NCCL_EVENT_COLLECTIVE_CALL | NCCL_EVENT_MESSAGE_CALL);
    if (!is_call) {
        const void *launch = event->type == NCCL_EVENT_MESSAGE      ? event->message.group
                             : event->type == NCCL_EVENT_COLLECTIVE ? event->collective.group
                                                                    : NULL;
        *handle = start_launch(context, event, (unsigned)event->type, launch);
        return NCCL_SUCCESS;
    }
    *handle = NULL;
    if (!context)
        return NCCL_SUCCESS;
    learn_communicator(context);
    struct reported reported = read_event(event, (unsigned)event->type);
    if (!nccl_wrappers_inside())
        *handle = start_call(context, &reported);
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
static void *init(int *mask, int wanted, uint64_t hash, const char *name, int nranks, int rank,
                  const void *caller)
{
    static pthread_mutex_t beginning =
        PTHREAD_MUTEX_INITIALIZER; /* NCCL may create communicators on several threads at once */
    struct quiet before = quiet_lock(&beginning);
    runtime_begin_without_mpi(rank, nranks);
    quiet_unlock(&beginning, &before);
    if (settings.nccl && settings.nccl_times) {
        nccl_times_take_over();
        wanted |=
            NCCL_EVENT_GROUP | NCCL_EVENT_COLLECTIVE | NCCL_EVENT_MESSAGE | NCCL_EVENT_CHANNEL;
    }
    *mask = settings.nccl ? wanted : 0;
    struct context *context = settings.nccl ? memory_take(sizeof *context) : NULL;
    if (!context)
        return NULL;
    gpu_wake();
    *context = (struct context){.communicator =
                                    nccl_communicators_reported(context, hash, name, nranks, rank),
                                .caller = caller};
    if (context->communicator)
        return context;
    memory_give(context);
    return NULL;
}

static nccl_result init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes,
                           int nranks, int rank, void *log)
{
    (void)nodes, (void)log;
    int wanted = NCCL_EVENT_GROUP | NCCL_EVENT_COLLECTIVE | NCCL_EVENT_MESSAGE;
    *context = init(mask, wanted, hash, name, nranks, rank, __builtin_return_address(0));
    return NCCL_SUCCESS;
}

/* Version 5 of NCCL ignores the bit of copy engines. */
static nccl_result init_v5(void **context, uint64_t hash, int *mask, const char *name, int nodes,
                           int nranks, int rank, void *log)
{
    (void)nodes, (void)log;
    int wanted = NCCL_EVENT_COLLECTIVE_CALL | NCCL_EVENT_MESSAGE_CALL | NCCL_EVENT_COLLECTIVE |
                 NCCL_EVENT_COPY_ENGINES;
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
    memory_give(context);
    return NCCL_SUCCESS;
}

#define PROFILER(VERSION, INIT, START)                            \
    extern const struct nccl_profiler ncclProfiler_v##VERSION;    \
    EXPORT const struct nccl_profiler ncclProfiler_v##VERSION = { \
        "commprof", {.init_v##VERSION = INIT}, START, stop, record_state, finalize};

PROFILER(4, init_v4, start_v4)
PROFILER(5, init_v5, start_v5)
PROFILER(6, init_v5, start_v5)
