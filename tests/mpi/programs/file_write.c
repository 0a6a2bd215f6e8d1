/* file_write PATH: a collective write. The MPI library communicates inside it, which must not be
 * counted. */
#include <mpi.h>

#include "check.h"

int main(int argc, char **argv)
{
    int rank, numbers[256] = {0};
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                        &file) == MPI_SUCCESS);
    for (int i = 0; i < 3; i++)
        MPI_File_write_at_all(file, 1024 * (2 * i + rank), numbers, 256, MPI_INT,
                              MPI_STATUS_IGNORE);
    MPI_File_read_at_all(file, 0, numbers, 256, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
