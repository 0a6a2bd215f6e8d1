/* How the MPI library in this process represents its objects: the part of its ABI that the profiler
 * needs.
 *
 * Handles passed by value need no ABI: a wrapper takes them as register images (mpi_handle) and
 * passes them on. Handles in memory (request arrays, new communicators), statuses and special
 * values do need one. The ABI is detected once, at the first call. Under an unknown ABI, calls are
 * passed through untouched, and only counted and timed. */
#ifndef COMMPROF_MPI_ABI_H
#define COMMPROF_MPI_ABI_H

#include "base/hot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uintptr_t mpi_handle; /* any handle passed by value; bits above an int's 32 are not
                                 significant under MPICH */
typedef int64_t mpi_count;    /* MPI_Count, in all known ABIs */
typedef int64_t mpi_offset;   /* MPI_Offset */
typedef intptr_t mpi_aint;    /* MPI_Aint */

enum mpi_abi_kind { MPI_ABI_UNKNOWN, MPI_ABI_OPEN_MPI, MPI_ABI_MPICH, MPI_ABI_STANDARD };

/* These are the same in every known ABI. */
enum { MPI_SUCCESS = 0, MPI_ERR_COUNT = 2, MPI_UNDEFINED = -32766 };

enum { MPI_STATUS_BYTES_MAX = 64 }; /* no known status is larger than 32 */

struct mpi_abi {
    enum mpi_abi_kind kind;
    const char *name;
    bool known;
    size_t handle_bytes;    /* of a handle in memory */
    mpi_handle handle_mask; /* the bits of a register image that belong to the handle */
    mpi_handle comm_world, comm_self, comm_null, request_null, datatype_null, byte;
    void *in_place, *status_ignore; /* MPI_STATUSES_IGNORE is the same */
    int proc_null, any_source, root;
    int err_other;
    size_t status_bytes, status_source_offset;
    int thread_levels[4];        /* MPI_THREAD_SINGLE, FUNNELED, SERIALIZED, MULTIPLE */
    int cart, graph, dist_graph; /* results of MPI_Topo_test */
    int bind_no_object;          /* MPI_T_BIND_NO_OBJECT */
    int order_c;                 /* MPI_ORDER_C */
};

/* The functions by which the profiler queries MPI, all local, resolved in the library that the job
 * uses. */
struct mpi_queries {
    int (*Comm_size)(mpi_handle, int *);
    int (*Comm_rank)(mpi_handle, int *);
    int (*Comm_remote_size)(mpi_handle, int *);
    int (*Comm_test_inter)(mpi_handle, int *);
    int (*Comm_group)(mpi_handle, void *);
    int (*Comm_remote_group)(mpi_handle, void *);
    int (*Comm_get_parent)(void *);
    int (*Group_size)(mpi_handle, int *);
    int (*Group_rank)(mpi_handle, int *);
    int (*Group_translate_ranks)(mpi_handle, int, const int *, mpi_handle, int *);
    int (*Group_from_session_pset)(mpi_handle, const char *, void *);
    int (*Group_free)(void *);
    int (*Type_size)(mpi_handle, int *);
    int (*Type_size_x)(mpi_handle, mpi_count *);
    int (*Type_get_name)(mpi_handle, char *, int *);
    int (*Type_get_extent)(mpi_handle, mpi_aint *, mpi_aint *);
    int (*Type_get_envelope)(mpi_handle, int *, int *, int *, int *);
    int (*Type_get_envelope_c)(mpi_handle, mpi_count *, mpi_count *, mpi_count *, mpi_count *,
                               int *);
    int (*Type_get_contents)(mpi_handle, int, int, int, int *, mpi_aint *, void *);
    int (*Type_get_contents_c)(mpi_handle, mpi_count, mpi_count, mpi_count, mpi_count, int *,
                               mpi_aint *, mpi_count *, void *);
    int (*Type_free)(void *);
    int (*Op_commutative)(mpi_handle, int *);
    int (*Get_elements_x)(const void *, mpi_handle, mpi_count *);
    int (*Test_cancelled)(const void *, int *);
    int (*Query_thread)(int *);
    int (*Topo_test)(mpi_handle, int *);
    int (*Cartdim_get)(mpi_handle, int *);
    int (*Cart_shift)(mpi_handle, int, int, int *, int *);
    int (*Graph_neighbors_count)(mpi_handle, int, int *);
    int (*Graph_neighbors)(mpi_handle, int, int, int *);
    int (*Dist_graph_neighbors_count)(mpi_handle, int *, int *, int *);
    int (*Dist_graph_neighbors)(mpi_handle, int, int *, int *, int, int *, int *);
    int (*Get_library_version)(char *, int *);
    int (*T_init_thread)(int, int *);
    int (*T_finalize)(void);
    int (*T_cvar_get_num)(int *);
    int (*T_cvar_get_info)(int, char *, int *, int *, void *, void *, char *, int *, int *, int *);
    int (*T_cvar_handle_alloc)(int, void *, void *, int *);
    int (*T_cvar_handle_free)(void *);
    int (*T_cvar_read)(void *, void *);
};

extern struct mpi_abi mpi_abi;
extern struct mpi_queries mpi_query; /* a member is NULL where the library lacks the function */

/* Sizes of predefined datatypes by handle, filled after MPI_Init, so that MPI need not be asked on
 * every call. Derived types are not in the table, because their handles may be reused: MPI is asked
 * for their size each time. */
struct mpi_type_size {
    mpi_handle type; /* 0: empty */
    uint64_t bytes;
};
enum { MPI_TYPE_SIZES = 256 };
extern struct mpi_type_size mpi_type_sizes[MPI_TYPE_SIZES];
/* chosen so that all types in the table have different slots */
extern uint64_t mpi_type_multiplier;

static inline unsigned mpi_type_slot(mpi_handle type)
{
    return (unsigned)((type * mpi_type_multiplier) >> 56);
}
_Static_assert(MPI_TYPE_SIZES == 1 << 8, "mpi_type_slot takes eight bits");

/* Fill the table above. Call once, after MPI_Init. */
void mpi_abi_learn_types(void);

/* The second half of it: puts these types (at most MPI_TYPES_MOST) into the table. False if some
 * have no slot. */
enum { MPI_TYPES_MOST = 48 };
bool mpi_abi_place_types(const struct mpi_type_size *types, size_t count);

/* The handle of an object that the library exports (Open MPI's predefined ones are such). 0: it has
 * none of this name. */
mpi_handle mpi_object_address(const char *name);

/* Detect the ABI of the library behind `provider` (a dlopen handle), and resolve the queries. */
void mpi_abi_detect(void *provider, const char *provider_path);

/* The significant bits of a handle, for comparing and hashing. */
static inline mpi_handle mpi_handle_bits(mpi_handle handle)
{
    return handle & mpi_abi.handle_mask;
}

/* Handle number `index` of an array in memory. */
static inline mpi_handle mpi_handle_load(const void *array, size_t index)
{
    if (mpi_abi.handle_bytes == 4)
        return ((const uint32_t *)array)[index];
    return ((const uintptr_t *)array)[index];
}

/* Copy handle number `index` from one array to another. */
static inline void mpi_handle_copy(void *to, const void *from, size_t index)
{
    if (mpi_abi.handle_bytes == 4)
        ((uint32_t *)to)[index] = ((const uint32_t *)from)[index];
    else
        ((uintptr_t *)to)[index] = ((const uintptr_t *)from)[index];
}

/* Store a handle in memory as the library expects it. */
static inline void mpi_handle_store(void *place, mpi_handle handle)
{
    uint32_t narrow = (uint32_t)handle;
    if (mpi_abi.handle_bytes == 4)
        memcpy(place, &narrow, sizeof narrow);
    else
        memcpy(place, &handle, sizeof handle);
}

static inline void *mpi_status_at(void *statuses, size_t index)
{
    return (char *)statuses + index * mpi_abi.status_bytes;
}

/* The number of this process's neighbors in a communicator's topology, including MPI_PROC_NULL at
 * the edge of a Cartesian topology. 0 if there is no topology. */
struct mpi_neighbors {
    int sources, destinations;
};
struct mpi_neighbors mpi_neighbors_of(mpi_handle comm);

/* The ranks of those that it receives from; there is room for twice all of its neighbors. False:
 * MPI did not say. */
bool mpi_sources_of(mpi_handle comm, struct mpi_neighbors neighbors, int *sources);

/* The message that a status describes. */
struct mpi_arrival {
    uint64_t bytes;
    int source; /* rank in the communicator, or the ABI's MPI_PROC_NULL; undefined if cancelled */
    bool cancelled;
};
/* Reading what a status says is inlined: every receive does. */
static inline int mpi_status_source(const void *status)
{
    int source;
    memcpy(&source, (const char *)status + mpi_abi.status_source_offset, sizeof source);
    return source;
}

/* The tag of a message that has arrived. In every ABI it is behind the source. */
static inline int mpi_status_tag(const void *status)
{
    int tag;
    memcpy(&tag, (const char *)status + mpi_abi.status_source_offset + sizeof tag, sizeof tag);
    return tag;
}

/* struct { int source, tag, error; int cancelled; size_t count; } */
static inline struct mpi_arrival mpi_arrival_in_open_mpi(const void *status)
{
    int cancelled;
    uint64_t bytes;
    memcpy(&cancelled, (const char *)status + 12, sizeof cancelled);
    memcpy(&bytes, (const char *)status + 16, sizeof bytes);
    return (struct mpi_arrival){bytes, mpi_status_source(status), cancelled != 0};
}

/* struct { int count_lo; int count_hi_and_cancelled; int source, tag, error; } */
static inline struct mpi_arrival mpi_arrival_in_mpich(const void *status)
{
    uint32_t words[2];
    memcpy(words, status, sizeof words);
    return (struct mpi_arrival){words[0] | (uint64_t)(words[1] >> 1) << 32,
                                mpi_status_source(status), words[1] & 1};
}

/* Under the standard ABI; the second one also if the operation may have been cancelled. */
struct mpi_arrival mpi_arrival_ask(const void *status);
struct mpi_arrival mpi_arrival_ask_cancelled(const void *status);

HOT struct mpi_arrival mpi_arrival_read(const void *status)
{
    if (mpi_abi.kind == MPI_ABI_STANDARD)
        return mpi_arrival_ask_cancelled(status);
    struct mpi_arrival arrival = mpi_abi.kind == MPI_ABI_OPEN_MPI ? mpi_arrival_in_open_mpi(status)
                                                                  : mpi_arrival_in_mpich(status);
    if (arrival.cancelled)
        arrival.bytes = 0;
    return arrival;
}

/* The same if nothing can have been cancelled (probes, blocking receives). The status's flag for it
 * is ignored: MPICH 4.2 does not set it then. */
HOT struct mpi_arrival mpi_arrival_read_uncancelled(const void *status)
{
    struct mpi_arrival arrival = mpi_abi.kind == MPI_ABI_OPEN_MPI ? mpi_arrival_in_open_mpi(status)
                                 : mpi_abi.kind == MPI_ABI_MPICH  ? mpi_arrival_in_mpich(status)
                                                                  : mpi_arrival_ask(status);
    arrival.cancelled = false;
    return arrival;
}

#endif
