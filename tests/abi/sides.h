/* Interface between ours.c and theirs.c, in types that both know. */
#ifndef SIDES_H
#define SIDES_H

#include <stddef.h>
#include <stdint.h>

/* Which fields of a status hold what. */
struct arrival {
    uint64_t bytes;
    int source;
    int cancelled;
};

void ours_detect(void *provider, const char *path);
int64_t ours_constant(const char *name); /* under src/mpi/mpi_abi.h's name: constants.def */
struct arrival ours_arrival(const void *status);

/* Names of an operation and of a datatype's constructor; NULL: the program's operation, a
 * predefined datatype. */
const char *ours_op(int64_t op);
int64_t ours_type_named(const char *name);
int64_t ours_op_named(const char *name);
const char *ours_constructor(int64_t type);

#endif
