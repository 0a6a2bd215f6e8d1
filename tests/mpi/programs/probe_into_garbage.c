/* Passes statuses whose bits are all 1 to probes: some libraries leave some of the bits
 * unchanged. */
#include <mpi.h>
#include <string.h>

#include "check.h"

static int probed(int tag)
{
    MPI_Status status;
    int found = 0, count;
    memset(&status, 0xff, sizeof status);
    MPI_Probe(0, tag, MPI_COMM_WORLD, &status);
    memset(&status, 0xff, sizeof status);
    MPI_Iprobe(0, tag, MPI_COMM_WORLD, &found, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    return found ? count : -1;
}

int main(int argc, char **argv)
{
    int rank, data[50] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int tag = 0; tag < 10; tag++) {
        if (rank == 0)
            MPI_Send(data, 50, MPI_INT, 1, tag, MPI_COMM_WORLD);
        if (rank == 1) {
            CHECK(probed(tag) == 50);
            MPI_Recv(data, 50, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Finalize();
    return 0;
}
