/* The error is returned without calling the communicator's error handler: the profiler must not end
 * the job. */
#include "fallback.h"

#include "base/memory.h"
#include "functions.h"
#include "mpi/request_memory.h"

static bool fits(mpi_count count)
{
    return count >= INT32_MIN && count <= INT32_MAX;
}

/* The arguments of the int form: arrays of large counts and displacements converted to int, in one
 * allocation. */
struct narrowing {
    int *memory;
    int used;
    bool fits;
    int result; /* the int form's output argument, and where to store it widened */
    mpi_count *result_goes_to;
};

static int processes_in(mpi_handle comm)
{
    int inter = 0, size = 0;
    if (mpi_query.Comm_test_inter(comm, &inter) != MPI_SUCCESS)
        return 0;
    (inter ? mpi_query.Comm_remote_size : mpi_query.Comm_size)(comm, &size);
    return size;
}

static bool is_root_here(int root, mpi_handle comm)
{
    int inter = 0, rank = -1;
    mpi_query.Comm_test_inter(comm, &inter);
    mpi_query.Comm_rank(comm, &rank);
    return inter ? root == mpi_abi.root : root == rank;
}

static int local_processes_in(mpi_handle comm)
{
    int size = 0;
    mpi_query.Comm_size(comm, &size);
    return size;
}

static void make_room(struct narrowing *narrowing, int numbers)
{
    narrowing->memory = memory_take((size_t)(numbers > 0 ? numbers : 1) * sizeof(int));
    narrowing->fits &= narrowing->memory != NULL;
}

_Static_assert(sizeof(mpi_count) == sizeof(mpi_aint), "counts and displacements convert alike");

static const int *narrowed(struct narrowing *narrowing, const void *array, int length)
{
    if (!array || !narrowing->fits)
        return NULL;
    int *result = narrowing->memory + narrowing->used;
    for (int i = 0; i < length; i++) {
        mpi_count value = ((const mpi_count *)array)[i];
        narrowing->fits &= fits(value);
        result[i] = (int)value;
    }
    narrowing->used += length;
    return result;
}

static int *widened(struct narrowing *narrowing, void *size)
{
    narrowing->result_goes_to = size;
    return &narrowing->result;
}

static int done(struct narrowing *narrowing, int error)
{
    if (error == MPI_SUCCESS && narrowing->result_goes_to)
        *narrowing->result_goes_to = narrowing->result;
    memory_give(narrowing->memory);
    return error;
}

/* The arrays must exist until the request ends. */
static int done_for_now(struct narrowing *narrowing, int error, const void *request)
{
    if (error == MPI_SUCCESS && narrowing->memory)
        request_memory_add(mpi_handle_load(request, 0), narrowing->memory);
    else
        memory_give(narrowing->memory);
    return error;
}

/* For each shape with a large-count form, NARROW_x checks and converts the counts, and NARROWED_x
 * is the resulting argument list. A scalar count that fits is passed on unchanged: an int form
 * reads the low half of the same register. */

#define CHECK(CONDITION) narrowing.fits &= (CONDITION);

#define NARROW_MESSAGE CHECK(fits(count))
#define NARROWED_MESSAGE ARGUMENTS_MESSAGE
#define NARROW_RECEIVE CHECK(fits(count))
#define NARROWED_RECEIVE ARGUMENTS_RECEIVE
#define NARROW_RECV CHECK(fits(count))
#define NARROWED_RECV ARGUMENTS_RECV
#define NARROW_MRECV CHECK(fits(count))
#define NARROWED_MRECV ARGUMENTS_MRECV
#define NARROW_IMRECV CHECK(fits(count))
#define NARROWED_IMRECV ARGUMENTS_IMRECV
#define NARROW_EXCHANGE CHECK(fits(sendcount) && fits(recvcount))
#define NARROWED_EXCHANGE ARGUMENTS_EXCHANGE
#define NARROW_EXCHANGE_REPLACE CHECK(fits(count))
#define NARROWED_EXCHANGE_REPLACE ARGUMENTS_EXCHANGE_REPLACE
#define NARROW_SENDRECV CHECK(fits(sendcount) && fits(recvcount))
#define NARROWED_SENDRECV ARGUMENTS_SENDRECV
#define NARROW_SENDRECV_REPLACE CHECK(fits(count))
#define NARROWED_SENDRECV_REPLACE ARGUMENTS_SENDRECV_REPLACE

#define NARROW_BUFFER_ATTACH CHECK(fits(size))
#define NARROWED_BUFFER_ATTACH ARGUMENTS_BUFFER_ATTACH
#define NARROW_COMM_ATTACH CHECK(fits(size))
#define NARROWED_COMM_ATTACH ARGUMENTS_COMM_ATTACH
#define NARROW_SESSION_ATTACH CHECK(fits(size))
#define NARROWED_SESSION_ATTACH ARGUMENTS_SESSION_ATTACH
#define NARROW_BUFFER_DETACH
#define NARROWED_BUFFER_DETACH buffer, widened(&narrowing, size)
#define NARROW_COMM_DETACH
#define NARROWED_COMM_DETACH comm, buffer, widened(&narrowing, size)
#define NARROW_SESSION_DETACH
#define NARROWED_SESSION_DETACH session, buffer, widened(&narrowing, size)

#define NARROW_BCAST CHECK(fits(count))
#define NARROWED_BCAST ARGUMENTS_BCAST
#define NARROW_GATHER CHECK(fits(sendcount) && fits(recvcount))
#define NARROWED_GATHER ARGUMENTS_GATHER
#define NARROW_SCATTER CHECK(fits(sendcount) && fits(recvcount))
#define NARROWED_SCATTER ARGUMENTS_SCATTER
#define NARROW_ALLGATHER CHECK(fits(sendcount) && fits(recvcount))
#define NARROWED_ALLGATHER ARGUMENTS_ALLGATHER
#define NARROW_ALLTOALL CHECK(fits(sendcount) && fits(recvcount))
#define NARROWED_ALLTOALL ARGUMENTS_ALLTOALL
#define NARROW_REDUCE CHECK(fits(count))
#define NARROWED_REDUCE ARGUMENTS_REDUCE
#define NARROW_ALLREDUCE CHECK(fits(count))
#define NARROWED_ALLREDUCE ARGUMENTS_ALLREDUCE
#define NARROW_REDUCE_SCATTER_BLOCK CHECK(fits(count))
#define NARROWED_REDUCE_SCATTER_BLOCK ARGUMENTS_REDUCE_SCATTER_BLOCK

/* Arrays are converted only on ranks where they are significant. */

#define NARROW_GATHERV                                                               \
    int length = is_root_here(root, comm) ? processes_in(comm) : 0;                  \
    make_room(&narrowing, 2 * length);                                               \
    const int *counts = length ? narrowed(&narrowing, recvcounts, length) : NULL;    \
    const int *displacements = length ? narrowed(&narrowing, displs, length) : NULL; \
    CHECK(fits(sendcount))
#define NARROWED_GATHERV \
    sendbuf, sendcount, sendtype, recvbuf, counts, displacements, recvtype, root, comm

#define NARROW_SCATTERV                                                              \
    int length = is_root_here(root, comm) ? processes_in(comm) : 0;                  \
    make_room(&narrowing, 2 * length);                                               \
    const int *counts = length ? narrowed(&narrowing, sendcounts, length) : NULL;    \
    const int *displacements = length ? narrowed(&narrowing, displs, length) : NULL; \
    CHECK(fits(recvcount))
#define NARROWED_SCATTERV \
    sendbuf, counts, displacements, sendtype, recvbuf, recvcount, recvtype, root, comm

#define NARROW_BLOCKS(SOURCES)                                        \
    int sources = SOURCES;                                            \
    make_room(&narrowing, 2 * sources);                               \
    const int *counts = narrowed(&narrowing, recvcounts, sources);    \
    const int *displacements = narrowed(&narrowing, displs, sources); \
    CHECK(fits(sendcount))
#define NARROW_ALLGATHERV NARROW_BLOCKS(processes_in(comm))
#define NARROWED_ALLGATHERV \
    sendbuf, sendcount, sendtype, recvbuf, counts, displacements, recvtype, comm
#define NARROW_NEIGHBOR_ALLGATHERV NARROW_BLOCKS(mpi_neighbors_of(comm).sources)
#define NARROWED_NEIGHBOR_ALLGATHERV NARROWED_ALLGATHERV

#define NARROW_EXCHANGED(SOURCES, DESTINATIONS)                                                   \
    int sources = SOURCES, destinations = DESTINATIONS;                                           \
    bool in_place = sendbuf == mpi_abi.in_place;                                                  \
    make_room(&narrowing, 2 * (sources + destinations));                                          \
    const int *counts_out = narrowed(&narrowing, in_place ? NULL : sendcounts, destinations);     \
    const int *displacements_out = narrowed(&narrowing, in_place ? NULL : sdispls, destinations); \
    const int *counts_in = narrowed(&narrowing, recvcounts, sources);                             \
    const int *displacements_in = narrowed(&narrowing, rdispls, sources);
#define NARROW_ALLTOALLV NARROW_EXCHANGED(processes_in(comm), processes_in(comm))
#define NARROW_ALLTOALLW NARROW_ALLTOALLV
#define NARROWED_ALLTOALLV                                                                  \
    sendbuf, counts_out, displacements_out, sendtype, recvbuf, counts_in, displacements_in, \
        recvtype, comm
#define NARROWED_ALLTOALLW                                                                   \
    sendbuf, counts_out, displacements_out, sendtypes, recvbuf, counts_in, displacements_in, \
        recvtypes, comm
#define NARROW_NEIGHBOR_ALLTOALLV                            \
    struct mpi_neighbors neighbors = mpi_neighbors_of(comm); \
    NARROW_EXCHANGED(neighbors.sources, neighbors.destinations)
#define NARROWED_NEIGHBOR_ALLTOALLV NARROWED_ALLTOALLV
#define NARROW_NEIGHBOR_ALLTOALLW                                                     \
    struct mpi_neighbors neighbors = mpi_neighbors_of(comm);                          \
    make_room(&narrowing, neighbors.sources + neighbors.destinations);                \
    const int *counts_out = narrowed(&narrowing, sendcounts, neighbors.destinations); \
    const int *counts_in = narrowed(&narrowing, recvcounts, neighbors.sources);
#define NARROWED_NEIGHBOR_ALLTOALLW \
    sendbuf, counts_out, sdispls, sendtypes, recvbuf, counts_in, rdispls, recvtypes, comm
#define NARROW_NEIGHBOR_ALLGATHER NARROW_ALLGATHER
#define NARROWED_NEIGHBOR_ALLGATHER ARGUMENTS_ALLGATHER
#define NARROW_NEIGHBOR_ALLTOALL NARROW_ALLGATHER
#define NARROWED_NEIGHBOR_ALLTOALL ARGUMENTS_ALLGATHER

/* MPI-4.1, 6.10: as many counts as the local group has processes, also on an inter-communicator. */
#define NARROW_REDUCE_SCATTER              \
    int length = local_processes_in(comm); \
    make_room(&narrowing, length);         \
    const int *counts = narrowed(&narrowing, recvcounts, length);
#define NARROWED_REDUCE_SCATTER sendbuf, recvbuf, counts, type, op, comm

#define NARROW_PUT CHECK(fits(origin_count) && fits(target_count))
#define NARROWED_PUT ARGUMENTS_PUT
#define NARROW_GET NARROW_PUT
#define NARROWED_GET ARGUMENTS_GET
#define NARROW_ACCUMULATE NARROW_PUT
#define NARROWED_ACCUMULATE ARGUMENTS_ACCUMULATE
#define NARROW_GET_ACCUMULATE CHECK(fits(origin_count) && fits(result_count) && fits(target_count))
#define NARROWED_GET_ACCUMULATE ARGUMENTS_GET_ACCUMULATE
#define NARROW_WIN_CREATE CHECK(fits(disp_unit))
#define NARROWED_WIN_CREATE ARGUMENTS_WIN_CREATE
#define NARROW_WIN_ALLOCATE CHECK(fits(disp_unit))
#define NARROWED_WIN_ALLOCATE ARGUMENTS_WIN_ALLOCATE

#define NARROW_FILE_READ CHECK(fits(count))
#define NARROWED_FILE_READ ARGUMENTS_FILE_READ
#define NARROW_FILE_READ_AT CHECK(fits(count))
#define NARROWED_FILE_READ_AT ARGUMENTS_FILE_READ_AT
#define NARROW_FILE_WRITE CHECK(fits(count))
#define NARROWED_FILE_WRITE ARGUMENTS_FILE_WRITE
#define NARROW_FILE_WRITE_AT CHECK(fits(count))
#define NARROWED_FILE_WRITE_AT ARGUMENTS_FILE_WRITE_AT
#define NARROW_FILE_IREAD CHECK(fits(count))
#define NARROWED_FILE_IREAD ARGUMENTS_FILE_IREAD
#define NARROW_FILE_IREAD_AT CHECK(fits(count))
#define NARROWED_FILE_IREAD_AT ARGUMENTS_FILE_IREAD_AT
#define NARROW_FILE_IWRITE CHECK(fits(count))
#define NARROWED_FILE_IWRITE ARGUMENTS_FILE_IWRITE
#define NARROW_FILE_IWRITE_AT CHECK(fits(count))
#define NARROWED_FILE_IWRITE_AT ARGUMENTS_FILE_IWRITE_AT

/* One function for each line of calls.def that has a large-count form. */

#define REAL(NAME, LIKE, SHAPE)                                                                  \
    ((int (*)(PARAMETERS_OF_##LIKE(SHAPE, mpi_count, int, int)))function_target(FUNCTION_##NAME, \
                                                                                ENTRY_PMPI, 0))

#define FALLBACK(NAME, LIKE, SHAPE)                                                              \
    static int fallback_##NAME(PARAMETERS_OF_##LIKE(SHAPE, mpi_count, void, void))               \
    {                                                                                            \
        struct narrowing narrowing = {.fits = true};                                             \
        NARROW_##SHAPE int error =                                                               \
            narrowing.fits ? REAL(NAME, LIKE, SHAPE)(NARROWED_OF_##LIKE(SHAPE)) : MPI_ERR_COUNT; \
        return DONE_OF_##LIKE(&narrowing, error);                                                \
    }
#define NARROWED_OF_BLOCKING(SHAPE) NARROWED_##SHAPE
#define NARROWED_OF_STARTING(SHAPE) NARROWED_##SHAPE, request
#define NARROWED_OF_PREPARING_WITH_INFO(SHAPE) NARROWED_##SHAPE, info, request
#define DONE_OF_BLOCKING(NARROWING, ERROR) done(NARROWING, ERROR)
#define DONE_OF_STARTING(NARROWING, ERROR) done_for_now(NARROWING, ERROR, request)
#define DONE_OF_PREPARING_WITH_INFO(NARROWING, ERROR) done_for_now(NARROWING, ERROR, request)

#define PLAIN(NAME, KIND, SHAPE)
#define LARGE(NAME, KIND, SHAPE) LARGE_##KIND(NAME, SHAPE)
#define LARGE_BLOCKING(NAME, SHAPE) FALLBACK(NAME, BLOCKING, SHAPE)
#define LARGE_BY_HAND(NAME, SHAPE) FALLBACK(NAME, BLOCKING, SHAPE)
#define LARGE_STARTING_BY_HAND(NAME, SHAPE) FALLBACK(NAME, BLOCKING, SHAPE)
#define LARGE_READING(NAME, SHAPE) FALLBACK(NAME, BLOCKING, SHAPE)
#define LARGE_MAKING_ON(NAME, SHAPE) FALLBACK(NAME, BLOCKING, SHAPE)
#define LARGE_STARTING(NAME, SHAPE) FALLBACK(NAME, STARTING, SHAPE)
#define LARGE_STARTING_RECEIVE(NAME, SHAPE) FALLBACK(NAME, STARTING, SHAPE)
#define LARGE_STARTING_EXCHANGE(NAME, SHAPE) FALLBACK(NAME, STARTING, SHAPE)
#define LARGE_PREPARING(NAME, SHAPE) FALLBACK(NAME, STARTING, SHAPE)
#define LARGE_PREPARING_RECEIVE(NAME, SHAPE) FALLBACK(NAME, STARTING, SHAPE)
#define LARGE_PREPARING_WITH_INFO(NAME, SHAPE) FALLBACK(NAME, PREPARING_WITH_INFO, SHAPE)
#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS, BANDWIDTH, WAITS_FOR) FORMS(NAME, KIND, SHAPE)
#include "calls.def"
#undef CALL
#undef LARGE
#undef PLAIN

void *fallback_for(unsigned function)
{
    static void *const FALLBACKS[FUNCTION_COUNT] = {
#define PLAIN(NAME)
#define LARGE(NAME) [FUNCTION_##NAME##_c] = (void *)fallback_##NAME,
#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS, BANDWIDTH, WAITS_FOR) FORMS(NAME)
#include "calls.def"
#undef CALL
#undef LARGE
#undef PLAIN
    };
    return mpi_abi.known ? FALLBACKS[function] : NULL;
}
