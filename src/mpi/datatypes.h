/* Queries to MPI about a datatype and an operation. Ask only about handles with which a call has
 * just succeeded: for any other, MPI may call the job's error handler. All queries are local. */
#ifndef COMMPROF_DATATYPES_H
#define COMMPROF_DATATYPES_H

#include "mpi_abi.h"

struct mpi_datatype {
    const char *constructor; /* "vector"; NULL: a predefined type */
    int64_t extent;          /* bytes */
    uint64_t blocks;         /* that it lays out, as docs/SCHEMA.md counts them; 0: not known */
};

/* False if this library cannot be asked. */
bool mpi_datatype_ask(mpi_handle type, struct mpi_datatype *datatype);

/* The name of a predefined type, "MPI_FLOAT". */
void mpi_datatype_name(mpi_handle type, char *name, size_t bytes);

/* The name of a predefined operation, "MPI_SUM"; NULL: the user's. Call mpi_ops_learn once before,
 * after MPI_Init. */
const char *mpi_op_name(mpi_handle op);
void mpi_ops_learn(void);

/* The other way; 0: there is none of this name. */
mpi_handle mpi_op_named(const char *name);
mpi_handle mpi_type_named(const char *name);

bool mpi_op_is_commutative(mpi_handle op);

#endif
