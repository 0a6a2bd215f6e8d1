/* The library's side: its tables, without mpi.h. */
#include "sides.h"

#include "mpi/datatypes.h"
#include "mpi/mpi_abi.h"

#include <stdio.h>
#include <stdlib.h>

void ours_detect(void *provider, const char *path)
{
    mpi_abi_detect(provider, path);
    mpi_ops_learn();
}

int64_t ours_constant(const char *name)
{
#define CONSTANT(FIELD, VALUE) {#FIELD, (int64_t)(intptr_t)(mpi_abi.FIELD)},
#define VALUE(OURS, THEIRS) {#OURS, (int64_t)(OURS)},
    const struct {
        const char *name;
        int64_t value;
    } constants[] = {
#include "constants.def"
    };
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (strcmp(constants[i].name, name) == 0)
            return constants[i].value;
    fprintf(stderr, "ours.c has no %s\n", name);
    exit(EXIT_FAILURE);
}

const char *ours_op(int64_t op)
{
    return mpi_op_name((mpi_handle)op);
}

int64_t ours_type_named(const char *name)
{
    return (int64_t)mpi_type_named(name);
}

int64_t ours_op_named(const char *name)
{
    return (int64_t)mpi_op_named(name);
}

const char *ours_constructor(int64_t type)
{
    static struct mpi_datatype datatype;
    return mpi_datatype_ask((mpi_handle)type, &datatype) ? datatype.constructor : "not asked";
}

struct arrival ours_arrival(const void *status)
{
    struct mpi_arrival arrival = mpi_arrival_read(status);
    return (struct arrival){arrival.bytes, arrival.source, arrival.cancelled};
}
