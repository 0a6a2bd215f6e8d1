// An error handler that throws through the failed call, as C++ bindings do. Later calls must be counted, at whatever depth of the stack.
// Calls that the handler and an attribute's callback make while they run are nested in another call and must not be counted.
#include <stdexcept>

#include <mpi.h>

#include "check.h"

enum { ROUNDS = 50 };

static MPI_Comm world;

static void complain(MPI_Comm *, int *, ...)
{
    MPI_Barrier(MPI_COMM_SELF);
    throw std::runtime_error("MPI failed");
}

static void complain_quietly(MPI_Comm *, int *, ...)
{
    MPI_Barrier(MPI_COMM_SELF);
}

static int on_delete(MPI_Comm, int, void *, void *)
{
    MPI_Barrier(MPI_COMM_SELF);
    return MPI_SUCCESS;
}

static __attribute__((noinline)) void reduce_below(int bytes)
{
    volatile char unwritten[bytes];
    int one = 1, sum = 0, size = 0;
    unwritten[0] = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, world);
    MPI_Comm_size(world, &size);
    CHECK(sum == size && unwritten[0] == 1);
}

static __attribute__((noinline)) void fail_below(int bytes)
{
    volatile char unwritten[bytes];
    unwritten[0] = 1;
    MPI_Send(const_cast<char *>(&unwritten[0]), 1, MPI_CHAR, 99, 0, world);
}

static int catches(int bytes)
{
    try {
        fail_below(bytes);
    } catch (const std::runtime_error &) {
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int caught = 0, keyval;
    MPI_Errhandler throwing, quiet;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_create_errhandler(complain, &throwing);
    MPI_Comm_create_errhandler(complain_quietly, &quiet);
    MPI_Comm_set_errhandler(world, throwing);
    for (int i = 0; i < ROUNDS; i++) {
        caught += catches(16);
        reduce_below(16);
        reduce_below(8000);
        caught += catches(100 * i + 16);
        reduce_below(40000);
    }
    MPI_Comm_set_errhandler(world, quiet);
    for (int i = 0; i < ROUNDS; i++)
        fail_below(16);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &keyval, nullptr);
    MPI_Comm_set_attr(world, keyval, nullptr);
    MPI_Comm_free(&world);
    printf("caught %d\n", caught);
    MPI_Finalize();
    return 0;
}
