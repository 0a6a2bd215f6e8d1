/* The communicators of this process: who their members are, and an identity for each that all its
 * ranks agree on.
 *
 * A communicator is registered when a wrapped constructor creates it (or at first use, if none did)
 * and is found by its handle on every call. It gets a number in the ledger only when something is
 * counted on it. Its identity is computed locally, from its constructor, its parent's identity, its
 * members' world ranks in order, and how many like it were created before. All its ranks compute
 * the same identity, whatever the order in which they use their communicators. */
#ifndef COMMPROF_COMMUNICATORS_H
#define COMMPROF_COMMUNICATORS_H

#include "ledger/samples.h"
#include "mpi/mpi_abi.h"

enum {
    PEER_NONE = INT32_MIN, /* no peer: MPI_PROC_NULL, or not a point-to-point call */
    COMMUNICATORS_MAX =
        4096, /* numbers in the ledger; beyond it communicators share LEDGER_COMMUNICATOR_OTHER */
    COMMUNICATORS_NOT_ASKED = -1,
    COMMUNICATORS_SMALL_GROUP = 128,
    /* objects of a communicator whose collectives are numbered */
    COMMUNICATORS_OBJECTS_MAX = (1 << (LEDGER_ON_OBJECT_BIT - LEDGER_OBJECT_BIT)) - 1,
};

/* How many communicators of each kind were created on one parent: an open hash table from kind to
 * count. */
struct ordinals {
    struct ordinal *places;
    uint32_t size, used;
};

struct communicator {
    mpi_handle handle;
    uint64_t identity, parent_identity;
    int size, remote_size, comm_rank;
    bool is_inter;
    bool is_nccl;  /* NCCL's: its members are unknown, and MPI is never asked about it */
    bool is_late;  /* was registered at first use */
    uint16_t slot; /* number in the ledger; 0: nothing counted on it yet */
    uint16_t constructor;
    uint32_t ordinal;
    uint32_t references; /* the registry's, and one for each tracked receive that still needs the
                            world ranks */
    int out_neighbors;   /* of its topology; COMMUNICATORS_NOT_ASKED until a neighborhood collective
                            is counted */
    int32_t *peer_world_ranks; /* of the remote group if inter, else of the group; NULL: the same
                                  number */
    struct ledger_communicator *entry;
    struct ordinals ordinals; /* of communicators created on it */
    uint32_t persistent;      /* how many persistent collectives were set up on it */
    uint32_t objects;         /* how many windows and files were to be created on it */
    /* of a window or a file: the communicator that it was created on, whose ranks and entry it has;
     * which of the objects created there it is; and how many collectives were begun on it */
    struct communicator *created_on;
    uint32_t object; /* 0: a communicator */
    uint64_t object_collectives;
    void *epochs[2]; /* of a window: its accesses and exposures (epochs.c); NULL: there was none */
    char name[128];
};

/* Read the membership of MPI_COMM_WORLD, which defines world ranks. In a job that has only
 * sessions, `initialized` is false and world_group is the group of the process set mpi://WORLD.
 * Returns false if MPI could not answer. */
bool communicators_begin(mpi_handle world_group, bool initialized);

/* MPI_Init was called after a session: from now on MPI_COMM_WORLD and MPI_COMM_SELF exist as
 * well. */
void communicators_add_world(void);

/* Release what was taken from MPI; call before MPI is finalized. */
void communicators_end(void);

/* A constructor has created `handle`. `tag` distinguishes communicators that ranks may create in
 * different orders on one parent (MPI_Comm_create_group's tag, a string's hash); 0 if the parent
 * orders them. Returns NULL if it cannot be identified. */
struct communicator *communicators_created(mpi_handle handle, unsigned constructor,
                                           mpi_handle parent, bool has_parent, uint64_t tag);

/* A string tag as the `tag` above; never 0. */
uint64_t communicators_tag(const char *text);

/* A duplicate copies its parent's description without asking MPI. MPI cannot be asked before
 * MPI_Comm_idup has completed; and each question about a group waits for MPI's global lock while
 * the job's other threads spin on it. */
void communicators_duplicated(mpi_handle handle, unsigned constructor, mpi_handle parent);

void communicators_named(mpi_handle handle, const char *name);

/* A collective was not recorded: from now on, other ranks number those of the present communicators
 * in another way, so they get no numbers here. */
void communicators_lose_count(void);

/* Register a communicator of another library (NCCL) under a key of its own; `described` has all its
 * fields. NULL when out of memory. An older communicator under this key is dropped: its end was not
 * intercepted. */
struct communicator *communicators_add(mpi_handle key, const struct communicator *described);

/* How many communicators of this kind were created before on a parent (NULL: without parent); adds
 * one. */
uint32_t communicators_ordinal(struct communicator *parent, uint64_t kind);

/* One step of the hash that computes identities. */
uint64_t communicators_mix(uint64_t hash, uint64_t value);

/* MPI is about to free a communicator. Its handle is removed first, because MPI may reuse it before
 * the call returns. NULL if it is unknown. Then call communicators_freed, or communicators_restore
 * if MPI refused. */
struct communicator *communicators_freeing(mpi_handle handle);
void communicators_freed(struct communicator *communicator);
void communicators_restore(struct communicator *communicator);

/* A window or file was created on a communicator; key 0: that failed. Under the object's key a
 * description of its own is found until it is detached: the communicator's, with the object's
 * number and its count of collectives. All ranks number the objects of a communicator alike.
 * communicators_detach returns the description (NULL if the object is unknown);
 * communicators_detached then says whether the object is gone. */
void communicators_attach(mpi_handle key, mpi_handle comm);
struct communicator *communicators_detach(mpi_handle key);
void communicators_detached(mpi_handle key, struct communicator *communicator, bool is_gone);

/* World ranks of the members of a group, which has `count`, at most COMMUNICATORS_SMALL_GROUP.
 * False: some have none, or MPI does not say. */
bool communicators_of_group(mpi_handle group, int count, int32_t *world_ranks);

/* Whether these are they. Where MPI looks for each rank among the group's, this takes a large job
 * no longer than a small one. */
bool communicators_is_group(mpi_handle group, int count, const int32_t *world_ranks);

/* How many neighbors receive a block in a neighborhood collective. */
int communicators_ask_neighbors(struct communicator *communicator);

HOT int communicators_out_neighbors(struct communicator *communicator)
{
    int known = __atomic_load_n(&communicator->out_neighbors, __ATOMIC_RELAXED);
    return __builtin_expect(known != COMMUNICATORS_NOT_ASKED, 1)
               ? known
               : communicators_ask_neighbors(communicator);
}

/* A tracked receive holds its communicator until it completes: the world ranks stay available even
 * if the communicator is freed. */
void communicators_hold(struct communicator *communicator);
void communicators_release(struct communicator *communicator);

/* Slow halves of the functions below. */
struct communicator *communicators_first_use(mpi_handle handle);
unsigned communicators_enter(struct communicator *communicator);

struct communicator_index {
    uint64_t mask;
    struct {
        mpi_handle handle; /* 0: empty */
        struct communicator *communicator;
    } slots[];
};
extern struct communicator_index *communicator_index;

/* How many communicators were removed from the index. While this is unchanged, a communicator found
 * in the index is still in it. */
extern uint64_t communicators_removed;

static inline uint64_t communicators_hash(mpi_handle handle)
{
    return (handle * 0x9e3779b97f4a7c15ull) >> 32;
}

/* The communicator under a key of the index: the bits of a communicator's handle, or an object's
 * key. */
HOT struct communicator *communicators_under(mpi_handle key)
{
    struct communicator_index *index = __atomic_load_n(&communicator_index, __ATOMIC_ACQUIRE);
    for (uint64_t at = communicators_hash(key), mask = index->mask;; at++) {
        __typeof__(index->slots[0]) *slot = &index->slots[at & mask];
        mpi_handle there = __atomic_load_n(&slot->handle, __ATOMIC_ACQUIRE);
        if (__builtin_expect(there == key, 1))
            return __atomic_load_n(&slot->communicator, __ATOMIC_RELAXED);
        if (there == 0)
            return NULL;
    }
}

/* The communicator behind a handle; NULL for MPI_COMM_NULL and under an unknown ABI. */
HOT struct communicator *communicators_find(mpi_handle handle)
{
    struct communicator *found = communicators_under(mpi_handle_bits(handle));
    return __builtin_expect(found != NULL, 1) ? found : communicators_first_use(handle);
}

/* Keys of objects. MPICH's handles are integers, but its files are pointers, and so are NCCL's
 * communicators. Inverted, the pointers never equal another handle. */
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

/* The communicator's number in the ledger; assigns one if needed. If another thread assigned it,
 * whoever sees the number also sees its entry. */
HOT unsigned communicators_slot(struct communicator *communicator)
{
    if (!communicator)
        return 0;
    unsigned slot = __atomic_load_n(&communicator->slot, __ATOMIC_ACQUIRE);
    return __builtin_expect(slot != 0, 1) ? slot : communicators_enter(communicator);
}

/* The world rank of a peer, given by its rank in the communicator. Special values (MPI_PROC_NULL,
 * MPI_ANY_SOURCE) are negative in every ABI. */
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
