/* Calls in MPI's callbacks, each with a size of its own: attributes that are copied and deleted,
 * also by MPI_Finalize; error handlers. */
#include <mpi.h>

#include "check.h"

static void reduce(int count)
{
    double one[8] = {1}, sum[8];
    MPI_Allreduce(one, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
}

static int copy(MPI_Comm comm, int key, void *extra, void *value, void *copied, int *flag)
{
    (void)comm, (void)key, (void)extra;
    reduce(2);
    *(void **)copied = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    reduce(3);
    return MPI_SUCCESS;
}

/* As HDF5 closes its files. */
static int write_at_the_end(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    enum { BYTES = 1 << 16 };
    static char block[BYTES];
    MPI_File_write(*(MPI_File *)value, block, BYTES, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_close(value);
    reduce(4);
    return MPI_SUCCESS;
}

static void handle(MPI_Comm *comm, int *error, ...)
{
    (void)comm, (void)error;
    reduce(5);
}

int main(int argc, char **argv)
{
    static MPI_File file;
    MPI_Comm one, two;
    MPI_Errhandler handler;
    int key, last_key, rank;
    char name[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_keyval(copy, forget, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &one);
    MPI_Comm_set_attr(one, key, NULL);
    MPI_Comm_dup(one, &two);
    MPI_Comm_free(&two);
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(one, handler);
    MPI_Send(NULL, 0, MPI_INT, 4711, 0, one);
    MPI_Comm_free(&one);
    snprintf(name, sizeof name, "written.%d", rank);
    CHECK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                        &file) == MPI_SUCCESS);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, write_at_the_end, &last_key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, last_key, &file);
    MPI_Finalize();
    return 0;
}
