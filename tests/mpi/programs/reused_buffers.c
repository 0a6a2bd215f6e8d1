/* reused_buffers STEPS: each step reduces two slices of one buffer, broadcasts another, and
 * exchanges by counts that differ from step to step. The calls' buffers are the same in each step.
 * A record that begins with the job has all steps. */
#include <mpi.h>
#include <stdlib.h>

enum { SLICE = 1024, MOST_RANKS = 16 };
static float gradients[3 * SLICE], weights[SLICE], sent[MOST_RANKS * 8], received[MOST_RANKS * 8];

int main(int argc, char **argv)
{
    int rank, ranks, counts[MOST_RANKS], own[MOST_RANKS], places[MOST_RANKS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (double until = MPI_Wtime() + 0.02; MPI_Wtime() < until;) /* a record has begun then */
        continue;
    for (int step = 0; step < atoi(argv[1]); step++) {
        for (int i = 0; i < ranks; i++) {
            counts[i] = 1 + (step + rank) % 7;
            own[i] = 1 + (step + i) % 7;
            places[i] = 8 * i;
        }
        MPI_Allreduce(MPI_IN_PLACE, gradients, SLICE, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, gradients + SLICE / 2, SLICE, MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
        MPI_Bcast(weights, SLICE, MPI_FLOAT, 0, MPI_COMM_WORLD);
        MPI_Alltoallv(sent, counts, places, MPI_FLOAT, received, own, places, MPI_FLOAT,
                      MPI_COMM_WORLD);
        MPI_Reduce_scatter(gradients, weights, own, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return argc != 2;
}
