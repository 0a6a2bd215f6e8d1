/* The status that a wrapper passes to MPI, and what it says afterwards.
 *
 * If the job ignores a status, the wrapper passes its own, because only the status says what arrived. MPI libraries behave the same with
 * and without a status: return codes and error handlers do not change, also for the array forms (tests/mpi/test_errors.py). The one
 * exception, Open MPI 5's MPI_Waitall, is in docs/LIBRARIES.md. */
#ifndef COMMPROF_STATUSES_H
#define COMMPROF_STATUSES_H

#include "record/call.h"

struct own_status {
    _Alignas(16) char bytes[MPI_STATUS_BYTES_MAX];
};

/* The status to pass to MPI: the job's, or ours where it has none. */
HOT void *status_or(void *status, struct own_status *ours, const struct call *call)
{
    bool replace = call->thread && mpi_abi.known && status == mpi_abi.status_ignore;
    return replace ? ours : status;
}

/* Statuses for several requests, the job's or ours; when memory is short (`ours` is NULL) the job's after all. */
HOT void *statuses_or(void *statuses, void *ours)
{
    return mpi_abi.known && statuses == mpi_abi.status_ignore && ours ? ours : statuses;
}

/* What a wrapper has to look at before the call is looked at between call_enter and call_start. */
HOT void *enter_with_status(struct call *call, enum call_id id, call_site site, void *status, struct own_status *ours)
{
    call_enter(call, id, site);
    return status_or(status, ours, call);
}

/* What the status of a probe, blocking receive or read says; nothing after an error or where it cannot be read. */
static inline struct mpi_arrival arrival_of(const struct call *call, const void *status)
{
    if (!call->succeeded || !mpi_abi.known || status == mpi_abi.status_ignore)
        return (struct mpi_arrival){0, mpi_abi.proc_null, false};
    return mpi_arrival_read_uncancelled(status);
}

#endif
