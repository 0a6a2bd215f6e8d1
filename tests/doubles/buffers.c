/* Two ranks whose buffers lie in each kind of memory. Each transfer has a size of its own, by which
 * tests/mpi/test_memory_kind.py knows it. */
#include "gpu_double.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Memory of a device has whole mappings of this size to itself; the double's may lie anywhere, so
 * what is used of it begins with one. */
enum { GRANULE = 2 << 20, ROOM = 3 * GRANULE };

static char host[4096], *device, *managed, *pinned;
static int rank, other;

static void check(int result)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "buffers: CUDA's error %d\n", result);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static char *granule_in(uintptr_t memory)
{
    return (char *)((memory + GRANULE - 1) / GRANULE * GRANULE);
}

static void allocate(void)
{
    CUcontext context;
    CUdeviceptr on_device, moving;
    void *reachable;
    check(cuInit(0));
    check(cuDevicePrimaryCtxRetain(&context, 0));
    check(cuCtxSetCurrent(context));
    check(cuMemAlloc_v2(&on_device, ROOM));
    check(cuMemAllocManaged(&moving, ROOM, 1));
    check(cuMemHostAlloc(&reachable, ROOM, 0));
    device = granule_in(on_device);
    managed = granule_in(moving);
    pinned = granule_in((uintptr_t)reachable);
}

static void messages(void)
{
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    if (rank == 0) {
        MPI_Send(device, 16, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Send(pinned, 17, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Send(device, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Send(host, 18, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
        MPI_Isend(device, 19, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Ssend(managed, 20, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Send_init(device, 21, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    } else {
        MPI_Recv(managed, 16, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(host, 17, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(device, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(device, 18, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(pinned, 19, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Mprobe(0, 0, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv(device, 20, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        MPI_Recv_init(managed, 21, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
    }
    for (int i = 0; i < 3; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    MPI_Sendrecv(device, 22, MPI_BYTE, other, 0, pinned, 22, MPI_BYTE, other, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(managed, 23, MPI_BYTE, other, 0, other, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
}

/* MPI_BOTTOM: where the data lie, only the type could say. */
static void absolute(void)
{
    MPI_Aint address;
    MPI_Datatype type;
    int length = 24;
    MPI_Get_address(device, &address);
    MPI_Type_create_hindexed(1, &length, &address, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Bcast(MPI_BOTTOM, 1, type, 0, MPI_COMM_WORLD);
    MPI_Type_free(&type);
}

static void polls(void)
{
    MPI_Request request;
    int found = 1;
    MPI_Irecv(device, 25, MPI_BYTE, other, 7, MPI_COMM_WORLD, &request);
    MPI_Test(&request, &found, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(host, 25, MPI_BYTE, other, 7, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Arguments that are not significant lie elsewhere. */
static void rooted(void)
{
    char *root_alone = rank == 0 ? pinned : device;
    MPI_Bcast(pinned, 32, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Gather(device, 33, MPI_BYTE, rank == 0 ? pinned : managed, 33, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Gather(rank == 0 ? MPI_IN_PLACE : device, 34, MPI_BYTE, root_alone, 34, MPI_BYTE, 0,
               MPI_COMM_WORLD);
    MPI_Scatter(rank == 0 ? device : managed, 35, MPI_BYTE, pinned, 35, MPI_BYTE, 0,
                MPI_COMM_WORLD);
    MPI_Scatter(device, 36, MPI_BYTE, rank == 0 ? MPI_IN_PLACE : pinned, 36, MPI_BYTE, 0,
                MPI_COMM_WORLD);
    MPI_Reduce(device, rank == 0 ? managed : pinned, 37, MPI_BYTE, MPI_BOR, 0, MPI_COMM_WORLD);
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : device, root_alone, 38, MPI_BYTE, MPI_BOR, 0,
               MPI_COMM_WORLD);
}

static void all_to_all(void)
{
    MPI_Request request;
    MPI_Allreduce(device, host, 48, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, managed, 49, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    MPI_Allreduce(host, host + 2048, 50, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    MPI_Alltoall(device, 51, MPI_BYTE, device + 1024, 51, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, managed, 52, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, device, 53, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(device, host, 27, MPI_BYTE, MPI_BOR,
                             MPI_COMM_WORLD); /* 54: the send buffer */
    MPI_Scan(host, device, 55, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    MPI_Iallreduce(device, pinned, 56, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);

    /* Rank 1 sends nothing, and receives all the same. */
    int counts[2] = {57, 0}, displacements[2] = {0, 57};
    MPI_Allgatherv(host, counts[rank], MPI_BYTE, device, counts, displacements, MPI_BYTE,
                   MPI_COMM_WORLD);
    int sent[2] = {rank == 0 ? 29 : 0, rank == 0 ? 29 : 0}, received[2] = {29, 0},
        apart[2] = {0, 64};
    MPI_Alltoallv(managed, sent, apart, MPI_BYTE, device, received, apart, MPI_BYTE,
                  MPI_COMM_WORLD); /* 58 from rank 0 */
}

static void neighbors(void)
{
    MPI_Comm ring;
    int size = 2, periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    MPI_Neighbor_alltoall(device, 64, MPI_BYTE, managed, 64, MPI_BYTE, ring);
    MPI_Neighbor_allgather(pinned, 65, MPI_BYTE, pinned + 1024, 65, MPI_BYTE, ring);
    MPI_Comm_free(&ring);
}

static void windows(void)
{
    static char exposed[4096];
    MPI_Win window;
    MPI_Request request;
    MPI_Win_create(exposed, sizeof exposed, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(0, window);
    MPI_Put(device, 72, MPI_BYTE, other, 0, 72, MPI_BYTE, window);
    MPI_Get(managed, 73, MPI_BYTE, rank, 1024, 73, MPI_BYTE, window);
    MPI_Accumulate(pinned, 74, MPI_BYTE, other, 2048, 74, MPI_BYTE, MPI_BOR, window);
    MPI_Get_accumulate(device, 75, MPI_BYTE, host, 75, MPI_BYTE, other, 2048, 75, MPI_BYTE, MPI_BOR,
                       window);
    MPI_Get_accumulate(NULL, 0, MPI_BYTE, device, 76, MPI_BYTE, other, 2048, 76, MPI_BYTE,
                       MPI_NO_OP, window);
    MPI_Fetch_and_op(device, host, MPI_LONG, other, 3072, MPI_SUM, window); /* 8 */
    MPI_Rput(managed, 77, MPI_BYTE, other, 0, 77, MPI_BYTE, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

static void files(void)
{
    MPI_File file;
    MPI_Request request;
    MPI_File_open(MPI_COMM_WORLD, "buffers.data",
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, rank * 1024, device, 80, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, rank * 1024, managed, 80, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at(file, rank * 1024, pinned, 81, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Memory that is freed comes again as memory of another kind; nobody tells. */
static void recycled(void)
{
    char *memory = aligned_alloc(4096, 65536);
    for (int i = 0; i < 65; i++)
        MPI_Allreduce(MPI_IN_PLACE, memory, 90, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    check(cuMemHostRegister_v2(memory, 65536, 0));
    for (int i = 0; i < 65; i++)
        MPI_Allreduce(MPI_IN_PLACE, memory, 91, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, memory, 92, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    check(cuMemHostUnregister(memory));
    free(memory);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    MPI_Allreduce(MPI_IN_PLACE, host, 9, MPI_BYTE, MPI_BOR,
                  MPI_COMM_WORLD); /* before there is a GPU */
    allocate();
    int is_traced = double_await_tracing();
    if (!is_traced)
        fprintf(stderr, "buffers: nobody looks for a GPU\n");
    messages();
    absolute();
    polls();
    rooted();
    all_to_all();
    neighbors();
    windows();
    files();
    recycled();
    MPI_Finalize();
    return 0;
}
