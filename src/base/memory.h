/* Memory for what runs between entry and exit of a wrapper, on a thread of the job.
 *
 * The C library's allocator has locks that the job's own code takes. A signal handler of the job
 * that allocates would wait for ever for a lock that our code has, and our code in a handler that
 * calls MPI for one that the job has: so it never calls that allocator. This one takes no lock: it
 * may be interrupted, and entered again, anywhere. A thread that is cancelled in it, or that leaves
 * it by siglongjmp, loses one block; a fork does no harm. */
#ifndef COMMPROF_MEMORY_H
#define COMMPROF_MEMORY_H

#include <stddef.h>

/* Zeroes. NULL: there is no memory. */
void *memory_take(size_t bytes);

/* `memory` may be NULL. */
void memory_give(void *memory);

/* As realloc; NULL: there is no memory, and the old block stays. */
void *memory_resize(void *memory, size_t bytes);

/* Bytes that have been taken and not given back. */
size_t memory_in_use(void);

#endif
