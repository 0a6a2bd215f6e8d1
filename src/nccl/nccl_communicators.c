/* When the handle of a new communicator is known:
 *
 *     ncclCommInitRank...             at return, even if the communicator is created later
 *                                     (ncclInProgress, group)
 *     ncclCommGrow                    likewise
 *     ncclCommSplit, Shrink           when the child is created: at return, or
 *         in a group                  at the end of the group: list `in_group`, with the address
 *                                     that NCCL writes the handle to
 *         on a nonblocking parent     later: list `in_progress`, searched when an unknown handle is
 *                                     used. An entry matches if the address that NCCL writes to
 *                                     holds the handle (the job may have moved it; the address may
 *                                     be unmapped, so it is read by process_vm_readv). If there is
 *                                     only one entry, it is taken in any case. */
#include "nccl_communicators.h"

#include "base/memory.h"
#include "base/quiet.h"
#include "record/call.h"
#include "nccl_library.h"

#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    PREDEFINED_BITS = 4,
    FROM_ID = 0x6e63636c,
    FROM_HASH = 0x68617368,
    ALONE = 0x616c6f6e,
    ALL = 0x616c6c
};

static uint64_t mix_bytes(uint64_t hash, const char *bytes, size_t count)
{
    for (size_t i = 0; i + sizeof(uint64_t) <= count; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        hash = communicators_mix(hash, word);
    }
    return hash;
}

static struct communicator *enter(const void *handle, const struct nccl_origin *origin, int size,
                                  int rank)
{
    struct communicator entered = {.handle = (mpi_handle)handle,
                                   .identity = origin->identity | PREDEFINED_BITS,
                                   .parent_identity = origin->parent_identity,
                                   .size = size,
                                   .comm_rank = rank,
                                   .is_nccl = true,
                                   .constructor = (uint16_t)origin->constructor,
                                   .ordinal = origin->ordinal,
                                   .out_neighbors = COMMUNICATORS_NOT_ASKED};
    memcpy(entered.name, origin->name, sizeof entered.name);
    return communicators_add(communicators_key_of_nccl(handle), &entered);
}

static void take_name(struct nccl_origin *origin, const char *name)
{
    snprintf(origin->name, sizeof origin->name, "%s", name ? name : "");
}

static uint64_t mix_ids(const struct nccl_unique_id *ids, int id_count, int nranks)
{
    uint64_t kind = communicators_mix(FROM_ID, (uint64_t)nranks);
    for (int i = 0; i < id_count; i++)
        kind = mix_bytes(kind, ids[i].internal, sizeof ids[i].internal);
    return kind;
}

/* One process may hold several ranks of one communicator. So the ordinal, which separates
 * communicators from the same id, is counted per rank. */
void nccl_communicators_created(const void *handle, unsigned constructor,
                                const struct nccl_unique_id *ids, int id_count, int nranks,
                                int rank, const void *config)
{
    if (!handle || !ids)
        return;
    uint64_t kind = mix_ids(ids, id_count, nranks);
    uint64_t ordinal = communicators_ordinal(NULL, communicators_mix(kind, (uint64_t)rank));
    struct nccl_origin origin = {.constructor = constructor, .ordinal = ordinal};
    origin.identity = communicators_mix(kind, origin.ordinal);
    take_name(&origin, nccl_config_name(config));
    enter(handle, &origin, nranks, rank);
}

/* Unique among processes, and among the communicators of one process. */
static uint64_t identity_of_this_process(uint64_t kind)
{
    static uint64_t created;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    kind = communicators_mix(communicators_mix(kind, communicators_tag(host)), (uint64_t)getpid());
    return communicators_mix(kind, __atomic_add_fetch(&created, 1, __ATOMIC_RELAXED));
}

void nccl_communicators_created_all(void *const *handles, unsigned constructor, int count)
{
    struct nccl_origin origin = {.constructor = constructor,
                                 .identity = identity_of_this_process(ALL)};
    for (int i = 0; i < count; i++)
        if (handles[i])
            enter(handles[i], &origin, count, i);
}

struct communicator *nccl_communicators_reported(const void *handle, uint64_t hash,
                                                 const char *name, int nranks, int rank)
{
    struct nccl_origin origin = {
        .identity = communicators_mix(communicators_mix(FROM_HASH, (uint64_t)nranks), hash)};
    take_name(&origin, name);
    return enter(handle, &origin, nranks, rank);
}

/* The reporter inverts this if ranks know the parent by two identities (grown.py). The rotation
 * makes generations differ. */
static uint64_t identity_of_child(uint64_t parent, uint64_t what)
{
    enum { TURN = 7, BITS = 64 };
    return (parent << TURN | parent >> (BITS - TURN)) ^ what;
}

/* All ranks of the parent make this call (in a Shrink, all that remain), so they count the same
 * ordinal. */
struct nccl_origin nccl_communicators_expect(const void *parent_handle, unsigned constructor,
                                             int color, const void *config)
{
    struct communicator *parent = communicators_under(communicators_key_of_nccl(parent_handle));
    struct nccl_origin origin = {.constructor = constructor};
    take_name(&origin, nccl_config_name(config));
    if (!parent)
        return origin;
    uint64_t kind = communicators_mix(parent->identity, constructor);
    origin.parent_identity = parent->identity;
    origin.ordinal = communicators_ordinal(parent, kind);
    uint64_t what =
        communicators_mix(communicators_mix(constructor, origin.ordinal), (uint64_t)(int64_t)color);
    origin.identity = identity_of_child(parent->identity, what);
    return origin;
}

static bool ask(const void *handle, call_site site, const char *what, int *answer)
{
    nccl_result (*query)(const void *, int *) =
        (nccl_result(*)(const void *, int *))nccl_function(site, what);
    return query(handle, answer) == NCCL_SUCCESS;
}

static bool enter_child(const struct nccl_origin *origin, const void *handle, call_site site)
{
    int size = 0, rank = 0;
    if (!ask(handle, site, "CommCount", &size) || !ask(handle, site, "CommUserRank", &rank))
        return false;
    struct nccl_origin known = *origin;
    if (!known.identity)
        known.identity = identity_of_this_process(ALONE);
    enter(handle, &known, size, rank);
    return true;
}

/* Children without a handle yet. */

struct pending {
    struct nccl_origin origin;
    void *const *handle;
    struct pending *next;
};
static _Thread_local struct pending *in_group;

static struct {
    pthread_mutex_t lock;
    struct pending *first;
} in_progress = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool holds(void *const *address, const void *handle)
{
    void *value;
    struct iovec to = {&value, sizeof value}, from = {(void *)address, sizeof value};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof value && value == handle;
}

/* The link to the entry that matches a handle; a link to NULL: none. */
static struct pending **find_pending(const void *handle)
{
    struct pending **link = &in_progress.first;
    while (*link && !holds((*link)->handle, handle))
        link = &(*link)->next;
    bool is_the_only_one = in_progress.first && !in_progress.first->next;
    return is_the_only_one ? &in_progress.first : link;
}

/* NULL: none. */
static struct pending *take_pending(const void *handle)
{
    struct quiet before = quiet_lock(&in_progress.lock);
    struct pending **link = find_pending(handle), *taken = *link;
    if (taken)
        *link = taken->next;
    quiet_unlock(&in_progress.lock, &before);
    return taken;
}

static void add_pending(struct pending *child)
{
    struct quiet before = quiet_lock(&in_progress.lock);
    child->next = in_progress.first;
    in_progress.first = child;
    quiet_unlock(&in_progress.lock, &before);
}

void nccl_communicators_child(const struct nccl_origin *origin, void *const *handle,
                              bool at_group_end, call_site site)
{
    if (*handle && enter_child(origin, *handle, site))
        return;
    struct pending *child = memory_take(sizeof *child);
    if (!child)
        return;
    *child = (struct pending){*origin, handle, in_group};
    if (at_group_end)
        in_group = child;
    else
        add_pending(child);
}

void nccl_communicators_group_ended(nccl_result result, call_site site)
{
    while (in_group) {
        struct pending *child = in_group;
        in_group = child->next;
        if (result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS)
            nccl_communicators_child(&child->origin, child->handle, false, site);
        memory_give(child);
    }
}

static void note_grown(uint64_t identity_by_id, uint64_t identity)
{
    char key[32], value[17];
    snprintf(key, sizeof key, "nccl.grown.%016llx",
             (unsigned long long)(identity_by_id | PREDEFINED_BITS));
    snprintf(value, sizeof value, "%016llx", (unsigned long long)(identity | PREDEFINED_BITS));
    ledger_fact(key, value);
}

/* Ranks of the parent keep their numbers, and a unique id is used only once. */
void nccl_communicators_grown(const void *parent_handle, const struct nccl_unique_id *id,
                              int nranks, int rank, void *const *handle, const void *config,
                              bool at_group_end, call_site site)
{
    uint64_t by_id = id ? communicators_mix(mix_ids(id, 1, nranks), 0) : 0;
    struct communicator *parent = nccl_communicators_find(parent_handle, site);
    struct nccl_origin origin = {.identity = by_id, .constructor = CALL_ncclCommGrow};
    take_name(&origin, nccl_config_name(config));
    if (parent_handle)
        origin = nccl_communicators_expect(parent_handle, CALL_ncclCommGrow, 0, config);
    if (parent && id)
        note_grown(by_id, origin.identity);
    if (*handle && origin.identity)
        enter(*handle, &origin, nranks, parent ? parent->comm_rank : rank);
    else
        nccl_communicators_child(&origin, handle, at_group_end, site);
}

struct communicator *nccl_communicators_first_use(const void *handle, call_site site)
{
    if (!handle || !(site & SITE_JOB))
        return NULL;
    struct pending *child = take_pending(handle);
    struct nccl_origin origin = child ? child->origin : (struct nccl_origin){0};
    if (!enter_child(&origin, handle, site) && child)
        add_pending(child); /* not ready yet */
    else
        memory_give(child);
    return communicators_under(communicators_key_of_nccl(handle));
}
