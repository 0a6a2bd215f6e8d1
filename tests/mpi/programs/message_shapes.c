/* Efficient and inefficient patterns. `message_shapes many_small`: in each step many small Allreduces and a large one; `pairs`: Reduces
 * followed by Bcasts of the same size; `large`: only the large Allreduces. */
#include <mpi.h>
#include <string.h>

#include "check.h"

enum { STEPS = 200, SMALL = 18, MANY = 250, LARGE = 1 << 14, PAIRED = 1 << 18 };

static float mine[PAIRED], sum[PAIRED];

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(argc == 2);
    int is_many_small = strcmp(argv[1], "many_small") == 0, is_paired = strcmp(argv[1], "pairs") == 0;
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; is_many_small && i < MANY; i++)
            MPI_Allreduce(mine, sum, SMALL, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (is_paired) {
            MPI_Reduce(mine, sum, PAIRED, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
            MPI_Bcast(sum, PAIRED, MPI_FLOAT, 0, MPI_COMM_WORLD);
        } else {
            MPI_Allreduce(mine, sum, LARGE, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return 0;
}
