/* The functions behind the wrappers, and how a wrapper is exported under its names.
 *
 * MPI_Bcast, PMPI_Bcast, MPI_Bcast_c and PMPI_Bcast_c are four entries to one body, wrap_Bcast.
 * Each entry finds out who is calling (the site) and which function of which library the caller
 * would have reached without the profiler (the target). */
#ifndef COMMPROF_FUNCTIONS_H
#define COMMPROF_FUNCTIONS_H

#include "mpi/provider.h"
#include "record/call.h"
#include "shapes.h"

enum function {
#define PLAIN(NAME) FUNCTION_##NAME,
#define LARGE(NAME) FUNCTION_##NAME, FUNCTION_##NAME##_c,
#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS, BANDWIDTH, WAITS_FOR) FORMS(NAME)
#include "calls.def"
#undef CALL
#undef LARGE
#undef PLAIN
    FUNCTION_COUNT
};

extern void *function_targets[FUNCTION_COUNT][2][PROVIDERS_MAX];

/* Slow half of function_target. Never NULL: a function that the library lacks is replaced by one
 * that falls back on its int form (fallback.h), or returns MPI_ERR_OTHER. */
void *function_resolve(enum function function, enum entry entry, unsigned provider);

/* Resolves all functions that the program imports, so that its first calls need not. */
void functions_resolve_program(call_site site);

static inline void *function_target(enum function function, enum entry entry, call_site site)
{
    void *target =
        __atomic_load_n(&function_targets[function][entry][site_provider(site)], __ATOMIC_RELAXED);
    return __builtin_expect(target != NULL, 1)
               ? target
               : function_resolve(function, entry, site_provider(site));
}

#define EXPORT __attribute__((visibility("default")))

/* The body of a wrapper. `real` is the target. `wide`: arrays of counts (if any) hold MPI_Count,
 * arrays of displacements MPI_Aint. */
#define BODY(NAME, KIND, SHAPE)                                                       \
    typedef int (*target_##NAME)(PARAMETERS_OF_##KIND(SHAPE, mpi_count, void, void)); \
    static inline __attribute__((always_inline)) int wrap_##NAME(                     \
        call_site site, __attribute__((unused)) bool wide, target_##NAME real,        \
        PARAMETERS_OF_##KIND(SHAPE, mpi_count, void, void))

#define EXPORT_PLAIN(NAME, KIND, SHAPE) EXPORT_NAMES(NAME, NAME, KIND, SHAPE, false, int, int, int)
#define EXPORT_LARGE(NAME, KIND, SHAPE)                         \
    EXPORT_NAMES(NAME, NAME, KIND, SHAPE, false, int, int, int) \
    EXPORT_NAMES(NAME, NAME##_c, KIND, SHAPE, true, mpi_count, mpi_count, mpi_aint)
#define EXPORT_NAMES(NAME, FUNCTION, KIND, SHAPE, WIDE, C, A, D)                        \
    EXPORT_ENTRY(MPI_##FUNCTION, ENTRY_MPI, NAME, FUNCTION, KIND, SHAPE, WIDE, C, A, D) \
    EXPORT_ENTRY(PMPI_##FUNCTION, ENTRY_PMPI, NAME, FUNCTION, KIND, SHAPE, WIDE, C, A, D)
#define EXPORT_ENTRY(SYMBOL, ENTRY, NAME, FUNCTION, KIND, SHAPE, WIDE, C, A, D)                \
    EXPORT int SYMBOL(PARAMETERS_OF_##KIND(SHAPE, C, A, D));                                   \
    int SYMBOL(PARAMETERS_OF_##KIND(SHAPE, C, A, D))                                           \
    {                                                                                          \
        call_site site = provider_site(__builtin_return_address(0));                           \
        target_##NAME real = (target_##NAME)function_target(FUNCTION_##FUNCTION, ENTRY, site); \
        return wrap_##NAME(site, WIDE, real, ARGUMENTS_OF_##KIND(SHAPE));                      \
    }

/* The body of a blocking call; BEFORE and AFTER run around it, for what else it tells. */
#define CALLED(NAME, SHAPE, BEFORE, AFTER)                           \
    {                                                                \
        (void)wide;                                                  \
        struct call call UNTIL_RETURN;                               \
        call_enter(&call, CALL_##NAME, site);                        \
        if (__builtin_expect(!call.thread, 0))                       \
            return real(ARGUMENTS_##SHAPE);                          \
        ANNOUNCE_##SHAPE;                                            \
        BEFORE;                                                      \
        call_start(&call);                                           \
        int error = real(ARGUMENTS_##SHAPE);                         \
        call_end(&call, error);                                      \
        struct traffic traffic = TRAFFIC_##SHAPE;                    \
        struct ledger_sample *sample = account_call(&call, traffic); \
        STORE_SIGNATURE(SHAPE);                                      \
        AFTER;                                                       \
        return error;                                                \
    }

#endif
