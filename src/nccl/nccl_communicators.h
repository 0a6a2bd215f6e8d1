/* NCCL's communicators, in the same tables as MPI's (communicators.h).
 *
 * All ranks of one agree on its identity without a word: it is a hash of the unique id that they all pass, or of the parent's identity and
 * of what they all say of the child. One whose constructor was not seen has an identity of this rank alone: what cannot be known to be
 * the same communicator is not shown as one. */
#ifndef COMMPROF_NCCL_COMMUNICATORS_H
#define COMMPROF_NCCL_COMMUNICATORS_H

#include "communicators.h"
#include "nccl_abi.h"

#include "mpi/provider.h"

enum { NCCL_NAME_BYTES = sizeof(((struct communicator *)NULL)->name) };

/* A constructor from unique ids has given `handle`, which may not be ready yet. `ids` of them are known to all ranks. `config` may be NULL. */
void nccl_communicators_made(const void *handle, unsigned constructor, const struct nccl_unique_id *ids, int id_count, int nranks, int rank,
                             const void *config);

/* ncclCommInitAll: all ranks are in this process. */
void nccl_communicators_made_all(void *const *handles, unsigned constructor, int count);

/* A constructor on a parent is about to be called: what its child, if this rank is to have one, will be known by. */
struct nccl_birth {
    uint64_t identity, parent_identity;
    uint32_t ordinal;
    unsigned constructor;
    char name[NCCL_NAME_BYTES];
};
struct nccl_birth nccl_communicators_expect(const void *parent, unsigned constructor, int color, const void *config);

/* It has returned. NCCL writes the child's handle to `handle` now, at the end of the group, or some time later. */
void nccl_communicators_born(const struct nccl_birth *birth, void *const *handle, bool at_group_end, call_site site);

/* The outermost group of this thread has ended. */
void nccl_communicators_group_ended(nccl_result result, call_site site);

/* NCCL itself tells of a communicator, by a hash that it gives to all of its ranks and by a name (NULL: none). */
struct communicator *nccl_communicators_told(const void *handle, uint64_t hash, const char *name, int nranks, int rank);

/* Slow half of the function below. */
struct communicator *nccl_communicators_meet(const void *handle, call_site site);

/* The communicator behind a handle; NULL for no handle. */
HOT struct communicator *nccl_communicators_find(const void *handle, call_site site)
{
    struct communicator *found = communicators_under(communicators_key_of_nccl(handle));
    return __builtin_expect(found != NULL, 1) ? found : nccl_communicators_meet(handle, site);
}

#endif
