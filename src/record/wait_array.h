/* The array of requests that a thread waits for in repeated calls of MPI_Waitany, MPI_Testsome and
 * their like.
 *
 * Every such call adds its duration to the blocked time of each request in the array, but completes
 * few of them; with a thousand requests, each poll would need a thousand look-ups. So the time is
 * summed here once for the whole array, and each entry stores the sum at which it was added. The
 * difference is charged to the request when the entry leaves the array, or when the thread waits
 * for another array.
 *
 *     wait_array_look    before the call: reads what is in the array now
 *     wait_array_done    an entry has completed: how long the earlier calls had waited for it
 *     wait_array_passed  after the call: the others have waited through it
 *     wait_array_settle  charge the summed time (before a request completes otherwise, or starts
 *                        again) */
#ifndef COMMPROF_WAIT_ARRAY_H
#define COMMPROF_WAIT_ARRAY_H

#include "mpi/mpi_abi.h"

struct wait_array {
    const void *array; /* the job's */
    int count, room;
    int first; /* no entry before it is a request that has not completed */
    int live;  /* entries that are requests and have not completed */
    /* time in calls on this array since the last settle; 0: nothing to settle */
    uint64_t total_ticks;
    uint64_t end_ticks;    /* of the last of these calls */
    char *handles;         /* a copy of the array; MPI_REQUEST_NULL where an entry has completed */
    char *memory;          /* in which the copy is */
    uint64_t *since_ticks; /* total_ticks when the entry was added */
};

/* True if the array is tracked; false when out of memory. */
bool wait_array_look(struct wait_array *wait_array, const void *requests, int count);

/* The handle that an entry had before the call. */
static inline mpi_handle wait_array_handle(const struct wait_array *wait_array, int index)
{
    return mpi_handle_load(wait_array->handles, (size_t)index);
}

/* The first entry that has not completed; `count` if there is none. */
static inline int wait_array_first(struct wait_array *wait_array)
{
    while (wait_array->first < wait_array->count &&
           wait_array_handle(wait_array, wait_array->first) == mpi_abi.request_null)
        wait_array->first++;
    return wait_array->first;
}

uint64_t wait_array_done(struct wait_array *wait_array, int index);

static inline void wait_array_passed(struct wait_array *wait_array, uint64_t start_ticks,
                                     uint64_t end_ticks)
{
    wait_array->total_ticks =
        wait_array->live ? wait_array->total_ticks + end_ticks - start_ticks : 0;
    wait_array->end_ticks = end_ticks;
}

/* Whether calls on this array have been summed up that are not yet charged. */
static inline bool wait_array_has_waited(const struct wait_array *wait_array, const void *requests,
                                         int count)
{
    return wait_array->total_ticks != 0 && wait_array->array == requests &&
           wait_array->count == count;
}

void wait_array_settle_now(struct wait_array *wait_array);

static inline void wait_array_settle(struct wait_array *wait_array)
{
    if (__builtin_expect(wait_array->total_ticks != 0, 0))
        wait_array_settle_now(wait_array);
}

#endif
