/* Finds the NCCL library of a caller. As for MPI (mpi/provider.h), each call is passed on to the
 * library that its caller is bound to, and the answer is cached per call site. A process may hold
 * several copies of NCCL (PyTorch's, CuPy's); all are counted. */
#ifndef COMMPROF_NCCL_LIBRARY_H
#define COMMPROF_NCCL_LIBRARY_H

#include "mpi/provider.h"

enum { NCCL_LIBRARIES_MAX = 8, NCCL_NO_LIBRARY = NCCL_LIBRARIES_MAX };

extern uint64_t nccl_sites[SITES]; /* like provider_sites */

call_site nccl_site_first_use(const void *return_address);

/* The call site, with the library's number in the provider field. SITE_JOB: the caller is not NCCL
 * itself. */
static inline call_site nccl_site(const void *return_address)
{
    uint64_t address = (uint64_t)return_address;
    uint64_t word = __atomic_load_n(&nccl_sites[provider_site_slot(address)], __ATOMIC_RELAXED);
    uint64_t difference = word ^ address << 16;
    return __builtin_expect(difference <= 0xffff, 1) ? (call_site)difference
                                                     : nccl_site_first_use(return_address);
}

/* The function nccl<name> for a call site. Never NULL: if the library lacks it, a function that
 * returns ncclSystemError. */
void *nccl_function(call_site site, const char *name);

/* The same, cached by its wrapper. */
struct nccl_target {
    void *functions[NCCL_LIBRARIES_MAX + 1];
};

static inline void *nccl_target(struct nccl_target *target, call_site site, const char *name)
{
    void *known = __atomic_load_n(&target->functions[site_provider(site)], __ATOMIC_RELAXED);
    if (__builtin_expect(known != NULL, 1))
        return known;
    known = nccl_function(site, name);
    if (site_provider(site) != NCCL_NO_LIBRARY)
        __atomic_store_n(&target->functions[site_provider(site)], known, __ATOMIC_RELAXED);
    return known;
}

/* How many copies of NCCL have been called through us. */
unsigned nccl_libraries_known(void);

/* Whether code at this address belongs to a copy of NCCL whose functions have been called through
 * us. */
bool nccl_library_is_known(const void *address);

#endif
