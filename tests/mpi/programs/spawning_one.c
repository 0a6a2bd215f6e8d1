/* Spawns one process of itself: a world of one rank that has a parent. */
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Comm parent, children;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children,
                       MPI_ERRCODES_IGNORE);
    MPI_Barrier(parent == MPI_COMM_NULL ? children : parent);
    MPI_Comm_disconnect(parent == MPI_COMM_NULL ? &children : &parent);
    MPI_Finalize();
    return 0;
}
