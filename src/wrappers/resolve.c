/* Finds the function that a wrapper calls: the slow half of functions.h, executed once for each
 * function and library. */
#include "base/quiet.h"
#include "base/scope.h"
#include "fallback.h"
#include "functions.h"

#include <string.h>

static const char *const FUNCTION_NAMES[FUNCTION_COUNT] = {
#define PLAIN(NAME) #NAME,
#define LARGE(NAME) #NAME, #NAME "_c",
#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS, BANDWIDTH, WAITS_FOR) FORMS(NAME)
#include "calls.def"
#undef CALL
#undef LARGE
#undef PLAIN
};

void *function_targets[FUNCTION_COUNT][2][PROVIDERS_MAX];

/* Called if the library lacks the function: the profiler exports all names, so a program's check
 * for one (a weak reference) succeeds. */
static int function_is_missing(void)
{
    return mpi_abi.err_other;
}

void *function_resolve(enum function function, enum entry entry, unsigned provider)
{
    struct quiet before = quiet_begin(); /* the loader allocates memory */
    void *target = provider_function(provider, entry, FUNCTION_NAMES[function]);
    quiet_end(&before);
    if (!target && provider == 0)
        target = fallback_for(function);
    if (!target)
        return (void *)function_is_missing;
    __atomic_store_n(&function_targets[function][entry][provider], target, __ATOMIC_RELAXED);
    return target;
}

static void resolve_import(const char *name, void *site)
{
    enum entry entry = name[0] == 'P' ? ENTRY_PMPI : ENTRY_MPI;
    if (strncmp(name + (entry == ENTRY_PMPI), "MPI_", 4) != 0)
        return;
    const char *plain = name + (entry == ENTRY_PMPI) + 4;
    for (unsigned function = 0; function < FUNCTION_COUNT; function++)
        if (strcmp(FUNCTION_NAMES[function], plain) == 0)
            function_target((enum function)function, entry, *(const call_site *)site);
}

void functions_resolve_program(call_site site)
{
    scope_imports(resolve_import, &site);
}
