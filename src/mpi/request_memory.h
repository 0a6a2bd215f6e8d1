/* Memory that must exist until a request completes (a persistent one: until it is freed): the
 * arrays that fallback.c has converted. Used only with libraries that lack large-count
 * functions. */
#ifndef COMMPROF_REQUEST_MEMORY_H
#define COMMPROF_REQUEST_MEMORY_H

#include "mpi_abi.h"

/* Free `memory` (from malloc) when the request ends. If this cannot be recorded (out of memory), it
 * is never freed. */
void request_memory_add(mpi_handle request, void *memory);

extern unsigned request_memory_count;
void request_memory_free(mpi_handle request);

/* Call when the request has ended. */
static inline void request_memory_release(mpi_handle request)
{
    if (__builtin_expect(__atomic_load_n(&request_memory_count, __ATOMIC_RELAXED) != 0, 0))
        request_memory_free(request);
}

#endif
