/* NCCL without PyTorch: a rank of RANK, WORLD_SIZE runs operations one at a time, each between two
 * events of CUDA's, on streams that it destroys before the communicator, as NVIDIA's own example
 * does. It is compiled against libnccl.so.2 and no header.
 *
 * The profile begins with the communicator, as in every job without MPI.
 *
 *     nccl_times STORE */
#include "device.h"

typedef void *comm_t;
struct unique_id {
    char bytes[128];
};
int ncclGetUniqueId(struct unique_id *id);
int ncclCommInitRank(comm_t *comm, int ranks, struct unique_id id, int rank);
int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, comm_t comm,
                  void *stream);
int ncclAllGather(const void *from, void *to, size_t count, int type, comm_t comm, void *stream);
int ncclCommDestroy(comm_t comm);

enum { FLOAT = 7, SUM = 0, TIMES = 20, STREAMS = 4, ELEMENTS = 1 << 16, IDLE_NS = 2000000 };

static int rank, ranks;
static comm_t comm;
static void *gate, *from, *to;

/* Rank 0's, over a file. */
static struct unique_id shared_id(const char *path)
{
    struct unique_id id = {{0}};
    char aside[4096];
    snprintf(aside, sizeof aside, "%s.new", path);
    if (rank == 0) {
        FILE *file = fopen(aside, "w");
        if (ncclGetUniqueId(&id) || !file || fwrite(&id, sizeof id, 1, file) != 1 || fclose(file) ||
            rename(aside, path))
            give_up("the communicator's identity cannot be shared");
    }
    while (access(path, R_OK))
        sleep_ns(10000000);
    FILE *file = fopen(path, "r");
    if (!file || fread(&id, sizeof id, 1, file) != 1)
        give_up("the communicator's identity cannot be read");
    fclose(file);
    return id;
}

static int all_reduce(void *stream)
{
    return ncclAllReduce(from, to, ELEMENTS, FLOAT, SUM, comm, stream);
}

static int all_gather(void *stream)
{
    return ncclAllGather(from, to, ELEMENTS / (size_t)ranks, FLOAT, comm, stream);
}

static int no_operation(void *stream)
{
    return (void)stream, 0;
}

/* ns on the device from event to event. The gate runs until all is launched; afterwards the GPU is
 * idle for a while. */
static double timed_ns(int (*operation)(void *stream), void *stream)
{
    DRIVER(cuLaunchKernel, LAUNCH_PARAMETERS);
    DRIVER(cuEventCreate, void **, unsigned);
    DRIVER(cuEventRecord, void *, void *);
    DRIVER(cuEventElapsedTime, float *, void *, void *);
    DRIVER(cuStreamSynchronize, void *);
    uint64_t gate_ns = 20000000;
    void *first, *last, *parameters[] = {&gate_ns};
    float ms;
    if (cuEventCreate(&first, 0) || cuEventCreate(&last, 0) ||
        cuLaunchKernel(gate, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL) ||
        cuEventRecord(first, stream) || operation(stream) || cuEventRecord(last, stream) ||
        cuStreamSynchronize(stream) || cuEventElapsedTime(&ms, first, last))
        give_up("an operation cannot be timed");
    sleep_ns(IDLE_NS);
    return ms * 1e6;
}

static void run(const char *call, int (*operation)(void *stream), size_t bytes)
{
    DRIVER(cuStreamDestroy_v2, void *);
    double all_ns = 0;
    for (int i = 0; i < STREAMS; i++) {
        void *stream = device_stream();
        for (int j = 0; j < TIMES / STREAMS; j++)
            all_ns += timed_ns(operation, stream);
        cuStreamDestroy_v2(stream);
    }
    printf("truth {\"rank\": %d, \"%s\": [%d, %zu, %.0f]}\n", rank, call, TIMES, bytes, all_ns);
    fflush(stdout);
}

/* A window begins with the first activity in it, and operations have times between moments at which
 * the GPU was idle: the first of these. */
static void begin_idle(void)
{
    void *stream = device_stream();
    timed_ns(no_operation, stream);
}

int main(int argc, char **argv)
{
    char host[32];
    rank = getenv("RANK") ? atoi(getenv("RANK")) : 0;
    ranks = getenv("WORLD_SIZE") ? atoi(getenv("WORLD_SIZE")) : 1;
    snprintf(host, sizeof host, "rank-%d", rank);
    setenv("NCCL_HOSTID", host, 1);
    device_begin();
    gate = device_kernel(SPIN_KERNEL, "planted_gate");
    from = device_memory(4 * ELEMENTS);
    to = device_memory(4 * ELEMENTS);
    if (ncclCommInitRank(&comm, ranks, shared_id(argc > 1 ? argv[1] : "nccl-id"), rank))
        give_up("ncclCommInitRank fails");
    wait_for_state(STATE_TRACING);
    begin_idle();
    run("ncclAllReduce", all_reduce, 4 * ELEMENTS);
    run("ncclAllGather", all_gather, 4 * ELEMENTS / (size_t)ranks);
    ncclCommDestroy(comm);
    return 0;
}
