/* Our own stand-in for libnccl.so.2 and its nccl.h. It moves nothing: communicators and groups are
 * kept count of, and where our double of libcuda.so.1 (../gpu_double.h) is in the process, each
 * communicator of a group launches a kernel, named as NCCL's are.
 *
 * As NCCL it defines each ncclX weakly and pncclX beside it, calls its own functions by their
 * public names (ncclBcast), gives the handle of a split communicator when that is made, returns
 * ncclInProgress for communicators whose configuration says blocking = 0, and tells a profiler
 * plugin of its operations (plugin.h; DOUBLE_NCCL_PLUGIN: the newest version of the interface that
 * it knows). It shows that our code does what it should if NCCL behaves as written here. */
#ifndef NCCL_DOUBLE_H
#define NCCL_DOUBLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct ncclComm *ncclComm_t;
typedef void *cudaStream_t;
typedef struct {
    char internal[128];
} ncclUniqueId;
typedef enum {
    ncclSuccess,
    ncclUnhandledCudaError,
    ncclSystemError,
    ncclInternalError,
    ncclInvalidArgument,
    ncclInvalidUsage,
    ncclRemoteError,
    ncclInProgress
} ncclResult_t;
typedef enum {
    ncclInt8,
    ncclUint8,
    ncclInt32,
    ncclUint32,
    ncclInt64,
    ncclUint64,
    ncclFloat16,
    ncclFloat32,
    ncclFloat64,
    ncclBfloat16,
    ncclFloat8e4m3,
    ncclFloat8e5m2,
    ncclTypeOfTomorrow
} ncclDataType_t;
typedef enum { ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg } ncclRedOp_t;
typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking, cgaClusterSize, minCTAs, maxCTAs;
    const char *netName;
    int splitShare, trafficClass;
    const char *commName; /* from 2.27 on */
    int collnetEnable;
} ncclConfig_t;
#define NCCL_CONFIG_INITIALIZER                                                            \
    {                                                                                      \
        .size = sizeof(ncclConfig_t), .magic = 0xcafebeef, .version = 22700, .blocking = 1 \
    }
#define NCCL_SPLIT_NOCOLOR (-1)

typedef struct {
    int opCnt, peer, sigIdx, ctx;
} ncclWaitSignalDesc_t;

#define DOUBLE_FUNCTIONS(EACH)                                                                     \
    EACH(ncclGetVersion, (int *version))                                                           \
    EACH(ncclGetUniqueId, (ncclUniqueId * id))                                                     \
    EACH(ncclCommInitRank, (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank))             \
    EACH(ncclCommInitRankConfig,                                                                   \
         (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config))         \
    EACH(ncclCommInitRankScalable, (ncclComm_t * comm, int nranks, int rank, int nId,              \
                                    ncclUniqueId *ids, ncclConfig_t *config))                      \
    EACH(ncclCommInitAll, (ncclComm_t * comms, int ndev, const int *devlist))                      \
    EACH(ncclCommSplit,                                                                            \
         (ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config))         \
    EACH(ncclCommShrink, (ncclComm_t comm, int *excluded, int count, ncclComm_t *newcomm,          \
                          ncclConfig_t *config, int flags))                                        \
    EACH(ncclCommGetUniqueId, (ncclComm_t comm, ncclUniqueId * id))                                \
    EACH(ncclCommGrow, (ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank,             \
                        ncclComm_t *newcomm, ncclConfig_t *config))                                \
    EACH(ncclCommFinalize, (ncclComm_t comm))                                                      \
    EACH(ncclCommDestroy, (ncclComm_t comm))                                                       \
    EACH(ncclCommAbort, (ncclComm_t comm))                                                         \
    EACH(ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t * error))                           \
    EACH(ncclCommCount, (const ncclComm_t comm, int *count))                                       \
    EACH(ncclCommUserRank, (const ncclComm_t comm, int *rank))                                     \
    EACH(ncclReduce, (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, \
                      ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream))             \
    EACH(ncclBcast, (void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, \
                     cudaStream_t stream))                                                         \
    EACH(ncclBroadcast, (const void *sendbuff, void *recvbuff, size_t count,                       \
                         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)) \
    EACH(ncclAllReduce,                                                                            \
         (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,             \
          ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream))                                   \
    EACH(ncclAllReduceConfig,                                                                      \
         (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,             \
          ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const void *config))               \
    EACH(ncclReduceScatter,                                                                        \
         (const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,         \
          ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream))                                   \
    EACH(ncclAllGather, (const void *sendbuff, void *recvbuff, size_t sendcount,                   \
                         ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream))           \
    EACH(ncclAlltoAll, (const void *sendbuff, void *recvbuff, size_t count,                        \
                        ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream))            \
    EACH(ncclGather, (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, \
                      int root, ncclComm_t comm, cudaStream_t stream))                             \
    EACH(ncclScatter, (const void *sendbuff, void *recvbuff, size_t count,                         \
                       ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream))   \
    EACH(ncclSend, (const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,         \
                    ncclComm_t comm, cudaStream_t stream))                                         \
    EACH(ncclRecv, (void *recvbuff, size_t count, ncclDataType_t datatype, int peer,               \
                    ncclComm_t comm, cudaStream_t stream))                                         \
    EACH(ncclPutSignal, (const void *localbuff, size_t count, ncclDataType_t datatype, int peer,   \
                         void *window, size_t offset, int signal, int context, unsigned flags,     \
                         ncclComm_t comm, cudaStream_t stream))                                    \
    EACH(ncclSignal, (int peer, int signal, int context, unsigned flags, ncclComm_t comm,          \
                      cudaStream_t stream))                                                        \
    EACH(ncclWaitSignal,                                                                           \
         (int count, ncclWaitSignalDesc_t *signals, ncclComm_t comm, cudaStream_t stream))         \
    EACH(ncclGroupStart, (void))                                                                   \
    EACH(ncclGroupEnd, (void))                                                                     \
    EACH(ncclGroupSimulateEnd, (void *info))                                                       \
    EACH(ncclCommWindowRegister,                                                                   \
         (ncclComm_t comm, void *buff, size_t size, void **win, int winFlags))

#define DOUBLE_DECLARE(NAME, PARAMETERS) ncclResult_t NAME PARAMETERS;
DOUBLE_FUNCTIONS(DOUBLE_DECLARE)
#undef DOUBLE_DECLARE

/* For test programs: what NCCL itself would know. */

/* The next communicator that is split or shrunk off has so many ranks, and this is one of them. */
void double_nccl_next_child(int nranks, int rank);

/* How many functions of this copy the process has called, those excepted that this copy has called
 * itself. */
long double_nccl_calls(void);

/* How long each kernel lasts, and how many a group launches for each communicator; 200 us and 1. */
void double_nccl_kernels(int64_t duration_ns, int count);

/* Begin and end of the last kernels that were launched. */
struct double_nccl_span {
    int64_t start_ns, end_ns;
};
struct double_nccl_span double_nccl_last(void);

#endif
