/* Computes between the start of a reduction and its completion; then computes as long again while nothing is in flight. */
#include <mpi.h>

#include "check.h"

enum { REDUCTIONS = 20, NUMBERS = 10000 };

static double numbers[NUMBERS], sums[NUMBERS];
static volatile double result;

static void compute(void)
{
    for (int i = 0; i < 200000; i++)
        result = result * 0.5 + i;
}

int main(int argc, char **argv)
{
    MPI_Request request, bcast;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < REDUCTIONS; i++) {
        MPI_Iallreduce(numbers, sums, NUMBERS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        compute();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        compute();
    }
    /* two in flight, completed in reverse order */
    MPI_Iallreduce(numbers, sums, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Ibcast(numbers, 50, MPI_DOUBLE, 0, MPI_COMM_WORLD, &bcast);
    MPI_Wait(&bcast, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
