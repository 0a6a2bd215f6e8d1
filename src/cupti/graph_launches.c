/* The real function is the one that the call site is bound to: a process may have several runtimes,
 * and a graph belongs to one. Call sites are few and cached for good. */
#include "graph_launches.h"

#include "base/quiet.h"
#include "base/scope.h"
#include "cuda_driver.h"

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

enum { MOST_SITES = 64, NOT_INITIALIZED = 3 }; /* error code of both the runtime and the driver */

typedef int launch_function(void *graph, void *stream);

EXPORT launch_function cudaGraphLaunch, cudaGraphLaunch_ptsz, cuGraphLaunch, cuGraphLaunch_ptsz;

static struct {
    const void *caller;
    const char *name;
    launch_function *launch;
} sites[MOST_SITES];
static uint32_t site_count;

static bool is_followed;
static uint64_t launches;

static void remember(const char *name, const void *caller, launch_function *launch)
{
    static pthread_mutex_t remembering = PTHREAD_MUTEX_INITIALIZER;
    struct quiet before = quiet_lock(&remembering);
    if (site_count < MOST_SITES) {
        sites[site_count].caller = caller;
        sites[site_count].name = name;
        sites[site_count].launch = launch;
        __atomic_store_n(&site_count, site_count + 1, __ATOMIC_RELEASE);
    }
    quiet_unlock(&remembering, &before);
}

static launch_function *look_up(const char *name, const void *caller)
{
    Dl_info info = {NULL, NULL, NULL, NULL}, found;
    bool is_named = dladdr(caller, &info) && info.dli_fname;
    bool is_there = (is_named && scope_of_caller(&info, name, &found)) ||
                    scope_definer(RTLD_NEXT, name, &found) ||
                    scope_anywhere("/libcud", name, NULL, &found);
    if (!is_there)
        return NULL;
    launch_function *launch = (launch_function *)found.dli_saddr;
    remember(name, caller, launch);
    return launch;
}

static launch_function *real(const char *name, const void *caller)
{
    uint32_t count = __atomic_load_n(&site_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (sites[i].caller == caller && sites[i].name == name)
            return sites[i].launch;
    return look_up(name, caller);
}

/* A launch into a capturing stream becomes part of another graph and is not counted. */
static bool is_counted(void *stream)
{
    return __atomic_load_n(&is_followed, __ATOMIC_RELAXED) &&
           !(stream && cuda_driver_is_capturing(stream));
}

static int launch(const char *name, const void *caller, void *graph, void *stream)
{
    launch_function *real_launch = real(name, caller);
    bool counts = is_counted(stream);
    int result = real_launch ? real_launch(graph, stream) : NOT_INITIALIZED;
    if (counts && result == 0)
        __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
    return result;
}

#define LAUNCH(NAME)                                                     \
    int NAME(void *graph, void *stream)                                  \
    {                                                                    \
        static const char name[] = #NAME;                                \
        return launch(name, __builtin_return_address(0), graph, stream); \
    }
LAUNCH(cudaGraphLaunch)
LAUNCH(cudaGraphLaunch_ptsz)
LAUNCH(cuGraphLaunch)
LAUNCH(cuGraphLaunch_ptsz)

void graph_launches_follow(bool followed)
{
    __atomic_store_n(&is_followed, followed, __ATOMIC_RELAXED);
}

uint64_t graph_launches_taken(void)
{
    return __atomic_exchange_n(&launches, 0, __ATOMIC_RELAXED);
}
