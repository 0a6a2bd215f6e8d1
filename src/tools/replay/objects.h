/* The MPI library that a replay uses, found at run time, and the objects that a kit names:
 * communicators, datatypes, operations. */
#ifndef COMMPROF_OBJECTS_OF_A_KIT_H
#define COMMPROF_OBJECTS_OF_A_KIT_H

#include "kit.h"
#include "mpi/mpi_abi.h"

/* Handles in memory, each as the library stores them. */
struct objects {
    uint64_t *comm, *type;
    bool *is_own;        /* datatypes that are not predefined, to which predefined operations do not
                     apply */
    void *bytes;         /* a datatype for each rank of the world, in the library's layout */
    uint64_t user_op[2]; /* of no meaning: one that does not commute, one that does */
};

/* Loads the library: `path`; or the one that is in this process already; or the one that its
 * launcher belongs to. False: none is found; `why` has what is wrong. */
bool library_load(const char *path, char *why, size_t why_bytes);

/* A function of it by its name, through the profiler if that is preloaded. NULL: it has none. */
void *library_function(const char *name);

/* Makes all objects of the kit; after MPI_Init, on all ranks. False: a predefined datatype is
 * another one here. */
bool objects_make(struct objects *objects, const struct kit *kit, int rank, char *why,
                  size_t why_bytes);

/* The operation of this name for this datatype (KIT_NONE: none). */
mpi_handle objects_op(const struct objects *objects, const char *name, int type);

#endif
