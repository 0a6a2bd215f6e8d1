/* The tensors that Horovod's ranks offer each other in a round of their negotiation, and agree on
 * (ledger_format.h, struct ledger_negotiation). Nothing is kept of the bits but how many there are,
 * and how often each place was agreed on; nothing of names leaves the process's memory, where each
 * is a hash.
 *
 *     struct negotiation *negotiation = negotiation_offer(&call, sendbuf, recvbuf, count);
 *     call_start(&call) ... account_call(&call, ...)
 *     if (negotiation)
 *         negotiation_agree(negotiation, &call, recvbuf, sample); */
#ifndef COMMPROF_NEGOTIATION_H
#define COMMPROF_NEGOTIATION_H

#include "call.h"
#include "traffic.h"

struct negotiation;

/* MPI_BAND in this process; 0: not known yet. */
extern mpi_handle negotiation_op;

/* Call once, after signatures_begin. */
void negotiation_begin(void);

/* Reads what this rank gives, before the real call of a blocking Allreduce with that operation that
 * has been announced. NULL: it is no round. */
struct negotiation *negotiation_offer(const struct call *call, const void *sendbuf,
                                      const void *recvbuf, mpi_count count);

/* Reads what came back, after the call has been accounted. `sample`: its own, or NULL. */
void negotiation_agree(struct negotiation *negotiation, const struct call *call,
                       const void *recvbuf, struct ledger_sample *sample);

/* Whether some thread negotiates by name, without Horovod's cache. */
extern bool negotiation_is_by_name;

/* Bytes that a Gatherv of MPI_BYTE to rank 0 has sent, or received there. */
struct requests {
    const void *own;
    mpi_count length;
    const void *all;
    struct counts lengths, displacements; /* read at the root alone: elsewhere they may be any */
};

/* Before the real call of a Gather: a round by name may begin. */
void negotiation_open(const struct call *call);

/* After a Gatherv of MPI_BYTE has been accounted: if it was one of requests, reads them. Rank 0
 * sends none, and the others name no buffer to receive into: callers see to one of the two. */
void negotiation_request(const struct call *call, const struct requests *requests);

/* After a Bcast of MPI_BYTE has been accounted: if it was that of the responses to these, reads
 * what was agreed on. `sample`: its own, or NULL. */
void negotiation_answer(const struct call *call, const void *buffer, mpi_count length,
                        struct ledger_sample *sample);

#endif
