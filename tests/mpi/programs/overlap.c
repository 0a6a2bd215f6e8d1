/* Computes between the start of a reduction and its completion; then computes as long again while
 * nothing is in flight. Each rank prints how long it computed in between, in nanoseconds: "computed
 * RANK NS". */
#include <mpi.h>
#include <stdio.h>

#include "own_clock.h"

enum { REDUCTIONS = 20, NUMBERS = 10000, BUSY_NS = 500000 };

static double numbers[NUMBERS], sums[NUMBERS];

int main(int argc, char **argv)
{
    int rank;
    int64_t computed_ns = 0;
    MPI_Request request, bcast;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < REDUCTIONS; i++) {
        MPI_Iallreduce(numbers, sums, NUMBERS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        int64_t begin_ns = now_ns();
        compute(BUSY_NS);
        computed_ns += now_ns() - begin_ns;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        compute(BUSY_NS);
    }
    printf("computed %d %lld\n", rank, (long long)computed_ns);
    /* two in flight, completed in reverse order */
    MPI_Iallreduce(numbers, sums, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Ibcast(numbers, 50, MPI_DOUBLE, 0, MPI_COMM_WORLD, &bcast);
    MPI_Wait(&bcast, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
