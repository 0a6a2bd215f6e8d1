/* When the handle of a new communicator is known:
 *
 *     ncclCommInitRank...             at return, even if the communicator is created later (ncclInProgress, group)
 *     ncclCommGrow                    likewise
 *     ncclCommSplit, Shrink           when the child is created: at return, or
 *         in a group                  at the end of the group: list `unborn`, with the address that NCCL writes the handle to
 *         on a nonblocking parent     later: list `awaited`, searched when an unknown handle is used. An entry matches if the address that
 *                                     NCCL writes to holds the handle (the job may have moved it; the address may be unmapped, so it is
 *                                     read by process_vm_readv). If there is only one entry, it is taken in any case. */
#include "nccl_communicators.h"

#include "record/call.h"
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

static uint64_t mix_ids(const struct nccl_unique_id *ids, int id_count, int nranks)
{
    uint64_t kind = communicators_mix(FROM_ID, (uint64_t)nranks);
    for (int i = 0; i < id_count; i++)
        kind = mix_bytes(kind, ids[i].internal, sizeof ids[i].internal);
    return kind;
}

/* One process may hold several ranks of one communicator. So the ordinal, which separates communicators from the same id, is counted per
 * rank. */
void nccl_communicators_made(const void *handle, unsigned constructor, const struct nccl_unique_id *ids, int id_count, int nranks, int rank,
                             const void *config)
{
    if (!handle || !ids)
        return;
    uint64_t kind = mix_ids(ids, id_count, nranks);
    struct nccl_birth birth = {.constructor = constructor, .ordinal = communicators_ordinal(NULL, communicators_mix(kind, (uint64_t)rank))};
    birth.identity = communicators_mix(kind, birth.ordinal);
    take_name(&birth, nccl_config_name(config));
    enter(handle, &birth, nranks, rank);
}

/* Unique among processes, and among the communicators of one process. */
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

struct communicator *nccl_communicators_reported(const void *handle, uint64_t hash, const char *name, int nranks, int rank)
{
    struct nccl_birth birth = {.identity = communicators_mix(communicators_mix(FROM_HASH, (uint64_t)nranks), hash)};
    take_name(&birth, name);
    return enter(handle, &birth, nranks, rank);
}

/* The reporter inverts this if ranks know the parent by two identities (grown.py). The rotation makes generations differ. */
static uint64_t identity_of_child(uint64_t parent, uint64_t what)
{
    enum { TURN = 7, BITS = 64 };
    return (parent << TURN | parent >> (BITS - TURN)) ^ what;
}

/* All ranks of the parent make this call (in a Shrink, all that remain), so they count the same ordinal. */
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
    uint64_t what = communicators_mix(communicators_mix(constructor, birth.ordinal), (uint64_t)(int64_t)color);
    birth.identity = identity_of_child(parent->identity, what);
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

/* Children without a handle yet. */

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

/* The link to the entry that matches a handle; a link to NULL: none. */
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

static void note_grown(uint64_t identity_by_id, uint64_t identity)
{
    char key[32], value[17];
    snprintf(key, sizeof key, "nccl.grown.%016llx", (unsigned long long)(identity_by_id | PREDEFINED_BITS));
    snprintf(value, sizeof value, "%016llx", (unsigned long long)(identity | PREDEFINED_BITS));
    ledger_fact(key, value);
}

/* Ranks of the parent keep their numbers, and a unique id is used only once. */
void nccl_communicators_grown(const void *parent_handle, const struct nccl_unique_id *id, int nranks, int rank, void *const *handle,
                              const void *config, bool at_group_end, call_site site)
{
    uint64_t by_id = id ? communicators_mix(mix_ids(id, 1, nranks), 0) : 0;
    struct communicator *parent = nccl_communicators_find(parent_handle, site);
    struct nccl_birth birth = {.identity = by_id, .constructor = CALL_ncclCommGrow};
    take_name(&birth, nccl_config_name(config));
    if (parent_handle)
        birth = nccl_communicators_expect(parent_handle, CALL_ncclCommGrow, 0, config);
    if (parent && id)
        note_grown(by_id, birth.identity);
    if (*handle && birth.identity)
        enter(*handle, &birth, nranks, parent ? parent->comm_rank : rank);
    else
        nccl_communicators_born(&birth, handle, at_group_end, site);
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
