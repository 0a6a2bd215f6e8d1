/* Says of each kit, on a line, why commprof-replay refuses it, or does not know one of its calls;
 * nothing if it makes them. A library has all functions; none is called. */
#include "tools/replay/kit.c"
#include "tools/replay/arrival.c"
#include "tools/replay/buffers.c"
#include "tools/replay/player.c"
#include "tools/replay/race.c"
#include "tools/replay/watch.c"

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
        char why[256] = "";
        bool is_read = kit_read(&kit, argv[i], -1, why, sizeof why);
        for (int call = 0; is_read && call < kit.calls; call++)
            if (!find(&function, kit.call[call].name))
                strcpy(why, "is none of the calls that can be made again");
        puts(why);
    }
    return 0;
}
