/* The wrappers of NCCL's calls: one for each line of nccl_calls.def, and those of calls that are
 * only observed, not counted.
 *
 * Each works like MPI's (wrappers.c): announce, clock, the real call, clock, account. NCCL's calls
 * only enqueue, so the time counted here is the host's; the time on the device is matched later
 * (nccl_matching.c). */
#include "base/settings.h"
#include "gpu/gpu.h"
#include "nccl_abi.h"
#include "nccl_communicators.h"
#include "nccl_counting.h"
#include "nccl_groups.h"
#include "nccl_library.h"
#include "run/runtime.h"

#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

/* Nesting depth of this thread in NCCL calls, and in groups of the job. */
static _Thread_local unsigned inside __attribute__((tls_model("initial-exec")));
static _Thread_local struct {
    unsigned depth;
    uint16_t call, slot;    /* of the first operation */
    bool has_several_slots; /* some operations are on other communicators */
    uint64_t bytes;         /* of all */
} group __attribute__((tls_model("initial-exec")));
static _Thread_local unsigned slot_inside
    __attribute__((tls_model("initial-exec"))); /* nccl_wrappers_slot */

bool nccl_wrappers_inside(void)
{
    return inside > 0;
}

unsigned nccl_wrappers_slot(void)
{
    return inside > 0 ? slot_inside : 0;
}

/* The state of one call, including whether the job (rather than NCCL itself: ncclBcast calls
 * ncclBroadcast) entered NCCL here. */
struct nccl_call {
    struct call call;
    bool is_outermost;
};

HOT bool is_done(nccl_result result)
{
    return result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS;
}

HOT enum nccl_launch launch_of(nccl_result result)
{
    return result == NCCL_SUCCESS       ? NCCL_LAUNCHED
           : result == NCCL_IN_PROGRESS ? NCCL_LAUNCHES_LATER
                                        : NCCL_LAUNCH_FAILED;
}

HOT void enter(struct nccl_call *call, enum call_id id, call_site site)
{
    bool is_counted = settings.nccl && inside == 0;
    call->is_outermost = inside++ == 0 && site & SITE_JOB;
    call_enter(&call->call, id, is_counted ? site : 0);
}

HOT void leave(struct nccl_call *call, nccl_result result)
{
    call_end(&call->call, is_done(result) ? MPI_SUCCESS : result);
    if (--inside == 0)
        slot_inside = 0;
}

/* Counts a call, successful or not, with only its duration and the communicator it was announced
 * on. */
HOT void account_on(const struct call *call, struct communicator *communicator)
{
    account_call(call, (struct traffic){.communicator = communicator, .peer = PEER_NONE});
}

/* Operations. */

struct operation {
    struct nccl_call nccl;
    struct nccl_moved moved;
    struct communicator *communicator; /* NULL: not wanted */
    const void *comm;
    void *stream;
    uint64_t removed; /* communicators_removed before the lookup */
    int root_or_peer;
    bool is_followed, is_captured;
    uint8_t kernels;
};

static void note_unknown_datatype(int datatype)
{
    static bool is_noted;
    if (__atomic_exchange_n(&is_noted, true, __ATOMIC_RELAXED))
        return;
    char number[16];
    snprintf(number, sizeof number, "%d", datatype);
    ledger_fact("nccl.unknown_datatype", number);
}

/* Whether the job has registered buffers; NCCL's copy engines may serve these without a kernel. */
static bool has_windows;

/* The kernels that NCCL launches for it (nccl_matching.c). AlltoAll, Gather and Scatter consist of
 * messages, one per rank. */
HOT uint8_t kernels_for(const struct operation *operation, enum call_id id, size_t count)
{
    bool is_message = nccl_is_message(id);
    bool is_made_of_messages =
        id == CALL_ncclAlltoAll || id == CALL_ncclGather || id == CALL_ncclScatter;
    if (nccl_is_one_sided(id))
        return NCCL_KERNELS_ANY;
    if (operation->communicator->size == 1)
        return is_message ? NCCL_KERNELS_ANY : NCCL_KERNELS_NONE;
    if (count == 0)
        return is_message ? NCCL_KERNELS_ANY : NCCL_KERNELS_NONE;
    if ((is_made_of_messages || id == CALL_ncclAllGather) &&
        __atomic_load_n(&has_windows, __ATOMIC_RELAXED))
        return NCCL_KERNELS_ANY;
    return is_made_of_messages ? NCCL_KERNELS_SOME : NCCL_KERNELS_ONE;
}

HOT bool is_capturing(void *stream)
{
    const struct gpu_backend *gpu = __atomic_load_n(&gpu_used, __ATOMIC_RELAXED);
    return gpu && gpu->is_capturing && gpu->is_capturing(stream);
}

HOT void begin_operation(struct operation *operation, enum call_id id, call_site site,
                         enum nccl_counting counting, size_t count, int datatype, int root_or_peer,
                         const void *comm, void *stream)
{
    *operation = (struct operation){.comm = comm, .stream = stream, .root_or_peer = root_or_peer};
    enter(&operation->nccl, id, site);
    operation->is_followed =
        operation->nccl.is_outermost && __atomic_load_n(&nccl_followed, __ATOMIC_ACQUIRE);
    if (operation->nccl.call.thread || operation->is_followed) {
        operation->removed = __atomic_load_n(&communicators_removed, __ATOMIC_ACQUIRE);
        operation->communicator = nccl_communicators_find(comm, site);
    }
    if (operation->communicator) {
        uint64_t type_bytes = nccl_type_bytes(datatype);
        operation->moved =
            nccl_count_bytes(operation->communicator, counting, count * type_bytes, root_or_peer);
        operation->kernels = kernels_for(operation, id, count);
        operation->is_captured = is_capturing(stream);
        if (operation->nccl.call.thread)
            nccl_announce(&operation->nccl.call, operation->communicator, counting,
                          type_bytes ? operation->moved.bytes : LEDGER_BYTES_UNKNOWN, root_or_peer);
    }
    if (operation->nccl.is_outermost)
        slot_inside = operation->communicator ? operation->communicator->slot : 0;
    call_start(&operation->nccl.call);
    if (operation->is_followed && group.depth == 0)
        nccl_groups_launching(operation->nccl.call.start);
}

/* Counts the operation in its cell and returns its sample, NULL if it is not sampled. */
HOT struct ledger_sample *account_operation(const struct operation *operation,
                                            struct communicator *communicator, int datatype)
{
    const struct call *call = &operation->nccl.call;
    if (!call->thread || !call_is_counted(call->id))
        return NULL;
    if (!call->succeeded || !communicator)
        return nccl_account(call, NULL, (struct nccl_moved){0}, LEDGER_NO_RANK,
                            operation->is_captured);
    if (!nccl_type_bytes(datatype))
        note_unknown_datatype(datatype);
    return nccl_account(call, communicator, operation->moved, operation->root_or_peer,
                        operation->is_captured);
}

HOT void note_in_group(const struct operation *operation, struct communicator *communicator)
{
    if (!group.call) {
        group.call = operation->nccl.call.id;
        group.slot = communicator->slot;
        group.bytes = 0;
        group.has_several_slots = false;
    }
    group.has_several_slots |= group.slot != communicator->slot;
    group.bytes += operation->moved.bytes;
}

/* The stream is looked up now: its handle may be invalid later. */
HOT void follow_operation(const struct operation *operation,
                          const struct communicator *communicator, struct ledger_sample *sample)
{
    const struct call *call = &operation->nccl.call;
    const struct gpu_backend *gpu = __atomic_load_n(&gpu_used, __ATOMIC_ACQUIRE);
    struct nccl_operation followed = {
        .communicator = operation->comm,
        .bytes = operation->moved.bytes,
        .volume_bytes = operation->moved.volume_bytes,
        .sample = call->sequence ? sample : NULL,
        .epoch = call->thread && call_is_counted(call->id) ? call->thread->epoch : 0,
        .call = call->id,
        .slot = communicator->slot,
        .kernels = operation->kernels};
    if (!gpu)
        return;
    followed.has_stream = gpu->find_stream && gpu->find_stream(operation->stream, &followed.stream);
    nccl_groups_add(&followed);
}

HOT nccl_result end_operation(struct operation *operation, int datatype, nccl_result result)
{
    const struct call *call = &operation->nccl.call;
    leave(&operation->nccl, result);
    bool is_there = operation->communicator &&
                    operation->removed == __atomic_load_n(&communicators_removed, __ATOMIC_ACQUIRE);
    struct communicator *communicator =
        is_there || !operation->communicator
            ? operation->communicator
            : communicators_under(communicators_key_of_nccl(operation->comm));
    struct ledger_sample *sample = account_operation(operation, communicator, datatype);
    if (communicator && group.depth && call->thread)
        note_in_group(operation, communicator);
    if (!operation->is_followed)
        return result;
    if (communicator && is_done(result) && !operation->is_captured)
        follow_operation(operation, communicator, sample);
    if (group.depth == 0)
        nccl_groups_launched(call->start, call->end, launch_of(result));
    return result;
}

/* The wrapper of an operation: FUNCTION is its name, NAME the call it is counted as. */
#define LIST(...) (__VA_ARGS__)
#define OPERATION_OF(NAME, FUNCTION, PARAMETERS, ARGUMENTS, COUNTING, COUNT, DATATYPE, \
                     ROOT_OR_PEER)                                                     \
    EXPORT nccl_result nccl##FUNCTION PARAMETERS;                                      \
    nccl_result nccl##FUNCTION PARAMETERS                                              \
    {                                                                                  \
        static struct nccl_target target;                                              \
        call_site site = nccl_site(__builtin_return_address(0));                       \
        nccl_result(*real) PARAMETERS =                                                \
            (nccl_result(*) PARAMETERS)nccl_target(&target, site, #FUNCTION);          \
        struct operation operation UNTIL_RETURN;                                       \
        begin_operation(&operation, CALL_nccl##NAME, site, COUNTING, COUNT, DATATYPE,  \
                        ROOT_OR_PEER, comm, stream);                                   \
        return end_operation(&operation, DATATYPE, real ARGUMENTS);                    \
    }
#define OPERATION(NAME, FUNCTION, PARAMETERS, ARGUMENTS, COUNTING, ROOT_OR_PEER) \
    OPERATION_OF(NAME, FUNCTION, PARAMETERS, ARGUMENTS, COUNTING, count, datatype, ROOT_OR_PEER)

/* With its variant that takes a configuration (NCCL 2.32 and later). */
#define COLLECTIVE(NAME, PARAMETERS, ARGUMENTS, COUNTING, ROOT)                                  \
    OPERATION(NAME, NAME, LIST(PARAMETERS), LIST(ARGUMENTS), COUNTING, ROOT)                     \
    OPERATION(NAME, NAME##Config, LIST(PARAMETERS, const void *config), LIST(ARGUMENTS, config), \
              COUNTING, ROOT)
#define PASS_REDUCING sendbuff, recvbuff, count, datatype, op, comm, stream
#define PASS_REDUCING_TO_ROOT sendbuff, recvbuff, count, datatype, op, root, comm, stream
#define PASS_ROOTED sendbuff, recvbuff, count, datatype, root, comm, stream
#define PASS_PLAIN sendbuff, recvbuff, count, datatype, comm, stream
#define BUFFERS const void *sendbuff, void *recvbuff, size_t count, int datatype
#define PLACE void *comm, void *stream
#define WITHOUT_ROOT LEDGER_NO_RANK

#define REDUCING BUFFERS, int op, PLACE
#define REDUCING_TO_ROOT BUFFERS, int op, int root, PLACE
#define ROOTED BUFFERS, int root, PLACE
#define PLAIN BUFFERS, PLACE

COLLECTIVE(AllReduce, REDUCING, PASS_REDUCING, NCCL_BUFFER, WITHOUT_ROOT)
COLLECTIVE(Broadcast, ROOTED, PASS_ROOTED, NCCL_FROM_ROOT, root)
COLLECTIVE(Reduce, REDUCING_TO_ROOT, PASS_REDUCING_TO_ROOT, NCCL_BUFFER, root)
COLLECTIVE(AllGather, PLAIN, PASS_PLAIN, NCCL_BUFFER, WITHOUT_ROOT)
COLLECTIVE(ReduceScatter, REDUCING, PASS_REDUCING, NCCL_BLOCKS_REDUCED, WITHOUT_ROOT)
COLLECTIVE(AlltoAll, PLAIN, PASS_PLAIN, NCCL_BLOCKS, WITHOUT_ROOT)
COLLECTIVE(Gather, ROOTED, PASS_ROOTED, NCCL_BUFFER, root)
COLLECTIVE(Scatter, ROOTED, PASS_ROOTED, NCCL_BLOCKS_AT_ROOT, root)
OPERATION(Bcast, Bcast, (void *buff, size_t count, int datatype, int root, PLACE),
          (buff, count, datatype, root, comm, stream), NCCL_FROM_ROOT, root)
OPERATION(Send, Send, (const void *sendbuff, size_t count, int datatype, int peer, PLACE),
          (sendbuff, count, datatype, peer, comm, stream), NCCL_BUFFER, peer)
OPERATION(Recv, Recv, (void *recvbuff, size_t count, int datatype, int peer, PLACE),
          (recvbuff, count, datatype, peer, comm, stream), NCCL_INCOMING, peer)

/* One-sided operations. The bytes that a WaitSignal waits for are counted by the senders of its
 * signals. */
OPERATION(PutSignal, PutSignal,
          (const void *localbuff, size_t count, int datatype, int peer, void *window, size_t offset,
           int signal, int context, unsigned flags, PLACE),
          (localbuff, count, datatype, peer, window, offset, signal, context, flags, comm, stream),
          NCCL_BUFFER, peer)
OPERATION_OF(Signal, Signal, (int peer, int signal, int context, unsigned flags, PLACE),
             (peer, signal, context, flags, comm, stream), NCCL_BUFFER, 0, NCCL_INT8, peer)
OPERATION_OF(WaitSignal, WaitSignal, (int count, void *signals, PLACE),
             (count, signals, comm, stream), NCCL_BUFFER, 0, NCCL_INT8, LEDGER_NO_RANK)

/* Groups. The outermost ncclGroupEnd launches the operations of a group. */

EXPORT nccl_result ncclGroupStart(void);
nccl_result ncclGroupStart(void)
{
    static struct nccl_target target;
    call_site site = nccl_site(__builtin_return_address(0));
    nccl_result (*real)(void) = (nccl_result(*)(void))nccl_target(&target, site, "GroupStart");
    struct nccl_call call UNTIL_RETURN;
    enter(&call, CALL_ncclGroupStart, site);
    call_start(&call.call);
    nccl_result result = real();
    leave(&call, result);
    account_simple(&call.call);
    if (call.is_outermost && result == NCCL_SUCCESS && group.depth++ == 0)
        group.call = 0;
    return result;
}

/* ncclGroupEnd waits for the group's operations, as MPI_Wait does for a request: the announcement
 * shows the first of them. */
static void announce_group(struct call *call)
{
    if (!call->thread || group.depth != 1 || !group.call)
        return;
    call->doing |= (uint64_t)group.slot << LEDGER_DOING_SLOT_BIT |
                   (uint64_t)group.call << LEDGER_DOING_REQUEST_CALL_BIT;
    announce_details(call, group.bytes, LEDGER_NO_RANK, LEDGER_NO_TAG);
}

EXPORT nccl_result ncclGroupEnd(void);
nccl_result ncclGroupEnd(void)
{
    static struct nccl_target target;
    call_site site = nccl_site(__builtin_return_address(0));
    nccl_result (*real)(void) = (nccl_result(*)(void))nccl_target(&target, site, "GroupEnd");
    struct nccl_call call UNTIL_RETURN;
    enter(&call, CALL_ncclGroupEnd, site);
    announce_group(&call.call);
    if (call.is_outermost)
        slot_inside = group.call && !group.has_several_slots ? group.slot : 0;
    bool launches = call.is_outermost && group.depth <= 1;
    bool is_followed = launches && __atomic_load_n(&nccl_followed, __ATOMIC_RELAXED);
    call_start(&call.call);
    if (is_followed)
        nccl_groups_launching(call.call.start);
    nccl_result result = real();
    leave(&call, result);
    account_simple(&call.call);
    if (call.is_outermost && group.depth > 0)
        group.depth--;
    if (launches) {
        nccl_groups_launched(call.call.start, call.call.end, launch_of(result));
        nccl_communicators_group_ended(result, site);
    }
    return result;
}

/* ncclGroupSimulateEnd estimates a group's time and ends the group. Not counted. */
EXPORT nccl_result ncclGroupSimulateEnd(void *info);
nccl_result ncclGroupSimulateEnd(void *info)
{
    static struct nccl_target target;
    call_site site = nccl_site(__builtin_return_address(0));
    nccl_result (*real)(void *) =
        (nccl_result(*)(void *))nccl_target(&target, site, "GroupSimulateEnd");
    nccl_result result = real(info);
    if (inside == 0 && site & SITE_JOB && group.depth > 0 && --group.depth == 0)
        nccl_groups_forget();
    return result;
}

/* Not counted: NCCL registers buffers of its own, too. */
EXPORT nccl_result ncclCommWindowRegister(void *comm, void *buff, size_t size, void **win,
                                          int winFlags);
nccl_result ncclCommWindowRegister(void *comm, void *buff, size_t size, void **win, int winFlags)
{
    static struct nccl_target target;
    call_site site = nccl_site(__builtin_return_address(0));
    nccl_result (*real)(void *, void *, size_t, void **, int) =
        (nccl_result(*)(void *, void *, size_t, void **, int))nccl_target(&target, site,
                                                                          "CommWindowRegister");
    if (site & SITE_JOB && inside == 0)
        __atomic_store_n(&has_windows, true, __ATOMIC_RELAXED);
    return real(comm, buff, size, win, winFlags);
}

/* Communicators. The first one of a process may begin its profile. */

static void begin_profile(call_site site, int rank, int nranks)
{
    if (!(site & SITE_JOB) || inside > 0)
        return;
    runtime_begin_without_mpi(rank, nranks);
    gpu_wake();
}

HOT void begin_making(struct nccl_call *call, enum call_id id, call_site site)
{
    enter(call, id, site);
    call_start(&call->call);
}

HOT bool has_created(struct nccl_call *call, nccl_result result)
{
    leave(call, result);
    return call->is_outermost && is_done(result);
}

EXPORT nccl_result ncclCommInitRank(void **comm, int nranks, struct nccl_unique_id id, int rank);
nccl_result ncclCommInitRank(void **comm, int nranks, struct nccl_unique_id id, int rank)
{
    static struct nccl_target target;
    call_site site = nccl_site(__builtin_return_address(0));
    nccl_result (*real)(void **, int, struct nccl_unique_id, int) =
        (nccl_result(*)(void **, int, struct nccl_unique_id, int))nccl_target(&target, site,
                                                                              "CommInitRank");
    begin_profile(site, rank, nranks);
    struct nccl_call call UNTIL_RETURN;
    begin_making(&call, CALL_ncclCommInitRank, site);
    nccl_result result = real(comm, nranks, id, rank);
    if (has_created(&call, result))
        nccl_communicators_created(*comm, CALL_ncclCommInitRank, &id, 1, nranks, rank, NULL);
    account_simple(&call.call);
    return result;
}

EXPORT nccl_result ncclCommInitRankConfig(void **comm, int nranks, struct nccl_unique_id id,
                                          int rank, void *config);
nccl_result ncclCommInitRankConfig(void **comm, int nranks, struct nccl_unique_id id, int rank,
                                   void *config)
{
    static struct nccl_target target;
    call_site site = nccl_site(__builtin_return_address(0));
    nccl_result (*real)(void **, int, struct nccl_unique_id, int, void *) =
        (nccl_result(*)(void **, int, struct nccl_unique_id, int, void *))nccl_target(
            &target, site, "CommInitRankConfig");
    begin_profile(site, rank, nranks);
    struct nccl_call call UNTIL_RETURN;
    begin_making(&call, CALL_ncclCommInitRankConfig, site);
    nccl_result result = real(comm, nranks, id, rank, config);
    if (has_created(&call, result))
        nccl_communicators_created(*comm, CALL_ncclCommInitRankConfig, &id, 1, nranks, rank,
                                   config);
    account_simple(&call.call);
    return result;
}

EXPORT nccl_result ncclCommInitRankScalable(void **comm, int nranks, int rank, int id_count,
                                            struct nccl_unique_id *ids, void *config);
nccl_result ncclCommInitRankScalable(void **comm, int nranks, int rank, int id_count,
                                     struct nccl_unique_id *ids, void *config)
{
    static struct nccl_target target;
    call_site site = nccl_site(__builtin_return_address(0));
    nccl_result (*real)(void **, int, int, int, struct nccl_unique_id *, void *) =
        (nccl_result(*)(void **, int, int, int, struct nccl_unique_id *, void *))nccl_target(
            &target, site, "CommInitRankScalable");
    begin_profile(site, rank, nranks);
    struct nccl_call call UNTIL_RETURN;
    begin_making(&call, CALL_ncclCommInitRankScalable, site);
    nccl_result result = real(comm, nranks, rank, id_count, ids, config);
    if (has_created(&call, result))
        nccl_communicators_created(*comm, CALL_ncclCommInitRankScalable, ids, id_count, nranks,
                                   rank, config);
    account_simple(&call.call);
    return result;
}

/* All ranks of the communicator are in this process, so it contains only one rank of the job. */
EXPORT nccl_result ncclCommInitAll(void **comms, int device_count, const int *devices);
nccl_result ncclCommInitAll(void **comms, int device_count, const int *devices)
{
    static struct nccl_target target;
    call_site site = nccl_site(__builtin_return_address(0));
    nccl_result (*real)(void **, int, const int *) =
        (nccl_result(*)(void **, int, const int *))nccl_target(&target, site, "CommInitAll");
    begin_profile(site, 0, 1);
    struct nccl_call call UNTIL_RETURN;
    begin_making(&call, CALL_ncclCommInitAll, site);
    nccl_result result = real(comms, device_count, devices);
    if (has_created(&call, result))
        nccl_communicators_created_all(comms, CALL_ncclCommInitAll, device_count);
    account_simple(&call.call);
    return result;
}

/* A call on a communicator that may invalidate the handle. */
struct on_communicator {
    struct nccl_call nccl;
    struct communicator *communicator;
};

HOT void begin_on(struct on_communicator *on, enum call_id id, call_site site, const void *comm)
{
    enter(&on->nccl, id, site);
    on->communicator = communicators_under(communicators_key_of_nccl(comm));
    if (on->nccl.call.thread && on->communicator) {
        nccl_announce_found(&on->nccl.call, on->communicator);
        announce_details(&on->nccl.call, LEDGER_BYTES_UNKNOWN, LEDGER_NO_RANK, LEDGER_NO_TAG);
    }
}

EXPORT nccl_result ncclCommSplit(void *comm, int color, int key, void **newcomm, void *config);
nccl_result ncclCommSplit(void *comm, int color, int key, void **newcomm, void *config)
{
    static struct nccl_target target;
    call_site site = nccl_site(__builtin_return_address(0));
    nccl_result (*real)(void *, int, int, void **, void *) =
        (nccl_result(*)(void *, int, int, void **, void *))nccl_target(&target, site, "CommSplit");
    struct on_communicator on UNTIL_RETURN;
    begin_on(&on, CALL_ncclCommSplit, site, comm);
    call_start(&on.nccl.call);
    nccl_result result = real(comm, color, key, newcomm, config);
    if (has_created(&on.nccl, result)) {
        struct nccl_origin origin =
            nccl_communicators_expect(comm, CALL_ncclCommSplit, color, config);
        if (color != NCCL_SPLIT_NOCOLOR)
            nccl_communicators_child(&origin, newcomm, group.depth > 0, site);
    }
    account_on(&on.nccl.call, on.communicator);
    return result;
}

EXPORT nccl_result ncclCommShrink(void *comm, int *excluded, int excluded_count, void **newcomm,
                                  void *config, int flags);
nccl_result ncclCommShrink(void *comm, int *excluded, int excluded_count, void **newcomm,
                           void *config, int flags)
{
    static struct nccl_target target;
    call_site site = nccl_site(__builtin_return_address(0));
    nccl_result (*real)(void *, int *, int, void **, void *, int) =
        (nccl_result(*)(void *, int *, int, void **, void *, int))nccl_target(&target, site,
                                                                              "CommShrink");
    struct on_communicator on UNTIL_RETURN;
    begin_on(&on, CALL_ncclCommShrink, site, comm);
    call_start(&on.nccl.call);
    nccl_result result = real(comm, excluded, excluded_count, newcomm, config, flags);
    if (has_created(&on.nccl, result)) {
        struct nccl_origin origin = nccl_communicators_expect(comm, CALL_ncclCommShrink, 0, config);
        nccl_communicators_child(&origin, newcomm, group.depth > 0, site);
    }
    account_on(&on.nccl.call, on.communicator);
    return result;
}

EXPORT nccl_result ncclCommGrow(void *comm, int nranks, const struct nccl_unique_id *id, int rank,
                                void **newcomm, void *config);
nccl_result ncclCommGrow(void *comm, int nranks, const struct nccl_unique_id *id, int rank,
                         void **newcomm, void *config)
{
    static struct nccl_target target;
    call_site site = nccl_site(__builtin_return_address(0));
    nccl_result (*real)(void *, int, const struct nccl_unique_id *, int, void **, void *) =
        (nccl_result(*)(void *, int, const struct nccl_unique_id *, int, void **,
                        void *))nccl_target(&target, site, "CommGrow");
    if (!comm)
        begin_profile(site, rank, nranks);
    struct on_communicator on UNTIL_RETURN;
    begin_on(&on, CALL_ncclCommGrow, site, comm);
    call_start(&on.nccl.call);
    nccl_result result = real(comm, nranks, id, rank, newcomm, config);
    if (has_created(&on.nccl, result))
        nccl_communicators_grown(comm, id, nranks, rank, newcomm, config, group.depth > 0, site);
    account_on(&on.nccl.call, on.communicator);
    return result;
}

EXPORT nccl_result ncclCommFinalize(void *comm);
nccl_result ncclCommFinalize(void *comm)
{
    static struct nccl_target target;
    call_site site = nccl_site(__builtin_return_address(0));
    nccl_result (*real)(void *) =
        (nccl_result(*)(void *))nccl_target(&target, site, "CommFinalize");
    struct on_communicator on UNTIL_RETURN;
    begin_on(&on, CALL_ncclCommFinalize, site, comm);
    call_start(&on.nccl.call);
    nccl_result result = real(comm);
    leave(&on.nccl, result);
    account_on(&on.nccl.call, on.communicator);
    return result;
}

/* The handle is removed before the call: NCCL may reuse it before the call returns. */
static nccl_result freeing(call_site site, enum call_id id, nccl_result (*real)(void *), void *comm)
{
    struct on_communicator on UNTIL_RETURN;
    begin_on(&on, id, site, comm);
    mpi_handle key = communicators_key_of_nccl(comm);
    struct communicator *going = on.nccl.is_outermost ? communicators_detach(key) : NULL;
    call_start(&on.nccl.call);
    nccl_result result = real(comm);
    leave(&on.nccl, result);
    account_on(&on.nccl.call, on.communicator);
    if (going && is_done(result))
        communicators_freed(going);
    else
        communicators_detached(key, going, false);
    return result;
}

EXPORT nccl_result ncclCommDestroy(void *comm);
nccl_result ncclCommDestroy(void *comm)
{
    static struct nccl_target target;
    call_site site = nccl_site(__builtin_return_address(0));
    return freeing(site, CALL_ncclCommDestroy,
                   (nccl_result(*)(void *))nccl_target(&target, site, "CommDestroy"), comm);
}

EXPORT nccl_result ncclCommAbort(void *comm);
nccl_result ncclCommAbort(void *comm)
{
    static struct nccl_target target;
    call_site site = nccl_site(__builtin_return_address(0));
    return freeing(site, CALL_ncclCommAbort,
                   (nccl_result(*)(void *))nccl_target(&target, site, "CommAbort"), comm);
}
