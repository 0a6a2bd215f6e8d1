/* A program that reduces on a GPU, with doubles of MPI's neighbours alone: NCCL and CUDA. It prints
 * what its operations have taken on the device, one line each: "truth CALL BYTES NANOSECONDS". */
#include "gpu_double.h"
#include "libnccl/nccl_double.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AHEAD = 10, IDLE_NS = 2000000 };

static CUstream stream;

static void must(int error)
{
    if (error) {
        fprintf(stderr, "error %d\n", error);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void let_it_be_idle(void)
{
    must(cuStreamSynchronize(stream));
    nanosleep(&(struct timespec){.tv_nsec = IDLE_NS}, NULL);
}

static void tell(const char *call, size_t bytes)
{
    struct double_nccl_span span = double_nccl_last();
    printf("truth %s %zu %lld\n", call, bytes, (long long)(span.end_ns - span.start_ns));
}

static void reduce(ncclComm_t comm, size_t bytes)
{
    must(ncclAllReduce(NULL, NULL, bytes, ncclInt8, ncclSum, comm, stream));
}

/* The host is ahead of the device by all of them. */
static void reduce_many(ncclComm_t comm)
{
    for (int i = 0; i < AHEAD; i++) {
        double_nccl_kernels(300000 + 10000 * i, 1);
        reduce(comm, 1000 + (size_t)i);
        tell("ncclAllReduce", 1000 + (size_t)i);
    }
    let_it_be_idle();
}

/* Its operations share two kernels. */
static void exchange(ncclComm_t comm)
{
    double_nccl_kernels(200000, 2);
    must(ncclGroupStart());
    must(ncclSend(NULL, 500, ncclInt8, 0, comm, stream));
    must(ncclRecv(NULL, 700, ncclInt8, 0, comm, stream));
    must(ncclGroupEnd());
    tell("ncclGroup", 1200);
    let_it_be_idle();
}

static void replay(ncclComm_t comm)
{
    CUgraph graph;
    CUgraphExec instance;
    double_nccl_kernels(100000, 1);
    must(cuStreamBeginCapture_v2(stream, 0));
    reduce(comm, 77);
    must(cuStreamEndCapture(stream, &graph));
    must(cuGraphInstantiateWithFlags(&instance, graph, 0));
    for (int i = 0; i < 3; i++)
        must(cuGraphLaunch(instance, stream));
    let_it_be_idle();
}

/* A gather by copy engines has no kernel, and may not take that of its neighbours. */
static void gather_by_copy_engines(ncclComm_t comm)
{
    void *window;
    must(ncclCommWindowRegister(comm, NULL, 1 << 20, &window, 1));
    must(ncclAllGather(NULL, NULL, 99, ncclInt8, comm, stream));
    double_nccl_kernels(400000, 2);
    must(ncclGroupStart());
    must(ncclSend(NULL, 300, ncclInt8, 0, comm, stream));
    must(ncclRecv(NULL, 300, ncclInt8, 0, comm, stream));
    must(ncclGroupEnd());
    let_it_be_idle();
}

/* Streams that end before they have run: the second has the handle of the first, and what was
 * launched on both runs at once. */
static void reduce_on_streams_that_end(ncclComm_t comm)
{
    CUstream first, second;
    must(cuStreamCreate(&first, 0));
    double_nccl_kernels(3000000, 1);
    must(ncclAllReduce(NULL, NULL, 5001, ncclInt8, ncclSum, comm, first));
    tell("ncclAllReduce", 5001);
    must(cuStreamDestroy_v2(first));
    must(cuStreamCreate(&second, 0));
    if (second != first)
        must(1);
    double_nccl_kernels(200000, 1);
    must(ncclAllReduce(NULL, NULL, 5002, ncclInt8, ncclSum, comm, second));
    tell("ncclAllReduce", 5002);
    must(cuStreamDestroy_v2(second));
    must(cuCtxSynchronize());
    nanosleep(&(struct timespec){.tv_nsec = IDLE_NS}, NULL);
}

int main(int argc, char **argv)
{
    int rank, size;
    CUcontext context;
    ncclUniqueId id;
    ncclComm_t comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    must(cuInit(0));
    must(cuDevicePrimaryCtxRetain(&context, 0));
    must(cuCtxSetCurrent(context));
    must(cuStreamCreate(&stream, 0));
    memset(&id, 0x5a, sizeof id);
    must(ncclCommInitRank(&comm, size, id, rank));
    if (getenv("COMMPROF_GPU"))
        must(!double_await_tracing());
    double_launch(stream, "compute", 100000);
    let_it_be_idle();
    for (int round = 0; round < 2; round++) {
        reduce_many(comm);
        exchange(comm);
        replay(comm);
    }
    if (argc > 1 && strcmp(argv[1], "windows") == 0)
        gather_by_copy_engines(comm);
    if (argc > 1 && strcmp(argv[1], "streams") == 0)
        reduce_on_streams_that_end(comm);
    must(cuStreamDestroy_v2(stream));
    must(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
