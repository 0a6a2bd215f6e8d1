/* The communicators of this process: who is in them, and a name for each that all their ranks agree on.
 *
 * A communicator is entered when a wrapped constructor makes it (or met at first use, if none did) and found by its handle on
 * every call. It takes a number in the ledger only when something is counted on it. Its identity is worked out locally, from
 * what made it, its parent's identity, its members' world ranks in order, and how many alike were made before: all its ranks
 * see the same, whatever order they made their communicators in. */
#ifndef COMMPROF_COMMUNICATORS_H
#define COMMPROF_COMMUNICATORS_H

#include "ledger/samples.h"
#include "mpi/mpi_abi.h"

enum {
    PEER_NONE = INT32_MIN,    /* no peer: MPI_PROC_NULL, or not a point-to-point call */
    COMMUNICATORS_MAX = 4096, /* numbers in the ledger; beyond it communicators share LEDGER_COMMUNICATOR_OTHER */
    COMMUNICATORS_NOT_ASKED = -1,
};

/* How many communicators of each kind were made on one parent: an open hash table from kind to count. */
struct ordinals {
    struct ordinal *places;
    uint32_t size, used;
};

struct communicator {
    mpi_handle handle;
    uint64_t identity, parent_identity;
    int size, remote_size, comm_rank;
    bool is_inter;
    bool is_nccl;  /* NCCL's: its members are not known, MPI is not asked about it */
    uint16_t slot; /* number in the ledger; 0: nothing counted on it yet */
    uint16_t constructor;
    uint32_t ordinal;
    uint32_t references;       /* the registry's, and one for each tracked receive that still needs the world ranks */
    int out_neighbors;         /* of its topology; COMMUNICATORS_NOT_ASKED until a neighborhood collective is counted */
    int32_t *peer_world_ranks; /* of the remote group if inter, else of the group; NULL: the same number */
    struct ledger_communicator *entry;
    struct samples_sequence samples; /* of the collectives on it */
    struct ordinals ordinals;        /* of those made on it */
    char name[128];
};

/* Learn MPI_COMM_WORLD's membership, the world that all ranks are counted in. Where the job has only sessions it is not `initialized`,
 * and world_group is the group of the process set mpi://WORLD. Returns false where MPI could not say. */
bool communicators_begin(mpi_handle world_group, bool initialized);

/* MPI_Init comes after a session: from now on there are MPI_COMM_WORLD and MPI_COMM_SELF as well. */
void communicators_add_world(void);

/* Give back what was taken from MPI; to be called before MPI ends. */
void communicators_end(void);

/* A constructor has made `handle`. `tag` tells apart those that different ranks may make in different order on one parent
 * (MPI_Comm_create_group's tag, a string's hash); 0 where the parent orders them. NULL where it cannot be told what it is. */
struct communicator *communicators_made(mpi_handle handle, unsigned constructor, mpi_handle parent, bool has_parent, uint64_t tag);

/* A string tag as the `tag` above; never 0. */
uint64_t communicators_tag(const char *text);

/* A duplicate is like its parent, and MPI is not asked about it: not before MPI_Comm_idup has completed, and never at all because
 * each question about a group waits for MPI's global lock, while the job's other threads spin on it. */
void communicators_duplicated(mpi_handle handle, unsigned constructor, mpi_handle parent);

void communicators_named(mpi_handle handle, const char *name);

/* One of another library's (NCCL's), which `described` says all about, under a key of its own; NULL when out of memory. One that had this
 * key before has gone unseen. */
struct communicator *communicators_add(mpi_handle key, const struct communicator *described);

/* How many of this kind were made on a parent (NULL: on none) before; counts one more. */
uint32_t communicators_ordinal(struct communicator *parent, uint64_t kind);

/* One step of the hash that identities are made of. */
uint64_t communicators_mix(uint64_t hash, uint64_t value);

/* MPI is about to free it: its handle is forgotten, for MPI may hand it out again before it returns. NULL where nothing is known.
 * Then it is freed, or kept because MPI has refused. */
struct communicator *communicators_freeing(mpi_handle handle);
void communicators_freed(struct communicator *communicator);
void communicators_kept(struct communicator *communicator);

/* A window or file was made on a communicator, which is found by the object's key until it is detached. Detaching gives the
 * communicator (NULL if the object is not known); communicators_detached says whether the object has gone or is there still. */
void communicators_attach(mpi_handle key, mpi_handle comm);
struct communicator *communicators_detach(mpi_handle key);
void communicators_detached(mpi_handle key, struct communicator *communicator, bool is_gone);

/* How many neighbors a block goes to in a neighborhood collective. */
int communicators_ask_neighbors(struct communicator *communicator);

HOT int communicators_out_neighbors(struct communicator *communicator)
{
    int known = __atomic_load_n(&communicator->out_neighbors, __ATOMIC_RELAXED);
    return __builtin_expect(known != COMMUNICATORS_NOT_ASKED, 1) ? known : communicators_ask_neighbors(communicator);
}

/* A receive is tracked on a communicator, and is done with it: until then its world ranks are kept, even if it is freed. */
void communicators_hold(struct communicator *communicator);
void communicators_release(struct communicator *communicator);

/* Slow halves of the functions below. */
struct communicator *communicators_meet(mpi_handle handle);
unsigned communicators_enter(struct communicator *communicator);

struct communicator_index {
    uint64_t mask;
    struct {
        mpi_handle handle; /* 0: empty */
        struct communicator *communicator;
    } slots[];
};
extern struct communicator_index *communicator_index;

/* How many have been taken out of the index: what was found in it is there still while this has not changed. */
extern uint64_t communicators_removed;

static inline uint64_t communicators_hash(mpi_handle handle)
{
    return (handle * 0x9e3779b97f4a7c15ull) >> 32;
}

/* What the index has under a key: the bits of a communicator's handle, or an object's key. */
HOT struct communicator *communicators_under(mpi_handle key)
{
    struct communicator_index *index = __atomic_load_n(&communicator_index, __ATOMIC_ACQUIRE);
    for (uint64_t at = communicators_hash(key);; at++) {
        mpi_handle there = __atomic_load_n(&index->slots[at & index->mask].handle, __ATOMIC_ACQUIRE);
        if (__builtin_expect(there == key, 1))
            return __atomic_load_n(&index->slots[at & index->mask].communicator, __ATOMIC_RELAXED);
        if (there == 0)
            return NULL;
    }
}

/* The communicator behind a handle; NULL for MPI_COMM_NULL and under an unknown ABI. */
HOT struct communicator *communicators_find(mpi_handle handle)
{
    struct communicator *found = communicators_under(mpi_handle_bits(handle));
    return __builtin_expect(found != NULL, 1) ? found : communicators_meet(handle);
}

/* Keys of objects. MPICH's handles are integers but its files are pointers, as NCCL's communicators are: inverted, these equal no other
 * handle. */
HOT mpi_handle communicators_key_of_window(mpi_handle win)
{
    return mpi_handle_bits(win);
}

HOT mpi_handle communicators_key_of_file(mpi_handle file)
{
    return ~file;
}

HOT mpi_handle communicators_key_of_nccl(const void *comm)
{
    return ~(mpi_handle)comm;
}

/* Its number in the ledger. Another thread may have entered it: who sees the number sees its entry, too. */
HOT unsigned communicators_slot(struct communicator *communicator)
{
    if (!communicator)
        return 0;
    unsigned slot = __atomic_load_n(&communicator->slot, __ATOMIC_ACQUIRE);
    return __builtin_expect(slot != 0, 1) ? slot : communicators_enter(communicator);
}

/* The world rank of a peer, given by its rank in the communicator. Special values (MPI_PROC_NULL, MPI_ANY_SOURCE) are negative
 * in every ABI. */
HOT int32_t communicators_world_rank(const struct communicator *communicator, int peer)
{
    if (!communicator || peer < 0)
        return PEER_NONE;
    if (!communicator->peer_world_ranks)
        return peer;
    int peers = communicator->is_inter ? communicator->remote_size : communicator->size;
    return peer < peers ? communicator->peer_world_ranks[peer] : PEER_NONE;
}

#endif
