/* A job that calls both MPI and NCCL (our test double). The argument selects what it does; every
 * result is checked. */
#include "nccl_double.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(CONDITION)                                                            \
    do                                                                              \
        if (!(CONDITION)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #CONDITION); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                           \
        }                                                                           \
    while (0)
#define OK(CALL) CHECK((CALL) == ncclSuccess)

static int rank, size;
static char buffer[4096];

static ncclUniqueId shared_id(void)
{
    ncclUniqueId id;
    if (rank == 0)
        OK(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    return id;
}

static ncclComm_t world(void)
{
    ncclComm_t comm;
    OK(ncclCommInitRank(&comm, size, shared_id(), rank));
    return comm;
}

/* Each operation once, with 100 elements of four bytes. */
static void operations(void)
{
    ncclComm_t comm = world();
    OK(ncclAllReduce(buffer, buffer, 100, ncclFloat32, ncclSum, comm, NULL));
    OK(ncclAllReduceConfig(buffer, buffer, 100, ncclFloat32, ncclSum, comm, NULL, buffer));
    OK(ncclBroadcast(buffer, buffer, 100, ncclFloat32, 1, comm, NULL));
    OK(ncclBcast(buffer, 100, ncclFloat32, 1, comm, NULL));
    OK(ncclReduce(buffer, buffer, 100, ncclFloat32, ncclSum, 0, comm, NULL));
    OK(ncclAllGather(buffer, buffer, 100, ncclFloat32, comm, NULL));
    OK(ncclReduceScatter(buffer, buffer, 100, ncclFloat32, ncclSum, comm, NULL));
    OK(ncclAlltoAll(buffer, buffer, 100, ncclFloat32, comm, NULL));
    OK(ncclGather(buffer, buffer, 100, ncclFloat32, 0, comm, NULL));
    OK(ncclScatter(buffer, buffer, 100, ncclFloat32, 0, comm, NULL));
    OK(ncclGroupStart());
    OK(ncclSend(buffer, 100, ncclFloat32, (rank + 1) % size, comm, NULL));
    OK(ncclRecv(buffer, 100, ncclFloat32, (rank + size - 1) % size, comm, NULL));
    OK(ncclGroupEnd());
    OK(ncclCommFinalize(comm));
    OK(ncclCommDestroy(comm));
}

/* A pipeline whose NCCL ranks are in reverse order: sends to the next rank, and half as much back,
 * four times. */
static void messages(void)
{
    ncclComm_t comm;
    int own = size - 1 - rank;
    OK(ncclCommInitRank(&comm, size, shared_id(), own));
    for (int i = 0; i < 4; i++) {
        OK(ncclGroupStart());
        if (own < size - 1) {
            OK(ncclSend(buffer, 100, ncclFloat32, own + 1, comm, NULL));
            OK(ncclRecv(buffer, 50, ncclFloat32, own + 1, comm, NULL));
        }
        if (own > 0) {
            OK(ncclRecv(buffer, 100, ncclFloat32, own - 1, comm, NULL));
            OK(ncclSend(buffer, 50, ncclFloat32, own - 1, comm, NULL));
        }
        OK(ncclGroupEnd());
    }
    OK(ncclCommDestroy(comm));
}

/* Sends the next rank 100 elements with a signal, then only a signal; waits for both signals from
 * the previous rank. */
static void signals(void)
{
    ncclComm_t comm = world();
    void *window;
    ncclWaitSignalDesc_t both = {.opCnt = 2, .peer = (rank + size - 1) % size};
    OK(ncclCommWindowRegister(comm, buffer, sizeof buffer, &window, 0));
    OK(ncclPutSignal(buffer, 100, ncclFloat32, (rank + 1) % size, window, 8, 0, 0, 0, comm, NULL));
    OK(ncclSignal((rank + 1) % size, 0, 0, 0, comm, NULL));
    OK(ncclWaitSignal(1, &both, comm, NULL));
    OK(ncclAllReduce(buffer, buffer, 100, ncclFloat32, ncclSum, comm, NULL));
    OK(ncclCommDestroy(comm));
}

/* An AllGather with a kernel, then one that the double gives to copy engines. */
static void copy_engines(void)
{
    ncclComm_t comm = world();
    void *window;
    OK(ncclAllGather(buffer, buffer, 100, ncclFloat32, comm, NULL));
    OK(ncclCommWindowRegister(comm, buffer, sizeof buffer, &window, 0));
    OK(ncclAllGather(buffer, buffer, 100, ncclFloat32, comm, NULL));
    OK(ncclCommDestroy(comm));
}

/* Calls the same function once by the intercepted name, and twice bypassing it. */
ncclResult_t pncclAllReduce(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                            cudaStream_t);

static void looked_up(void)
{
    ncclComm_t comm = world();
    OK(pncclAllReduce(buffer, buffer, 1, ncclFloat16, ncclSum, comm, NULL));
    OK(ncclAllReduce(buffer, buffer, 100, ncclFloat16, ncclSum, comm, NULL));
    OK(pncclAllReduce(buffer, buffer, 2, ncclFloat16, ncclSum, comm, NULL));
    OK(ncclCommDestroy(comm));
}

static void datatypes(void)
{
    ncclComm_t comm = world();
    for (ncclDataType_t type = ncclInt8; type <= ncclTypeOfTomorrow; type++)
        OK(ncclAllReduce(buffer, buffer, 1000 + (size_t)type, type, ncclSum, comm, NULL));
    OK(ncclCommDestroy(comm));
}

/* Two communicators of all ranks, created and used in different order; halves by Split, in and
 * outside of a group; and the remaining ranks by Shrink. */
static void communicators(void)
{
    ncclComm_t first = world(), second = world(), half, other_half, none, rest, pair[2];
    ncclUniqueId ids[2] = {shared_id(), shared_id()};
    ncclComm_t scalable;
    OK(ncclCommInitRankScalable(&scalable, size, rank, 2, ids, NULL));
    for (int i = 0; i < 3; i++)
        OK(ncclAllReduce(buffer, buffer, (size_t)(rank % 2 ? 1 : 2), ncclInt8, ncclSum,
                         rank % 2 ? first : second, NULL));
    OK(ncclAllReduce(buffer, buffer, (size_t)(rank % 2 ? 2 : 1), ncclInt8, ncclSum,
                     rank % 2 ? second : first, NULL));
    double_nccl_next_child(size / 2, rank / 2);
    OK(ncclCommSplit(first, rank % 2, rank, &half, NULL));
    OK(ncclGroupStart());
    OK(ncclCommSplit(first, rank % 2, rank, &other_half, NULL));
    OK(ncclGroupEnd());
    OK(ncclCommSplit(first, rank == 0 ? NCCL_SPLIT_NOCOLOR : 0, rank, &none, NULL));
    CHECK((none == NULL) == (rank == 0));
    OK(ncclAllGather(buffer, buffer, 10, ncclInt8, half, NULL));
    OK(ncclAllGather(buffer, buffer, 20, ncclInt8, other_half, NULL));
    OK(ncclAllGather(buffer, buffer, 40, ncclInt8, scalable, NULL));
    OK(ncclCommInitAll(pair, 2, NULL));
    OK(ncclGroupStart());
    for (int i = 0; i < 2; i++)
        OK(ncclAllReduce(buffer, buffer, 50, ncclInt8, ncclSum, pair[i], NULL));
    OK(ncclGroupEnd());
    if (rank > 0) {
        int gone = 0;
        double_nccl_next_child(size - 1, rank - 1);
        OK(ncclCommShrink(first, &gone, 1, &rest, NULL, 0));
        OK(ncclAllGather(buffer, buffer, 30, ncclInt8, rest, NULL));
    }
    OK(ncclCommAbort(first));
}

/* Two ranks grow to three and then four; the newest rank creates the id for the next. Then halves
 * of the last communicator, and of these. */
static void grown(void)
{
    ncclComm_t comm = NULL, half, quarter;
    ncclUniqueId id = shared_id();
    if (rank < 2)
        OK(ncclCommInitRank(&comm, 2, id, rank));
    for (int ranks = 3; ranks <= 4; ranks++) {
        ncclComm_t larger;
        bool is_new = rank == ranks - 1, is_there = rank < ranks - 1;
        if (rank == ranks - 2)
            OK(ncclCommGetUniqueId(comm, &id));
        MPI_Bcast(&id, sizeof id, MPI_BYTE, ranks - 2, MPI_COMM_WORLD);
        if (is_new || is_there)
            OK(ncclCommGrow(comm, ranks, rank >= ranks - 2 ? &id : NULL, is_new ? rank : -1,
                            &larger, NULL));
        comm = is_new || is_there ? larger : NULL;
    }
    double_nccl_next_child(2, rank / 2);
    OK(ncclCommSplit(comm, rank % 2, rank, &half, NULL));
    double_nccl_next_child(1, 0);
    OK(ncclCommSplit(half, rank / 2, rank, &quarter, NULL));
    OK(ncclAllGather(buffer, buffer, 10, ncclInt8, comm, NULL));
    OK(ncclAllGather(buffer, buffer, 20, ncclInt8, half, NULL));
    OK(ncclAllGather(buffer, buffer, 30, ncclInt8, quarter, NULL));
}

/* Names by configuration: for all ranks, for a child that is created at the end of a group, and by
 * a configuration older than names. */
static void names(void)
{
    ncclComm_t dp, tp, old;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.commName = "data parallel";
    OK(ncclCommInitRankConfig(&dp, size, shared_id(), rank, &config));
    config.commName = "tensor parallel";
    double_nccl_next_child(size / 2, rank / 2);
    OK(ncclGroupStart());
    OK(ncclCommSplit(dp, rank % 2, rank, &tp, &config));
    config.commName = "not to be read any more";
    OK(ncclGroupEnd());
    config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
    config.size = offsetof(ncclConfig_t, commName);
    config.version = 22600;
    config.commName = (const char *)1;
    OK(ncclCommInitRankConfig(&old, size, shared_id(), rank, &config));
    OK(ncclAllReduce(buffer, buffer, 1, ncclInt8, ncclSum, dp, NULL));
    OK(ncclAllReduce(buffer, buffer, 2, ncclInt8, ncclSum, tp, NULL));
    OK(ncclAllReduce(buffer, buffer, 3, ncclInt8, ncclSum, old, NULL));
}

static void nonblocking(void)
{
    ncclConfig_t config = {.size = sizeof config, .blocking = 0};
    ncclComm_t comm, child;
    ncclResult_t state = ncclInProgress;
    CHECK(ncclCommInitRankConfig(&comm, size, shared_id(), rank, &config) == ncclInProgress);
    CHECK(ncclAllReduce(buffer, buffer, 7, ncclInt8, ncclSum, comm, NULL) == ncclInProgress);
    double_nccl_next_child(size / 2, rank / 2);
    CHECK(ncclCommSplit(comm, rank % 2, rank, &child, NULL) == ncclInProgress && child == NULL);
    while (state == ncclInProgress)
        OK(ncclCommGetAsyncError(comm, &state));
    CHECK(ncclAllReduce(buffer, buffer, 9, ncclInt8, ncclSum, child, NULL) == ncclInProgress);
}

static void split_nonblocking(ncclComm_t comm, ncclComm_t *child, ncclConfig_t *config)
{
    ncclResult_t state = ncclInProgress;
    double_nccl_next_child(size / 2, rank / 2);
    CHECK(ncclCommSplit(comm, rank % 2, rank, child, config) == ncclInProgress);
    while (state == ncclInProgress)
        OK(ncclCommGetAsyncError(comm, &state));
}

/* Three communicators that are created before the first is used, as by PyTorch. */
static void nonblocking_children(void)
{
    ncclConfig_t config = {.size = sizeof config, .blocking = 0};
    ncclComm_t comm, children[3];
    CHECK(ncclCommInitRankConfig(&comm, size, shared_id(), rank, &config) == ncclInProgress);
    for (int i = 0; i < 3; i++)
        split_nonblocking(comm, &children[i], &config);
    for (int i = 2; i >= 0; i--)
        CHECK(ncclAllGather(buffer, buffer, 10 * (size_t)(i + 1), ncclInt8, children[i], NULL) ==
              ncclInProgress);
}

/* Erroneous calls: the result must be NCCL's. */
static void mistakes(void)
{
    ncclComm_t comm = world();
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    CHECK(ncclAllReduce(buffer, buffer, 5, ncclInt8, ncclSum, NULL, NULL) == ncclInvalidArgument);
    CHECK(ncclCommDestroy(NULL) == ncclInvalidArgument);
    OK(ncclAllReduce(buffer, buffer, 5, ncclInt8, ncclSum, comm, NULL));
}

/* While MPI_Pcontrol has switched counting off, nothing is counted. */
static void switched(void)
{
    ncclComm_t comm = world();
    OK(ncclAllReduce(buffer, buffer, 3, ncclInt8, ncclSum, comm, NULL));
    MPI_Pcontrol(0);
    OK(ncclAllReduce(buffer, buffer, 4, ncclInt8, ncclSum, comm, NULL));
    MPI_Pcontrol(1);
    OK(ncclAllReduce(buffer, buffer, 5, ncclInt8, ncclSum, comm, NULL));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } PARTS[] = {{"operations", operations},
                 {"datatypes", datatypes},
                 {"communicators", communicators},
                 {"names", names},
                 {"nonblocking", nonblocking},
                 {"nonblocking_children", nonblocking_children},
                 {"mistakes", mistakes},
                 {"switched", switched},
                 {"looked_up", looked_up},
                 {"messages", messages},
                 {"signals", signals},
                 {"grown", grown},
                 {"copy_engines", copy_engines}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        if (argc == 2 && strcmp(PARTS[i].name, argv[1]) == 0)
            PARTS[i].run();
    printf("%ld calls\n", double_nccl_calls());
    MPI_Finalize();
    return 0;
}
