/* An error handler that leaves the failed call by longjmp, as C++ bindings do by an exception. */
#include <setjmp.h>

#include <mpi.h>

#include "check.h"

static jmp_buf recovery;

static void jump(MPI_Comm *comm, int *error, ...)
{
    (void)comm, (void)error;
    longjmp(recovery, 1);
}

int main(int argc, char **argv)
{
    static volatile int failures;
    int one = 1, sum;
    MPI_Errhandler jumping;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_errhandler(jump, &jumping);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, jumping);
    if (setjmp(recovery) == 0)
        MPI_Send(&one, 1, MPI_INT, 99, 0, MPI_COMM_SELF);
    else
        failures++;
    for (int i = 0; i < 3; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(failures == 1);
    MPI_Finalize();
    return 0;
}
