/* An NCCL library (or a compatible one: RCCL) defines each function twice: ncclX, which others may
 * interpose, and pncclX. A stand-in for NCCL may have ncclX only; then the definition is used that
 * the caller would have found. */
#include "nccl_library.h"

#include "base/quiet.h"
#include "base/scope.h"
#include "nccl_abi.h"

#include <stdio.h>

#define MARK "pncclGroupStart" /* the symbol that identifies an NCCL library */
#define PLAIN (&MARK[1])       /* ... or a stand-in for one */

uint64_t nccl_sites[SITES];

static struct {
    void *handle, *base;
} libraries[NCCL_LIBRARIES_MAX];
static unsigned library_count;
static pthread_mutex_t meeting = PTHREAD_MUTEX_INITIALIZER;

static unsigned number_of(const void *base)
{
    unsigned count = __atomic_load_n(&library_count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count; i++)
        if (libraries[i].base == base)
            return i;
    return NCCL_NO_LIBRARY;
}

/* The lock is held without any function of the loader: see src/mpi/provider.c. */
static unsigned add_library(const Dl_info *info, void *handle)
{
    struct quiet before = quiet_lock(&meeting);
    unsigned number = number_of(info->dli_fbase); /* by another thread meanwhile */
    if (number == NCCL_NO_LIBRARY && library_count < NCCL_LIBRARIES_MAX) {
        number = library_count;
        libraries[number].handle = handle;
        libraries[number].base = info->dli_fbase;
        __atomic_store_n(&library_count, number + 1, __ATOMIC_RELEASE);
    }
    quiet_unlock(&meeting, &before);
    return number;
}

static unsigned take_in(const Dl_info *info)
{
    unsigned number = number_of(info->dli_fbase);
    if (number != NCCL_NO_LIBRARY)
        return number;
    void *handle = dlopen(
        info->dli_fname,
        RTLD_LAZY | RTLD_NOLOAD); /* never closed: the library must stay loaded as long as we are */
    return add_library(
        info,
        handle ? handle : RTLD_NEXT); /* linked into the executable: after us in the global scope */
}

/* An NCCL function may have tail-called another one: such a call comes from inside the job's
 * call. */
static bool is_inside(const Dl_info *caller)
{
    return caller->dli_fbase == scope_of_us() || number_of(caller->dli_fbase) != NCCL_NO_LIBRARY;
}

static call_site classify(const void *return_address)
{
    Dl_info caller = {0}, found;
    bool named = dladdr(return_address, &caller) && caller.dli_fname;
    bool is_there =
        (named &&
         (scope_of_caller(&caller, MARK, &found) || scope_of_caller(&caller, PLAIN, &found))) ||
        scope_definer(RTLD_NEXT, MARK, &found) || scope_definer(RTLD_NEXT, PLAIN, &found) ||
        scope_anywhere("ccl", MARK, NULL, &found);
    unsigned library = is_there ? take_in(&found) : NCCL_NO_LIBRARY;
    return library << 8 | (library != NCCL_NO_LIBRARY && !is_inside(&caller) ? SITE_JOB : 0);
}

call_site nccl_site_first_use(const void *return_address)
{
    uint64_t address = (uint64_t)return_address;
    struct quiet before = quiet_begin();
    call_site site = classify(return_address);
    if (site_provider(site) != NCCL_NO_LIBRARY)
        __atomic_store_n(&nccl_sites[provider_site_slot(address)], address << 16 | site,
                         __ATOMIC_RELAXED);
    quiet_end(&before);
    return site;
}

static nccl_result function_is_missing(void)
{
    return NCCL_SYSTEM_ERROR;
}

/* The next definition after ours if it belongs to another tool, which would have been called
 * without us. */
static void *of_a_tool(const char *symbol)
{
    Dl_info info, mark;
    void *next = dlsym(RTLD_NEXT, symbol);
    if (!next || !dladdr(next, &info) || !info.dli_fname)
        return NULL;
    void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    bool is_nccl =
        !handle || (scope_definer(handle, MARK, &mark) && mark.dli_fbase == info.dli_fbase);
    if (handle)
        dlclose(handle);
    return is_nccl ? NULL : next;
}

void *nccl_function(call_site site, const char *name)
{
    char symbol[64];
    Dl_info info;
    if (site_provider(site) == NCCL_NO_LIBRARY)
        return (void *)function_is_missing;
    snprintf(symbol, sizeof symbol, "pnccl%s", name);
    void *function = of_a_tool(symbol + 1);
    if (!function)
        function = dlsym(libraries[site_provider(site)].handle, symbol);
    if (!function && scope_definer(libraries[site_provider(site)].handle, symbol + 1, &info))
        function = dlsym(libraries[site_provider(site)].handle, symbol + 1);
    return function ? function : (void *)function_is_missing;
}

unsigned nccl_libraries_known(void)
{
    return __atomic_load_n(&library_count, __ATOMIC_ACQUIRE);
}

bool nccl_library_is_known(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) && number_of(info.dli_fbase) != NCCL_NO_LIBRARY;
}
