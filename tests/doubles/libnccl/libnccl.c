#include "nccl_double.h"
#include "plugin.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAGIC = 0x6e63636c, MOST_IN_GROUP = 64, MOST_BIRTHS = 64 };

struct ncclComm {
    int magic, nranks, rank, asks_until_ready;
    bool is_nonblocking;
    ncclComm_t *child_goes_to, child;
    struct plugin_comm plugin;
};

static struct {
    int nranks, rank;
} next_child = {1, 0};
static long calls;
static int64_t kernel_ns = 200000;
static int kernel_count = 1;
static _Thread_local struct double_nccl_span last;
static _Thread_local int depth, within;
static _Thread_local struct {
    ncclComm_t comm;
    cudaStream_t stream;
} launches[MOST_IN_GROUP];
static _Thread_local int launch_count;
static _Thread_local struct {
    ncclComm_t *goes_to, comm;
} births[MOST_BIRTHS];
static _Thread_local int birth_count;

void double_nccl_next_child(int nranks, int rank)
{
    next_child.nranks = nranks;
    next_child.rank = rank;
}

long double_nccl_calls(void)
{
    return calls;
}

void double_nccl_kernels(int64_t duration_ns, int count)
{
    kernel_ns = duration_ns;
    kernel_count = count;
}

struct double_nccl_span double_nccl_last(void)
{
    return last;
}

/* Our double of libcuda.so.1, where it is in the process. */
extern struct double_nccl_span double_launch(void *stream, const char *name, int64_t duration_ns)
    __attribute__((weak));

static void launch(cudaStream_t stream)
{
    for (int i = 0; i < kernel_count && double_launch; i++) {
        struct double_nccl_span span = double_launch(
            stream,
            "_Z32ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
            kernel_ns);
        if (i == 0)
            last.start_ns = span.start_ns;
        last.end_ns = span.end_ns;
    }
}

static void count_call(void)
{
    calls += within == 0;
}

/* The definitions below are pncclX; each ncclX is a weak alias of it, as NCCL's are. */
#define API(NAME, PARAMETERS)        \
    ncclResult_t p##NAME PARAMETERS; \
    ncclResult_t NAME PARAMETERS __attribute__((weak, alias("p" #NAME)));
DOUBLE_FUNCTIONS(API)

static bool is_valid(ncclComm_t comm)
{
    return comm && comm->magic == MAGIC;
}

static ncclResult_t result_for(ncclComm_t comm)
{
    return comm->is_nonblocking ? ncclInProgress : ncclSuccess;
}

/* Groups */

static void put_in_group(ncclComm_t comm, cudaStream_t stream)
{
    for (int i = 0; i < launch_count; i++)
        if (launches[i].comm == comm) {
            launches[i].stream = stream; /* a communicator's last stream has its kernel; in NCCL,
                                            the last that was new to it */
            return;
        }
    launches[launch_count].comm = comm;
    launches[launch_count++].stream = stream;
}

ncclResult_t pncclGroupStart(void)
{
    count_call();
    depth++;
    return ncclSuccess;
}

ncclResult_t pncclGroupEnd(void)
{
    count_call();
    if (depth == 0)
        return ncclInvalidUsage;
    if (--depth > 0)
        return ncclSuccess;
    plugin_launch();
    for (int i = 0; i < launch_count; i++)
        launch(launches[i].stream);
    for (int i = 0; i < birth_count; i++)
        *births[i].goes_to = births[i].comm;
    launch_count = birth_count = 0;
    return ncclSuccess;
}

ncclResult_t pncclGroupSimulateEnd(void *info)
{
    (void)info;
    count_call();
    launch_count = birth_count = depth = 0;
    return ncclSuccess;
}

static bool has_windows; /* of all communicators */

ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, void **win,
                                     int winFlags)
{
    (void)comm, (void)buff, (void)size, (void)winFlags;
    count_call();
    *win = win;
    has_windows = true;
    return ncclSuccess;
}

static ncclResult_t operate(ncclComm_t comm, cudaStream_t stream, const char *name, size_t count,
                            ncclDataType_t datatype)
{
    static const char *const DATATYPES[] = {"ncclInt8",  "Unknown",    "ncclInt32",  "ncclUint32",
                                            "ncclInt64", "ncclUint64", "ncclFloat16"};
    count_call();
    if (!is_valid(comm))
        return ncclInvalidArgument;
    const char *type = datatype <= ncclFloat16 ? DATATYPES[datatype] : "ncclFloat32";
    if (count == 0 || comm->nranks == 1)
        return ncclSuccess;
    if (has_windows && strcmp(name, "AllGather") == 0) {
        plugin_call_on_copy_engines(&comm->plugin, name, count, type, 0);
        if (depth == 0)
            plugin_launch();
        return result_for(comm);
    }
    plugin_call(&comm->plugin, name, count, type, 0, false);
    if (depth > 0) {
        put_in_group(comm, stream);
        return result_for(comm);
    }
    launch(stream);
    plugin_launch();
    return result_for(comm);
}

#define OPERATION(NAME, PARAMETERS, COUNT)                        \
    ncclResult_t pncc##NAME PARAMETERS                            \
    {                                                             \
        return operate(comm, stream, 1 + #NAME, COUNT, datatype); \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define BUFFERS const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype
OPERATION(lReduce, (BUFFERS, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream), count)
OPERATION(lBroadcast, (BUFFERS, int root, ncclComm_t comm, cudaStream_t stream), count)
OPERATION(lAllReduce, (BUFFERS, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream), count)
OPERATION(lAllReduceConfig,
          (BUFFERS, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const void *config),
          config ? count : 0)
OPERATION(lReduceScatter, (BUFFERS, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream), count)
OPERATION(lAllGather, (BUFFERS, ncclComm_t comm, cudaStream_t stream), count)
OPERATION(lAlltoAll, (BUFFERS, ncclComm_t comm, cudaStream_t stream), count)
OPERATION(lGather, (BUFFERS, int root, ncclComm_t comm, cudaStream_t stream), count)
OPERATION(lScatter, (BUFFERS, int root, ncclComm_t comm, cudaStream_t stream), count)
OPERATION(lSend,
          (const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
           cudaStream_t stream),
          count)
OPERATION(lRecv,
          (void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
           cudaStream_t stream),
          count)

/* Without kernels, as NCCL's. */
static ncclResult_t signal_to(ncclComm_t comm)
{
    count_call();
    return is_valid(comm) ? result_for(comm) : ncclInvalidArgument;
}

ncclResult_t pncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype, int peer,
                            void *window, size_t offset, int signal, int context, unsigned flags,
                            ncclComm_t comm, cudaStream_t stream)
{
    return window && offset == 8 ? signal_to(comm) : ncclInvalidArgument;
}

ncclResult_t pncclSignal(int peer, int signal, int context, unsigned flags, ncclComm_t comm,
                         cudaStream_t stream)
{
    return signal_to(comm);
}

ncclResult_t pncclWaitSignal(int count, ncclWaitSignalDesc_t *signals, ncclComm_t comm,
                             cudaStream_t stream)
{
    return count > 0 && signals->opCnt > 0 ? signal_to(comm) : ncclInvalidArgument;
}

/* By its public name: whoever defines that before us is called. */
ncclResult_t pncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    count_call();
    within++;
    ncclResult_t result = ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
    within--;
    return result;
}

/* Communicators */

static ncclComm_t make(int nranks, int rank, const ncclConfig_t *config)
{
    ncclComm_t comm = calloc(1, sizeof *comm);
    comm->magic = MAGIC;
    comm->nranks = nranks;
    comm->rank = rank;
    comm->is_nonblocking = config && config->blocking == 0;
    const char *newest = getenv("DOUBLE_NCCL_PLUGIN");
    plugin_load(newest ? atoi(newest) : 6);
    plugin_begin(&comm->plugin, 1, NULL, nranks, rank);
    return comm;
}

ncclResult_t pncclGetVersion(int *version)
{
    *version = 22809;
    return ncclSuccess;
}

ncclResult_t pncclGetUniqueId(ncclUniqueId *id)
{
    count_call();
    static int made;
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "%ld %d", (long)getpid(), ++made);
    memset(id->internal + 64, 0x5a, 64);
    return ncclSuccess;
}

static ncclResult_t init(ncclComm_t *comm, int nranks, const ncclUniqueId *id, int rank,
                         const ncclConfig_t *config)
{
    count_call();
    if (id->internal[127] != 0x5a || rank < 0 || rank >= nranks)
        return ncclInvalidArgument;
    *comm = make(nranks, rank, config);
    return result_for(*comm);
}

ncclResult_t pncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    return init(comm, nranks, &id, rank, NULL);
}

ncclResult_t pncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
                                     ncclConfig_t *config)
{
    return init(comm, nranks, &id, rank, config);
}

ncclResult_t pncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank, int nId,
                                       ncclUniqueId *ids, ncclConfig_t *config)
{
    return init(comm, nranks, &ids[nId - 1], rank, config);
}

ncclResult_t pncclCommInitAll(ncclComm_t *comms, int ndev, const int *devlist)
{
    (void)devlist;
    count_call();
    for (int i = 0; i < ndev; i++)
        comms[i] = make(ndev, i, NULL);
    return ncclSuccess;
}

static ncclResult_t bear(ncclComm_t comm, ncclComm_t *newcomm, bool is_taking_part)
{
    count_call();
    if (!is_valid(comm))
        return ncclInvalidArgument;
    *newcomm = NULL;
    ncclComm_t child = is_taking_part ? make(next_child.nranks, next_child.rank, NULL) : NULL;
    if (child && comm->is_nonblocking) {
        child->is_nonblocking = true;
        comm->child = child;
        comm->child_goes_to = newcomm;
        comm->asks_until_ready = 2;
    } else if (child && depth > 0) {
        births[birth_count].goes_to = newcomm;
        births[birth_count++].comm = child;
    } else
        *newcomm = child;
    return result_for(comm);
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                            ncclConfig_t *config)
{
    (void)key, (void)config;
    return bear(comm, newcomm, color != NCCL_SPLIT_NOCOLOR);
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int *excluded, int count, ncclComm_t *newcomm,
                             ncclConfig_t *config, int flags)
{
    (void)excluded, (void)count, (void)config, (void)flags;
    return bear(comm, newcomm, true);
}

ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id)
{
    return is_valid(comm) ? pncclGetUniqueId(id) : ncclInvalidArgument;
}

ncclResult_t pncclCommGrow(ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank,
                           ncclComm_t *newcomm, ncclConfig_t *config)
{
    count_call();
    if (comm ? rank != -1 || nranks <= comm->nranks : rank < 0 || !id)
        return ncclInvalidArgument;
    *newcomm = make(nranks, comm ? comm->rank : rank, config);
    return result_for(*newcomm);
}

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    if (comm->child && --comm->asks_until_ready <= 0) {
        *comm->child_goes_to = comm->child;
        comm->child = NULL;
    }
    *error = comm->child ? ncclInProgress : ncclSuccess;
    return ncclSuccess;
}

ncclResult_t pncclCommFinalize(ncclComm_t comm)
{
    count_call();
    return is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t pncclCommDestroy(ncclComm_t comm)
{
    count_call();
    if (!is_valid(comm))
        return ncclInvalidArgument;
    plugin_end(&comm->plugin);
    comm->magic = 0;
    free(comm);
    return ncclSuccess;
}

ncclResult_t pncclCommAbort(ncclComm_t comm)
{
    return pncclCommDestroy(comm);
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int *count)
{
    if (!is_valid(comm))
        return ncclInvalidArgument;
    *count = comm->nranks;
    return ncclSuccess;
}

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *rank)
{
    if (!is_valid(comm))
        return ncclInvalidArgument;
    *rank = comm->rank;
    return ncclSuccess;
}
