/* An error under MPI's default error handler, which ends the job. */
#include <mpi.h>

#include "check.h"

int main(int argc, char **argv)
{
    int number = 1;
    MPI_Init(&argc, &argv);
    MPI_Send(&number, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
