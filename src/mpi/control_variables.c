/* MPI_T counts its initializations, so that ours should change nothing for a job that uses MPI_T as
 * well. Faults of libraries restrict this:
 *
 * - Open MPI takes the thread level of the first MPI_T_init_thread for that of MPI, so it gets the
 *   level that the job has already.
 * - If MPI_T was initialized before MPI_Init, Open MPI has variables whose memory MPI_Init has
 *   unloaded, and crashes when they are read. So none is read then.
 * - MPICH frees all variables at the last MPI_T_finalize and crashes at the next MPI_T_init_thread,
 *   so MPI_T is finalized only for Open MPI.
 *
 * A variable's type is identified by its name, which is the same under every ABI. */
#include "control_variables.h"

#include "mpi_abi.h"

#include <inttypes.h>
#include <stdio.h>

/* Open MPI copies texts of any length, whatever `count` says; they are as long as an environment
 * variable at most. */
enum { NAME_BYTES = 1024, VALUE_BYTES = 128 << 10, TEXT_BYTES = 16384, TYPE_NAME_BYTES = 256 };

enum kind { KIND_SIGNED, KIND_UNSIGNED, KIND_DOUBLE, KIND_TEXT, KIND_UNKNOWN };

/* The types that a variable may have (MPI-4.1, 15.3.5), and those that libraries use besides. */
static const struct {
    const char *name;
    enum kind kind;
} TYPES[] = {
    {"MPI_INT", KIND_SIGNED},
    {"MPI_LONG", KIND_SIGNED},
    {"MPI_COUNT", KIND_SIGNED},
    {"MPI_INT32_T", KIND_SIGNED},
    {"MPI_INT64_T", KIND_SIGNED},
    {"MPI_UNSIGNED", KIND_UNSIGNED},
    {"MPI_UNSIGNED_LONG", KIND_UNSIGNED},
    {"MPI_UNSIGNED_LONG_LONG", KIND_UNSIGNED},
    {"MPI_UINT32_T", KIND_UNSIGNED},
    {"MPI_UINT64_T", KIND_UNSIGNED},
    {"MPI_C_BOOL", KIND_UNSIGNED},
    {"MPI_DOUBLE", KIND_DOUBLE},
    {"MPI_CHAR", KIND_TEXT},
};

struct type {
    enum kind kind;
    size_t bytes;
};

static struct type type_of(mpi_handle type)
{
    char name[TYPE_NAME_BYTES];
    int length = 0, bytes = 0;
    if (mpi_query.Type_get_name(type, name, &length) != MPI_SUCCESS ||
        mpi_query.Type_size(type, &bytes) != MPI_SUCCESS)
        return (struct type){KIND_UNKNOWN, 0};
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (strcmp(TYPES[i].name, name) == 0)
            return (struct type){TYPES[i].kind, (size_t)bytes};
    return (struct type){KIND_UNKNOWN, 0};
}

static int print_number(char *text, size_t text_bytes, const char *value, struct type type)
{
    uint64_t bits = 0;
    double real;
    memcpy(&bits, value, type.bytes < sizeof bits ? type.bytes : sizeof bits);
    memcpy(&real, &bits, sizeof real);
    if (type.kind == KIND_DOUBLE)
        return snprintf(text, text_bytes, "%.17g", real);
    if (type.kind == KIND_SIGNED)
        return snprintf(text, text_bytes, "%" PRId64,
                        type.bytes == sizeof(int32_t) ? (int64_t)(int32_t)bits : (int64_t)bits);
    return snprintf(text, text_bytes, "%" PRIu64, bits);
}

static void print_numbers(char *text, size_t text_bytes, const char *values, int count,
                          struct type type)
{
    size_t used = 0;
    for (int i = 0; i < count && used + 1 < text_bytes; i++) {
        if (i)
            used += (size_t)snprintf(text + used, text_bytes - used, ",");
        used += (size_t)print_number(text + used, text_bytes - used,
                                     values + (size_t)i * type.bytes, type);
    }
}

/* The value of a variable as text; false if it cannot be read. */
static bool read_value(int index, struct type type, char *text)
{
    static char values[VALUE_BYTES];
    void *handle;
    int count = 0;
    if (mpi_query.T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
        return false;
    size_t bytes = count > 0 ? (size_t)count * type.bytes : 0;
    bool is_read = false;
    if (bytes < sizeof values) {
        memset(values, 0,
               bytes +
                   1); /* Open MPI fills one byte of a bool, and calls it an int in some versions */
        is_read = mpi_query.T_cvar_read(handle, values) == MPI_SUCCESS;
    }
    mpi_query.T_cvar_handle_free(&handle);
    if (is_read && type.kind == KIND_TEXT)
        snprintf(text, TEXT_BYTES, "%.*s", TEXT_BYTES - 1, values);
    else if (is_read)
        print_numbers(text, TEXT_BYTES, values, count, type);
    return is_read;
}

static bool read_variable(int index, bool *exists,
                          void (*take)(const char *name, const char *value))
{
    static char text[TEXT_BYTES];
    char name[NAME_BYTES];
    int name_bytes = sizeof name, binding = -1;
    uintptr_t memory = 0;
    *exists = mpi_query.T_cvar_get_info(index, name, &name_bytes, NULL, &memory, NULL, NULL, NULL,
                                        &binding, NULL) == MPI_SUCCESS;
    if (!*exists || binding != mpi_abi.bind_no_object)
        return false;
    struct type type = type_of(mpi_handle_load(&memory, 0));
    text[0] = '\0';
    if (type.kind == KIND_UNKNOWN || !read_value(index, type, text))
        return false;
    take(name, text);
    return true;
}

static bool has_mpi_t(void)
{
    return mpi_abi.known && mpi_query.T_init_thread && mpi_query.T_finalize &&
           mpi_query.T_cvar_get_num && mpi_query.T_cvar_get_info && mpi_query.T_cvar_handle_alloc &&
           mpi_query.T_cvar_handle_free && mpi_query.T_cvar_read && mpi_query.Type_get_name;
}

static struct control_variables read_all(void (*take)(const char *name, const char *value))
{
    struct control_variables found = {0, 0};
    int count = 0;
    if (mpi_query.T_cvar_get_num(&count) != MPI_SUCCESS)
        return found;
    for (int i = 0; i < count; i++) {
        bool exists;
        found.read += read_variable(i, &exists, take);
        found.all += exists;
    }
    return found;
}

struct control_variables control_variables_read(int thread_level,
                                                void (*take)(const char *name, const char *value))
{
    struct control_variables found = {0, 0};
    bool is_open_mpi = mpi_abi.kind == MPI_ABI_OPEN_MPI;
    int provided;
    if (!has_mpi_t() || (is_open_mpi && mpi_query.T_cvar_get_num(&found.all) == MPI_SUCCESS) ||
        mpi_query.T_init_thread(mpi_abi.thread_levels[thread_level], &provided) != MPI_SUCCESS)
        return found;
    found = read_all(take);
    if (is_open_mpi)
        mpi_query.T_finalize();
    return found;
}
