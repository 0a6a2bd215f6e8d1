/* dlsym, for programs that open an MPI library and look its functions up (Python's ctypes and cffi,
 * Julia, Rust): preloading alone does not intercept what they call.
 *
 * If dlsym finds MPI_x or PMPI_x of the profiled library through a handle, the wrapper of that name
 * is returned instead. All other look-ups are passed to the real dlsym by a tail call, since
 * RTLD_NEXT and RTLD_DEFAULT depend on the caller (this file is always compiled with -O2, which
 * makes it a jump). Look-ups by this library itself always get the real functions. */
#include "base/old_glibc.h"
#include "base/scope.h"
#include "provider.h"

#include <dlfcn.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef void *look_up(void *restrict handle, const char *restrict name);
EXPORT look_up dlsym;

/* The next dlsym: another tool's, which has no symbol version, or the C library's. Not resolved in
 * a constructor: constructors of other libraries may call dlsym before. */
static look_up *real_dlsym(void)
{
    static look_up *real;
    look_up *known = __atomic_load_n(&real, __ATOMIC_RELAXED);
    if (!known) {
        look_up *libc = (look_up *)dlvsym(RTLD_NEXT, "dlsym", OLDEST_GLIBC);
        look_up *next = (look_up *)libc(RTLD_NEXT, "dlsym");
        known = next ? next : libc;
        __atomic_store_n(&real, known, __ATOMIC_RELAXED);
    }
    return known;
}

static bool is_mpi_name(const char *name)
{
    return strncmp(name + (name[0] == 'P'), "MPI_", 4) == 0;
}

static __attribute__((noinline)) void *wrapper_of(void *handle, const char *name,
                                                  const void *return_address)
{
    if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || !is_mpi_name(name) ||
        scope_is_us(return_address))
        return NULL;
    void *function = real_dlsym()(handle, name);
    return function ? provider_wrapper(function, name, return_address) : NULL;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
    void *wrapper = wrapper_of(handle, name, __builtin_return_address(0));
    if (!wrapper)
        return real_dlsym()(handle, name);
    real_dlsym()(handle, name); /* it succeeds, so dlerror has no error of ours */
    return wrapper;
}
