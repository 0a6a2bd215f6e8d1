/* Data- and pipeline-parallel training: `pipelines STAGES REPLICAS SLOW HOW`. Rank = replica x
 * STAGES + stage. Each step passes some micro-batches forward and their gradients back, then sums
 * the gradients of a stage over the replicas. The slow stage computes far longer than the others.
 * HOW: blocking, or nonblocking (Irecv and Wait). */
#include <mpi.h>
#include <string.h>
#include <time.h>

#include "check.h"

enum { STEPS = 8, MICRO_BATCHES = 3, ACTIVATIONS = 4096, GRADIENTS = 50000 };

static int stages, stage, before, after, is_slow, is_nonblocking;
static float activations[ACTIVATIONS], gradients[GRADIENTS], sum[GRADIENTS];
static MPI_Comm line, alike;

static void compute(void)
{
    nanosleep(&(struct timespec){.tv_nsec = is_slow ? 40000000 : 1000000}, NULL);
}

static void receive(int source, int tag)
{
    if (is_nonblocking) {
        MPI_Request request;
        MPI_Irecv(activations, ACTIVATIONS, MPI_FLOAT, source, tag, line, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(activations, ACTIVATIONS, MPI_FLOAT, source, tag, line, MPI_STATUS_IGNORE);
    }
}

static void pass(int from, int to, int tag)
{
    receive(from, tag);
    compute();
    MPI_Send(activations, ACTIVATIONS, MPI_FLOAT, to, tag, line);
}

static void step(int first, int last)
{
    for (int i = 0; i < MICRO_BATCHES; i++)
        pass(first, last, 1);
    for (int i = 0; i < MICRO_BATCHES; i++)
        pass(last, first, 2);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(argc == 5);
    int replicas = atoi(argv[2]), rank, size;
    stages = atoi(argv[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size == stages * replicas);

    stage = rank % stages;
    is_slow = stage == atoi(argv[3]);
    is_nonblocking = strcmp(argv[4], "nonblocking") == 0;
    before = stage > 0 ? stage - 1 : MPI_PROC_NULL;
    after = stage < stages - 1 ? stage + 1 : MPI_PROC_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank / stages, rank, &line);
    MPI_Comm_split(MPI_COMM_WORLD, stage, rank, &alike);
    for (int i = 0; i < STEPS; i++) {
        step(before, after);
        MPI_Allreduce(gradients, sum, GRADIENTS, MPI_FLOAT, MPI_SUM, alike);
    }
    MPI_Finalize();
    return 0;
}
