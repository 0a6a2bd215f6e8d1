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
#define CONSTANT(FIELD, VALUE) compare(#FIELD, (int64_t)(intptr_t)(VALUE), ours_constant(#FIELD));
#define VALUE(OURS, THEIRS) compare(#OURS, (int64_t)(THEIRS), ours_constant(#OURS));
#include "constants.def"
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
#define OPERATION(OP)                               \
    compare_text(#OP, ours_op((int64_t)(OP)), #OP); \
    compare(#OP, (int64_t)(OP), ours_op_named(#OP));
#define DATATYPE(TYPE)
#include "named.def"
#undef OPERATION
#undef DATATYPE
    MPI_Op_create(never_called, 1, &op);
    compare_text("an operation of the program's", ours_op((int64_t)op), NULL);
    MPI_Op_free(&op);
}

/* A library without Fortran has null handles for its types. */
static void compare_types(void)
{
#define OPERATION(OP)
#define DATATYPE(TYPE)             \
    if (TYPE != MPI_DATATYPE_NULL) \
        compare(#TYPE, (int64_t)(TYPE), ours_type_named(#TYPE));
#include "named.def"
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
