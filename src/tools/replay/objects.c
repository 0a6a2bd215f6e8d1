#include "objects.h"

#include "mpi/datatypes.h"
#include "mpi/launcher.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Predefined datatypes by the names that MPI gives them: Open MPI's objects, and the handles of the
 * two other ABIs. 0: it has none. */
static const struct {
    const char *name, *open_mpi;
    uint32_t mpich, standard;
} TYPES[] = {
    {"MPI_BYTE", "ompi_mpi_byte", 0x4c00010d, 0x247},
    {"MPI_PACKED", "ompi_mpi_packed", 0x4c00010f, 0x207},
    {"MPI_CHAR", "ompi_mpi_char", 0x4c000101, 0x243},
    {"MPI_SIGNED_CHAR", "ompi_mpi_signed_char", 0x4c000118, 0x244},
    {"MPI_UNSIGNED_CHAR", "ompi_mpi_unsigned_char", 0x4c000102, 0x245},
    {"MPI_SHORT", "ompi_mpi_short", 0x4c000203, 0x208},
    {"MPI_UNSIGNED_SHORT", "ompi_mpi_unsigned_short", 0x4c000204, 0x20c},
    {"MPI_INT", "ompi_mpi_int", 0x4c000405, 0x209},
    {"MPI_UNSIGNED", "ompi_mpi_unsigned", 0x4c000406, 0x20d},
    {"MPI_LONG", "ompi_mpi_long", 0x4c000807, 0x20a},
    {"MPI_UNSIGNED_LONG", "ompi_mpi_unsigned_long", 0x4c000808, 0x20e},
    {"MPI_LONG_LONG", "ompi_mpi_long_long_int", 0x4c000809, 0x20b},
    {"MPI_LONG_LONG_INT", "ompi_mpi_long_long_int", 0x4c000809, 0x20b},
    {"MPI_UNSIGNED_LONG_LONG", "ompi_mpi_unsigned_long_long", 0x4c000819, 0x20f},
    {"MPI_FLOAT", "ompi_mpi_float", 0x4c00040a, 0x210},
    {"MPI_DOUBLE", "ompi_mpi_double", 0x4c00080b, 0x214},
    {"MPI_LONG_DOUBLE", "ompi_mpi_long_double", 0x4c00100c, 0x220},
    {"MPI_C_BOOL", "ompi_mpi_c_bool", 0x4c00013f, 0x238},
    {"MPI_INT8_T", "ompi_mpi_int8_t", 0x4c000137, 0x240},
    {"MPI_UINT8_T", "ompi_mpi_uint8_t", 0x4c00013b, 0x241},
    {"MPI_INT16_T", "ompi_mpi_int16_t", 0x4c000238, 0x248},
    {"MPI_UINT16_T", "ompi_mpi_uint16_t", 0x4c00023c, 0x249},
    {"MPI_INT32_T", "ompi_mpi_int32_t", 0x4c000439, 0x250},
    {"MPI_UINT32_T", "ompi_mpi_uint32_t", 0x4c00043d, 0x251},
    {"MPI_INT64_T", "ompi_mpi_int64_t", 0x4c00083a, 0x258},
    {"MPI_UINT64_T", "ompi_mpi_uint64_t", 0x4c00083e, 0x259},
    {"MPI_AINT", "ompi_mpi_aint", 0x4c000843, 0x201},
    {"MPI_COUNT", "ompi_mpi_count", 0x4c000845, 0x202},
    {"MPI_OFFSET", "ompi_mpi_offset", 0x4c000844, 0x203},
    {"MPI_INTEGER", "ompi_mpi_integer", 0x4c00041b, 0},
    {"MPI_REAL", "ompi_mpi_real", 0x4c00041c, 0},
    {"MPI_DOUBLE_PRECISION", "ompi_mpi_dblprec", 0x4c00081f, 0},
    {"MPI_COMPLEX", "ompi_mpi_cplex", 0x4c00081e, 0},
    {"MPI_DOUBLE_COMPLEX", "ompi_mpi_dblcplex", 0x4c001022, 0},
    {"MPI_LOGICAL", "ompi_mpi_logical", 0x4c00041d, 0},
    {"MPI_CHARACTER", "ompi_mpi_character", 0x4c00011a, 0},
    {"MPI_C_FLOAT_COMPLEX", "ompi_mpi_c_float_complex", 0x4c000840, 0x212},
    {"MPI_C_DOUBLE_COMPLEX", "ompi_mpi_c_double_complex", 0x4c001041, 0x216},
    {"MPI_2INT", "ompi_mpi_2int", 0x4c000816, 0x22b},
};

static void *library;

static bool is_here(const char *path, char *why, size_t why_bytes)
{
    library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        snprintf(why, why_bytes, "%s", dlerror());
    else
        mpi_abi_detect(library, path);
    return library;
}

bool library_load(const char *path, char *why, size_t why_bytes)
{
    static const struct {
        const char *abi, *path;
    } NAMES[] = {{"Open MPI", "libmpi.so.40"},
                 {"MPICH", "libmpi.so.12"},
                 {"MPICH", "libmpich.so.12"},
                 {"", "libmpi_abi.so.1"},
                 {"", "libmpi_abi.so.0"}};
    int processes;
    const struct launcher *launcher = launcher_find(&processes);
    const char *abi = launcher ? launcher->mpi_abi : NULL;
    if (path)
        return is_here(path, why, why_bytes) && mpi_abi.known;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if ((!abi || strcmp(abi, NAMES[i].abi) == 0) && is_here(NAMES[i].path, why, why_bytes))
            return mpi_abi.known;
    return false;
}

void *library_function(const char *name)
{
    return dlsym(library, name);
}

static mpi_handle predefined(const char *name)
{
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (strcmp(name, TYPES[i].name) == 0)
            return mpi_abi.kind == MPI_ABI_OPEN_MPI ? mpi_object_address(TYPES[i].open_mpi)
                   : mpi_abi.kind == MPI_ABI_MPICH  ? TYPES[i].mpich
                                                    : TYPES[i].standard;
    return 0;
}

/* Blocks of equal length at equal distances, which have the size and the extent of the type. */
static void make_type(uint64_t *made, const struct kit_type *type)
{
    int (*vector)(int, int, mpi_aint, mpi_handle, void *) = (int (*)(
        int, int, mpi_aint, mpi_handle, void *))library_function("MPI_Type_create_hvector");
    int (*resized)(mpi_handle, mpi_aint, mpi_aint, void *) = (int (*)(
        mpi_handle, mpi_aint, mpi_aint, void *))library_function("MPI_Type_create_resized");
    int (*commit)(void *) = (int (*)(void *))library_function("MPI_Type_commit");
    int64_t blocks = type->bytes % type->blocks == 0 ? type->blocks : 1;
    uint64_t laid_out = 0;
    vector((int)blocks, (int)(type->bytes / blocks), (mpi_aint)(type->extent / blocks),
           mpi_abi.byte, &laid_out);
    resized(mpi_handle_load(&laid_out, 0), 0, (mpi_aint)type->extent, made);
    commit(made);
}

static void nothing_op(void *in, void *inout, int *length, void *type)
{
    (void)in, (void)inout, (void)length, (void)type;
}

/* The communicators of one round, by one call of all members of their parent. */
static int make_round(struct objects *objects, const struct kit *kit, int first, int rank)
{
    int (*dup)(mpi_handle, void *) = (int (*)(mpi_handle, void *))library_function("MPI_Comm_dup");
    int (*split)(mpi_handle, int, int, void *) =
        (int (*)(mpi_handle, int, int, void *))library_function("MPI_Comm_split");
    const struct kit_comm *comm = &kit->comm[first];
    mpi_handle parent = mpi_handle_load(&objects->comm[comm->parent], 0);
    int end = first, mine = -1, key = 0;
    for (; end < kit->comms && kit->comm[end].round == comm->round; end++)
        for (int i = 0; i < kit->comm[end].size; i++)
            if (kit->comm[end].members[i] == rank)
                mine = end, key = i;
    if (parent == mpi_abi.comm_null)
        return end;
    if (comm->how == KIT_DUP)
        dup(parent, &objects->comm[first]);
    else {
        uint64_t made = 0;
        split(parent, mine < 0 ? MPI_UNDEFINED : mine, key, &made);
        if (mine >= 0)
            objects->comm[mine] = made;
    }
    return end;
}

static void *room(size_t count, size_t bytes)
{
    void *rows = calloc(count + 1, bytes);
    if (!rows)
        abort();
    return rows;
}

void objects_make(struct objects *objects, const struct kit *kit, int rank)
{
    int (*op_create)(void *, int, void *) =
        (int (*)(void *, int, void *))library_function("MPI_Op_create");
    mpi_ops_learn();
    objects->comm = room((size_t)kit->comms, sizeof *objects->comm);
    for (int i = 0; i < kit->comms; i++)
        mpi_handle_store(&objects->comm[i], i == KIT_WORLD  ? mpi_abi.comm_world
                                            : i == KIT_SELF ? mpi_abi.comm_self
                                                            : mpi_abi.comm_null);
    for (int i = KIT_DUP; i < kit->comms;)
        i = make_round(objects, kit, i, rank);
    objects->type = room((size_t)kit->types, sizeof *objects->type);
    objects->is_own = room((size_t)kit->types, sizeof *objects->is_own);
    for (int i = 0; i < kit->types; i++) {
        mpi_handle type = predefined(kit->type[i].name);
        objects->is_own[i] = !type;
        if (type)
            mpi_handle_store(&objects->type[i], type);
        else
            make_type(&objects->type[i], &kit->type[i]);
    }
    for (int commutes = 0; commutes < 2; commutes++)
        op_create((void *)nothing_op, commutes, &objects->user_op[commutes]);
}

mpi_handle objects_op(const struct objects *objects, const char *name, int type)
{
    mpi_handle op = type != KIT_NONE && objects->is_own[type] ? 0 : mpi_op_named(name);
    return op ? op : mpi_handle_load(&objects->user_op[1], 0);
}
