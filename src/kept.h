/* Memory that must live until a request completes (a persistent one: until it is freed): what fallback.c has converted. There is little of it,
 * and only under libraries without large-count functions. */
#ifndef COMMPROF_KEPT_H
#define COMMPROF_KEPT_H

#include "mpi/mpi_abi.h"

/* Free `memory` (of malloc) when the request ends. When there is no room to remember it, it is never freed. */
void kept_add(mpi_handle request, void *memory);

extern unsigned kept_count;
void kept_free(mpi_handle request);

/* The request has ended. */
static inline void kept_release(mpi_handle request)
{
    if (__builtin_expect(__atomic_load_n(&kept_count, __ATOMIC_RELAXED) != 0, 0))
        kept_free(request);
}

#endif
