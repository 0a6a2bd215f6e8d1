/* training_loop WAY STEPS: communicates as training jobs do. The highest rank computes longer than
 * the others, and every 20 steps there is a checkpoint.
 *
 * buckets three Allreduces a step, with other sizes in the first step; occasionally a metric
 * layers ten equal Allreduces a step nonblocking Iallreduces and a Waitall background buckets, on a
 * thread other than the main thread marked buckets; each step is marked solver messages to the
 * neighbors and one Allreduce of 8 bytes a step; every 10 steps one of 24 bytes. No checkpoints
 * talk messages, and any number of Allreduces of 8 bytes a step, shortly after each other. No
 * checkpoints */
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "check.h"

enum { MOST = 1 << 20, LAYERS = 10, CHECKPOINT_EVERY = 20, BUCKETS = 3 };

static char gradients[MOST], averages[MOST], gathered[1 << 16];
static const char *way;
static int steps, rank, size;

static void compute(double ms)
{
    struct timespec rest = {.tv_nsec = (long)(ms * 1e6)};
    nanosleep(&rest, NULL);
}

static void reduce(int bytes)
{
    MPI_Allreduce(gradients, averages, bytes, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
}

static void buckets(int step)
{
    static const int usual[BUCKETS] = {400000, 400000, 90000},
                     first[BUCKETS] = {90000, 500000, 300000};
    for (int i = 0; i < BUCKETS; i++) {
        compute(0.3);
        reduce(step ? usual[i] : first[i]);
    }
    if (step % 10 == 9)
        reduce(8);
}

static void layers(void)
{
    for (int i = 0; i < LAYERS; i++) {
        compute(0.2);
        reduce(100000);
    }
}

static void nonblocking(void)
{
    MPI_Request requests[BUCKETS];
    for (int i = 0; i < BUCKETS; i++)
        MPI_Iallreduce(gradients + i * 200000, averages + i * 200000, 100000 << (i == 0), MPI_BYTE,
                       MPI_BOR, MPI_COMM_WORLD, &requests[i]);
    compute(1);
    MPI_Waitall(BUCKETS, requests, MPI_STATUSES_IGNORE);
}

static void halo(void)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Sendrecv(gradients, 40000, MPI_BYTE, right, 1, averages, 40000, MPI_BYTE, left, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void solver(int step)
{
    halo();
    compute(20);
    reduce(8);
    if (step % 10 == 9)
        reduce(24);
}

static void talk(void)
{
    static unsigned state = 1;
    state = state * 1103515245u + 12345u;
    halo();
    compute(100);
    for (int i = 5 + (int)(state >> 16) % 10; i > 0; i--) {
        compute(1);
        reduce(8);
    }
}

static void checkpoint(void)
{
    MPI_Gather(gradients, 2000, MPI_BYTE, gathered, 2000, MPI_BYTE, 0, MPI_COMM_WORLD);
    compute(60);
    MPI_Bcast(gradients, 2000, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void *train(void *unused)
{
    for (int step = 0; step < steps; step++) {
        if (!strcmp(way, "marked"))
            MPI_Pcontrol(4);
        compute(5 + (rank == size - 1 ? 4 : 0));
        if (!strcmp(way, "solver"))
            solver(step);
        else if (!strcmp(way, "talk"))
            talk();
        else if (!strcmp(way, "layers"))
            layers();
        else if (!strcmp(way, "nonblocking"))
            nonblocking();
        else
            buckets(step);
        if (step % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1 && strcmp(way, "solver") &&
            strcmp(way, "talk"))
            checkpoint();
    }
    return unused;
}

/* as many bytes as are reduced in a step */
static void broadcast_parameters(void)
{
    bool is_nonblocking = !strcmp(way, "nonblocking"), is_layers = !strcmp(way, "layers");
    MPI_Bcast(gradients, 400000, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (!is_nonblocking)
        MPI_Bcast(gradients, is_layers ? 600000 : 490000, MPI_BYTE, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int level;
    pthread_t thread;
    CHECK(argc == 3);
    way = argv[1];
    steps = atoi(argv[2]);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    broadcast_parameters();
    if (strcmp(way, "background"))
        train(NULL);
    else if (pthread_create(&thread, NULL, train, NULL) == 0)
        pthread_join(thread, NULL);
    MPI_Finalize();
    return 0;
}
