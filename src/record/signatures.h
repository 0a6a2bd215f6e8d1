/* The signatures of sampled calls: what a call was asked to move, as a number into a table of the
 * ledger (table `signature`).
 *
 *     struct ledger_sample *sample = account_call(&call, traffic);
 *     STORE_SIGNATURE(ALLREDUCE); (shapes.h: SIGNATURE_ALLREDUCE)
 *
 * Calls that are not sampled pay for the test alone; sampled ones first look at what their thread
 * has looked up last. A call that moves nothing has no signature: MPI need not have looked at its
 * datatype, so neither do we. */
#ifndef COMMPROF_SIGNATURES_H
#define COMMPROF_SIGNATURES_H

#include "traffic.h"

struct signature_arguments {
    uint64_t bytes; /* the call's; more than 0 */
    mpi_count count;
    mpi_handle type; /* 0: there is one for each count */
    mpi_handle op;   /* 0: none */
    struct counts counts;
    int length; /* of counts; 0: the call has none, or they are not significant on this rank */
    const void *types;             /* one for each count, or NULL */
    const void *buffer, *received; /* of a call that receives what others send, `received` is where;
                                      NULL: there is none, or it is not significant */
    bool is_in_place;
    uint8_t memory_kind;
};

/* The part of a signature that is neither a handle nor a number. */
HOT uint32_t signature_how(const struct signature_arguments *arguments)
{
    return arguments->memory_kind | (uint32_t)arguments->is_in_place << 8 |
           (uint32_t)(arguments->length > 0) << 9;
}

/* The number of a signature, from 1; 0: not recorded, there is no room. With counts, but without
 * types, `count` is not read: it is how many elements the bytes are. It is remembered in `recent`,
 * the call's, or if NULL in an entry of its own. Takes no lock unless the signature is new, and
 * asks MPI only then, or about a derived type. */
uint16_t signature_number(struct thread *thread, struct recent *recent,
                          const struct signature_arguments *arguments);

/* The same for a call, whose number may have been known beforehand. */
HOT uint16_t signature_of_call(const struct call *call, struct signature_arguments arguments)
{
    bool is_on_host =
        arguments.memory_kind == LEDGER_HOST; /* what is known beforehand is of calls on the host */
    if (__builtin_expect(call->signature && is_on_host, 1))
        return call->signature;
    struct signature_arguments passed = arguments; /* a copy: `arguments` stay in registers */
    return signature_number(call->thread, is_on_host ? call->recent : NULL, &passed);
}

/* In terms of a `call` that is sampled and its `traffic`. */
#define SIGNATURE_OF(...)                                                                     \
    signature_of_call(&call, (struct signature_arguments){.bytes = traffic.bytes,             \
                                                          .memory_kind = traffic.memory_kind, \
                                                          __VA_ARGS__})

HOT void signature_store(struct ledger_sample *sample, uint16_t number)
{
    if (number)
        sample->signature = number;
}

/* Stores the signature of a `call` with this shape, which has been accounted, if it has a `sample`
 * and its `traffic` has bytes. */
#define STORE_SIGNATURE(SHAPE) \
    signature_store(sample, (sample && traffic.bytes) ? SIGNATURE_##SHAPE : 0)

/* Call once, after MPI_Init. `ledger_bytes` is the size to which the ledger may grow; if the job is
 * to be recorded (samples_record), signatures have vectors of counts, and in the record buffers. */
void signatures_begin(size_t ledger_bytes, bool is_recorded);

#endif
