/* opens_plugin PLUGIN usual|deep|dlmopen [alone|idle]: makes a Barrier and lets the plugin work;
 * alone: makes no MPI call itself; idle: opens it only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include <mpi.h>

#include "check.h"

static void *open_plugin(const char *path, const char *how)
{
    if (strcmp(how, "dlmopen") == 0)
        return dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    return dlopen(path, RTLD_NOW | (strcmp(how, "deep") == 0 ? RTLD_DEEPBIND : 0));
}

int main(int argc, char **argv)
{
    const char *rest = argc > 3 ? argv[3] : "";
    CHECK(argc > 2);
    if (!*rest) {
        MPI_Init(&argc, &argv);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    void *plugin = open_plugin(argv[1], argv[2]);
    CHECK(plugin != NULL);
    void (*work)(void) = (void (*)(void))dlsym(plugin, "work");
    CHECK(work != NULL);
    if (strcmp(rest, "idle") != 0)
        work();
    if (!*rest)
        MPI_Finalize();
    return 0;
}
