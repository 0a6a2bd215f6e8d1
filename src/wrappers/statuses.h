/* The status that a wrapper passes to MPI, and what it says afterwards.
 *
 * If the job ignores a status, the wrapper passes its own, because only the status says what
 * arrived. MPI libraries behave the same with and without a status: return codes and error handlers
 * do not change, also for the array forms (tests/mpi/test_errors.py). The one exception, Open MPI
 * 5's MPI_Waitall, is in docs/LIBRARIES.md. */
#ifndef COMMPROF_STATUSES_H
#define COMMPROF_STATUSES_H

#include "record/call.h"

struct own_status {
    _Alignas(16) char bytes[MPI_STATUS_BYTES_MAX];
};

/* The status to pass to MPI: the job's, or ours if the job ignores it. */
HOT void *status_or(void *status, struct own_status *ours, const struct call *call)
{
    bool replace = call->thread && mpi_abi.known && status == mpi_abi.status_ignore;
    return replace ? ours : status;
}

/* The same for several requests. Also the job's if `ours` is NULL (out of memory). */
HOT void *statuses_or(void *statuses, void *ours)
{
    return mpi_abi.known && statuses == mpi_abi.status_ignore && ours ? ours : statuses;
}

/* call_enter, and the choice of the status: what a wrapper needs before the call is done between
 * call_enter and call_start. */
HOT void *enter_with_status(struct call *call, enum call_id id, call_site site, void *status,
                            struct own_status *ours)
{
    call_enter(call, id, site);
    return status_or(status, ours, call);
}

/* The message that the status of a probe, blocking receive or read describes; none after an error
 * or if it cannot be read. */
static inline struct mpi_arrival arrival_of(const struct call *call, const void *status)
{
    if (!call->succeeded || !mpi_abi.known || status == mpi_abi.status_ignore)
        return (struct mpi_arrival){0, mpi_abi.proc_null, false};
    return mpi_arrival_read_uncancelled(status);
}

#endif
