/* Control variables as an MPI library of this test has them: of every type, bound to objects, and
 * unreadable. */
#include "fake_mpi.h"
#include "unit.h"

#include "mpi/control_variables.h"

enum { INVALID = 1 };

/* The datatypes' handles are indices into this table. */
static const struct {
    const char *name;
    int bytes;
} types[] = {{"", 0},
             {"MPI_INT", 4},
             {"MPI_UNSIGNED", 4},
             {"MPI_COUNT", 8},
             {"MPI_UNSIGNED_LONG_LONG", 8},
             {"MPI_C_BOOL", 1},
             {"MPI_CHAR", 1},
             {"MPI_DOUBLE", 8},
             {"MPI_PACKED", 1}};
enum { INT = 1, UNSIGNED, COUNT, UNSIGNED_LONG_LONG, C_BOOL, CHAR, DOUBLE, PACKED };

static const struct variable {
    const char *name; /* NULL: there was one */
    int type;
    int count;
    const void *value; /* NULL: it cannot be read */
    bool is_bound;
} variables[] = {
    {"negative", INT, 1, &(int){-3}, false},
    {"large", UNSIGNED, 1, &(unsigned){0xfffffffe}, false},
    {"long", COUNT, 1, &(int64_t){-5000000000}, false},
    {"longest", UNSIGNED_LONG_LONG, 1, &(uint64_t){UINT64_MAX}, false},
    {"switch", C_BOOL, 1, "\1", false},
    {"ratio", DOUBLE, 1, &(double){0.25}, false},
    {"pair", INT, 2, (int[]){8, 16}, false},
    {"text", CHAR, 2048, "self,vader", false},
    {"nothing", CHAR, 2048, "", false},
    {"of a communicator", INT, 1, &(int){1}, true},
    {NULL, INT, 1, NULL, false},
    {"unreadable", CHAR, 2048, NULL, false},
    {"odd", PACKED, 1, "x", false},
};
enum { VARIABLES = sizeof variables / sizeof *variables };

static int initialized, level_requested, handles;

static int fake_T_init_thread(int required, int *provided)
{
    initialized++;
    *provided = level_requested = required;
    return MPI_SUCCESS;
}

static int fake_T_finalize(void)
{
    initialized--;
    return MPI_SUCCESS;
}

static int fake_T_cvar_get_num(int *count)
{
    *count = VARIABLES;
    return initialized ? MPI_SUCCESS : INVALID;
}

static int fake_T_cvar_get_info(int index, char *name, int *name_bytes, int *verbosity, void *type,
                                void *enumeration, char *text, int *text_bytes, int *binding,
                                int *scope)
{
    CHECK(!verbosity && !enumeration && !text && !text_bytes && !scope);
    if (!variables[index].name)
        return INVALID;
    snprintf(name, (size_t)*name_bytes, "%s", variables[index].name);
    mpi_handle_store(type, (mpi_handle)variables[index].type);
    *binding = mpi_abi.bind_no_object + variables[index].is_bound;
    return MPI_SUCCESS;
}

static int fake_T_cvar_handle_alloc(int index, void *object, void *handle, int *count)
{
    CHECK(!object && !variables[index].is_bound);
    *(const void **)handle = &variables[index];
    *count = variables[index].count;
    handles++;
    return MPI_SUCCESS;
}

static int fake_T_cvar_handle_free(void *handle)
{
    *(void **)handle = NULL;
    handles--;
    return MPI_SUCCESS;
}

static int fake_T_cvar_read(void *handle, void *values)
{
    const struct variable *variable = handle;
    if (!variable->value)
        return INVALID;
    if (variable->type == CHAR)
        strcpy(values, variable->value);
    else
        memcpy(values, variable->value,
               (size_t)variable->count * (size_t)types[variable->type].bytes);
    return MPI_SUCCESS;
}

static int fake_Type_get_name(mpi_handle type, char *name, int *length)
{
    *length = sprintf(name, "%s", types[type].name);
    return MPI_SUCCESS;
}

static int fake_size(mpi_handle type, int *bytes)
{
    *bytes = types[type].bytes;
    return MPI_SUCCESS;
}

static char taken[4096];

static void take(const char *name, const char *value)
{
    size_t used = strlen(taken);
    snprintf(taken + used, sizeof taken - used, "%s=%s ", name, value);
}

static void begin(const char *stub)
{
    fake_mpi_speak(stub);
    mpi_query.T_init_thread = fake_T_init_thread;
    mpi_query.T_finalize = fake_T_finalize;
    mpi_query.T_cvar_get_num = fake_T_cvar_get_num;
    mpi_query.T_cvar_get_info = fake_T_cvar_get_info;
    mpi_query.T_cvar_handle_alloc = fake_T_cvar_handle_alloc;
    mpi_query.T_cvar_handle_free = fake_T_cvar_handle_free;
    mpi_query.T_cvar_read = fake_T_cvar_read;
    mpi_query.Type_get_name = fake_Type_get_name;
    mpi_query.Type_size = fake_size;
}

static void check_read(const char *stub)
{
    begin(stub);
    struct control_variables found = control_variables_read(0, take);
    CHECK_TEXT(taken, "negative=-3 large=4294967294 long=-5000000000 longest=18446744073709551615 "
                      "switch=1 ratio=0.25 pair=8,16 "
                      "text=self,vader nothing= ");
    CHECK_EQUAL(found.read, 9);
    CHECK_EQUAL(found.all, VARIABLES - 1);
    CHECK_EQUAL(handles, 0);
}

TEST(variables_of_all_types_are_read_by_the_standard_abi)
{
    check_read("standard");
}

TEST(open_mpi_is_asked_for_the_jobs_own_thread_level_and_finalized)
{
    begin("open_mpi");
    control_variables_read(3, take);
    CHECK_EQUAL(level_requested, mpi_abi.thread_levels[3]);
    CHECK_EQUAL(initialized, 0);
}

TEST(nothing_is_read_from_an_open_mpi_whose_job_uses_mpi_t_already)
{
    begin("open_mpi");
    initialized = 1;
    struct control_variables found = control_variables_read(0, take);
    CHECK_EQUAL(found.read, 0);
    CHECK_EQUAL(found.all, VARIABLES);
    CHECK_TEXT(taken, "");
    CHECK_EQUAL(initialized, 1);
}

TEST(nothing_is_asked_of_a_library_of_an_unknown_abi)
{
    begin("unknown");
    struct control_variables found = control_variables_read(0, take);
    CHECK_EQUAL(found.read + found.all + initialized, 0);
}
