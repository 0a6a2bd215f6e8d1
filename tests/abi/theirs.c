/* mpi.h's side: every constant that the library has in its tables, and statuses made by MPI's own
 * functions. Prints a line for each difference, and `compared` at the end. */
#include "sides.h"

#include <mpi.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int differences;

static void compare(const char *what, int64_t mine, int64_t library)
{
    if (mine == library)
        return;
    printf("%s: mpi.h has %lld, src/mpi/mpi_abi.c has %lld\n", what, (long long)mine,
           (long long)library);
    differences++;
}

static void compare_constants(void)
{
    const struct constant constants[] = {
        {"known", 1},
        {"handle_bytes", sizeof(MPI_Comm)},
        {"handle_bytes", sizeof(MPI_Request)},
        {"handle_bytes", sizeof(MPI_Datatype)},
        {"handle_bytes", sizeof(MPI_Group)},
        {"handle_bytes", sizeof(MPI_Message)},
        {"handle_bytes", sizeof(MPI_Win)},
        {"comm_world", (int64_t)MPI_COMM_WORLD},
        {"comm_self", (int64_t)MPI_COMM_SELF},
        {"comm_null", (int64_t)MPI_COMM_NULL},
        {"request_null", (int64_t)MPI_REQUEST_NULL},
        {"datatype_null", (int64_t)MPI_DATATYPE_NULL},
        {"byte", (int64_t)MPI_BYTE},
        {"in_place", (int64_t)MPI_IN_PLACE},
        {"status_ignore", (int64_t)MPI_STATUS_IGNORE},
        {"status_ignore", (int64_t)MPI_STATUSES_IGNORE},
        {"proc_null", MPI_PROC_NULL},
        {"any_source", MPI_ANY_SOURCE},
        {"root", MPI_ROOT},
        {"err_other", MPI_ERR_OTHER},
        {"status_bytes", sizeof(MPI_Status)},
        {"status_bytes_fit", 1},
        {"status_source_offset", offsetof(MPI_Status, MPI_SOURCE)},
        {"thread_single", MPI_THREAD_SINGLE},
        {"thread_funneled", MPI_THREAD_FUNNELED},
        {"thread_serialized", MPI_THREAD_SERIALIZED},
        {"thread_multiple", MPI_THREAD_MULTIPLE},
        {"cart", MPI_CART},
        {"graph", MPI_GRAPH},
        {"dist_graph", MPI_DIST_GRAPH},
        {"bind_no_object", MPI_T_BIND_NO_OBJECT},
        {"order_c", MPI_ORDER_C},
        {"MPI_SUCCESS", MPI_SUCCESS},
        {"MPI_ERR_COUNT", MPI_ERR_COUNT},
        {"MPI_UNDEFINED", MPI_UNDEFINED},
        {"sizeof(mpi_count)", sizeof(MPI_Count)},
        {"sizeof(mpi_offset)", sizeof(MPI_Offset)},
        {"sizeof(mpi_aint)", sizeof(MPI_Aint)},
    };
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        compare(constants[i].name, constants[i].value, ours_constant(constants[i].name));
}

static void compare_text(const char *what, const char *mine, const char *library)
{
    if (mine == library || (mine && library && strcmp(mine, library) == 0))
        return;
    printf("%s: src/mpi/datatypes.c says %s\n", what, mine ? mine : "nothing");
    differences++;
}

static void never_called(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
}

static void compare_operations(void)
{
    MPI_Op op;
#define COMPARE(OP) \
    compare_text(#OP, ours_op((int64_t)OP), #OP), compare(#OP, (int64_t)OP, ours_op_named(#OP))
    COMPARE(MPI_SUM);
    COMPARE(MPI_MAX);
    COMPARE(MPI_MIN);
    COMPARE(MPI_PROD);
    COMPARE(MPI_LAND);
    COMPARE(MPI_BAND);
    COMPARE(MPI_LOR);
    COMPARE(MPI_BOR);
    COMPARE(MPI_LXOR);
    COMPARE(MPI_BXOR);
    COMPARE(MPI_MINLOC);
    COMPARE(MPI_MAXLOC);
    COMPARE(MPI_REPLACE);
    COMPARE(MPI_NO_OP);
#undef COMPARE
    MPI_Op_create(never_called, 1, &op);
    compare_text("an operation of the program's", ours_op((int64_t)op), NULL);
    MPI_Op_free(&op);
}

/* A library without Fortran has null handles for its types. */
static void compare_types(void)
{
#define COMPARE(TYPE)              \
    if (TYPE != MPI_DATATYPE_NULL) \
    compare(#TYPE, (int64_t)TYPE, ours_type_named(#TYPE))
    COMPARE(MPI_BYTE);
    COMPARE(MPI_PACKED);
    COMPARE(MPI_CHAR);
    COMPARE(MPI_SIGNED_CHAR);
    COMPARE(MPI_UNSIGNED_CHAR);
    COMPARE(MPI_SHORT);
    COMPARE(MPI_UNSIGNED_SHORT);
    COMPARE(MPI_INT);
    COMPARE(MPI_UNSIGNED);
    COMPARE(MPI_LONG);
    COMPARE(MPI_UNSIGNED_LONG);
    COMPARE(MPI_LONG_LONG);
    COMPARE(MPI_LONG_LONG_INT);
    COMPARE(MPI_UNSIGNED_LONG_LONG);
    COMPARE(MPI_FLOAT);
    COMPARE(MPI_DOUBLE);
    COMPARE(MPI_LONG_DOUBLE);
    COMPARE(MPI_C_BOOL);
    COMPARE(MPI_INT8_T);
    COMPARE(MPI_UINT8_T);
    COMPARE(MPI_INT16_T);
    COMPARE(MPI_UINT16_T);
    COMPARE(MPI_INT32_T);
    COMPARE(MPI_UINT32_T);
    COMPARE(MPI_INT64_T);
    COMPARE(MPI_UINT64_T);
    COMPARE(MPI_AINT);
    COMPARE(MPI_COUNT);
    COMPARE(MPI_OFFSET);
    COMPARE(MPI_INTEGER);
    COMPARE(MPI_REAL);
    COMPARE(MPI_DOUBLE_PRECISION);
    COMPARE(MPI_COMPLEX);
    COMPARE(MPI_DOUBLE_COMPLEX);
    COMPARE(MPI_LOGICAL);
    COMPARE(MPI_CHARACTER);
    COMPARE(MPI_C_FLOAT_COMPLEX);
    COMPARE(MPI_C_DOUBLE_COMPLEX);
    COMPARE(MPI_2INT);
#undef COMPARE
}

static void compare_constructor(MPI_Datatype type, const char *name)
{
    compare_text(name, ours_constructor((int64_t)type), name);
    MPI_Type_free(&type);
}

static void compare_constructors(void)
{
    int two[] = {2, 2}, one[] = {1, 1}, spread[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK};
    int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    MPI_Aint offsets[] = {0, 64};
    MPI_Datatype types[] = {MPI_INT, MPI_INT}, type;
    compare_text("a predefined type", ours_constructor((int64_t)MPI_INT), NULL);
    compare_text("a pair", ours_constructor((int64_t)MPI_SHORT_INT), NULL);
#define COMPARE(NAME, ...) MPI_Type_##NAME(__VA_ARGS__, &type), compare_constructor(type, #NAME);
    COMPARE(vector, 2, 1, 3, MPI_INT)
    COMPARE(contiguous, 2, MPI_INT)
    COMPARE(indexed, 2, one, two, MPI_INT)
    COMPARE(dup, MPI_INT)
#undef COMPARE
#define COMPARE(NAME, ...) \
    MPI_Type_create_##NAME(__VA_ARGS__, &type), compare_constructor(type, #NAME);
    COMPARE(hvector, 2, 1, 16, MPI_INT)
    COMPARE(resized, MPI_INT, 0, 16)
    COMPARE(struct, 2, one, offsets, types)
    COMPARE(hindexed, 2, one, offsets, MPI_INT)
    COMPARE(indexed_block, 2, 1, two, MPI_INT)
    COMPARE(hindexed_block, 2, 1, offsets, MPI_INT)
    COMPARE(subarray, 2, two, one, one, MPI_ORDER_C, MPI_INT)
    COMPARE(darray, 1, 0, 2, two, spread, arguments, one, MPI_ORDER_C, MPI_INT)
#undef COMPARE
#define COMPARE(NAME, ...)                      \
    MPI_Type_create_##NAME(__VA_ARGS__, &type), \
        compare_text(#NAME, ours_constructor((int64_t)type), #NAME);
    COMPARE(f90_real, 6, 30)
    COMPARE(f90_complex, 6, 30)
    COMPARE(f90_integer, 5)
#undef COMPARE
}

static void compare_status(MPI_Count bytes, int cancelled)
{
    MPI_Status status;
    MPI_Count asked;
    char what[64];
    memset(&status, 0xa5, sizeof status); /* what MPI does not set may hold anything */
    status.MPI_SOURCE = 17;
    status.MPI_TAG = 18;
    status.MPI_ERROR = 19;
    MPI_Status_set_elements_x(&status, MPI_BYTE, bytes);
    MPI_Status_set_cancelled(&status, cancelled);
    MPI_Get_elements_x(&status, MPI_BYTE, &asked);
    struct arrival arrival = ours_arrival(&status);
    snprintf(what, sizeof what, "status of %lld bytes%s", (long long)bytes,
             cancelled ? ", cancelled" : "");
    compare(what, cancelled ? 0 : asked, (int64_t)arrival.bytes);
    compare("MPI's own answer", bytes, asked);
    compare("status: source", 17, arrival.source);
    compare("status: cancelled", cancelled, arrival.cancelled);
}

/* A status that a receive has filled in. */
static void compare_received(void)
{
    char message[100], received[1000];
    MPI_Status status;
    MPI_Sendrecv(message, 100, MPI_BYTE, 0, 5, received, 1000, MPI_BYTE, MPI_ANY_SOURCE,
                 MPI_ANY_TAG, MPI_COMM_SELF, &status);
    compare("received: bytes", 100, (int64_t)ours_arrival(&status).bytes);
    compare("received: source", 0, ours_arrival(&status).source);
    compare("received: cancelled", 0, ours_arrival(&status).cancelled);
    MPI_Recv(received, 1000, MPI_BYTE, MPI_PROC_NULL, 5, MPI_COMM_SELF, &status);
    compare("from nobody: bytes", 0, (int64_t)ours_arrival(&status).bytes);
    compare("from nobody: source", MPI_PROC_NULL, ours_arrival(&status).source);
}

static void compare_cancelled_receive(void)
{
    char received[10];
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(received, 10, MPI_BYTE, 0, 77, MPI_COMM_SELF, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    compare("cancelled receive", 1, ours_arrival(&status).cancelled);
}

int main(int argc, char **argv)
{
    Dl_info provider;
    MPI_Init(&argc, &argv);
    if (!dladdr(dlsym(RTLD_DEFAULT, "PMPI_Init"), &provider))
        return EXIT_FAILURE;
    ours_detect(dlopen(provider.dli_fname, RTLD_LAZY | RTLD_NOLOAD), provider.dli_fname);
    compare_constants();
    compare_operations();
    compare_types();
    compare_constructors();
    compare_status(0, 0);
    compare_status(1, 0);
    compare_status((MPI_Count)1 << 31, 0);
    compare_status((MPI_Count)1 << 40, 0);
    compare_status(4096, 1);
    compare_received();
    compare_cancelled_receive();
    MPI_Finalize();
    printf("compared\n");
    return differences ? EXIT_FAILURE : EXIT_SUCCESS;
}
