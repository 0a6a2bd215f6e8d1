/* Prints 200 lines on each rank, some before MPI_Init and some after MPI_Finalize. Each line is
 * written by one call, because MPICH makes stdout unbuffered and lines of different ranks could
 * otherwise mix. */
#include <mpi.h>

#include "check.h"

static void say(int rank, int from, int to)
{
    for (int line = from; line < to; line++)
        printf("rank %d says line %d\n", rank, line);
}

int main(int argc, char **argv)
{
    int rank;
    fputs("before\n", stdout);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    say(rank, 0, 100);
    MPI_Barrier(MPI_COMM_WORLD);
    say(rank, 100, 200);
    MPI_Finalize();
    fputs("after\n", stdout);
    return 0;
}
