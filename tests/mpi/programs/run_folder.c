/* run_folder COMMAND USER ROOT END: what may happen to the run folder, and to a process, between
 * MPI_Init and the end. Rank 0 runs the shell's COMMAND. Then all ranks become USER (0: they stay),
 * get the folder ROOT as their root, and END: finalize or exit. */
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "check.h"

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 5; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    CHECK(argc == 5);
    if (rank == 0)
        CHECK(system(argv[1]) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(chdir("/") == 0);
    if (strcmp(argv[3], "/") != 0)
        CHECK(chroot(argv[3]) == 0);
    if (atoi(argv[2]))
        CHECK(setgid((gid_t)atoi(argv[2])) == 0 && setuid((uid_t)atoi(argv[2])) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(argv[4], "exit") == 0)
        exit(0);
    MPI_Finalize();
    return 0;
}
