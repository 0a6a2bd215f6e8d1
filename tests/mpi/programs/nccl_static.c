/* nccl_static VERSION PART [RANK RANKS]: a job with NCCL linked in, whose calls cannot be
 * intercepted. Its NCCL only reports its operations to a profiler plugin, by this version of the
 * interface or an older one. */
#include "plugin.h"

#ifndef WITHOUT_MPI
#include <mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_OF_ALL = 0x1234, HASH_OF_HALVES = 0x5678, MANY = 1500 };

static int rank, size;

static void operations(struct plugin_comm *comm)
{
    plugin_call(comm, "AllReduce", 100, "ncclFloat32", 0, false);
    plugin_launch();
    plugin_call(comm, "AllReduce", 100, "ncclFloat32", 0, false);
    plugin_call(comm, "Broadcast", 400, "ncclInt8", 1, false);
    plugin_call(comm, "Reduce", 100, "ncclFloat32", 0, false);
    plugin_call(comm, "AllGather", 400, "ncclInt8", 0, false);
    plugin_call(comm, "ReduceScatter", 100, "ncclFloat32", 0, false);
    plugin_call(comm, "Send", 100, "ncclBfloat16", (rank + 1) % size, false);
    plugin_call(comm, "Recv", 100, "ncclBfloat16", (rank + size - 1) % size, false);
    plugin_launch();
    plugin_call(comm, "AllReduce", 7, "Unknown", 0, false);
    plugin_call(comm, "AllReduce", 9, "ncclFloat64", 0, true);
    plugin_call(comm, "AllReduce", 11, "ncclFloat4", 0, false);
    plugin_call(comm, "Teleport", 11, "ncclInt8", 0, false);
    plugin_launch();
}

/* Two by copy engines, alone and in a group, and the same with a kernel. */
static void copy_engines(struct plugin_comm *comm)
{
    plugin_call_on_copy_engines(comm, "AllGather", 400, "ncclInt8", 0);
    plugin_launch();
    plugin_call(comm, "AllReduce", 100, "ncclFloat32", 0, false);
    plugin_call_on_copy_engines(comm, "AllGather", 400, "ncclInt8", 0);
    plugin_call_on_copy_engines(comm, "Scatter", 100, "ncclFloat32", 1);
    plugin_call(comm, "AllGather", 400, "ncclInt8", 0, false);
    plugin_launch();
}

static void halves(struct plugin_comm *all)
{
    struct plugin_comm half;
    plugin_begin(&half, (uint64_t)HASH_OF_HALVES + (uint64_t)(rank % 2), NULL, size / 2, rank / 2);
    plugin_call(&half, "AllReduce", 1, "ncclFloat32", 0, false);
    plugin_call(all, "AllReduce", 2, "ncclFloat32", 0, false);
    plugin_launch();
    plugin_end(&half);
}

/* More operations in a group than the plugin has room for. */
static void many(struct plugin_comm *comm)
{
    for (int i = 0; i < MANY; i++)
        plugin_call(comm, "AllReduce", 1, "ncclFloat32", 0, false);
    plugin_launch();
}

int main(int count, char **arguments)
{
    struct plugin_comm comm;
    if (count < 3)
        return 2;
#ifdef WITHOUT_MPI
    rank = atoi(arguments[3]);
    size = atoi(arguments[4]);
#else
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#endif
    printf("version %d\n", plugin_load(atoi(arguments[1])));
    plugin_begin(&comm, HASH_OF_ALL, "everyone", size, rank);
    if (strcmp(arguments[2], "operations") == 0)
        operations(&comm);
    else if (strcmp(arguments[2], "copy_engines") == 0)
        copy_engines(&comm);
    else if (strcmp(arguments[2], "halves") == 0)
        halves(&comm);
    else
        many(&comm);
    plugin_end(&comm);
#ifndef WITHOUT_MPI
    MPI_Finalize();
#endif
    return 0;
}
