#include "sqlite.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

struct sqlite sqlite;

static int find_loaded(struct dl_phdr_info *object, size_t size, void *path)
{
    (void)size;
    const char *slash = object->dlpi_name ? strrchr(object->dlpi_name, '/') : NULL;
    if (!slash || strncmp(slash, "/libsqlite3.so", 14) != 0)
        return 0;
    snprintf(path, 1024, "%s", object->dlpi_name);
    return 1;
}

static void *open_library(void)
{
    char path[1024] = "";
    if (dl_iterate_phdr(find_loaded, path)) {
        void *loaded = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
        if (loaded)
            return loaded;
    }
    return dlopen("libsqlite3.so.0", RTLD_LAZY | RTLD_LOCAL);
}

bool sqlite_load(void)
{
    void *library = open_library();
    if (!library)
        return false;
    bool complete = true;
#define FIND(NAME)                                                           \
    sqlite.NAME = (__typeof__(sqlite.NAME))dlsym(library, "sqlite3_" #NAME); \
    complete &= sqlite.NAME != NULL;
    FIND(open_v2)
    FIND(close)
    FIND(exec)
    FIND(prepare_v2)
    FIND(bind_int64)
    FIND(bind_text)
    FIND(bind_null)
    FIND(step)
    FIND(reset)
    FIND(finalize)
    FIND(errmsg)
    bool usable = complete;
    FIND(system_errno)
#undef FIND
    return usable;
}
