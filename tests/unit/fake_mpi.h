/* A fake MPI library: an ABI, detected from a stub as from a real library, and local queries for a
 * few communicators, groups and types. The test sets the answers beforehand:
 *
 *     fake_mpi_speak("mpich");
 *     fake_world(8, 3);                                 eight ranks, this process is rank 3
 *     mpi_handle half = fake_comm((int[]){0, 2, 3}, 3); a communicator of world ranks 0, 2, 3 */
#ifndef FAKE_MPI_H
#define FAKE_MPI_H

#include "mpi/mpi_abi.h"
#include "record/communicators.h"
#include "unit.h"

#include <dlfcn.h>

enum { FAKE_COMMS = 4096, FAKE_RANKS = 2048, FAKE_NO_REMOTE = 0 };

struct fake_group {
    const int *ranks; /* world ranks; negative: a process of another world */
    int size;
};

static struct fake_comm {
    mpi_handle handle;
    struct fake_group local, remote;
} fake_comms[FAKE_COMMS];
static unsigned fake_comm_count;
static int fake_rank;
static unsigned fake_questions; /* number of queries to MPI */

/* The handle of a group is twice the number of its communicator, plus one for the remote group. */
static unsigned fake_groups_open;

static struct fake_comm *fake_find(mpi_handle handle)
{
    fake_questions++;
    for (unsigned i = 0; i < fake_comm_count; i++)
        if (fake_comms[i].handle == mpi_handle_bits(handle))
            return &fake_comms[i];
    fprintf(stderr, "MPI was asked about a communicator that does not exist: %#lx\n",
            (unsigned long)handle);
    _exit(EXIT_FAILURE);
}

static struct fake_group *fake_group(mpi_handle handle)
{
    mpi_handle number = mpi_handle_bits(handle) - 0x8000;
    fake_questions++;
    CHECK(number / 2 < fake_comm_count);
    return number % 2 ? &fake_comms[number / 2].remote : &fake_comms[number / 2].local;
}

static int fake_rank_in(const struct fake_group *group, int world_rank)
{
    for (int i = 0; i < group->size; i++)
        if (group->ranks[i] == world_rank)
            return i;
    return MPI_UNDEFINED;
}

static int fake_Comm_size(mpi_handle comm, int *size)
{
    *size = fake_find(comm)->local.size;
    return MPI_SUCCESS;
}

static int fake_Comm_rank(mpi_handle comm, int *rank)
{
    *rank = fake_rank_in(&fake_find(comm)->local, fake_rank);
    return MPI_SUCCESS;
}

static int fake_Comm_test_inter(mpi_handle comm, int *inter)
{
    *inter = fake_find(comm)->remote.size != FAKE_NO_REMOTE;
    return MPI_SUCCESS;
}

static int fake_Comm_remote_size(mpi_handle comm, int *size)
{
    *size = fake_find(comm)->remote.size;
    return MPI_SUCCESS;
}

static int fake_Comm_group(mpi_handle comm, void *group)
{
    mpi_handle_store(group, 0x8000 + 2 * (mpi_handle)(fake_find(comm) - fake_comms));
    fake_groups_open++;
    return MPI_SUCCESS;
}

static int fake_Comm_remote_group(mpi_handle comm, void *group)
{
    mpi_handle_store(group, 0x8000 + 2 * (mpi_handle)(fake_find(comm) - fake_comms) + 1);
    fake_groups_open++;
    return MPI_SUCCESS;
}

static int fake_Group_size(mpi_handle group, int *size)
{
    *size = fake_group(group)->size;
    return MPI_SUCCESS;
}

static int fake_Group_rank(mpi_handle group, int *rank)
{
    *rank = fake_rank_in(fake_group(group), fake_rank);
    return MPI_SUCCESS;
}

static int fake_Group_free(void *group)
{
    fake_group(mpi_handle_load(group, 0));
    fake_groups_open--;
    return MPI_SUCCESS;
}

static int fake_Group_translate_ranks(mpi_handle from, int count, const int *ranks, mpi_handle to,
                                      int *result)
{
    struct fake_group *source = fake_group(from), *target = fake_group(to);
    for (int i = 0; i < count; i++)
        result[i] = source->ranks[ranks[i]] < 0 ? MPI_UNDEFINED
                                                : fake_rank_in(target, source->ranks[ranks[i]]);
    return MPI_SUCCESS;
}

/* Types whose handles contain their size: 0x5000 + size; and one whose size exceeds an int. */
enum {
    FAKE_TYPE = 0x5000,
    FAKE_TYPE_4 = FAKE_TYPE + 4,
    FAKE_TYPE_8 = FAKE_TYPE + 8,
    FAKE_TYPE_HUGE = 0x6000
};
#define FAKE_HUGE_BYTES (3ll << 30)

static int fake_Type_size(mpi_handle type, int *size)
{
    fake_questions++;
    CHECK(mpi_handle_bits(type) !=
          mpi_abi.datatype_null); /* MPI would call the job's error handler */
    CHECK(mpi_handle_bits(type) >> 12 == 5 || mpi_handle_bits(type) == FAKE_TYPE_HUGE);
    *size = mpi_handle_bits(type) == FAKE_TYPE_HUGE ? MPI_UNDEFINED : (int)(type & 0xfff);
    return MPI_SUCCESS;
}

static int fake_Type_size_x(mpi_handle type, mpi_count *size)
{
    fake_questions++;
    *size = mpi_handle_bits(type) == FAKE_TYPE_HUGE ? FAKE_HUGE_BYTES : (mpi_count)(type & 0xfff);
    return MPI_SUCCESS;
}

/* Topologies: a grid of two dimensions; a graph in which this process has three neighbors; a
 * distributed graph with one source and two destinations. The test sets the answer of
 * MPI_Topo_test. */
static int fake_topology = MPI_UNDEFINED;

static int fake_Topo_test(mpi_handle comm, int *topology)
{
    fake_find(comm);
    *topology = fake_topology;
    return MPI_SUCCESS;
}

static int fake_Cartdim_get(mpi_handle comm, int *dimensions)
{
    fake_find(comm);
    *dimensions = 2;
    return MPI_SUCCESS;
}

/* Two periodic dimensions: ranks 1 and 0, then 2 twice. */
static int fake_Cart_shift(mpi_handle comm, int dimension, int by, int *source, int *destination)
{
    fake_find(comm);
    CHECK_EQUAL(by, 1);
    *source = dimension ? 2 : 1;
    *destination = dimension ? 2 : 0;
    return MPI_SUCCESS;
}

static int fake_Graph_neighbors(mpi_handle comm, int rank, int most, int *neighbors)
{
    fake_find(comm);
    CHECK_EQUAL(most, 3);
    for (int i = 0; i < most; i++)
        neighbors[i] = rank + i;
    return MPI_SUCCESS;
}

static int fake_Dist_graph_neighbors(mpi_handle comm, int most_sources, int *sources,
                                     int *source_weights, int most_destinations, int *destinations,
                                     int *destination_weights)
{
    fake_find(comm);
    for (int i = 0; i < most_sources; i++)
        sources[i] = source_weights[i] = 3;
    for (int i = 0; i < most_destinations; i++)
        destinations[i] = destination_weights[i] = 7;
    return MPI_SUCCESS;
}

static int fake_Graph_neighbors_count(mpi_handle comm, int rank, int *count)
{
    CHECK_EQUAL(rank, fake_rank_in(&fake_find(comm)->local, fake_rank));
    *count = 3;
    return MPI_SUCCESS;
}

static int fake_Dist_graph_neighbors_count(mpi_handle comm, int *sources, int *destinations,
                                           int *weighted)
{
    fake_find(comm);
    *sources = 1;
    *destinations = 2;
    *weighted = 0;
    return MPI_SUCCESS;
}

/* Use the ABI of a stub: "open_mpi", "mpich", "standard", "unknown". */
static inline void fake_mpi_speak(const char *stub)
{
    char path[4096];
    snprintf(path, sizeof path, UNIT_BUILD "/stub_%s.so", stub);
    void *provider = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(provider != NULL);
    mpi_abi_detect(provider, path);
    mpi_query = (struct mpi_queries){
        .Comm_size = fake_Comm_size,
        .Comm_rank = fake_Comm_rank,
        .Comm_remote_size = fake_Comm_remote_size,
        .Comm_test_inter = fake_Comm_test_inter,
        .Comm_group = fake_Comm_group,
        .Comm_remote_group = fake_Comm_remote_group,
        .Group_size = fake_Group_size,
        .Group_rank = fake_Group_rank,
        .Group_translate_ranks = fake_Group_translate_ranks,
        .Group_free = fake_Group_free,
        .Type_size = fake_Type_size,
        .Type_size_x = fake_Type_size_x,
        .Topo_test = fake_Topo_test,
        .Cartdim_get = fake_Cartdim_get,
        .Cart_shift = fake_Cart_shift,
        .Graph_neighbors_count = fake_Graph_neighbors_count,
        .Graph_neighbors = fake_Graph_neighbors,
        .Dist_graph_neighbors = fake_Dist_graph_neighbors,
        .Dist_graph_neighbors_count = fake_Dist_graph_neighbors_count,
    };
}

/* Describe a communicator under a handle that the test chooses. `remote_size` is 0 unless it is an
 * inter-communicator. */
static inline mpi_handle fake_describe(mpi_handle handle, const int *ranks, int size,
                                       const int *remote, int remote_size)
{
    struct fake_comm *comm = &fake_comms[0];
    while (comm < fake_comms + fake_comm_count && comm->handle != handle)
        comm++;
    CHECK(comm < fake_comms + FAKE_COMMS);
    fake_comm_count += comm == fake_comms + fake_comm_count;
    *comm = (struct fake_comm){handle, {ranks, size}, {remote, remote_size}};
    return handle;
}

/* The same under a new handle. */
static inline mpi_handle fake_comm(const int *ranks, int size)
{
    return fake_describe(0x100000 + 64 * (mpi_handle)fake_comm_count, ranks, size, NULL,
                         FAKE_NO_REMOTE);
}

static inline mpi_handle fake_inter(const int *ranks, int size, const int *remote, int remote_size)
{
    return fake_describe(0x100000 + 64 * (mpi_handle)fake_comm_count, ranks, size, remote,
                         remote_size);
}

/* MPI_COMM_WORLD and MPI_COMM_SELF. */
static inline void fake_describe_world(int size, int rank)
{
    static int all[FAKE_RANKS];
    CHECK(size <= FAKE_RANKS);
    for (int i = 0; i < FAKE_RANKS; i++)
        all[i] = i;
    fake_rank = rank;
    fake_describe(mpi_abi.comm_world, all, size, NULL, FAKE_NO_REMOTE);
    fake_describe(mpi_abi.comm_self, &all[rank], 1, NULL, FAKE_NO_REMOTE);
}

/* The same; also starts the registry. */
static inline void fake_world(int size, int rank)
{
    fake_describe_world(size, rank);
    CHECK(communicators_begin(0, true));
}

#endif
