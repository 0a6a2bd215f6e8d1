/* Identity. All ranks call the constructors on one parent in the same order: if ranks 0 and 1 split
 * the world twice in the same way, the first split on one is the first on the other. So among
 * communicators with equal constructor, parent and members, the k-th on one rank is the k-th on all
 * its ranks, and the tuple (constructor, parent's identity, members, k) identifies it.
 * MPI_Comm_create_group and the constructors from groups are not called by all ranks of the parent.
 * There the tag is part of the tuple: MPI requires different tags for calls that could be confused.
 * Inter-communicators have no single parent: the tuple has both groups, the lower one first.
 *
 * The counts k are stored with the parent and freed with it, so that a job may create and free
 * communicators without limit. On parents that are never freed their number is limited. Beyond the
 * limit k is always 0: ranks still agree on an identity, but successive communicators of one kind
 * share it.
 *
 * The index from handles to communicators is a hash table with linear probing, which is read
 * without a lock. It is only ever replaced by a larger one. The old ones are never freed, since a
 * reader may still use them (sizes double, so together they are smaller than the newest). The slot
 * of a freed handle is emptied, unless the probe for another handle passes it:
 *
 *     |   | a | freed | b |   |     b's probe starts at a: it must not stop at the freed slot
 *
 * Such a slot keeps its handle but has no communicator ("dead"), until it is reused or b is freed
 * as well. So the size of the index depends on how many communicators exist at one time, not on how
 * many were ever created. */
#include "communicators.h"

#include "base/memory.h"
#include "base/quiet.h"
#include "ledger/ledger.h"
#include "message_numbers.h"

#include <stdio.h>

enum {
    FIRST_INDEX = 64,
    FIRST_ORDINALS = 8,
    ORDINALS_MAX = 1 << 16,
    WORLD_IDENTITY = 1,
    SELF_IDENTITY = 2
};

/* mask 0 and one empty slot, until the first communicator is registered */
static uint64_t empty_index[3];
struct communicator_index *communicator_index = (struct communicator_index *)empty_index;

uint64_t communicators_removed;

static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
static uint64_t index_used;
static unsigned slots_used;
static mpi_handle world_group;
static bool has_world_group;
static bool has_world; /* MPI_COMM_WORLD and MPI_COMM_SELF exist; a job of sessions has only a world
                          group */

struct ordinal {
    uint64_t kind; /* 0: empty */
    uint64_t count;
};
static struct ordinals without_parent;
static uint32_t ordinals_used; /* in all tables */

uint64_t communicators_mix(uint64_t hash, uint64_t value)
{
    hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
    hash *= 0xff51afd7ed558ccdull;
    return hash ^ hash >> 32;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return communicators_mix(hash, value);
}

static uint64_t mix_ranks(uint64_t hash, const int *ranks, int count)
{
    hash = mix(hash, (uint64_t)count);
    for (int i = 0; i < count; i++)
        hash = mix(hash, (uint64_t)(uint32_t)ranks[i]);
    return hash;
}

uint64_t communicators_tag(const char *text)
{
    uint64_t hash = 1;
    while (*text)
        hash = mix(hash, (unsigned char)*text++);
    return hash | 1;
}

/* The index. */

/* The slot of a handle. If there is none: the first dead slot that its probe passes, else the empty
 * slot where the probe ends. */
static uint64_t index_place(const struct communicator_index *index, mpi_handle bits)
{
    uint64_t at = communicators_hash(bits), dead = UINT64_MAX;
    for (; index->slots[at & index->mask].handle != 0; at++) {
        if (index->slots[at & index->mask].handle == bits)
            return at;
        if (dead == UINT64_MAX && !index->slots[at & index->mask].communicator)
            dead = at;
    }
    return dead == UINT64_MAX ? at : dead;
}

static void index_put(struct communicator_index *index, mpi_handle bits,
                      struct communicator *communicator)
{
    uint64_t at = index_place(index, bits);
    __atomic_store_n(&index->slots[at & index->mask].communicator, communicator, __ATOMIC_RELEASE);
    __atomic_store_n(&index->slots[at & index->mask].handle, bits, __ATOMIC_RELEASE);
}

static bool index_grow(void)
{
    struct communicator_index *old = communicator_index;
    uint64_t size = old->mask ? 2 * (old->mask + 1) : FIRST_INDEX;
    struct communicator_index *larger =
        memory_take(sizeof *larger + size * sizeof larger->slots[0]);
    if (!larger)
        return false;
    larger->mask = size - 1;
    index_used = 0;
    for (uint64_t i = 0; i <= old->mask; i++)
        if (old->slots[i].communicator) {
            index_put(larger, old->slots[i].handle, old->slots[i].communicator);
            index_used++;
        }
    __atomic_store_n(&communicator_index, larger, __ATOMIC_RELEASE);
    return true;
}

static bool index_takes_empty_place(mpi_handle bits)
{
    return communicator_index
               ->slots[index_place(communicator_index, bits) & communicator_index->mask]
               .handle == 0;
}

static bool index_insert(mpi_handle key, struct communicator *communicator)
{
    if (index_takes_empty_place(key)) {
        if (2 * (index_used + 1) > communicator_index->mask && !index_grow())
            return false;
        index_used++;
    }
    index_put(communicator_index, key, communicator);
    return true;
}

/* Empties the dead slots that no probe passes, from `end` down to the next empty slot. `passed`:
 * among the probes for communicators in slots above this one, the farthest start is so many slots
 * below this one; negative: no probe passes here. */
static void index_clean(struct communicator_index *index, uint64_t end)
{
    int64_t passed = -1;
    for (uint64_t at = end - 1; index->slots[at & index->mask].handle != 0;
         at--, passed -= passed >= 0) {
        int64_t way = (int64_t)((at - communicators_hash(index->slots[at & index->mask].handle)) &
                                index->mask);
        if (index->slots[at & index->mask].communicator)
            passed = way > passed ? way : passed;
        else if (passed < 0) {
            __atomic_store_n(&index->slots[at & index->mask].handle, 0, __ATOMIC_RELEASE);
            index_used--;
        }
    }
}

/* It is counted last: whoever sees the count no longer finds the communicator. */
static void index_remove(mpi_handle bits)
{
    struct communicator_index *index = communicator_index;
    uint64_t at = index_place(index, bits);
    __atomic_store_n(&index->slots[at & index->mask].communicator, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&communicators_removed, communicators_removed + 1, __ATOMIC_RELEASE);
    while (index->slots[at & index->mask].handle != 0)
        at++;
    index_clean(index, at);
}

static struct communicator *index_find(mpi_handle bits)
{
    uint64_t at = index_place(communicator_index, bits) & communicator_index->mask;
    return communicator_index->slots[at].handle == bits ? communicator_index->slots[at].communicator
                                                        : NULL;
}

/* Ordinals. */

static struct ordinal *ordinal_place(const struct ordinals *ordinals, uint64_t kind)
{
    uint32_t at = (uint32_t)(kind >> 32), mask = ordinals->size - 1;
    while (ordinals->places[at & mask].kind != 0 && ordinals->places[at & mask].kind != kind)
        at++;
    return &ordinals->places[at & mask];
}

static bool ordinals_grow(struct ordinals *ordinals)
{
    uint32_t size = ordinals->size ? 2 * ordinals->size : FIRST_ORDINALS;
    struct ordinals larger = {memory_take(size * sizeof *larger.places), size, ordinals->used};
    if (!larger.places)
        return false;
    for (uint32_t i = 0; i < ordinals->size; i++)
        if (ordinals->places[i].kind)
            *ordinal_place(&larger, ordinals->places[i].kind) = ordinals->places[i];
    memory_give(ordinals->places);
    *ordinals = larger;
    return true;
}

static void ordinals_free(struct ordinals *ordinals)
{
    __atomic_sub_fetch(&ordinals_used, ordinals->used, __ATOMIC_RELAXED);
    memory_give(ordinals->places);
}

/* How many of this kind were created on this parent before; adds one. */
static uint32_t next_ordinal(struct ordinals *ordinals, uint64_t kind)
{
    kind |= 1; /* 0 means empty */
    struct ordinal *ordinal = ordinals->size ? ordinal_place(ordinals, kind) : NULL;
    if (ordinal && ordinal->kind == kind)
        return (uint32_t)ordinal->count++;
    if (__atomic_load_n(&ordinals_used, __ATOMIC_RELAXED) >= ORDINALS_MAX)
        return 0;
    if (2 * ordinals->used >= ordinals->size && !ordinals_grow(ordinals))
        return 0;
    *ordinal_place(ordinals, kind) = (struct ordinal){kind, 1};
    ordinals->used++;
    __atomic_add_fetch(&ordinals_used, 1, __ATOMIC_RELAXED);
    return 0;
}

/* Membership. */

/* World ranks of a group's members, in order; LEDGER_PEER_OUTSIDE for processes of another world.
 * The caller frees them. */
static int32_t *group_world_ranks(mpi_handle group, int size)
{
    int *ranks = memory_take(2 * (size_t)(size > 0 ? size : 1) * sizeof *ranks);
    if (!ranks)
        return NULL;
    int *own = ranks + size;
    for (int i = 0; i < size; i++)
        own[i] = i;
    if (mpi_query.Group_translate_ranks(group, size, own, world_group, ranks) != MPI_SUCCESS)
        for (int i = 0; i < size; i++)
            ranks[i] = MPI_UNDEFINED;
    for (int i = 0; i < size; i++)
        if (ranks[i] == MPI_UNDEFINED)
            ranks[i] = LEDGER_PEER_OUTSIDE;
    return ranks;
}

bool communicators_of_group(mpi_handle group, int count, int32_t *world_ranks)
{
    int own[COMMUNICATORS_SMALL_GROUP] = {0};
    for (int i = 0; i < count; i++)
        own[i] = i;
    bool are_known =
        has_world_group &&
        mpi_query.Group_translate_ranks(group, count, own, world_group, world_ranks) == MPI_SUCCESS;
    for (int i = 0; are_known && i < count; i++)
        are_known = world_ranks[i] >= 0;
    return are_known;
}

bool communicators_is_group(mpi_handle group, int count, const int32_t *world_ranks)
{
    int found[COMMUNICATORS_SMALL_GROUP];
    bool is_it = has_world_group && mpi_query.Group_translate_ranks(world_group, count, world_ranks,
                                                                    group, found) == MPI_SUCCESS;
    for (int i = 0; is_it && i < count; i++)
        is_it = found[i] == i;
    return is_it;
}

static int32_t *world_ranks_of(mpi_handle comm, int (*group_of)(mpi_handle, void *), int size)
{
    uintptr_t memory = 0;
    if (group_of(comm, &memory) != MPI_SUCCESS)
        return NULL;
    int32_t *ranks = group_world_ranks(mpi_handle_load(&memory, 0), size);
    mpi_query.Group_free(&memory);
    return ranks;
}

static bool is_plain(const int32_t *ranks, int size)
{
    for (int i = 0; i < size; i++)
        if (ranks[i] != i)
            return false;
    return true;
}

/* "0-3,8,16-30:2,-1": runs of three or more with a stride, runs of two or more without, processes
 * of another world one by one. */
static void print_members(char *text, size_t bytes, const int32_t *ranks, int count)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < count;) {
        int step = i + 1 < count && ranks[i] >= 0 ? ranks[i + 1] - ranks[i] : 0;
        int last = i;
        while (step > 0 && last + 1 < count && ranks[last + 1] - ranks[last] == step)
            last++;
        if (step != 1 && last - i < 2)
            last = i;
        char run[64];
        int length = last == i ? snprintf(run, sizeof run, "%d", ranks[i])
                     : step == 1
                         ? snprintf(run, sizeof run, "%d-%d", ranks[i], ranks[last])
                         : snprintf(run, sizeof run, "%d-%d:%d", ranks[i], ranks[last], step);
        if (used + 1 + (size_t)length + sizeof ",..." > bytes) {
            memcpy(text + used, used ? ",..." : "...", used ? 5 : 4);
            return;
        }
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? "," : "", run);
        i = last + 1;
    }
}

/* Registration. */

static struct communicator *describe(mpi_handle handle)
{
    int inter = 0, size = 0, rank = 0, remote_size = 0;
    if (mpi_query.Comm_test_inter(handle, &inter) != MPI_SUCCESS ||
        mpi_query.Comm_size(handle, &size) != MPI_SUCCESS ||
        mpi_query.Comm_rank(handle, &rank) != MPI_SUCCESS)
        return NULL;
    if (inter && mpi_query.Comm_remote_size(handle, &remote_size) != MPI_SUCCESS)
        return NULL;
    struct communicator *fresh = memory_take(sizeof *fresh);
    if (!fresh)
        return NULL;
    fresh->handle = handle;
    fresh->size = size;
    fresh->comm_rank = rank;
    fresh->remote_size = remote_size;
    fresh->is_inter = inter;
    fresh->references = 1;
    fresh->out_neighbors = COMMUNICATORS_NOT_ASKED;
    return fresh;
}

/* Hashes both groups of an inter-communicator, in an order that both sides agree on. */
static uint64_t mix_both(uint64_t seed, const int32_t *local, int local_size, const int32_t *remote,
                         int remote_size)
{
    bool local_first = local_size > 0 && remote_size > 0 && local[0] <= remote[0];
    seed = local_first ? mix_ranks(seed, local, local_size) : mix_ranks(seed, remote, remote_size);
    return local_first ? mix_ranks(seed, remote, remote_size) : mix_ranks(seed, local, local_size);
}

static bool identify(struct communicator *fresh, unsigned constructor, struct communicator *parent,
                     uint64_t tag)
{
    int32_t *local = world_ranks_of(fresh->handle, mpi_query.Comm_group, fresh->size);
    int32_t *remote = fresh->is_inter ? world_ranks_of(fresh->handle, mpi_query.Comm_remote_group,
                                                       fresh->remote_size)
                                      : NULL;
    if (!local || (fresh->is_inter && !remote)) {
        memory_give(local);
        memory_give(remote);
        return false;
    }
    if (fresh->is_inter)
        parent = NULL;
    fresh->parent_identity = parent ? parent->identity : 0;
    uint64_t seed = mix(mix(mix(0, constructor), fresh->parent_identity), tag);
    seed = fresh->is_inter ? mix_both(seed, local, fresh->size, remote, fresh->remote_size)
                           : mix_ranks(seed, local, fresh->size);
    fresh->constructor = (uint16_t)constructor;
    fresh->ordinal = next_ordinal(parent ? &parent->ordinals : &without_parent, seed);
    fresh->identity =
        mix(seed, fresh->ordinal) | 4; /* 1 and 2 are MPI_COMM_WORLD and MPI_COMM_SELF */
    fresh->peer_world_ranks = fresh->is_inter ? remote : local;
    if (fresh->is_inter)
        memory_give(local);
    else if (is_plain(local, fresh->size)) {
        memory_give(local);
        fresh->peer_world_ranks = NULL;
    }
    return true;
}

static void destroy(struct communicator *communicator)
{
    struct communicator *created_on = communicator->created_on;
    ordinals_free(&communicator->ordinals);
    memory_give(communicator->epochs[0]);
    memory_give(communicator->epochs[1]);
    if (!created_on)
        memory_give(communicator->peer_world_ranks);
    memory_give(communicator);
    if (created_on)
        communicators_release(created_on);
}

/* Called with the registry locked. */
static struct communicator *make(mpi_handle handle, unsigned constructor,
                                 struct communicator *parent, uint64_t tag)
{
    struct communicator *fresh = describe(handle);
    if (!fresh)
        return NULL;
    if (!identify(fresh, constructor, parent, tag)) {
        destroy(fresh);
        return NULL;
    }
    index_insert(mpi_handle_bits(handle), fresh);
    return fresh;
}

static void make_predefined(mpi_handle handle, uint64_t identity, const char *name)
{
    struct communicator *fresh = make(handle, 0, NULL, identity);
    if (!fresh)
        return;
    fresh->identity = identity;
    fresh->ordinal = 0;
    snprintf(fresh->name, sizeof fresh->name, "%s", name);
}

static void make_world(void)
{
    has_world = true;
    make_predefined(mpi_abi.comm_world, WORLD_IDENTITY, "MPI_COMM_WORLD");
    make_predefined(mpi_abi.comm_self, SELF_IDENTITY, "MPI_COMM_SELF");
}

void communicators_add_world(void)
{
    struct quiet before = quiet_lock(&registering);
    if (has_world_group)
        make_world();
    quiet_unlock(&registering, &before);
}

bool communicators_begin(mpi_handle group, bool initialized)
{
    if (!mpi_abi.known)
        return false;
    struct quiet before = quiet_lock(&registering);
    uintptr_t memory = 0;
    if (initialized && mpi_query.Comm_group &&
        mpi_query.Comm_group(mpi_abi.comm_world, &memory) == MPI_SUCCESS)
        group = mpi_handle_load(&memory, 0);
    world_group = group;
    has_world_group = group != 0;
    if (has_world_group && initialized)
        make_world();
    quiet_unlock(&registering, &before);
    return has_world_group;
}

void communicators_end(void)
{
    struct quiet before = quiet_lock(&registering);
    uintptr_t memory = 0;
    mpi_handle_store(&memory, world_group);
    if (has_world_group)
        mpi_query.Group_free(&memory);
    has_world_group = false;
    quiet_unlock(&registering, &before);
}

/* Called with the registry locked. */
static struct communicator *find_or_make(mpi_handle handle)
{
    struct communicator *found = index_find(mpi_handle_bits(handle));
    struct communicator *made = found ? NULL : make(handle, 0, NULL, 0);
    if (made)
        made->is_late = true;
    return found ? found : made;
}

/* MPI has returned this handle for a new communicator, so the one that had it before was freed,
 * even if that was not intercepted. */
static void forget(mpi_handle bits)
{
    struct communicator *gone = index_find(bits);
    if (!gone)
        return;
    index_remove(bits);
    communicators_freed(gone);
}

struct communicator *communicators_created(mpi_handle handle, unsigned constructor,
                                           mpi_handle parent, bool has_parent, uint64_t tag)
{
    mpi_handle bits = mpi_handle_bits(handle);
    if (!has_world_group || bits == mpi_abi.comm_null)
        return NULL;
    struct quiet before = quiet_lock(&registering);
    forget(bits);
    struct communicator *fresh =
        make(handle, constructor, has_parent ? find_or_make(parent) : NULL, tag);
    quiet_unlock(&registering, &before);
    return fresh;
}

static int32_t *copy_ranks(const int32_t *ranks, int count)
{
    int32_t *copy = memory_take((size_t)(count > 0 ? count : 1) * sizeof *copy);
    if (copy)
        memcpy(copy, ranks, (size_t)count * sizeof *copy);
    return copy;
}

void communicators_duplicated(mpi_handle handle, unsigned constructor, mpi_handle parent)
{
    if (!has_world_group)
        return;
    struct quiet before = quiet_lock(&registering);
    forget(mpi_handle_bits(handle));
    struct communicator *model = index_find(mpi_handle_bits(parent));
    struct communicator *fresh = model ? memory_take(sizeof *fresh) : NULL;
    if (fresh) {
        *fresh = (struct communicator){.handle = handle,
                                       .references = 1,
                                       .out_neighbors = COMMUNICATORS_NOT_ASKED,
                                       .size = model->size,
                                       .remote_size = model->remote_size,
                                       .comm_rank = model->comm_rank,
                                       .is_inter = model->is_inter,
                                       .constructor = (uint16_t)constructor,
                                       .parent_identity = model->identity};
        uint64_t seed = mix(mix(1, constructor), model->identity);
        fresh->ordinal = next_ordinal(&model->ordinals, seed);
        fresh->identity = mix(seed, fresh->ordinal) | 4;
        if (model->peer_world_ranks)
            fresh->peer_world_ranks = copy_ranks(
                model->peer_world_ranks, model->is_inter ? model->remote_size : model->size);
        index_insert(mpi_handle_bits(handle), fresh);
    }
    quiet_unlock(&registering, &before);
}

struct communicator *communicators_add(mpi_handle key, const struct communicator *described)
{
    struct communicator *fresh = memory_take(sizeof *fresh);
    if (!fresh)
        return NULL;
    *fresh = *described;
    fresh->references = 1;
    struct quiet before = quiet_lock(&registering);
    forget(key);
    bool is_in = index_insert(key, fresh);
    quiet_unlock(&registering, &before);
    if (is_in)
        return fresh;
    destroy(fresh);
    return NULL;
}

uint32_t communicators_ordinal(struct communicator *parent, uint64_t kind)
{
    struct quiet before = quiet_lock(&registering);
    uint32_t ordinal = next_ordinal(parent ? &parent->ordinals : &without_parent, kind);
    quiet_unlock(&registering, &before);
    return ordinal;
}

/* False for communicators that do not exist: asking MPI about one would end the job. */
static bool may_be_asked_about(mpi_handle bits)
{
    return bits != mpi_abi.comm_null &&
           (has_world || (bits != mpi_abi.comm_world && bits != mpi_abi.comm_self));
}

struct communicator *communicators_first_use(mpi_handle handle)
{
    if (!has_world_group || !may_be_asked_about(mpi_handle_bits(handle)))
        return NULL;
    struct quiet before = quiet_lock(&registering);
    struct communicator *found = find_or_make(handle);
    quiet_unlock(&registering, &before);
    return found;
}

void communicators_named(mpi_handle handle, const char *name)
{
    struct communicator *communicator = communicators_find(handle);
    if (!communicator || !name)
        return;
    struct quiet before = quiet_lock(&registering);
    snprintf(communicator->name, sizeof communicator->name, "%s", name);
    if (communicator->entry)
        memcpy(communicator->entry->name, communicator->name, sizeof communicator->name);
    quiet_unlock(&registering, &before);
}

void communicators_lose_count(void)
{
    struct quiet before = quiet_lock(&registering);
    for (uint64_t i = 0; i <= communicator_index->mask; i++) {
        struct communicator *communicator = communicator_index->slots[i].communicator;
        if (communicator && communicator->size > 1)
            __atomic_store_n(&communicator->entry, NULL, __ATOMIC_RELAXED);
    }
    quiet_unlock(&registering, &before);
}

static struct communicator *take(mpi_handle key)
{
    struct quiet before = quiet_lock(&registering);
    struct communicator *taken = index_find(key);
    if (taken)
        index_remove(key);
    quiet_unlock(&registering, &before);
    return taken;
}

struct communicator *communicators_freeing(mpi_handle handle)
{
    return take(mpi_handle_bits(handle));
}

void communicators_freed(struct communicator *communicator)
{
    if (communicator->entry)
        communicator->entry->flags |= LEDGER_COMMUNICATOR_FREED;
    communicators_release(communicator);
}

void communicators_restore(struct communicator *communicator)
{
    struct quiet before = quiet_lock(&registering);
    forget(mpi_handle_bits(communicator->handle)); /* a callback of the job may have used it
                                                      meanwhile, which registered it again */
    index_insert(mpi_handle_bits(communicator->handle), communicator);
    quiet_unlock(&registering, &before);
}

static void attach(mpi_handle key, struct communicator *communicator)
{
    struct quiet before = quiet_lock(&registering);
    struct communicator *unseen_end =
        index_find(key); /* of an earlier object with this handle, whose end was not intercepted */
    if (unseen_end)
        index_remove(key); /* threads remember what they found under it */
    bool is_in = index_insert(key, communicator);
    quiet_unlock(&registering, &before);
    if (unseen_end)
        communicators_release(unseen_end);
    if (!is_in)
        communicators_release(communicator);
}

static struct communicator *describe_object(struct communicator *created_on, uint32_t object)
{
    struct communicator *fresh = memory_take(sizeof *fresh);
    if (!fresh)
        return NULL;
    communicators_slot(created_on);
    *fresh = *created_on;
    fresh->ordinals = (struct ordinals){0};
    fresh->references = 1;
    fresh->created_on = created_on;
    fresh->object = object;
    fresh->object_collectives = 0;
    fresh->epochs[0] = fresh->epochs[1] = NULL;
    communicators_hold(created_on);
    return fresh;
}

void communicators_attach(mpi_handle key, mpi_handle comm)
{
    struct communicator *communicator = communicators_find(comm);
    if (!communicator)
        return;
    if (communicator->objects <= COMMUNICATORS_OBJECTS_MAX)
        communicator->objects++;
    struct communicator *object = key ? describe_object(communicator, communicator->objects) : NULL;
    if (object)
        attach(key, object);
}

struct communicator *communicators_detach(mpi_handle key)
{
    return take(key);
}

void communicators_detached(mpi_handle key, struct communicator *communicator, bool is_gone)
{
    if (communicator && is_gone)
        communicators_release(communicator);
    else if (communicator)
        attach(key, communicator);
}

/* The ranks that this one receives from in neighborhood collectives, as a fact: those that it waits
 * for. */
static void note_sources(const struct communicator *communicator, struct mpi_neighbors neighbors)
{
    enum { TEXT = 4096 };
    char key[32], *text = memory_take(TEXT);
    size_t room = 2 * ((size_t)neighbors.sources + (size_t)neighbors.destinations) + 1;
    int *sources = memory_take(room * sizeof *sources), count = 0;
    bool is_known = text && sources && mpi_sources_of(communicator->handle, neighbors, sources);
    for (int i = 0; is_known && i < neighbors.sources; i++) {
        int32_t source = communicators_world_rank(communicator, sources[i]);
        if (source != PEER_NONE) /* beyond the edge of a grid */
            sources[count++] = source;
    }
    if (is_known) {
        print_members(text, TEXT, sources, count);
        snprintf(key, sizeof key, "sources.%016llx", (unsigned long long)communicator->identity);
        ledger_fact(key, text);
    }
    memory_give(sources);
    memory_give(text);
}

int communicators_ask_neighbors(struct communicator *communicator)
{
    struct quiet before = quiet_begin();
    struct mpi_neighbors neighbors = mpi_neighbors_of(communicator->handle);
    note_sources(communicator, neighbors);
    quiet_end(&before);
    __atomic_store_n(&communicator->out_neighbors, neighbors.destinations, __ATOMIC_RELAXED);
    return neighbors.destinations;
}

void communicators_hold(struct communicator *communicator)
{
    __atomic_add_fetch(&communicator->references, 1, __ATOMIC_RELAXED);
}

void communicators_release(struct communicator *communicator)
{
    if (__atomic_sub_fetch(&communicator->references, 1, __ATOMIC_ACQ_REL) == 0)
        destroy(communicator);
}

/* The local group's world ranks, for the ledger. For an inter-communicator MPI is asked again: only
 * the remote group's ranks are stored. */
static void print_local_members(const struct communicator *communicator, char *text, size_t bytes)
{
    int32_t *local =
        communicator->is_inter
            ? world_ranks_of(communicator->handle, mpi_query.Comm_group, communicator->size)
            : NULL;
    const int32_t *ranks = communicator->is_inter ? local : communicator->peer_world_ranks;
    if (ranks)
        print_members(text, bytes, ranks, communicator->size);
    else if (communicator->size > 1)
        snprintf(text, bytes, "0-%d", communicator->size - 1);
    else
        snprintf(text, bytes, "0");
    memory_give(local);
}

unsigned communicators_enter(struct communicator *communicator)
{
    struct quiet before = quiet_lock(&registering);
    if (!communicator->slot && slots_used + 2 < COMMUNICATORS_MAX) {
        struct ledger_communicator entry = {
            .identity = communicator->identity,
            .parent_identity = communicator->parent_identity,
            .communicator = LEDGER_COMMUNICATOR_OTHER + 1 + slots_used,
            .flags = (communicator->is_inter ? LEDGER_COMMUNICATOR_INTER : 0) |
                     (communicator->is_nccl ? LEDGER_COMMUNICATOR_NCCL : 0),
            .size = communicator->size,
            .remote_size = communicator->remote_size,
            .comm_rank = communicator->comm_rank,
            .constructor = communicator->constructor,
            .ordinal = communicator->ordinal,
        };
        memcpy(entry.name, communicator->name, sizeof entry.name);
        if (!communicator->is_nccl)
            print_local_members(communicator, entry.members, sizeof entry.members);
        communicator->entry = ledger_append(LEDGER_COMMUNICATORS, &entry, sizeof entry);
        if (communicator->entry) {
            slots_used++;
            if (communicator->is_late)
                message_numbers_exclude(entry.communicator);
            __atomic_store_n(&communicator->slot, (uint16_t)entry.communicator, __ATOMIC_RELEASE);
        }
    }
    if (!communicator->slot) {
        __atomic_store_n(&communicator->slot, LEDGER_COMMUNICATOR_OTHER, __ATOMIC_RELEASE);
        ledger_count(&the_ledger.header->folded_communicators);
    }
    quiet_unlock(&registering, &before);
    return communicator->slot;
}
_Static_assert(COMMUNICATORS_MAX <= 1 << (16 - LEDGER_PEER_SLOT_BIT),
               "a row of peers has room for every slot");
