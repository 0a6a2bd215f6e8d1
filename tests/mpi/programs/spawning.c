/* Spawns two processes of itself, twice, and exchanges messages with them: spawned processes have
 * their own MPI_COMM_WORLD. */
#include <string.h>

#include <mpi.h>

#include "check.h"

enum { CHILDREN = 2, MESSAGES = 3 };

static int size_of(MPI_Comm comm, int remote)
{
    int size;
    if (remote)
        MPI_Comm_remote_size(comm, &size);
    else
        MPI_Comm_size(comm, &size);
    return size;
}

static void be_a_child(MPI_Comm parent)
{
    int rank, number, sum;
    MPI_Comm all;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < MESSAGES; i++)
        MPI_Recv(&number, 1, MPI_INT, 0, 7, parent, MPI_STATUS_IGNORE);
    CHECK(number == 10 + rank);
    MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == 21);
    MPI_Intercomm_merge(parent, 1, &all);
    MPI_Barrier(all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&parent);
}

static void be_a_parent(const char *program)
{
    int rank, errors[CHILDREN];
    MPI_Comm children, all;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_spawn(program, MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                   errors);
    CHECK(size_of(children, 1) == CHILDREN);
    for (int child = 0; rank == 0 && child < CHILDREN; child++)
        for (int i = 0; i < MESSAGES; i++) {
            int number = 10 + child;
            MPI_Send(&number, 1, MPI_INT, child, 7, children);
        }
    MPI_Intercomm_merge(children, 0, &all);
    CHECK(size_of(all, 0) == CHILDREN + size_of(MPI_COMM_WORLD, 0));
    MPI_Barrier(all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&children);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        be_a_child(parent);
    } else {
        be_a_parent(argv[0]);
        be_a_parent(argv[0]);
    }
    MPI_Finalize();
    return 0;
}
