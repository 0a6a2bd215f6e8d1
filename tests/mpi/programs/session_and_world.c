/* A program of the world model whose library opened a session before MPI_Init, and closes it after
 * MPI_Finalize. */
#include <mpi.h>

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Session session;
    int one = 1, sum;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 3; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    MPI_Session_finalize(&session);
    return 0;
}
