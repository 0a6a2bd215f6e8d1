/* The array of requests that a thread waits for with MPI_Waitany, MPI_Testsome and their like, call after call.
 *
 * Each of its requests is blocked on for as long as these calls take, but most of them complete in none of them: a thousand would have
 * to be looked up for each poll. So the time adds up here, once for the whole array, and an entry only remembers how much it was when
 * it came. It is handed to its request when the entry goes, or when the thread turns to another array.
 *
 *     awaited_look    before the call: what stands in the array now
 *     awaited_done    an entry has completed: how long the earlier calls had waited for it
 *     awaited_passed  after the call: the others have waited through it
 *     awaited_settle  hand over what has added up (before a request completes otherwise, or starts again) */
#ifndef COMMPROF_AWAITED_H
#define COMMPROF_AWAITED_H

#include "mpi/mpi_abi.h"

struct awaited {
    const void *array; /* the job's */
    int count, room;
    int first;             /* no entry before it is a request that has not completed */
    int live;              /* entries that are requests and have not completed */
    uint64_t total_ticks;  /* in calls on this array since it was settled last; 0: nothing to settle */
    uint64_t end_ticks;    /* of the last of these calls */
    char *handles;         /* a copy of the array; MPI_REQUEST_NULL where an entry has completed */
    uint64_t *since_ticks; /* what the total was when an entry came */
};

/* True when the array is followed; false when memory is short. */
bool awaited_look(struct awaited *awaited, const void *requests, int count);

/* The handle that an entry had before the call. */
static inline mpi_handle awaited_handle(const struct awaited *awaited, int index)
{
    return mpi_handle_load(awaited->handles, (size_t)index);
}

/* The first entry that has not completed; `count` if there is none. */
static inline int awaited_first(struct awaited *awaited)
{
    while (awaited->first < awaited->count && awaited_handle(awaited, awaited->first) == mpi_abi.request_null)
        awaited->first++;
    return awaited->first;
}

uint64_t awaited_done(struct awaited *awaited, int index);

static inline void awaited_passed(struct awaited *awaited, uint64_t start_ticks, uint64_t end_ticks)
{
    awaited->total_ticks = awaited->live ? awaited->total_ticks + end_ticks - start_ticks : 0;
    awaited->end_ticks = end_ticks;
}

void awaited_settle_now(struct awaited *awaited);

static inline void awaited_settle(struct awaited *awaited)
{
    if (__builtin_expect(awaited->total_ticks != 0, 0))
        awaited_settle_now(awaited);
}

#endif
