/* The error is returned without calling the communicator's error handler: we have no business deciding that a job dies. */
#include "fallback.h"

#include "functions.h"
#include "kept.h"

#include <stdlib.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

static bool fits(mpi_count count)
{
    return count >= INT32_MIN && count <= INT32_MAX;
}

/* Arrays of large counts and displacements, converted to int in one allocation. */
struct narrowing {
    int *memory;
    int length; /* elements in each array: the processes that a rank exchanges with */
    int used;
    bool fits;
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

static struct narrowing narrowing_begin(int length)
{
    enum { ARRAYS_MAX = 4 };
    struct narrowing narrowing = {.length = length, .fits = true};
    narrowing.memory = malloc(ARRAYS_MAX * (size_t)(length > 0 ? length : 1) * sizeof(int));
    narrowing.fits = narrowing.memory != NULL;
    return narrowing;
}

/* mpi_count and mpi_aint are both 64 bits wide wherever we run. */
_Static_assert(sizeof(mpi_count) == sizeof(mpi_aint), "counts and displacements convert alike");

static const int *narrowed(struct narrowing *narrowing, const void *array)
{
    if (!array || !narrowing->fits)
        return NULL;
    int *result = narrowing->memory + narrowing->used;
    for (int i = 0; i < narrowing->length; i++) {
        mpi_count value = ((const mpi_count *)array)[i];
        narrowing->fits &= fits(value);
        result[i] = (int)value;
    }
    narrowing->used += narrowing->length;
    return result;
}

static int blocking_done(struct narrowing *narrowing, int error)
{
    free(narrowing->memory);
    return error;
}

static int starting_done(struct narrowing *narrowing, int error, const void *request)
{
    if (error == MPI_SUCCESS)
        kept_add(mpi_handle_load(request, 0), narrowing->memory);
    else
        free(narrowing->memory);
    return error;
}

/* Scalar counts: checked, then passed on (an int form reads the low half of the same register). */

#define FITS_MESSAGE fits(count)
#define FITS_RECEIVE fits(count)
#define FITS_RECV fits(count)
#define FITS_MRECV fits(count)
#define FITS_IMRECV fits(count)
#define FITS_EXCHANGE (fits(sendcount) && fits(recvcount))
#define FITS_EXCHANGE_REPLACE fits(count)
#define FITS_SENDRECV (fits(sendcount) && fits(recvcount))
#define FITS_SENDRECV_REPLACE fits(count)
#define FITS_BCAST fits(count)
#define FITS_GATHER (fits(sendcount) && fits(recvcount))
#define FITS_SCATTER (fits(sendcount) && fits(recvcount))
#define FITS_ALLGATHER (fits(sendcount) && fits(recvcount))
#define FITS_ALLTOALL (fits(sendcount) && fits(recvcount))
#define FITS_REDUCE fits(count)
#define FITS_ALLREDUCE fits(count)
#define FITS_REDUCE_SCATTER_BLOCK fits(count)

#define REAL(NAME, KIND, SHAPE) ((int (*)(PARAMETERS_OF_##KIND(SHAPE, mpi_count, int, int)))function_target(FUNCTION_##NAME, ENTRY_PMPI, 0))

#define SCALARS(NAME, KIND, SHAPE)                                                                 \
    static int fallback_##NAME(PARAMETERS_OF_##KIND(SHAPE, mpi_count, void, void))                 \
    {                                                                                              \
        return FITS_##SHAPE ? REAL(NAME, KIND, SHAPE)(ARGUMENTS_OF_##KIND(SHAPE)) : MPI_ERR_COUNT; \
    }

/* Arrays: converted where they are significant. NARROW_x names the converted arrays, NARROWED_x the arguments with them. */

#define NARROW_GATHERV                                                          \
    bool root_here = is_root_here(root, comm);                                  \
    const int *counts = narrowed(&narrowing, root_here ? recvcounts : NULL);    \
    const int *displacements = narrowed(&narrowing, root_here ? displs : NULL); \
    narrowing.fits &= fits(sendcount);
#define NARROWED_GATHERV sendbuf, sendcount, sendtype, recvbuf, counts, displacements, recvtype, root, comm

#define NARROW_SCATTERV                                                         \
    bool root_here = is_root_here(root, comm);                                  \
    const int *counts = narrowed(&narrowing, root_here ? sendcounts : NULL);    \
    const int *displacements = narrowed(&narrowing, root_here ? displs : NULL); \
    narrowing.fits &= fits(recvcount);
#define NARROWED_SCATTERV sendbuf, counts, displacements, sendtype, recvbuf, recvcount, recvtype, root, comm

#define NARROW_ALLGATHERV                                    \
    const int *counts = narrowed(&narrowing, recvcounts);    \
    const int *displacements = narrowed(&narrowing, displs); \
    narrowing.fits &= fits(sendcount);
#define NARROWED_ALLGATHERV sendbuf, sendcount, sendtype, recvbuf, counts, displacements, recvtype, comm

#define NARROW_EXCHANGED                                                            \
    bool in_place = sendbuf == mpi_abi.in_place;                                    \
    const int *counts_out = narrowed(&narrowing, in_place ? NULL : sendcounts);     \
    const int *displacements_out = narrowed(&narrowing, in_place ? NULL : sdispls); \
    const int *counts_in = narrowed(&narrowing, recvcounts);                        \
    const int *displacements_in = narrowed(&narrowing, rdispls);
#define NARROW_ALLTOALLV NARROW_EXCHANGED
#define NARROW_ALLTOALLW NARROW_EXCHANGED
#define NARROWED_ALLTOALLV sendbuf, counts_out, displacements_out, sendtype, recvbuf, counts_in, displacements_in, recvtype, comm
#define NARROWED_ALLTOALLW sendbuf, counts_out, displacements_out, sendtypes, recvbuf, counts_in, displacements_in, recvtypes, comm

#define NARROW_REDUCE_SCATTER const int *counts = narrowed(&narrowing, recvcounts);
#define NARROWED_REDUCE_SCATTER sendbuf, recvbuf, counts, type, op, comm

#define LENGTH_GATHERV processes_in(comm)
#define LENGTH_SCATTERV processes_in(comm)
#define LENGTH_ALLGATHERV processes_in(comm)
#define LENGTH_ALLTOALLV processes_in(comm)
#define LENGTH_ALLTOALLW processes_in(comm)
#define LENGTH_REDUCE_SCATTER local_processes_in(comm) /* MPI-4.1, 6.10: as many as the local group has */

static int local_processes_in(mpi_handle comm)
{
    int size = 0;
    mpi_query.Comm_size(comm, &size);
    return size;
}

#define ARRAYS(NAME, SHAPE)                                                                                                              \
    static int fallback_##NAME(PARAMETERS_##SHAPE(mpi_count, void, void))                                                                \
    {                                                                                                                                    \
        struct narrowing narrowing = narrowing_begin(LENGTH_##SHAPE);                                                                    \
        NARROW_##SHAPE return blocking_done(&narrowing, narrowing.fits ? REAL(NAME, BLOCKING, SHAPE)(NARROWED_##SHAPE) : MPI_ERR_COUNT); \
    }

#define ARRAYS_STARTING(NAME, SHAPE)                                                                                        \
    static int fallback_##NAME(PARAMETERS_##SHAPE(mpi_count, void, void), void *request)                                    \
    {                                                                                                                       \
        struct narrowing narrowing = narrowing_begin(LENGTH_##SHAPE);                                                       \
        NARROW_##SHAPE int error = narrowing.fits ? REAL(NAME, STARTING, SHAPE)(NARROWED_##SHAPE, request) : MPI_ERR_COUNT; \
        return starting_done(&narrowing, error, request);                                                                   \
    }

SCALARS(Send, BLOCKING, MESSAGE)
SCALARS(Bsend, BLOCKING, MESSAGE)
SCALARS(Ssend, BLOCKING, MESSAGE)
SCALARS(Rsend, BLOCKING, MESSAGE)
SCALARS(Recv, BY_HAND, RECV)
SCALARS(Mrecv, BY_HAND, MRECV)
SCALARS(Sendrecv, BY_HAND, SENDRECV)
SCALARS(Sendrecv_replace, BY_HAND, SENDRECV_REPLACE)
SCALARS(Isend, STARTING, MESSAGE)
SCALARS(Ibsend, STARTING, MESSAGE)
SCALARS(Issend, STARTING, MESSAGE)
SCALARS(Irsend, STARTING, MESSAGE)
SCALARS(Irecv, STARTING, RECEIVE)
SCALARS(Imrecv, BY_HAND, IMRECV)
SCALARS(Isendrecv, STARTING, EXCHANGE)
SCALARS(Isendrecv_replace, STARTING, EXCHANGE_REPLACE)
SCALARS(Send_init, STARTING, MESSAGE)
SCALARS(Bsend_init, STARTING, MESSAGE)
SCALARS(Ssend_init, STARTING, MESSAGE)
SCALARS(Rsend_init, STARTING, MESSAGE)
SCALARS(Recv_init, STARTING, RECEIVE)
SCALARS(Bcast, BLOCKING, BCAST)
SCALARS(Gather, BLOCKING, GATHER)
SCALARS(Scatter, BLOCKING, SCATTER)
SCALARS(Allgather, BLOCKING, ALLGATHER)
SCALARS(Alltoall, BLOCKING, ALLTOALL)
SCALARS(Reduce, BLOCKING, REDUCE)
SCALARS(Allreduce, BLOCKING, ALLREDUCE)
SCALARS(Reduce_scatter_block, BLOCKING, REDUCE_SCATTER_BLOCK)
SCALARS(Scan, BLOCKING, ALLREDUCE)
SCALARS(Exscan, BLOCKING, ALLREDUCE)
SCALARS(Ibcast, STARTING, BCAST)
SCALARS(Igather, STARTING, GATHER)
SCALARS(Iscatter, STARTING, SCATTER)
SCALARS(Iallgather, STARTING, ALLGATHER)
SCALARS(Ialltoall, STARTING, ALLTOALL)
SCALARS(Ireduce, STARTING, REDUCE)
SCALARS(Iallreduce, STARTING, ALLREDUCE)
SCALARS(Ireduce_scatter_block, STARTING, REDUCE_SCATTER_BLOCK)
SCALARS(Iscan, STARTING, ALLREDUCE)
SCALARS(Iexscan, STARTING, ALLREDUCE)
ARRAYS(Gatherv, GATHERV)
ARRAYS(Scatterv, SCATTERV)
ARRAYS(Allgatherv, ALLGATHERV)
ARRAYS(Alltoallv, ALLTOALLV)
ARRAYS(Alltoallw, ALLTOALLW)
ARRAYS(Reduce_scatter, REDUCE_SCATTER)
ARRAYS_STARTING(Igatherv, GATHERV)
ARRAYS_STARTING(Iscatterv, SCATTERV)
ARRAYS_STARTING(Iallgatherv, ALLGATHERV)
ARRAYS_STARTING(Ialltoallv, ALLTOALLV)
ARRAYS_STARTING(Ialltoallw, ALLTOALLW)
ARRAYS_STARTING(Ireduce_scatter, REDUCE_SCATTER)

void *fallback_for(unsigned function)
{
    static void *const FALLBACKS[FUNCTION_COUNT] = {
#define PLAIN(NAME)
#define LARGE(NAME) [FUNCTION_##NAME##_c] = (void *)fallback_##NAME,
#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS) FORMS(NAME)
#include "calls.def"
#undef CALL
#undef LARGE
#undef PLAIN
    };
    return mpi_abi.known ? FALLBACKS[function] : NULL;
}
