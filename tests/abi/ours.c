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
    const struct constant constants[] = {
        {"known", mpi_abi.known},
        {"handle_bytes", (int64_t)mpi_abi.handle_bytes},
        {"comm_world", (int64_t)mpi_abi.comm_world},
        {"comm_self", (int64_t)mpi_abi.comm_self},
        {"comm_null", (int64_t)mpi_abi.comm_null},
        {"request_null", (int64_t)mpi_abi.request_null},
        {"datatype_null", (int64_t)mpi_abi.datatype_null},
        {"byte", (int64_t)mpi_abi.byte},
        {"in_place", (int64_t)(intptr_t)mpi_abi.in_place},
        {"status_ignore", (int64_t)(intptr_t)mpi_abi.status_ignore},
        {"proc_null", mpi_abi.proc_null},
        {"any_source", mpi_abi.any_source},
        {"root", mpi_abi.root},
        {"err_other", mpi_abi.err_other},
        {"status_bytes", (int64_t)mpi_abi.status_bytes},
        {"status_bytes_fit", mpi_abi.status_bytes <= MPI_STATUS_BYTES_MAX},
        {"status_source_offset", (int64_t)mpi_abi.status_source_offset},
        {"thread_single", mpi_abi.thread_levels[0]},
        {"thread_funneled", mpi_abi.thread_levels[1]},
        {"thread_serialized", mpi_abi.thread_levels[2]},
        {"thread_multiple", mpi_abi.thread_levels[3]},
        {"cart", mpi_abi.cart},
        {"graph", mpi_abi.graph},
        {"dist_graph", mpi_abi.dist_graph},
        {"bind_no_object", mpi_abi.bind_no_object},
        {"order_c", mpi_abi.order_c},
        {"MPI_SUCCESS", MPI_SUCCESS},
        {"MPI_ERR_COUNT", MPI_ERR_COUNT},
        {"MPI_UNDEFINED", MPI_UNDEFINED},
        {"sizeof(mpi_count)", sizeof(mpi_count)},
        {"sizeof(mpi_offset)", sizeof(mpi_offset)},
        {"sizeof(mpi_aint)", sizeof(mpi_aint)},
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
