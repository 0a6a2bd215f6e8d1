/* patterns NAME WIDTH HOW: 20 steps of one pattern of communication. WIDTH: ranks of a
 * tensor-parallel group, or parameter servers. HOW: named, or nameless communicators. */
#include <mpi.h>
#include <string.h>

#include "check.h"

enum {
    STEPS = 20,
    LAYERS = 2,
    TENSORS = 16,
    ACTIVATIONS = 16384,
    LARGEST = 1 << 18,
    REQUEST = 16,
    PASSED = 700, /* eager: neighbours may send to each other at once */
    MICRO_BATCHES = 4,
    MOST_RANKS = 64
};

static int rank, size, width;
static float values[LARGEST], others[LARGEST];
static MPI_Comm replicas, tensor;

static void compute(int units)
{
    for (int unit = 0; unit < units; unit++)
        for (int i = 0; i < LARGEST / 8; i++)
            values[i] = values[i] * 0.5f + 1;
}

static void sum(MPI_Comm comm, int count)
{
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_FLOAT, MPI_SUM, comm);
}

/* Two sums of activations a layer, forward, and backward again. */
static void layers(int passes)
{
    for (int i = 0; i < 2 * LAYERS * passes; i++) {
        compute(1);
        sum(tensor, ACTIVATIONS);
    }
}

static void gradients(void)
{
    for (int i = 0; i < TENSORS; i++)
        sum(replicas, 5000 + 700 * i);
}

static void tensors(void)
{
    layers(2);
    gradients();
}

static void overlapped(void)
{
    layers(1);
    for (int layer = 0; layer < LAYERS; layer++) {
        layers(1);
        sum(replicas, 5000 + 700 * layer);
        sum(replicas, 9000 + 700 * layer);
    }
}

static void bucket(void)
{
    layers(2);
    sum(replicas, 100000);
}

static void equal(void)
{
    layers(2);
    for (int i = 0; i < TENSORS; i++)
        sum(replicas, 20000);
}

/* Activations are gathered before a layer and scattered after it. */
static void sequence(void)
{
    for (int i = 0; i < 4 * LAYERS; i++) {
        compute(1);
        MPI_Allgather(values, ACTIVATIONS / width, MPI_FLOAT, others, ACTIVATIONS / width,
                      MPI_FLOAT, tensor);
        compute(1);
        MPI_Reduce_scatter_block(others, values, ACTIVATIONS / width, MPI_FLOAT, MPI_SUM, tensor);
    }
    gradients();
}

/* The lower half of the ranks is the first stage; messages have half of the activations. */
static void three(void)
{
    int half = size / 2, is_first = rank < half, peer = is_first ? rank + half : rank - half;
    for (int i = 0; i < MICRO_BATCHES; i++) {
        if (!is_first)
            MPI_Recv(others, ACTIVATIONS / 2, MPI_FLOAT, peer, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        layers(1);
        if (is_first)
            MPI_Send(values, ACTIVATIONS / 2, MPI_FLOAT, peer, 1, MPI_COMM_WORLD);
    }
    for (int i = 0; i < MICRO_BATCHES; i++) {
        if (is_first)
            MPI_Recv(others, ACTIVATIONS / 2, MPI_FLOAT, peer, 2, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        layers(1);
        if (!is_first)
            MPI_Send(values, ACTIVATIONS / 2, MPI_FLOAT, peer, 2, MPI_COMM_WORLD);
    }
    gradients();
}

/* Rank 0 answers each request with work, whoever asks. */
static void master(void)
{
    if (rank > 0) {
        MPI_Send(others, REQUEST, MPI_FLOAT, 0, 1, MPI_COMM_WORLD);
        MPI_Recv(values, ACTIVATIONS, MPI_FLOAT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute(2);
    }
    for (int i = 1; rank == 0 && i < size; i++) {
        MPI_Status status;
        MPI_Recv(others, REQUEST, MPI_FLOAT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
        MPI_Send(values, ACTIVATIONS, MPI_FLOAT, status.MPI_SOURCE, 2, MPI_COMM_WORLD);
    }
}

/* Workers push gradients to each server, and pull its parameters. */
static void server(void)
{
    for (int first = 0; rank < width && first < size - width; first++) {
        MPI_Recv(others, ACTIVATIONS, MPI_FLOAT, width + first, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Send(values, ACTIVATIONS, MPI_FLOAT, width + first, 2, MPI_COMM_WORLD);
    }
    for (int to = 0; rank >= width && to < width; to++) {
        compute(1);
        MPI_Send(others, ACTIVATIONS, MPI_FLOAT, to, 1, MPI_COMM_WORLD);
        MPI_Recv(values, ACTIVATIONS, MPI_FLOAT, to, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Rank 0 works like the others, and gathers what they have found. */
static void collect(void)
{
    compute(2);
    if (rank > 0)
        MPI_Send(values, ACTIVATIONS, MPI_FLOAT, 0, 1, MPI_COMM_WORLD);
    for (int source = 1; rank == 0 && source < size; source++)
        MPI_Recv(others, ACTIVATIONS, MPI_FLOAT, source, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void scatter_gather(void)
{
    static float all[LARGEST];
    MPI_Scatter(all, LARGEST / MOST_RANKS, MPI_FLOAT, others, LARGEST / MOST_RANKS, MPI_FLOAT, 0,
                MPI_COMM_WORLD);
    compute(2);
    MPI_Gather(others, LARGEST / MOST_RANKS, MPI_FLOAT, all, LARGEST / MOST_RANKS, MPI_FLOAT, 0,
               MPI_COMM_WORLD);
}

static void bcast_reduce(void)
{
    MPI_Bcast(values, 100000, MPI_FLOAT, 0, MPI_COMM_WORLD);
    compute(2);
    MPI_Reduce(values, others, 100000, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

/* Borders along one dimension. */
static void line(void)
{
    MPI_Request requests[4];
    int count = 0;
    for (int side = -1; side <= 1; side += 2) {
        int peer = rank + side;
        if (peer < 0 || peer >= size)
            continue;
        MPI_Irecv(others, ACTIVATIONS, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, &requests[count++]);
        MPI_Isend(values, ACTIVATIONS, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, &requests[count++]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    compute(1);
}

static void shifted_line(void)
{
    int before = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int after = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(values, ACTIVATIONS, MPI_FLOAT, after, 0, others, ACTIVATIONS, MPI_FLOAT, before,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(values, ACTIVATIONS, MPI_FLOAT, before, 0, others, ACTIVATIONS, MPI_FLOAT, after,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    compute(1);
}

/* Odd ranks receive first. */
static void ordered_line(void)
{
    for (int turn = 0; turn < 2; turn++)
        for (int side = -1; side <= 1; side += 2) {
            int peer = rank + side;
            if (peer < 0 || peer >= size)
                continue;
            if (turn == rank % 2)
                MPI_Send(values, ACTIVATIONS, MPI_FLOAT, peer, 0, MPI_COMM_WORLD);
            else
                MPI_Recv(others, ACTIVATIONS, MPI_FLOAT, peer, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
    compute(1);
}

static void pass(int from, int to)
{
    if (from >= 0 && from < size)
        MPI_Recv(others, PASSED, MPI_FLOAT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    compute(1);
    if (to >= 0 && to < size)
        MPI_Send(values, PASSED, MPI_FLOAT, to, 0, MPI_COMM_WORLD);
}

static void gpipe(void)
{
    for (int i = 0; i < MICRO_BATCHES; i++)
        pass(rank - 1, rank + 1);
    for (int i = 0; i < MICRO_BATCHES; i++)
        pass(rank + 1, rank - 1);
}

/* One forward, one backward (PipeDream). */
static void one_f_one_b(void)
{
    int ahead = size - 1 - rank < MICRO_BATCHES ? size - 1 - rank : MICRO_BATCHES;
    for (int i = 0; i < ahead; i++)
        pass(rank - 1, rank + 1);
    for (int i = ahead; i < MICRO_BATCHES; i++) {
        pass(rank - 1, rank + 1);
        pass(rank + 1, rank - 1);
    }
    for (int i = 0; i < ahead; i++)
        pass(rank + 1, rank - 1);
}

/* Each rank sends tokens to the experts of the others, and gets them back. */
static void experts(void)
{
    static int counts[MOST_RANKS], places[MOST_RANKS], step;
    step++;
    for (int i = 0; i < width; i++) { /* as many to a rank as from it */
        counts[i] = 500 + 37 * (step * (rank % width + i) % 20);
        places[i] = i * 2000;
    }
    for (int way = 0; way < 2 * LAYERS; way++) {
        MPI_Alltoallv(values, counts, places, MPI_FLOAT, others, counts, places, MPI_FLOAT, tensor);
        compute(1);
    }
    gradients();
}

/* Sums of a single rank move nothing. */
static void alone(void)
{
    sum(MPI_COMM_SELF, 100000);
    sum(MPI_COMM_WORLD, 10000);
    char text[41] = "";
    MPI_Bcast(text, sizeof text, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*step)(void);
} patterns[] = {
    {"tensors", tensors},
    {"overlapped", overlapped},
    {"bucket", bucket},
    {"equal", equal},
    {"sequence", sequence},
    {"three", three},
    {"master", master},
    {"server", server},
    {"collect", collect},
    {"scatter_gather", scatter_gather},
    {"bcast_reduce", bcast_reduce},
    {"line", line},
    {"shifted_line", shifted_line},
    {"ordered_line", ordered_line},
    {"gpipe", gpipe},
    {"1f1b", one_f_one_b},
    {"experts", experts},
    {"alone", alone},
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(argc == 4);
    width = atoi(argv[2]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size <= MOST_RANKS && size % width == 0);
    size_t pattern = 0;
    while (pattern < sizeof patterns / sizeof patterns[0] &&
           strcmp(patterns[pattern].name, argv[1]) != 0)
        pattern++;
    CHECK(pattern < sizeof patterns / sizeof patterns[0]);

    int stage = strcmp(argv[1], "three") == 0 ? rank / (size / 2) : 0;
    if (width > 1) {
        MPI_Comm_split(MPI_COMM_WORLD, stage * width + rank % width, rank, &replicas);
        MPI_Comm_split(MPI_COMM_WORLD, rank / width, rank, &tensor);
        if (strcmp(argv[3], "named") == 0) {
            MPI_Comm_set_name(replicas, "data parallel");
            MPI_Comm_set_name(tensor, "tensor parallel");
        }
    }
    for (int step = 0; step < STEPS; step++)
        patterns[pattern].step();
    MPI_Finalize();
    return 0;
}
