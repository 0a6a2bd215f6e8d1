/* libcommprof-dlsym.so, which commprof-run --dlsym preloads in addition to libcommprof.so: for programs that open an MPI library and look
 * its functions up by dlsym (Python's ctypes and cffi, Julia, Rust). Preloading libcommprof.so alone does not intercept these.
 *
 * If dlsym finds the real MPI_x or PMPI_x through a handle, the wrapper of that name is returned instead. All other look-ups are passed to
 * the real dlsym by a tail call, since RTLD_NEXT and RTLD_DEFAULT depend on the caller (this file is always compiled with -O2, which makes
 * it a jump). Look-ups by libcommprof.so itself always get the real functions. */
#include "base/old_glibc.h"
#include "mpi/provider.h"

#include <dlfcn.h>

#define EXPORT __attribute__((visibility("default")))

typedef void *look_up(void *restrict handle, const char *restrict name);
EXPORT look_up dlsym;

/* Weak: without libcommprof.so, this library changes nothing. */
extern __typeof__(commprof_wrapper) commprof_wrapper __attribute__((weak));

/* The next dlsym: another tool's or the C library's, found under a symbol version that all of them have. Not resolved in a constructor:
 * constructors of other libraries may call dlsym before. */
static look_up *real_dlsym(void)
{
    static look_up *real;
    look_up *known = __atomic_load_n(&real, __ATOMIC_RELAXED);
    if (!known) {
        known = (look_up *)dlvsym(RTLD_NEXT, "dlsym", OLDEST_GLIBC);
        __atomic_store_n(&real, known, __ATOMIC_RELAXED);
    }
    return known;
}

static bool is_mpi_name(const char *name)
{
    return strncmp(name + (name[0] == 'P'), "MPI_", 4) == 0;
}

static bool is_called_by_the_profiler(const void *return_address)
{
    Dl_info caller, profiler;
    return dladdr(return_address, &caller) && dladdr((void *)commprof_wrapper, &profiler) && caller.dli_fbase == profiler.dli_fbase;
}

static __attribute__((noinline)) void *wrapper_of(void *handle, const char *name, const void *return_address)
{
    bool is_ordinary = handle != RTLD_NEXT && handle != RTLD_DEFAULT && commprof_wrapper;
    if (!is_ordinary || !is_mpi_name(name) || is_called_by_the_profiler(return_address))
        return NULL;
    void *function = real_dlsym()(handle, name);
    return function ? commprof_wrapper(function, name) : NULL;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
    void *wrapper = wrapper_of(handle, name, __builtin_return_address(0));
    return wrapper ? wrapper : real_dlsym()(handle, name);
}
