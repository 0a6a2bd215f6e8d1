/* Closes descriptors 0 to 2 as a daemon does, and opens data files under these numbers. The files
 * must contain only what it has written. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank;
    struct stat data;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int file = 0; file < 3; file++) {
        char name[64];
        snprintf(name, sizeof name, "data-%d-%d", rank, file);
        close(file);
        if (open(name, O_RDWR | O_CREAT | O_TRUNC, 0600) != file || write(file, "data", 4) != 4)
            return 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    for (int file = 0; file < 3; file++)
        if (fstat(file, &data) != 0 || data.st_size != 4)
            return 2;
    return 0;
}
