/* Steps of computing and four collectives, whose sizes follow: Allreduce, Bcast, Allgather and
 * Alltoall, in bytes that a rank gives (0: none). Rank 0 prints how long the steps took.
 *
 *     collectives STEPS ALLREDUCE BCAST ALLGATHER ALLTOALL */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORK = 200000, FIRST = 10 }; /* additions of a step; steps that are not timed */

static void compute(void)
{
    static volatile double sum;
    for (int i = 0; i < WORK; i++)
        sum += i;
}

static void communicate(const int *bytes, float *from, float *to, int ranks)
{
    if (bytes[0])
        MPI_Allreduce(from, to, bytes[0] / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (bytes[1])
        MPI_Bcast(to, bytes[1] / 4, MPI_FLOAT, 0, MPI_COMM_WORLD);
    if (bytes[2])
        MPI_Allgather(from, bytes[2] / 4, MPI_FLOAT, to, bytes[2] / 4, MPI_FLOAT, MPI_COMM_WORLD);
    if (bytes[3])
        MPI_Alltoall(from, bytes[3] / 4 / ranks, MPI_FLOAT, to, bytes[3] / 4 / ranks, MPI_FLOAT,
                     MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    enum { CALLS = 4, MOST = 1 << 24 };
    int bytes[CALLS], rank, ranks, steps = argc == CALLS + 2 ? atoi(argv[1]) : 0;
    if (!steps)
        return fprintf(stderr, "collectives STEPS ALLREDUCE BCAST ALLGATHER ALLTOALL\n"), 2;
    for (int i = 0; i < CALLS; i++)
        bytes[i] = atoi(argv[i + 2]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    float *from = calloc(MOST, 1), *to = calloc(MOST, 1);
    if (!from || !to)
        return 1;
    double begin = 0;
    for (int step = 0; step < FIRST + steps; step++) {
        if (step == FIRST)
            begin = MPI_Wtime();
        compute();
        communicate(bytes, from, to, ranks);
    }
    if (rank == 0)
        printf("steps took %.6f s\n", MPI_Wtime() - begin);
    MPI_Finalize();
    return 0;
}
