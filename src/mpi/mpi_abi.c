/* The values are those of three ABIs, from their headers: Open MPI 2 to 6 (soname libmpi.so.40),
 * the MPICH ABI initiative (MPICH 3.1 to 5, Intel MPI, MVAPICH, Cray MPICH; soname libmpi.so.12),
 * and the standard ABI of MPI-5.0 (libmpi_abi.so.1). tests/abi/test_abi.py compiles a program with
 * each installed mpi.h that compares them.
 *
 * The ABI is detected by symbols, not by version strings. The order matters: Open MPI 6's
 * libmpi_abi depends on an object that defines Open MPI's own symbols, so the standard ABI is tried
 * first. */
#include "mpi_abi.h"

#include <dlfcn.h>

struct mpi_abi mpi_abi = {
    .kind = MPI_ABI_UNKNOWN, .name = "unknown", .err_other = 16, .thread_levels = {0, 1, 2, 3}};
struct mpi_queries mpi_query;
static void *mpi_provider;

static const struct mpi_abi OPEN_MPI = {
    .kind = MPI_ABI_OPEN_MPI,
    .name = "Open MPI",
    .known = true,
    .handle_mask = UINTPTR_MAX,
    .handle_bytes =
        8, /* handles are addresses of objects, which resolve_open_mpi_handles fills in */
    .in_place = (void *)1,
    .status_ignore = NULL,
    .proc_null = -2,
    .any_source = -1,
    .root = -4,
    .err_other = 16,
    .status_bytes = 24,
    .status_source_offset = 0,
    .thread_levels = {0, 1, 2, 3},
    .cart = 1,
    .graph = 2,
    .dist_graph = 3,
    .bind_no_object = 0,
    .order_c = 0,
};

static const struct mpi_abi MPICH = {
    .kind = MPI_ABI_MPICH,
    .name = "MPICH",
    .known = true,
    .handle_bytes = 4,
    .handle_mask = UINT32_MAX,
    .comm_world = 0x44000000,
    .comm_self = 0x44000001,
    .comm_null = 0x04000000,
    .request_null = 0x2c000000,
    .datatype_null = 0x0c000000,
    .byte = 0x4c00010d,
    .in_place = (void *)-1,
    .status_ignore = (void *)1,
    .proc_null = -1,
    .any_source = -2,
    .root = -3,
    .err_other = 15,
    .status_bytes = 20,
    .status_source_offset = 8,
    .thread_levels = {0, 1, 2, 3},
    .graph = 1,
    .cart = 2,
    .dist_graph = 3,
    .bind_no_object = 9700,
    .order_c = 56,
};

static const struct mpi_abi STANDARD = {
    .kind = MPI_ABI_STANDARD,
    .name = "MPI standard ABI",
    .known = true,
    .handle_bytes = 8,
    .handle_mask = UINTPTR_MAX,
    .comm_world = 0x101,
    .comm_self = 0x102,
    .comm_null = 0x100,
    .request_null = 0x180,
    .datatype_null = 0x200,
    .byte = 0x247,
    .in_place = (void *)1,
    .status_ignore = NULL,
    .proc_null = -3,
    .any_source = -1,
    .root = -4,
    .err_other = 16,
    .status_bytes = 32,
    .status_source_offset = 0,
    .thread_levels = {0, 1024, 2048, 4096},
    .cart = 211,
    .graph = 212,
    .dist_graph = 213,
    .bind_no_object = 1,
    .order_c = 12,
};

static bool speaks_the_standard_abi(void *provider, const char *path)
{
    int major = -1, minor = -1;
    int (*version)(int *, int *) = (int (*)(int *, int *))dlsym(provider, "PMPI_Abi_get_version");
    if (version && version(&major, &minor) == MPI_SUCCESS && major >= 1)
        return true; /* the native libraries of MPICH 4.3+ and Open MPI 6 have the function too, but
                        return -1 */
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, "libmpi_abi", 10) == 0;
}

/* An executable that uses MPI_COMM_WORLD may have its own copy of the object (a COPY relocation),
 * which libmpi then uses too. So the global scope is searched first, and the provider only if MPI
 * was loaded privately (Python). */
mpi_handle mpi_object_address(const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    return (mpi_handle)(address ? address : dlsym(mpi_provider, name));
}

static void resolve_open_mpi_handles(void)
{
    mpi_abi.comm_world = mpi_object_address("ompi_mpi_comm_world");
    mpi_abi.comm_self = mpi_object_address("ompi_mpi_comm_self");
    mpi_abi.comm_null = mpi_object_address("ompi_mpi_comm_null");
    mpi_abi.request_null = mpi_object_address("ompi_request_null");
    mpi_abi.datatype_null = mpi_object_address("ompi_mpi_datatype_null");
    mpi_abi.byte = mpi_object_address("ompi_mpi_byte");
}

static void resolve_queries(void *provider)
{
#define QUERY(NAME) mpi_query.NAME = (__typeof__(mpi_query.NAME))dlsym(provider, "PMPI_" #NAME);
    QUERY(Comm_size)
    QUERY(Comm_rank)
    QUERY(Comm_remote_size)
    QUERY(Comm_test_inter)
    QUERY(Comm_group)
    QUERY(Comm_remote_group)
    QUERY(Comm_get_parent)
    QUERY(Group_size)
    QUERY(Group_rank)
    QUERY(Group_translate_ranks)
    QUERY(Group_from_session_pset)
    QUERY(Group_free)
    QUERY(Type_size)
    QUERY(Type_size_x)
    QUERY(Type_get_name)
    QUERY(Type_get_extent)
    QUERY(Type_get_envelope)
    QUERY(Type_get_envelope_c)
    QUERY(Type_get_contents)
    QUERY(Type_get_contents_c)
    QUERY(Type_free)
    QUERY(Op_commutative)
    QUERY(Get_elements_x)
    QUERY(Test_cancelled)
    QUERY(Query_thread)
    QUERY(Topo_test)
    QUERY(Cartdim_get)
    QUERY(Cart_shift)
    QUERY(Graph_neighbors_count)
    QUERY(Graph_neighbors)
    QUERY(Dist_graph_neighbors_count)
    QUERY(Dist_graph_neighbors)
    QUERY(Get_library_version)
    QUERY(T_init_thread)
    QUERY(T_finalize)
    QUERY(T_cvar_get_num)
    QUERY(T_cvar_get_info)
    QUERY(T_cvar_handle_alloc)
    QUERY(T_cvar_handle_free)
    QUERY(T_cvar_read)
#undef QUERY
}

void mpi_abi_detect(void *provider, const char *provider_path)
{
    mpi_provider = provider;
    resolve_queries(provider);
    if (speaks_the_standard_abi(provider, provider_path))
        mpi_abi = STANDARD;
    else if (dlsym(provider, "ompi_mpi_comm_world")) {
        mpi_abi = OPEN_MPI;
        resolve_open_mpi_handles();
    } else if (dlsym(provider, "MPI_UNWEIGHTED")) /* a data symbol that only the MPICH ABI has */
        mpi_abi = MPICH;
}

/* Open MPI's predefined types are objects with these names; those of the standard ABI are small
 * numbers; those of MPICH encode their size in the handle (traffic.h). */
static const char *const OPEN_MPI_TYPES[] = {
    "ompi_mpi_byte",
    "ompi_mpi_packed",
    "ompi_mpi_char",
    "ompi_mpi_signed_char",
    "ompi_mpi_unsigned_char",
    "ompi_mpi_short",
    "ompi_mpi_unsigned_short",
    "ompi_mpi_int",
    "ompi_mpi_unsigned",
    "ompi_mpi_long",
    "ompi_mpi_unsigned_long",
    "ompi_mpi_long_long_int",
    "ompi_mpi_unsigned_long_long",
    "ompi_mpi_float",
    "ompi_mpi_double",
    "ompi_mpi_long_double",
    "ompi_mpi_c_bool",
    "ompi_mpi_int8_t",
    "ompi_mpi_uint8_t",
    "ompi_mpi_int16_t",
    "ompi_mpi_uint16_t",
    "ompi_mpi_int32_t",
    "ompi_mpi_uint32_t",
    "ompi_mpi_int64_t",
    "ompi_mpi_uint64_t",
    "ompi_mpi_aint",
    "ompi_mpi_offset",
    "ompi_mpi_count",
    "ompi_mpi_integer",
    "ompi_mpi_integer8",
    "ompi_mpi_real",
    "ompi_mpi_dblprec",
    "ompi_mpi_real4",
    "ompi_mpi_real8",
    "ompi_mpi_cplex",
    "ompi_mpi_dblcplex",
    "ompi_mpi_logical",
    "ompi_mpi_character",
    "ompi_mpi_float_int",
    "ompi_mpi_double_int",
    "ompi_mpi_2int",
    "ompi_mpi_c_float_complex",
    "ompi_mpi_c_double_complex",
    NULL,
};
_Static_assert(sizeof OPEN_MPI_TYPES / sizeof *OPEN_MPI_TYPES - 1 <= MPI_TYPES_MOST,
               "the table of types has a place for each");

/* The C types, which every library has. Asking for a type that a library lacks (a Fortran type, if
 * it was built without) is an error. */
static const uint16_t STANDARD_TYPES[] = {
    0x201, 0x202, 0x203, /* AINT, COUNT, OFFSET */
    0x207, 0x247,        /* PACKED, BYTE */
    0x208, 0x209, 0x20a, 0x20b, 0x20c, 0x20d, 0x20e,
    0x20f,                                    /* SHORT, INT, LONG, LONG_LONG, and their UNSIGNED */
    0x210, 0x214, 0x220, 0x212, 0x216, 0x224, /* FLOAT, DOUBLE, LONG_DOUBLE, and their
                                               * C_..._COMPLEX */
    0x228, 0x229, 0x22a, 0x22b, 0x22c, 0x22d, /* FLOAT_INT ... LONG_DOUBLE_INT */
    0x238, 0x23c,                             /* C_BOOL, WCHAR */
    0x243, 0x244, 0x245,                      /* CHAR, SIGNED_CHAR, UNSIGNED_CHAR */
    0x240, 0x241, 0x248, 0x249, 0x250, 0x251, 0x258,
    0x259, /* INT8_T, UINT8_T ... UINT64_T */
};
_Static_assert(sizeof STANDARD_TYPES / sizeof *STANDARD_TYPES <= MPI_TYPES_MOST,
               "the table of types has a place for each");

struct mpi_type_size mpi_type_sizes[MPI_TYPE_SIZES];
uint64_t mpi_type_multiplier = 0x9e3779b97f4a7c15;

static bool place_type(const struct mpi_type_size *type)
{
    struct mpi_type_size *slot = &mpi_type_sizes[mpi_type_slot(type->type)];
    if (slot->type && slot->type != type->type)
        return false;
    *slot = *type;
    return true;
}

static bool place_all(const struct mpi_type_size *types, size_t count)
{
    size_t placed = 0;
    memset(mpi_type_sizes, 0, sizeof mpi_type_sizes);
    while (placed < count && place_type(&types[placed]))
        placed++;
    return placed == count;
}

/* Open MPI's handles are addresses, which differ between processes. If two types had the same slot,
 * one would be missing from the table, in some processes. One multiplier in 40 gives 42 types
 * different slots. If none of those tried does, the last one is used for some types. */
bool mpi_abi_place_types(const struct mpi_type_size *types, size_t count)
{
    for (int tries = 0; tries < 10000; tries++) {
        if (place_all(types, count))
            return true;
        mpi_type_multiplier =
            mpi_type_multiplier * 6364136223846793005 + 1442695040888963406; /* odd again */
    }
    return false;
}

static size_t learn_type(mpi_handle type, struct mpi_type_size *next)
{
    int bytes = 0;
    if (!type || mpi_query.Type_size(type, &bytes) != MPI_SUCCESS || bytes < 0)
        return 0;
    *next = (struct mpi_type_size){type, (uint64_t)bytes};
    return 1;
}

void mpi_abi_learn_types(void)
{
    struct mpi_type_size types[MPI_TYPES_MOST];
    size_t count = 0;
    if (mpi_abi.kind == MPI_ABI_OPEN_MPI)
        for (const char *const *name = OPEN_MPI_TYPES; *name; name++)
            count += learn_type(mpi_object_address(*name), &types[count]);
    if (mpi_abi.kind == MPI_ABI_STANDARD)
        for (size_t i = 0; i < sizeof STANDARD_TYPES / sizeof *STANDARD_TYPES; i++)
            count += learn_type(STANDARD_TYPES[i], &types[count]);
    mpi_abi_place_types(types, count);
}

/* The standard ABI does not define where a status holds the count: MPI is asked. */
struct mpi_arrival mpi_arrival_ask(const void *status)
{
    struct mpi_arrival arrival = {0, mpi_status_source(status), false};
    mpi_count bytes = 0;
    if (mpi_query.Get_elements_x &&
        mpi_query.Get_elements_x(status, mpi_abi.byte, &bytes) == MPI_SUCCESS)
        arrival.bytes = bytes > 0 ? (uint64_t)bytes : 0;
    return arrival;
}

static bool asked_cancelled(const void *status)
{
    int cancelled = 0;
    return mpi_query.Test_cancelled &&
           mpi_query.Test_cancelled(status, &cancelled) == MPI_SUCCESS && cancelled;
}

struct mpi_arrival mpi_arrival_ask_cancelled(const void *status)
{
    return asked_cancelled(status) ? (struct mpi_arrival){0, mpi_status_source(status), true}
                                   : mpi_arrival_ask(status);
}

static struct mpi_neighbors cart_neighbors(mpi_handle comm)
{
    int dimensions = 0;
    mpi_query.Cartdim_get(comm, &dimensions);
    return (struct mpi_neighbors){2 * dimensions, 2 * dimensions};
}

static struct mpi_neighbors graph_neighbors(mpi_handle comm)
{
    int rank = 0, count = 0;
    if (mpi_query.Comm_rank(comm, &rank) == MPI_SUCCESS)
        mpi_query.Graph_neighbors_count(comm, rank, &count);
    return (struct mpi_neighbors){count, count};
}

static struct mpi_neighbors dist_graph_neighbors(mpi_handle comm)
{
    struct mpi_neighbors neighbors = {0, 0};
    int weighted;
    mpi_query.Dist_graph_neighbors_count(comm, &neighbors.sources, &neighbors.destinations,
                                         &weighted);
    return neighbors;
}

struct mpi_neighbors mpi_neighbors_of(mpi_handle comm)
{
    int topology = MPI_UNDEFINED;
    if (mpi_query.Topo_test(comm, &topology) != MPI_SUCCESS)
        return (struct mpi_neighbors){0, 0};
    return topology == mpi_abi.cart         ? cart_neighbors(comm)
           : topology == mpi_abi.graph      ? graph_neighbors(comm)
           : topology == mpi_abi.dist_graph ? dist_graph_neighbors(comm)
                                            : (struct mpi_neighbors){0, 0};
}

/* Both neighbors in a dimension send to this process. */
static bool cart_sources(mpi_handle comm, int neighbors, int *sources)
{
    for (int i = 0; i + 1 < neighbors; i += 2)
        if (!mpi_query.Cart_shift ||
            mpi_query.Cart_shift(comm, i / 2, 1, &sources[i], &sources[i + 1]) != MPI_SUCCESS)
            return false;
    return true;
}

static bool graph_sources(mpi_handle comm, int neighbors, int *sources)
{
    int rank = 0;
    return mpi_query.Graph_neighbors && mpi_query.Comm_rank(comm, &rank) == MPI_SUCCESS &&
           mpi_query.Graph_neighbors(comm, rank, neighbors, sources) == MPI_SUCCESS;
}

static bool dist_graph_sources(mpi_handle comm, struct mpi_neighbors neighbors, int *sources)
{
    int *destinations = sources + neighbors.sources,
        *weights = destinations + neighbors.destinations;
    return mpi_query.Dist_graph_neighbors &&
           mpi_query.Dist_graph_neighbors(comm, neighbors.sources, sources, weights,
                                          neighbors.destinations, destinations,
                                          weights + neighbors.sources) == MPI_SUCCESS;
}

bool mpi_sources_of(mpi_handle comm, struct mpi_neighbors neighbors, int *sources)
{
    int topology = MPI_UNDEFINED;
    if (mpi_query.Topo_test(comm, &topology) != MPI_SUCCESS)
        return false;
    return topology == mpi_abi.cart         ? cart_sources(comm, neighbors.sources, sources)
           : topology == mpi_abi.graph      ? graph_sources(comm, neighbors.sources, sources)
           : topology == mpi_abi.dist_graph ? dist_graph_sources(comm, neighbors, sources)
                                            : false;
}
