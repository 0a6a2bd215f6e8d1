#include "scope.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

void *scope_of_us(void)
{
    static void *base;
    Dl_info info;
    if (!base && dladdr((void *)scope_of_us, &info))
        base = info.dli_fbase;
    return base;
}

bool scope_definer(void *handle, const char *symbol, Dl_info *info)
{
    void *address = dlsym(handle, symbol);
    return address && dladdr(address, info) && info->dli_fname && info->dli_fbase != scope_of_us();
}

bool scope_of_caller(const Dl_info *caller, const char *symbol, Dl_info *found)
{
    void *handle = dlopen(caller->dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return false; /* the main program goes by its own name, which dlopen does not know */
    bool is_there = scope_definer(handle, symbol, found);
    dlclose(handle);
    return is_there;
}

struct scan {
    const char *part, *symbol;
    char path[900]; /* on the stack of a thread of the job's: docs/OVERHEAD.md */
};

static int scan_object(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    struct scan *scan = data;
    const char *slash = object->dlpi_name ? strrchr(object->dlpi_name, '/') : NULL;
    if (!slash || !strcasestr(slash, scan->part))
        return 0;
    void *handle = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return 0;
    Dl_info info;
    bool defines = scope_definer(handle, scan->symbol, &info) && (ElfW(Addr))info.dli_fbase == object->dlpi_addr;
    dlclose(handle);
    if (defines)
        snprintf(scan->path, sizeof scan->path, "%s", object->dlpi_name);
    return defines;
}

bool scope_anywhere(const char *part, const char *symbol, Dl_info *found)
{
    struct scan scan = {part, symbol, ""};
    if (!dl_iterate_phdr(scan_object, &scan))
        return false;
    void *handle = dlopen(scan.path, RTLD_LAZY | RTLD_NOLOAD);
    bool is_there = handle && scope_definer(handle, symbol, found);
    if (handle)
        dlclose(handle);
    return is_there;
}
