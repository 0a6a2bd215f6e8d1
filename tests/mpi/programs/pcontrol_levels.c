/* Three Allreduces, a reset, four counted, a snapshot, five more counted, six while counting is
 * off. Other levels have no effect. */
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
    MPI_Pcontrol(2);
    allreduce(4);
    MPI_Pcontrol(3);
    allreduce(5);
    MPI_Pcontrol(0);
    MPI_Pcontrol(7);
    MPI_Pcontrol(-1);
    allreduce(6);
    MPI_Pcontrol(1);
    MPI_Pcontrol(3);
    MPI_Finalize();
    return 0;
}
