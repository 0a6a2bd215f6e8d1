/* Makes SIZES broadcasts of different sizes, so that its ledger grows:
 *
 *     overlapping SIZES [READY GO]
 *
 * With READY and GO it stops half-way: rank 0 creates the file READY, and all continue once GO
 * exists. */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <mpi.h>

#include "check.h"

static char data[1 << 20];

static void broadcast(int from, int to)
{
    for (int bytes = from; bytes < to; bytes++)
        MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void wait_for(const char *go, const char *ready)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        CHECK(close(open(ready, O_WRONLY | O_CREAT, 0600)) == 0);
    while (access(go, F_OK) != 0)
        sched_yield();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int sizes = atoi(argv[1]);
    broadcast(0, sizes / 2);
    if (argc > 3)
        wait_for(argv[3], argv[2]);
    broadcast(sizes / 2, sizes);
    MPI_Finalize();
    return 0;
}
