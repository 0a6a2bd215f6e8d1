/* loops KIND COUNT: a program whose time steps are COUNT, as its author counts them. KIND:
 * solver: halos, then three reductions of 8 B in each iteration
 * dynamics: halos; every tenth step output, every twentieth other messages of other sizes
 * experts: two Alltoallv in a step, then gradients
 * checkpoints: gradients; a Gather and a Barrier every 25 steps
 * evaluation: gradients; 30 small reductions every 20 steps
 * gpipe, 1f1b: a pipeline of all ranks, without any collective
 * stencil: halos of three fields, then the smallest time step
 * exchange: halos, without any collective
 * multigrid: halos on three levels, with a reduction of the residual
 * vcycles: halos on six levels, down and up; nothing is reduced
 * spins: particles move on in turns, each with its Waits, as often as a step needs
 * neighbours: halos; lists of neighbours are rebuilt now and then, thermodynamics every 50 steps
 * nested: an inner solver of changing length in each outer iteration
 * blocks: gradients of six equal blocks
 * layers: as FSDP, gathers forward, gathers and scatters backward
 * accumulation: a metric of 1 to 4 micro-batches in turns, then gradients
 * subcycles: 2 to 6 halos in turns, then the smallest time step
 * spectral: halos, then two transforms and the energy
 * files: a stencil that writes a file every 20 steps
 * workers: rank 0 hands out tasks of changing length, 4 a rank
 * adi: sweeps in three directions, each with halos and a reduction alike
 * rungekutta: four equal stages
 * ensembles: two halves that never talk to each other; the second has a quarter of the steps
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"

enum { HALO = 512, ACTIVATIONS = 128, GRADIENTS = 20000, MICRO_BATCHES = 4 };

static int rank, size;
static double sent[GRADIENTS], received[2][GRADIENTS], result[GRADIENTS];
static double everything[8 * GRADIENTS];

static void work(int us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000L}, NULL);
}

static void reduce(int count)
{
    MPI_Allreduce(sent, result, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Rows of a grid that is not periodic: the ranks at both ends have one neighbour. */
static void halo(int count)
{
    int before = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int after = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Request requests[2];
    MPI_Irecv(received[0], count, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(received[1], count, MPI_DOUBLE, after, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Send(sent, count, MPI_DOUBLE, before, 1, MPI_COMM_WORLD);
    MPI_Send(sent, count, MPI_DOUBLE, after, 1, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void solver(int step)
{
    (void)step;
    halo(HALO);
    for (int i = 0; i < 3; i++) {
        work(300);
        reduce(1);
    }
}

static void dynamics(int step)
{
    if (step % 20 == 0) {
        for (int i = 0; i < 3; i++)
            MPI_Sendrecv(sent, 1, MPI_INT, (rank + 1) % size, 2, received[0], 1, MPI_INT,
                         (rank + size - 1) % size, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        halo(100 + step);
    } else {
        halo(HALO + step / 20);
    }
    work(1000);
    halo(HALO);
    if (step % 10 == 9) {
        reduce(6);
        MPI_Gather(sent, 10, MPI_DOUBLE, everything, 10, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
}

static void experts(int step)
{
    int counts[64], places[64];
    for (int i = 0; i < size; i++) {
        counts[i] = 100 + (step * 7 + i + rank) % 50;
        places[i] = i * 200;
    }
    for (int i = 0; i < 2; i++) {
        work(500);
        MPI_Alltoallv(sent, counts, places, MPI_BYTE, result, counts, places, MPI_BYTE,
                      MPI_COMM_WORLD);
    }
    work(500);
    reduce(GRADIENTS);
}

static void checkpoints(int step)
{
    work(1000);
    reduce(GRADIENTS);
    if (step % 25 == 24) {
        MPI_Gather(sent, GRADIENTS, MPI_DOUBLE, everything, GRADIENTS, MPI_DOUBLE, 0,
                   MPI_COMM_WORLD);
        work(20000);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void evaluation(int step)
{
    work(1000);
    reduce(GRADIENTS);
    for (int i = 0; step % 20 == 19 && i < 30; i++) {
        work(500);
        reduce(2);
    }
}

static void receive_from(int peer)
{
    if (peer >= 0 && peer < size) {
        MPI_Recv(received[0], ACTIVATIONS, MPI_DOUBLE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        work(200);
    } else {
        work(200);
    }
}

static void send_to(int peer)
{
    if (peer >= 0 && peer < size)
        MPI_Send(sent, ACTIVATIONS, MPI_DOUBLE, peer, 3, MPI_COMM_WORLD);
}

static void forward(void)
{
    receive_from(rank - 1);
    send_to(rank + 1);
}

static void backward(void)
{
    receive_from(rank + 1);
    send_to(rank - 1);
}

static void gpipe(int step)
{
    (void)step;
    for (int i = 0; i < MICRO_BATCHES; i++)
        forward();
    for (int i = 0; i < MICRO_BATCHES; i++)
        backward();
    work(1000);
}

static void one_forward_one_backward(int step)
{
    (void)step;
    int ahead = size - 1 - rank < MICRO_BATCHES ? size - 1 - rank : MICRO_BATCHES;
    for (int i = 0; i < ahead; i++)
        forward();
    for (int i = 0; i < MICRO_BATCHES - ahead; i++) {
        forward();
        backward();
    }
    for (int i = 0; i < ahead; i++)
        backward();
    work(1000);
}

static void stencil(int step)
{
    (void)step;
    for (int field = 0; field < 3; field++) {
        work(300);
        halo(HALO + field);
    }
    MPI_Allreduce(sent, result, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
}

static void exchange(int step)
{
    (void)step;
    work(500);
    halo(HALO);
}

static void multigrid(int step)
{
    (void)step;
    for (int level = 0; level < 3; level++) {
        halo(HALO >> level);
        work(100);
        halo(HALO >> level);
    }
    for (int level = 2; level >= 0; level--) {
        halo(HALO >> level);
        work(100);
    }
    reduce(1);
    halo(HALO);
    work(200);
    reduce(1);
    reduce(1);
}

static void vcycles(int step)
{
    (void)step;
    for (int level = 0; level < 6; level++) {
        for (int i = 0; i < 2; i++)
            halo(HALO >> level);
        work(100);
    }
    for (int level = 5; level >= 0; level--) {
        halo(HALO >> level);
        work(100);
    }
}

static void spins(int step)
{
    int turns = 20 + step * 37 % 200;
    for (int i = 0; i < turns; i++) {
        MPI_Request requests[2];
        MPI_Irecv(received[0], 1, MPI_INT, (rank + size - 1) % size, 4, MPI_COMM_WORLD,
                  &requests[0]);
        MPI_Isend(sent, 1, MPI_INT, (rank + 1) % size, 4, MPI_COMM_WORLD, &requests[1]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    work(2000);
    reduce(1);
}

static void neighbours(int step)
{
    halo(HALO);
    work(500);
    if (step % 9 == 0 || step % 23 == 7) {
        for (int i = 0; i < 6; i++)
            halo(100 + 10 * (step % 7) + i);
        reduce(1);
    }
    halo(HALO);
    for (int i = 0; step % 50 == 0 && i < 6; i++)
        reduce(1);
}

static void nested(int step)
{
    for (int i = 0; i < 5 + step % 7; i++) {
        halo(HALO);
        work(200);
        reduce(1);
    }
    reduce(2);
}

static void blocks(int step)
{
    (void)step;
    for (int i = 0; i < 6; i++) {
        work(300);
        reduce(GRADIENTS);
    }
}

static void gather_layer(void)
{
    work(100);
    MPI_Allgather(sent, HALO, MPI_DOUBLE, everything, HALO, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void layers(int step)
{
    (void)step;
    for (int i = 0; i < 6; i++)
        gather_layer();
    for (int i = 0; i < 6; i++) {
        gather_layer();
        MPI_Reduce_scatter_block(everything, result, HALO, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void accumulation(int step)
{
    for (int i = 0; i < 1 + step * 7 % 4; i++) {
        work(300);
        reduce(1);
    }
    reduce(GRADIENTS);
}

static void subcycles(int step)
{
    for (int i = 0; i < 2 + step * 13 % 5; i++) {
        halo(HALO);
        work(200);
    }
    MPI_Allreduce(sent, result, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
}

static void spectral(int step)
{
    (void)step;
    halo(HALO);
    for (int i = 0; i < 2; i++) {
        work(300);
        MPI_Alltoall(sent, HALO, MPI_DOUBLE, everything, HALO, MPI_DOUBLE, MPI_COMM_WORLD);
    }
    reduce(1);
}

static void files(int step)
{
    halo(HALO);
    work(500);
    reduce(1);
    if (step % 20 == 19) {
        MPI_File file;
        MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
        MPI_File_write_at(file, 0, sent, HALO, MPI_DOUBLE, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
    }
}

static void workers(int step)
{
    for (int i = 0; rank == 0 && i < 4 * (size - 1); i++) {
        MPI_Status status;
        MPI_Recv(received[0], 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &status);
        MPI_Send(sent, 10, MPI_DOUBLE, status.MPI_SOURCE, 7, MPI_COMM_WORLD);
    }
    for (int i = 0; rank > 0 && i < 4; i++) {
        MPI_Send(sent, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
        MPI_Recv(received[0], 10, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        work(200 + (step * 31 + rank * 17 + i) % 11 * 50);
    }
}

static void adi(int step)
{
    (void)step;
    for (int i = 0; i < 3; i++) {
        work(300);
        halo(HALO);
        reduce(2);
    }
}

static void rungekutta(int step)
{
    (void)step;
    for (int i = 0; i < 4; i++) {
        halo(HALO);
        work(150);
        reduce(1);
    }
}

static void ensembles(int steps)
{
    int half = rank < size / 2 ? 0 : 1;
    MPI_Comm own;
    MPI_Comm_split(MPI_COMM_WORLD, half, rank, &own);
    for (int step = 0; step < (half ? steps / 4 : steps); step++) {
        work(half ? 40000 : 10000); /* long beside what a busy machine adds */
        MPI_Allreduce(sent, result, GRADIENTS, MPI_DOUBLE, MPI_SUM, own);
    }
    MPI_Comm_free(&own);
}

static const struct {
    const char *name;
    void (*step)(int);
} kinds[] = {
    {"solver", solver},
    {"dynamics", dynamics},
    {"experts", experts},
    {"checkpoints", checkpoints},
    {"evaluation", evaluation},
    {"gpipe", gpipe},
    {"1f1b", one_forward_one_backward},
    {"stencil", stencil},
    {"exchange", exchange},
    {"multigrid", multigrid},
    {"vcycles", vcycles},
    {"spins", spins},
    {"neighbours", neighbours},
    {"nested", nested},
    {"blocks", blocks},
    {"layers", layers},
    {"accumulation", accumulation},
    {"subcycles", subcycles},
    {"spectral", spectral},
    {"files", files},
    {"workers", workers},
    {"adi", adi},
    {"rungekutta", rungekutta},
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(argc == 3);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size <= 8);
    int steps = atoi(argv[2]), found = strcmp(argv[1], "ensembles") == 0;
    MPI_Bcast(sent, 100, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (found)
        ensembles(steps);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, argv[1]) != 0)
            continue;
        found = 1;
        for (int step = 0; step < steps; step++)
            kinds[i].step(step);
    }
    CHECK(found);
    MPI_Finalize();
    return 0;
}
