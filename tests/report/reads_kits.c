/* Says of each kit whether commprof-replay reads it, and knows all its calls: 1 or 0. A library has
 * all functions; none is called. */
#include "tools/replay/kit.c"
#include "tools/replay/arrival.c"
#include "tools/replay/buffers.c"
#include "tools/replay/player.c"

void *library_function(const char *name)
{
    return (void *)name;
}

mpi_handle objects_op(const struct objects *objects, const char *name, int type)
{
    (void)objects, (void)name, (void)type;
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct kit kit;
        struct function function = {0};
        char why[256];
        bool is_read = kit_read(&kit, argv[i], -1, why, sizeof why);
        for (int call = 0; is_read && call < kit.calls; call++)
            is_read = find(&function, kit.call[call].name);
        putchar('0' + is_read);
    }
    return 0;
}
