/* What Horovod's ranks offer each other in a round of their negotiation, and agree on
 * (ledger_format.h, struct ledger_negotiation). Of the bits nothing is kept but how many there are,
 * and how often each place was agreed on.
 *
 *     struct negotiation *negotiation = negotiation_offer(&call, sendbuf, recvbuf, count, op);
 *     call_start(&call) ... account_call(&call, ...)
 *     if (negotiation)
 *         negotiation_agree_after(negotiation, &call, recvbuf, sample);
 *
 * A call with another operation pays for the comparison alone. */
#ifndef COMMPROF_NEGOTIATION_H
#define COMMPROF_NEGOTIATION_H

#include "call.h"

struct negotiation;

/* MPI_BAND in this process; 0: not known yet. */
extern mpi_handle negotiation_op;

/* Call once, after signatures_begin. */
void negotiation_begin(void);

/* The following two for a round. */
struct negotiation *negotiation_offer_words(const struct call *call, const void *sendbuf,
                                            const void *recvbuf, mpi_count words);
void negotiation_agree(struct negotiation *negotiation, const struct call *call,
                       const void *recvbuf, struct ledger_sample *sample);

/* Reads what this rank gives, before the real call of a blocking Allreduce that has been announced.
 * NULL: it is no round. Copies the call, so that those of others stay in registers. */
HOT struct negotiation *negotiation_offer(const struct call *call, const void *sendbuf,
                                          const void *recvbuf, mpi_count count, mpi_handle op)
{
    if (__builtin_expect(mpi_handle_bits(op) != negotiation_op, 1))
        return NULL;
    struct call passed = *call;
    return negotiation_offer_words(&passed, sendbuf, recvbuf, count);
}

/* Reads what came back, after the call has been accounted. `sample`: its own, or NULL. */
HOT void negotiation_agree_after(struct negotiation *negotiation, const struct call *call,
                                 const void *recvbuf, struct ledger_sample *sample)
{
    struct call passed = *call;
    negotiation_agree(negotiation, &passed, recvbuf, sample);
}

#endif
