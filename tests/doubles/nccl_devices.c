/* One process with two devices, whose communicators reduce in one group, as in NCCL's own example:
 * it makes no device current in between. */
#include "gpu_double.h"
#include "libnccl/nccl_double.h"

#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { DEVICES = 2, IDLE_NS = 2000000 };

static void must(int error)
{
    if (error)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void let_them_be_idle(CUstream *streams)
{
    for (int device = 0; device < DEVICES; device++)
        must(cuStreamSynchronize(streams[device]));
    nanosleep(&(struct timespec){.tv_nsec = IDLE_NS}, NULL);
}

int main(int argc, char **argv)
{
    CUcontext contexts[DEVICES];
    CUstream streams[DEVICES];
    ncclComm_t comms[DEVICES];
    MPI_Init(&argc, &argv);
    must(cuInit(0));
    for (int device = 0; device < DEVICES; device++) {
        must(cuDevicePrimaryCtxRetain(&contexts[device], device));
        must(cuCtxSetCurrent(contexts[device]));
        must(cuStreamCreate(&streams[device], 0));
    }
    must(ncclCommInitAll(comms, DEVICES, NULL));
    must(!double_await_tracing());
    for (int device = 0; device < DEVICES; device++)
        double_launch(streams[device], "compute", 100000);
    let_them_be_idle(streams);
    must(ncclGroupStart());
    for (int device = 0; device < DEVICES; device++)
        must(ncclAllReduce(NULL, NULL, 100 + (size_t)device, ncclInt8, ncclSum, comms[device],
                           streams[device]));
    must(ncclGroupEnd());
    let_them_be_idle(streams);
    MPI_Finalize();
    return 0;
}
