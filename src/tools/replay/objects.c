#include "objects.h"

#include "mpi/datatypes.h"
#include "mpi/launcher.h"
#include "watch.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The library that the program is linked with; the profiler, which may be preloaded, has no such
 * function. NULL: none. */
static const char *loaded_path(void)
{
    Dl_info found;
    void *function = dlsym(RTLD_DEFAULT, "MPI_Get_version");
    return function && dladdr(function, &found) ? found.dli_fname : NULL;
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
    if (path || (path = loaded_path()))
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

/* Blocks of equal length at equal distances, which have the size and the extent of the type,
 * forwards: buffers begin at their address. */
static void make_type(uint64_t *made, const struct kit_type *type)
{
    int (*vector)(int, int, mpi_aint, mpi_handle, void *) = (int (*)(
        int, int, mpi_aint, mpi_handle, void *))library_function("MPI_Type_create_hvector");
    int (*resized)(mpi_handle, mpi_aint, mpi_aint, void *) = (int (*)(
        mpi_handle, mpi_aint, mpi_aint, void *))library_function("MPI_Type_create_resized");
    int (*commit)(void *) = (int (*)(void *))library_function("MPI_Type_commit");
    int64_t blocks = type->bytes % type->blocks == 0 ? type->blocks : 1;
    mpi_aint extent = (mpi_aint)llabs(type->extent);
    uint64_t laid_out = 0;
    vector((int)blocks, (int)(type->bytes / blocks), extent / blocks, mpi_abi.byte, &laid_out);
    resized(mpi_handle_load(&laid_out, 0), 0, extent, made);
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
    watch_own(watch_slot(0), comm->how == KIT_DUP ? "MPI_Comm_dup" : "MPI_Comm_split",
              mine < 0 ? first : mine);
    if (comm->how == KIT_DUP)
        dup(parent, &objects->comm[first]);
    else {
        uint64_t made = 0;
        split(parent, mine < 0 ? MPI_UNDEFINED : mine, key, &made);
        if (mine >= 0)
            objects->comm[mine] = made;
    }
    watch_own_end(watch_slot(0));
    return end;
}

static void *room(size_t count, size_t bytes)
{
    void *rows = calloc(count + 1, bytes);
    if (!rows)
        abort();
    return rows;
}

/* Buffers have room for what the kit says of a type. */
static bool is_as_here(mpi_handle type, const struct kit_type *said)
{
    int bytes = 0;
    mpi_aint lower = 0, extent = 0;
    return mpi_query.Type_size(type, &bytes) == MPI_SUCCESS &&
           mpi_query.Type_get_extent(type, &lower, &extent) == MPI_SUCCESS &&
           bytes == said->bytes && extent == said->extent;
}

bool objects_make(struct objects *objects, const struct kit *kit, int rank, char *why,
                  size_t why_bytes)
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
        mpi_handle type = mpi_type_named(kit->type[i].name);
        objects->is_own[i] = !type;
        if (type && !is_as_here(type, &kit->type[i])) {
            snprintf(why, why_bytes, "%s has another size here", kit->type[i].name);
            return false;
        }
        if (type)
            mpi_handle_store(&objects->type[i], type);
        else
            make_type(&objects->type[i], &kit->type[i]);
    }
    objects->bytes = room((size_t)kit->ranks, sizeof(uint64_t));
    for (int i = 0; i < kit->ranks; i++)
        mpi_handle_store((char *)objects->bytes + (size_t)i * mpi_abi.handle_bytes, mpi_abi.byte);
    for (int commutes = 0; commutes < 2; commutes++)
        op_create((void *)nothing_op, commutes, &objects->user_op[commutes]);
    return true;
}

mpi_handle objects_op(const struct objects *objects, const char *name, int type)
{
    mpi_handle op = type != KIT_NONE && objects->is_own[type] ? 0 : mpi_op_named(name);
    return op ? op : mpi_handle_load(&objects->user_op[1], 0);
}
