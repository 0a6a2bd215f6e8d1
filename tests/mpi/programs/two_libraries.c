/* Loads two plugins, each with its own private MPI library, and uses both in turn. The program
 * itself does not use MPI. Arguments: the plugins. */
#include <dlfcn.h>

#include "check.h"

struct plugin {
    int (*run)(int reductions);
    int (*end)(void);
};

static struct plugin load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
    struct plugin plugin = {(int (*)(int))dlsym(library, "plugin_run"),
                            (int (*)(void))dlsym(library, "plugin_end")};
    CHECK(plugin.run && plugin.end);
    return plugin;
}

int main(int argc, char **argv)
{
    struct plugin plugins[2];
    for (int i = 1; i < argc; i++)
        plugins[i - 1] = load(argv[i]);
    for (int round = 0; round < 3; round++)
        for (int i = 1; i < argc; i++)
            printf("plugin %d: a world of %d\n", i, plugins[i - 1].run(10 * i));
    for (int i = 1; i < argc; i++)
        printf("plugin %d: ended with %d\n", i, plugins[i - 1].end());
    return 0;
}
