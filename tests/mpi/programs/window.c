/* Makes barriers for three seconds and prints how many. */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>

#include "check.h"

int main(int argc, char **argv)
{
    long made = 0;
    MPI_Init(&argc, &argv);
    for (double began = MPI_Wtime(); MPI_Wtime() < began + 3; made++) {
        MPI_Barrier(MPI_COMM_WORLD);
        sched_yield();
    }
    printf("%ld\n", made);
    MPI_Finalize();
    return 0;
}
