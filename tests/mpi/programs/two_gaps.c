/* Steps in which all ranks compute before an Allreduce, and sleep before a Bcast, equally long: for
 * so many ms. Arguments: steps, ms. */
#include "check.h"
#include "own_clock.h"

#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    int steps = atoi(argv[1]), ms = atoi(argv[2]), own = 1, sum;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < steps; i++) {
        compute(ms * 1000000LL);
        MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        usleep((useconds_t)ms * 1000);
        MPI_Bcast(&own, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
