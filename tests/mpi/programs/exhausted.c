/* Opens as many file descriptors as the process may have, then broadcasts messages of 2,000
 * sizes. */
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

enum { SIZES = 2000, DESCRIPTORS = 256 };

static char buffer[SIZES];

int main(int argc, char **argv)
{
    struct rlimit few = {DESCRIPTORS, DESCRIPTORS};
    MPI_Init(&argc, &argv);
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    while (dup(STDERR_FILENO) >= 0)
        ;
    for (int bytes = 0; bytes < SIZES; bytes++)
        MPI_Bcast(buffer, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
