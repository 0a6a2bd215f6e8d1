/* Six thousand communicators, one after the other, with one barrier on each; and a barrier on one
 * that was created before them. */
#include <mpi.h>

#include "check.h"

enum { COMMUNICATORS = 6000 };

int main(int argc, char **argv)
{
    MPI_Comm first, passing;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_set_name(first, "first");
    MPI_Barrier(first);
    for (int i = 0; i < COMMUNICATORS; i++) {
        MPI_Comm_dup(MPI_COMM_SELF, &passing);
        MPI_Barrier(passing);
        MPI_Comm_free(&passing);
    }
    MPI_Barrier(first);
    MPI_Finalize();
    return 0;
}
