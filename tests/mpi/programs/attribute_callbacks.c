/* Libraries clean up in the delete callback of an attribute of MPI_COMM_SELF, which MPI_Finalize
 * calls. This one frees a communicator, sends to itself and prints that it has done so. */
#include <mpi.h>

#include "check.h"

static int clean_up(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    int number = 1, arrived = 0;
    MPI_Request request;
    MPI_Irecv(&arrived, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    MPI_Send(&number, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free((MPI_Comm *)value);
    CHECK(arrived == 1);
    fputs("cleaned up\n", stdout);
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    static MPI_Comm library;
    int key, sum, one = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &library);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, clean_up, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &library);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, library);
    MPI_Finalize();
    return 0;
}
