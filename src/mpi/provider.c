/* The provider of a call site, the MPI library that serves its calls, is found as the dynamic
 * linker would find it:
 *   1. in the scope of the caller's own object and its dependencies (Python loads MPI privately:
 *      RTLD_NEXT finds nothing);
 *   2. after us in the global scope (RTLD_NEXT: main programs, just-in-time compiled callers);
 *   3. in any loaded object that defines PMPI_Init itself.
 * The first provider found is profiled. Calls to up to three others are passed on, but not counted.
 *
 * Fortran: Open MPI's Fortran library calls PMPI_x; MPICH's calls MPI_x or PMPI_x, depending on the
 * function. Both are separate objects from the C library, so their calls count as the job's. If a
 * library has its Fortran layer in the same object as C, the layer is recognised by the calling
 * function's Fortran name (lower case, trailing underscore). */
#include "provider.h"

#include "base/quiet.h"
#include "base/scope.h"
#include "base/settings.h"

#include <limits.h>
#include <stdio.h>

uint64_t provider_sites[SITES];

static struct provider {
    void *handle;
    void *base; /* load address, the identity of an object */
    struct scope_object object;
    char path[1024];
} providers[PROVIDERS_MAX];
static unsigned provider_count;
static void *tools[8]; /* load addresses of PMPI tools that come after us */
static pthread_mutex_t classifying = PTHREAD_MUTEX_INITIALIZER;

const char *provider_path(void)
{
    return providers[0].path;
}

/* The loader's own lock comes first: a thread that loads a library may call MPI in a constructor,
 * and then waits for `classifying`. So no function of the loader is called while it is held.
 * Signals are blocked all the same (quiet.h): a handler would find the loader half way. */

static unsigned known_provider(const void *base)
{
    unsigned count = __atomic_load_n(&provider_count, __ATOMIC_ACQUIRE), i = 0;
    while (i < count && providers[i].base != base)
        i++;
    return i < count ? i : PROVIDERS_MAX;
}

static unsigned add_provider(const Dl_info *info, void *handle, struct scope_object object)
{
    struct quiet before = quiet_lock(&classifying);
    unsigned number = known_provider(info->dli_fbase); /* by another thread meanwhile */
    if (number == PROVIDERS_MAX && provider_count < PROVIDERS_MAX) {
        struct provider *fresh = &providers[provider_count];
        fresh->handle = handle;
        fresh->base = info->dli_fbase;
        fresh->object = object;
        snprintf(fresh->path, sizeof fresh->path, "%s", info->dli_fname);
        number = provider_count;
        __atomic_store_n(&provider_count, number + 1, __ATOMIC_RELEASE);
    }
    quiet_unlock(&classifying, &before);
    return number;
}

/* The index of the provider that is the object in `info`; a new one is registered. PROVIDERS_MAX if
 * there are too many. */
static unsigned provider_number(const Dl_info *info)
{
    unsigned known = known_provider(info->dli_fbase);
    if (known < PROVIDERS_MAX)
        return known;
    void *handle =
        dlopen(info->dli_fname,
               RTLD_LAZY | RTLD_NOLOAD); /* never closed: the library must not be unloaded */
    if (!handle)
        handle =
            RTLD_NEXT; /* MPI is linked into the executable: it is after us in the global scope */
    if (__atomic_load_n(&provider_count, __ATOMIC_ACQUIRE) == 0)
        mpi_abi_detect(handle, info->dli_fname);
    return add_provider(info, handle, scope_object_of(info->dli_fbase));
}

static bool is_fortran_name(const char *name)
{
    return name && name[0] && name[strlen(name) - 1] == '_' && strstr(name, "mpi");
}

static bool belongs_to_the_library(const Dl_info *caller)
{
    if (!caller->dli_fname)
        return false; /* code generated at run time */
    if (caller->dli_fbase == scope_of_us())
        return true; /* the function that we called ended in a tail call of another MPI function: it
                        is inside the job's call */
    for (unsigned i = 0; i < provider_count; i++)
        if (caller->dli_fbase == providers[i].base)
            return !is_fortran_name(caller->dli_sname);
    const char *slash = strrchr(caller->dli_fname, '/');
    const char *file = slash ? slash + 1 : caller->dli_fname;
    return strncmp(file, "mca_", 4) == 0 || strncmp(file, "libmca_", 7) == 0 ||
           strncmp(file, "libopen-", 8) == 0 || strncmp(file, "libopen_mpi", 11) == 0;
}

static bool is_tool(const void *base)
{
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        if (__atomic_load_n(&tools[i], __ATOMIC_RELAXED) == base)
            return base != NULL;
    return false;
}

static void remember_tool(void *function)
{
    Dl_info info;
    if (!dladdr(function, &info) || info.dli_fbase == providers[0].base)
        return;
    void *none = NULL;
    for (size_t i = 0; i < sizeof tools / sizeof *tools && !is_tool(info.dli_fbase);
         i++, none = NULL)
        __atomic_compare_exchange_n(&tools[i], &none, info.dli_fbase, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
}

static call_site classify(const void *return_address)
{
    Dl_info caller = {0}, found;
    bool named = dladdr(return_address, &caller) && caller.dli_fname;
    unsigned provider = 0;
    if ((named && scope_of_caller(&caller, "PMPI_Init", &found)) ||
        (provider_count == 0 && (scope_definer(RTLD_NEXT, "PMPI_Init", &found) ||
                                 scope_anywhere("mpi", "PMPI_Init", NULL, &found))))
        provider = provider_number(&found);
    if (provider == PROVIDERS_MAX || provider_count == 0)
        return 0;
    bool counts = provider == 0 && !belongs_to_the_library(&caller);
    return provider << 8 | (counts ? SITE_JOB : 0) | (is_tool(caller.dli_fbase) ? SITE_TOOL : 0);
}

/* All calls from the main program have the same site, unless MPI is linked into it statically: then
 * the calling functions differ. */
static struct {
    struct scope_object object;
    void *base;
    call_site site;
} program;

static void learn_program(const void *return_address, call_site site)
{
    Dl_info caller;
    struct scope_object object = scope_object_of(return_address);
    if (!object.is_program || !dladdr(return_address, &caller) ||
        known_provider(caller.dli_fbase) < PROVIDERS_MAX)
        return;
    struct quiet before = quiet_lock(&classifying);
    program.object = object;
    __atomic_store_n(&program.base, caller.dli_fbase, __ATOMIC_RELAXED);
    program.site = site & ~(call_site)SITE_TOOL;
    quiet_unlock(&classifying, &before);
}

static bool is_of_the_program(const void *return_address, call_site *site)
{
    struct quiet before = quiet_lock(&classifying);
    bool is = scope_object_has(&program.object, return_address);
    *site = program.site | (is && is_tool(program.base) ? SITE_TOOL : 0);
    quiet_unlock(&classifying, &before);
    return is;
}

/* Places per slot, for the words of addresses that share it: the hot path looks at the first place
 * alone. */
enum { PLACES = 4 };

static uint64_t *place_of(uint64_t address, unsigned place)
{
    return &provider_sites[provider_site_slot(address) ^ place];
}

static bool find_site(uint64_t address, call_site *site)
{
    for (unsigned i = 1; i < PLACES; i++) {
        uint64_t difference = __atomic_load_n(place_of(address, i), __ATOMIC_RELAXED) ^ address
                                                                                            << 16;
        *site = (call_site)difference;
        if (difference <= 0xffff)
            return true;
    }
    return false;
}

static void store_site(uint64_t address, call_site site)
{
    unsigned place = 0;
    while (place < PLACES && __atomic_load_n(place_of(address, place), __ATOMIC_RELAXED) != 0)
        place++;
    __atomic_store_n(place_of(address, place % PLACES), address << 16 | site, __ATOMIC_RELAXED);
}

call_site provider_site_classify(const void *return_address)
{
    call_site site;
    if (find_site((uint64_t)return_address, &site))
        return site;
    struct quiet before = quiet_begin();
    if (!is_of_the_program(return_address, &site)) {
        site = classify(return_address);
        if (provider_count > 0 && !__atomic_load_n(&program.base, __ATOMIC_RELAXED))
            learn_program(return_address, site);
    }
    if (provider_count > 0) /* before an MPI library is loaded, the site may still change */
        store_site((uint64_t)return_address, site);
    quiet_end(&before);
    return site;
}

/* Whether an MPI library defines this function, and which one. */
static bool is_of_an_mpi(void *function, Dl_info *library)
{
    Dl_info init;
    if (!dladdr(function, library) || !library->dli_fname || library->dli_fbase == scope_of_us())
        return false;
    void *handle = dlopen(library->dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    bool is =
        handle && scope_definer(handle, "PMPI_Init", &init) && init.dli_fbase == library->dli_fbase;
    if (handle)
        dlclose(handle);
    return is;
}

static bool belongs_to_another_mpi(void *function)
{
    Dl_info library;
    return is_of_an_mpi(function, &library) && library.dli_fbase != providers[0].base;
}

void *provider_function(unsigned provider, enum entry entry, const char *name)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "PMPI_%s", name);
    if (provider_count == 0)
        return NULL;
    if (provider == 0 && entry == ENTRY_MPI) {
        void *next = dlsym(RTLD_NEXT, symbol + 1);
        if (next && scope_object_has(&providers[0].object, next))
            return next;
        if (next && !belongs_to_another_mpi(next)) {
            remember_tool(next);
            return next;
        }
    }
    void *function = dlsym(providers[provider].handle, symbol);
    Dl_info info;
    if (function && scope_object_has(&providers[provider].object, function))
        return function;
    return function && dladdr(function, &info) && info.dli_fbase != scope_of_us() ? function : NULL;
}

static void *our_function(const char *name)
{
    Dl_info us, info;
    if (!dladdr((void *)our_function, &us))
        return NULL;
    void *handle = dlopen(us.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void *function = handle ? dlsym(handle, name) : NULL;
    if (handle)
        dlclose(handle);
    return function && dladdr(function, &info) && info.dli_fbase == us.dli_fbase ? function : NULL;
}

/* A tool that comes after us looks up the function that its own wrapper calls. With ours it would
 * call itself again. */
static bool is_reached_from_us(const void *return_address, const char *name)
{
    Dl_info caller, own, first;
    return dladdr(return_address, &caller) && caller.dli_fname &&
           scope_of_caller(&caller, name, &own) && own.dli_fbase == caller.dli_fbase &&
           !(scope_definer(RTLD_DEFAULT, name, &first) && first.dli_fbase == caller.dli_fbase);
}

/* An MPI library that the program is linked with takes precedence over one that it opens. */
static bool is_profiled(const Dl_info *library)
{
    Dl_info linked;
    if (provider_count == 0 && scope_definer(RTLD_NEXT, "PMPI_Init", &linked))
        provider_number(&linked);
    return provider_number(library) == 0;
}

static unsigned unanswered;

unsigned provider_look_ups_unanswered(void)
{
    return __atomic_load_n(&unanswered, __ATOMIC_RELAXED);
}

static bool is_wanted(void)
{
    struct quiet before = quiet_lock(&classifying);
    settings_read_once();
    quiet_unlock(&classifying, &before);
    if (!settings.dlsym)
        __atomic_add_fetch(&unanswered, 1, __ATOMIC_RELAXED);
    return settings.dlsym;
}

void *provider_wrapper(void *function, const char *name, const void *return_address)
{
    Dl_info library;
    struct quiet before = quiet_begin();
    void *ours = our_function(name);
    if (ours && (!is_of_an_mpi(function, &library) || is_reached_from_us(return_address, name)))
        ours = NULL;
    if (ours && (!is_wanted() || !is_profiled(&library)))
        ours = NULL;
    quiet_end(&before);
    return ours;
}

static const void *profiled_base;

/* MPI-4.1, 11.4.1: MPI_Initialized may be called at any time, also after MPI_Finalize. */
static bool is_used_unseen(const Dl_info *definition)
{
    int (*initialized)(int *) = (int (*)(int *))definition->dli_saddr;
    int is = 0;
    return definition->dli_fbase != profiled_base && initialized(&is) == MPI_SUCCESS && is;
}

bool provider_unseen(bool nothing_is_recorded, char *path, size_t bytes)
{
    Dl_info found;
    profiled_base = nothing_is_recorded ? NULL : providers[0].base;
    if (!scope_anywhere("mpi", "PMPI_Initialized", is_used_unseen, &found) &&
        !scope_in_other_namespaces("mpi", "PMPI_Initialized", is_used_unseen, &found))
        return false;
    snprintf(path, bytes, "%s", found.dli_fname);
    return true;
}

bool provider_tool_before_us(const char *function, char *path, size_t bytes)
{
    Dl_info definer;
    void *first = dlsym(RTLD_DEFAULT, function);
    if (!first || scope_is_us(first) || is_of_an_mpi(first, &definer) || !dladdr(first, &definer) ||
        !definer.dli_fname || definer.dli_fbase == providers[0].base)
        return false;
    snprintf(path, bytes, "%s", definer.dli_fname);
    return true;
}

static bool is_bound_past_us(const struct scope_import *import)
{
    bool is_mpi = strncmp(import->name + (import->name[0] == 'P'), "MPI_", 4) == 0;
    return is_mpi && scope_object_has(&providers[0].object, import->bound_to);
}

enum { MOST_NAMES = 128, NAME_BYTES = 48 };

struct past_us {
    char names[MOST_NAMES][NAME_BYTES];
    unsigned count;
    const char *ours; /* the one whose importer is looked for */
    char *path;
};

static bool note_name(const struct scope_import *import, void *data)
{
    struct past_us *past_us = data;
    if (!is_bound_past_us(import) || past_us->count == MOST_NAMES)
        return false;
    char *name = past_us->names[past_us->count];
    snprintf(name, NAME_BYTES, "%s", import->name);
    unsigned i = 0;
    while (strcmp(past_us->names[i], name) != 0)
        i++;
    past_us->count += i == past_us->count;
    return false;
}

static bool copy_path(const struct scope_import *import, void *data)
{
    const struct past_us *past_us = data;
    if (!is_bound_past_us(import) || strcmp(import->name, past_us->ours) != 0)
        return false;
    snprintf(past_us->path, PATH_MAX, "%s", import->path);
    return true;
}

bool provider_caller_past_us(char path[PATH_MAX])
{
    static struct past_us past_us; /* at the end of the job: once */
    past_us.count = 0;
    past_us.path = path;
    scope_bindings("mpi", note_name, &past_us);
    for (unsigned i = 0; i < past_us.count; i++)
        if (our_function(past_us.names[i])) {
            past_us.ours = past_us.names[i];
            return scope_bindings("mpi", copy_path, &past_us);
        }
    return false;
}
