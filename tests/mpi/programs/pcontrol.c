/* Three Allreduces recorded, four not, five recorded. */
#include <mpi.h>

#include "check.h"

static void allreduce(int times)
{
    int one = 1, sum;
    for (int i = 0; i < times; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    allreduce(3);
    MPI_Pcontrol(0);
    allreduce(4);
    MPI_Pcontrol(1);
    allreduce(5);
    MPI_Finalize();
    return 0;
}
