/* When a handle comes to be:
 *
 *     ncclCommInitRank...             handle at return, even if the communicator is made later (ncclInProgress, group)
 *     ncclCommSplit, Shrink           handle when the child is made: at return, or
 *         in a group                  at the end of the group: `unborn`, by the address that NCCL writes it to
 *         on a nonblocking parent     some time later: `awaited`, when a handle that nobody knows is used. The address that NCCL has
 *                                     written it to says whose it is, if the job has left it there; it is read without being
 *                                     touched, for it may be gone. Else it is the awaited one if there is one only. */
#include "nccl_communicators.h"

#include "nccl_library.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PREDEFINED_BITS = 4, FROM_ID = 0x6e63636c, FROM_HASH = 0x68617368, ALONE = 0x616c6f6e, ALL = 0x616c6c };

static uint64_t mix_bytes(uint64_t hash, const char *bytes, size_t count)
{
    for (size_t i = 0; i + sizeof(uint64_t) <= count; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        hash = communicators_mix(hash, word);
    }
    return hash;
}

static struct communicator *enter(const void *handle, const struct nccl_birth *birth, int size, int rank)
{
    struct communicator entered = {.handle = (mpi_handle)handle,
                                   .identity = birth->identity | PREDEFINED_BITS,
                                   .parent_identity = birth->parent_identity,
                                   .size = size,
                                   .comm_rank = rank,
                                   .is_nccl = true,
                                   .constructor = (uint16_t)birth->constructor,
                                   .ordinal = birth->ordinal,
                                   .out_neighbors = COMMUNICATORS_NOT_ASKED};
    memcpy(entered.name, birth->name, sizeof entered.name);
    return communicators_add(communicators_key_of_nccl(handle), &entered);
}

static void take_name(struct nccl_birth *birth, const char *name)
{
    snprintf(birth->name, sizeof birth->name, "%s", name ? name : "");
}

/* One process may be several ranks of one communicator: which one of several from the same id it is, is counted for each rank. */
void nccl_communicators_made(const void *handle, unsigned constructor, const struct nccl_unique_id *ids, int id_count, int nranks, int rank,
                             const void *config)
{
    if (!handle || !ids)
        return;
    uint64_t kind = communicators_mix(FROM_ID, (uint64_t)nranks);
    for (int i = 0; i < id_count; i++)
        kind = mix_bytes(kind, ids[i].internal, sizeof ids[i].internal);
    struct nccl_birth birth = {.constructor = constructor, .ordinal = communicators_ordinal(NULL, communicators_mix(kind, (uint64_t)rank))};
    birth.identity = communicators_mix(kind, birth.ordinal);
    take_name(&birth, nccl_config_name(config));
    enter(handle, &birth, nranks, rank);
}

/* Different for any two processes, and for any two communicators of one. */
static uint64_t identity_of_this_process(uint64_t kind)
{
    static uint64_t made;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    kind = communicators_mix(communicators_mix(kind, communicators_tag(host)), (uint64_t)getpid());
    return communicators_mix(kind, __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED));
}

void nccl_communicators_made_all(void *const *handles, unsigned constructor, int count)
{
    struct nccl_birth birth = {.constructor = constructor, .identity = identity_of_this_process(ALL)};
    for (int i = 0; i < count; i++)
        if (handles[i])
            enter(handles[i], &birth, count, i);
}

struct communicator *nccl_communicators_told(const void *handle, uint64_t hash, const char *name, int nranks, int rank)
{
    struct nccl_birth birth = {.identity = communicators_mix(communicators_mix(FROM_HASH, (uint64_t)nranks), hash)};
    take_name(&birth, name);
    return enter(handle, &birth, nranks, rank);
}

/* All ranks of the parent make the call (in a Shrink, all that stay), so the ordinal is theirs, too. */
struct nccl_birth nccl_communicators_expect(const void *parent_handle, unsigned constructor, int color, const void *config)
{
    struct communicator *parent = communicators_under(communicators_key_of_nccl(parent_handle));
    struct nccl_birth birth = {.constructor = constructor};
    take_name(&birth, nccl_config_name(config));
    if (!parent)
        return birth;
    uint64_t kind = communicators_mix(parent->identity, constructor);
    birth.parent_identity = parent->identity;
    birth.ordinal = communicators_ordinal(parent, kind);
    birth.identity = communicators_mix(communicators_mix(kind, birth.ordinal), (uint64_t)(int64_t)color);
    return birth;
}

static bool ask(const void *handle, call_site site, const char *what, int *answer)
{
    nccl_result (*query)(const void *, int *) = (nccl_result(*)(const void *, int *))nccl_function(site, what);
    return query(handle, answer) == NCCL_SUCCESS;
}

static bool enter_child(const struct nccl_birth *birth, const void *handle, call_site site)
{
    int size = 0, rank = 0;
    if (!ask(handle, site, "CommCount", &size) || !ask(handle, site, "CommUserRank", &rank))
        return false;
    struct nccl_birth known = *birth;
    if (!known.identity)
        known.identity = identity_of_this_process(ALONE);
    enter(handle, &known, size, rank);
    return true;
}

/* Children that have no handle yet. */

struct unborn {
    struct nccl_birth birth;
    void *const *handle;
    struct unborn *next;
};
static _Thread_local struct unborn *unborn;

static struct {
    pthread_mutex_t lock;
    struct unborn *first;
} awaited = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool holds(void *const *address, const void *handle)
{
    void *value;
    struct iovec to = {&value, sizeof value}, from = {(void *)address, sizeof value};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof value && value == handle;
}

/* The link to the one that is awaited for a handle; to NULL: none is. */
static struct unborn **find_awaited(const void *handle)
{
    struct unborn **link = &awaited.first;
    while (*link && !holds((*link)->handle, handle))
        link = &(*link)->next;
    bool is_the_only_one = awaited.first && !awaited.first->next;
    return is_the_only_one ? &awaited.first : link;
}

/* NULL: none. */
static struct unborn *take_awaited(const void *handle)
{
    pthread_mutex_lock(&awaited.lock);
    struct unborn **link = find_awaited(handle), *taken = *link;
    if (taken)
        *link = taken->next;
    pthread_mutex_unlock(&awaited.lock);
    return taken;
}

static void await(struct unborn *child)
{
    pthread_mutex_lock(&awaited.lock);
    child->next = awaited.first;
    awaited.first = child;
    pthread_mutex_unlock(&awaited.lock);
}

void nccl_communicators_born(const struct nccl_birth *birth, void *const *handle, bool at_group_end, call_site site)
{
    if (*handle && enter_child(birth, *handle, site))
        return;
    struct unborn *child = malloc(sizeof *child);
    if (!child)
        return;
    *child = (struct unborn){*birth, handle, unborn};
    if (at_group_end)
        unborn = child;
    else
        await(child);
}

void nccl_communicators_group_ended(nccl_result result, call_site site)
{
    while (unborn) {
        struct unborn *born = unborn;
        unborn = born->next;
        if (result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS)
            nccl_communicators_born(&born->birth, born->handle, false, site);
        free(born);
    }
}

struct communicator *nccl_communicators_meet(const void *handle, call_site site)
{
    if (!handle || !(site & SITE_JOB))
        return NULL;
    struct unborn *child = take_awaited(handle);
    struct nccl_birth birth = child ? child->birth : (struct nccl_birth){0};
    if (!enter_child(&birth, handle, site) && child)
        await(child); /* not ready yet */
    else
        free(child);
    return communicators_under(communicators_key_of_nccl(handle));
}
