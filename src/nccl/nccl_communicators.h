/* NCCL's communicators, in the same tables as MPI's (communicators.h).
 *
 * All ranks of a communicator compute the same identity without communication: a hash of the unique
 * id that they all pass, or of the parent's identity and the arguments that all ranks pass for the
 * child. For a communicator from ncclCommGrow, only the rank that passes both parent and unique id
 * knows both hashes; it writes the other one to the fact nccl.grown.<hash of the id>, and the
 * reporter merges the two. A communicator whose constructor was not seen gets an identity of this
 * rank alone: it is never merged with another rank's by guessing. */
#ifndef COMMPROF_NCCL_COMMUNICATORS_H
#define COMMPROF_NCCL_COMMUNICATORS_H

#include "nccl_abi.h"
#include "record/communicators.h"

#include "mpi/provider.h"

enum { NCCL_NAME_BYTES = sizeof(((struct communicator *)NULL)->name) };

/* A constructor from unique ids has returned `handle`, which may not be ready yet. The first
 * `id_count` of `ids` are known to all ranks. `config` may be NULL. */
void nccl_communicators_created(const void *handle, unsigned constructor,
                                const struct nccl_unique_id *ids, int id_count, int nranks,
                                int rank, const void *config);

/* ncclCommInitAll: all ranks are in this process. */
void nccl_communicators_created_all(void *const *handles, unsigned constructor, int count);

/* Computes the identity of a child before the constructor on its parent is called; this rank may
 * turn out not to be in the child. */
struct nccl_origin {
    uint64_t identity, parent_identity;
    uint32_t ordinal;
    unsigned constructor;
    char name[NCCL_NAME_BYTES];
};
struct nccl_origin nccl_communicators_expect(const void *parent, unsigned constructor, int color,
                                             const void *config);

/* ncclCommGrow has returned. New ranks pass no `parent`; of the others, only the rank that created
 * the unique id passes `id`. */
void nccl_communicators_grown(const void *parent, const struct nccl_unique_id *id, int nranks,
                              int rank, void *const *handle, const void *config, bool at_group_end,
                              call_site site);

/* The constructor on a parent has returned. NCCL writes the child's handle to `handle` now, at the
 * end of the group, or later. */
void nccl_communicators_child(const struct nccl_origin *origin, void *const *handle,
                              bool at_group_end, call_site site);

/* The outermost group of this thread has ended. */
void nccl_communicators_group_ended(nccl_result result, call_site site);

/* NCCL's profiler plugin interface reports a communicator, with a hash that all its ranks get and a
 * name (NULL: none). */
struct communicator *nccl_communicators_reported(const void *handle, uint64_t hash,
                                                 const char *name, int nranks, int rank);

/* Slow path of the function below. */
struct communicator *nccl_communicators_first_use(const void *handle, call_site site);

/* The communicator of a handle; NULL for no handle. */
HOT struct communicator *nccl_communicators_find(const void *handle, call_site site)
{
    struct communicator *found = communicators_under(communicators_key_of_nccl(handle));
    return __builtin_expect(found != NULL, 1) ? found : nccl_communicators_first_use(handle, site);
}

#endif
