/* finalized_by_opened LIBRARY: no MPI of its own. It opens a library that uses MPI (plugin.c) and
 * is linked with the profiler; the exit handler that finalizes MPI is older than both. */
#include <dlfcn.h>

#include "check.h"

static int (*run)(int reductions), (*end)(void);

static void finalize(void)
{
    CHECK(run(1) == 1 && end() == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 && atexit(finalize) == 0);
    void *library = dlopen(argv[1], RTLD_NOW);
    CHECK(library != NULL);
    *(void **)&run = dlsym(library, "plugin_run");
    *(void **)&end = dlsym(library, "plugin_end");
    CHECK(run(5) == 1);
    return 0;
}
