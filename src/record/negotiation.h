/* The tensors that Horovod's ranks offer each other in a round of their negotiation, and agree on
 * (ledger_format.h, struct ledger_negotiation). Of the bits nothing is kept but how many there are,
 * and how often each place was agreed on.
 *
 *     struct negotiation *negotiation = negotiation_offer(&call, sendbuf, recvbuf, count);
 *     call_start(&call) ... account_call(&call, ...)
 *     if (negotiation)
 *         negotiation_agree(negotiation, &call, recvbuf, sample); */
#ifndef COMMPROF_NEGOTIATION_H
#define COMMPROF_NEGOTIATION_H

#include "call.h"

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

#endif
