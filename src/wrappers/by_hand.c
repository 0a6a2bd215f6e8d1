/* The wrappers that do not follow a pattern: receives and probes (only the status says what
 * arrived), completion, the freeing of communicators and requests, and the collectives by which
 * ranks negotiate. */
#include "functions.h"
#include "record/account.h"
#include "record/announce.h"
#include "record/epochs.h"
#include "record/negotiation.h"
#include "record/signatures.h"
#include "statuses.h"

/* The request's handle before the call. The pointer may be NULL; MPI then returns an error. */
HOT mpi_handle handle_at(const void *request)
{
    return mpi_abi.known && request ? mpi_handle_load(request, 0) : mpi_abi.request_null;
}

/* A call by which ranks may negotiate. If IS_ROUND, BEFORE and AFTER run around it, in a function
 * of their own, so that other calls have the registers to themselves. */
#define NEGOTIATING(NAME, SHAPE, IS_ROUND, BEFORE, AFTER)                                  \
    static __attribute__((noinline)) int negotiate_##NAME(                                 \
        call_site site, bool wide, int (*real)(PARAMETERS_##SHAPE(mpi_count, void, void)), \
        PARAMETERS_##SHAPE(mpi_count, void, void)) CALLED(NAME, SHAPE, BEFORE, AFTER)      \
        BODY(NAME, BY_HAND, SHAPE)                                                         \
    {                                                                                      \
        if (__builtin_expect(IS_ROUND, 0))                                                 \
            return negotiate_##NAME(site, wide, real, ARGUMENTS_##SHAPE);                  \
        CALLED(NAME, SHAPE, , )                                                            \
    }

#define IS_BYTE(TYPE) (mpi_handle_bits(TYPE) == mpi_abi.byte)
#define IS_BY_NAME __atomic_load_n(&negotiation_is_by_name, __ATOMIC_RELAXED)

NEGOTIATING(Allreduce, ALLREDUCE, mpi_handle_bits(op) == negotiation_op,
            struct negotiation *negotiation = negotiation_offer(&call, sendbuf, recvbuf, count),
            if (negotiation) negotiation_agree(negotiation, &call, recvbuf, sample))
NEGOTIATING(Gather, GATHER, IS_BY_NAME, negotiation_open(&call), )
NEGOTIATING(Gatherv, GATHERV,
            IS_BYTE(sendtype) && root == 0 && !(sendbuf && recvbuf) && IS_BYTE(recvtype), ,
            negotiation_request(&call, &(struct requests){sendbuf, sendcount, recvbuf,
                                                          COUNTS(recvcounts), COUNTS(displs)}))
NEGOTIATING(Bcast, BCAST, IS_BY_NAME, ,
            if (IS_BYTE(type) && root == 0) negotiation_answer(&call, buffer, count, sample))

/* Receives */

/* The message that a status describes; `tag` may be MPI_ANY_TAG. */
HOT struct traffic received_of(const struct call *call, const void *status, int tag,
                               struct communicator *communicator)
{
    struct mpi_arrival arrival = arrival_of(call, status);
    return traffic_received(arrival, tag < 0 && arrival.source >= 0 ? mpi_status_tag(status) : tag,
                            communicator);
}

HOT struct ledger_sample *account_receive(const struct call *call, const void *buf,
                                          const void *status, int tag, mpi_handle comm)
{
    struct traffic traffic;
    traffic_check(call);
    if (traffic_begin(call, comm, &traffic))
        traffic = received_of(call, status, tag, traffic.communicator);
    if (traffic.peer != PEER_NONE)
        traffic_number(call, &traffic);
    return account_call(call, traffic_at(buf, traffic));
}

BODY(Recv, BY_HAND, RECV)
{
    struct own_status ours;
    struct call call UNTIL_RETURN;
    status = enter_with_status(&call, CALL_Recv, site, status, &ours);
    if (__builtin_expect(!call.thread, 0))
        return real(ARGUMENTS_RECV);
    announce_receive(&call, comm, announce_counted(&call, comm, count, type, 0, false), source,
                     tag);
    call_start(&call);
    int error = real(buf, count, type, source, tag, comm, status);
    call_end(&call, error);
    struct ledger_sample *sample = account_receive(&call, buf, status, tag, comm);
    if (sample && sample->bytes) {
        struct traffic traffic = traffic_at(buf, (struct traffic){.bytes = sample->bytes});
        signature_store(sample, SIGNATURE_RECV);
    }
    return error;
}

BODY(Sendrecv, BY_HAND, SENDRECV)
{
    struct own_status ours;
    struct call call UNTIL_RETURN;
    status = enter_with_status(&call, CALL_Sendrecv, site, status, &ours);
    ANNOUNCE_EXCHANGE;
    call_start(&call);
    int error = real(ARGUMENTS_SENDRECV);
    call_end(&call, error);
    struct traffic traffic = TRAFFIC_EXCHANGE;
    struct ledger_sample *sample;
    bool is_counted = account_sampled(&call, traffic, &sample);
    STORE_SIGNATURE(EXCHANGE);
    account_arrival(&call, received_of(&call, status, recvtag, traffic.communicator), is_counted);
    return error;
}

BODY(Sendrecv_replace, BY_HAND, SENDRECV_REPLACE)
{
    struct own_status ours;
    struct call call UNTIL_RETURN;
    status = enter_with_status(&call, CALL_Sendrecv_replace, site, status, &ours);
    ANNOUNCE_EXCHANGE_REPLACE;
    call_start(&call);
    int error = real(ARGUMENTS_SENDRECV_REPLACE);
    call_end(&call, error);
    struct traffic traffic = TRAFFIC_EXCHANGE_REPLACE;
    struct ledger_sample *sample;
    bool is_counted = account_sampled(&call, traffic, &sample);
    STORE_SIGNATURE(EXCHANGE_REPLACE);
    account_arrival(&call, received_of(&call, status, recvtag, traffic.communicator), is_counted);
    return error;
}

/* Traffic of the message that a probe has found. */
static struct traffic found_of(const struct call *call, const void *status, mpi_handle comm,
                               bool is_matched)
{
    struct traffic traffic;
    if (traffic_begin(call, comm, &traffic))
        traffic =
            traffic_found(call, received_of(call, status, -1, traffic.communicator), is_matched);
    return traffic;
}

/* The message that a probe looks for, as a number. */
HOT uint64_t sought_by_probe(int source, int tag, mpi_handle comm)
{
    return communicators_mix(mpi_handle_bits(comm),
                             (uint64_t)(uint32_t)source << 32 | (uint32_t)tag);
}

/* A matched receive has neither communicator nor source: the matching probe stores its own. The
 * communicator may have been freed since. */

static inline void release(struct communicator *communicator)
{
    if (communicator)
        communicators_release(communicator);
}

BODY(Mprobe, BY_HAND, MPROBE)
{
    struct own_status ours;
    struct call call UNTIL_RETURN;
    status = enter_with_status(&call, CALL_Mprobe, site, status, &ours);
    announce_receive(&call, comm, LEDGER_BYTES_UNKNOWN, source, tag);
    call_start(&call);
    int error = real(source, tag, comm, message, status);
    call_end(&call, error);
    struct traffic traffic = found_of(&call, status, comm, true);
    account_call(&call, traffic);
    account_matched(&call, message, traffic);
    return error;
}

BODY(Improbe, BY_HAND, IMPROBE)
{
    struct own_status ours;
    struct call call UNTIL_RETURN;
    status = enter_with_status(&call, CALL_Improbe, site, status, &ours);
    announce_receive(&call, comm, LEDGER_BYTES_UNKNOWN, source, tag);
    call_start(&call);
    int error = real(source, tag, comm, flag, message, status);
    call_stop(&call, error);
    bool nothing = call.succeeded && !*flag;
    call_leave(&call, !nothing);
    uint64_t sought = sought_by_probe(source, tag, comm);
    if (nothing) {
        account_seek(&call, sought);
        return error;
    }
    struct traffic traffic = found_of(&call, status, comm, true);
    account_find(&call, sought, account_call(&call, traffic));
    account_matched(&call, message, traffic);
    return error;
}

BODY(Mrecv, BY_HAND, MRECV)
{
    struct own_status ours;
    struct call call UNTIL_RETURN;
    status = enter_with_status(&call, CALL_Mrecv, site, status, &ours);
    struct traffic matched = account_take_matched(&call, message);
    call_start(&call);
    int error = real(buf, count, type, message, status);
    call_end(&call, error);
    struct traffic traffic = call.succeeded ? matched : traffic_nowhere();
    traffic.bytes = arrival_of(&call, status).bytes;
    traffic = traffic_at(buf, traffic);
    struct ledger_sample *sample = account_call(&call, traffic);
    STORE_SIGNATURE(MRECV);
    release(matched.communicator);
    return error;
}

BODY(Imrecv, BY_HAND, IMRECV)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Imrecv, site);
    struct traffic matched = account_take_matched(&call, message);
    call_start(&call);
    int error = real(buf, count, type, message, request);
    call_end(&call, error);
    struct traffic traffic = call.succeeded ? matched : traffic_nowhere();
    traffic.bytes = call.succeeded && mpi_abi.known ? traffic_bytes(count, type) : 0;
    traffic.flags |= TRAFFIC_IS_POSTED;
    traffic = traffic_at(buf, traffic);
    struct ledger_sample *sample = account_started(&call, &traffic, request, REQUEST_RECEIVE);
    STORE_SIGNATURE(IMRECV);
    release(matched.communicator);
    return error;
}

/* Probes */

BODY(Probe, BY_HAND, PROBE)
{
    struct own_status ours;
    struct call call UNTIL_RETURN;
    status = enter_with_status(&call, CALL_Probe, site, status, &ours);
    announce_message(&call, comm, LEDGER_BYTES_UNKNOWN, source, tag);
    call_start(&call);
    int error = real(source, tag, comm, status);
    call_end(&call, error);
    account_call(&call, found_of(&call, status, comm, false));
    return error;
}

BODY(Iprobe, BY_HAND, IPROBE)
{
    struct own_status ours;
    struct call call UNTIL_RETURN;
    status = enter_with_status(&call, CALL_Iprobe, site, status, &ours);
    announce_message(&call, comm, LEDGER_BYTES_UNKNOWN, source, tag);
    call_start(&call);
    int error = real(source, tag, comm, flag, status);
    call_stop(&call, error);
    bool nothing = call.succeeded && !*flag;
    call_leave(&call, !nothing);
    uint64_t sought = sought_by_probe(source, tag, comm);
    if (nothing)
        account_seek(&call, sought);
    else
        account_find(&call, sought, account_call(&call, found_of(&call, status, comm, false)));
    return error;
}

/* Epochs of post, start, complete and wait on a window */

#define WITH_EPOCH(NAME, SHAPE, RECORD)                                    \
    BODY(NAME, BY_HAND, SHAPE)                                             \
    {                                                                      \
        struct call call UNTIL_RETURN;                                     \
        call_enter(&call, CALL_##NAME, site);                              \
        ANNOUNCE_WIN;                                                      \
        call_start(&call);                                                 \
        int error = real(ARGUMENTS_##SHAPE);                               \
        call_end(&call, error);                                            \
        struct traffic traffic = TRAFFIC_WIN;                              \
        const struct ledger_sample *sample = account_call(&call, traffic); \
        RECORD;                                                            \
        return error;                                                      \
    }
#define OPENS(SIDE) epochs_open(&call, sample, traffic.communicator, SIDE, group)
#define CLOSES(SIDE) epochs_close(&call, sample, traffic.communicator, SIDE)

WITH_EPOCH(Win_start, WIN_GROUP, OPENS(EPOCHS_ACCESS))
WITH_EPOCH(Win_complete, WIN, CLOSES(EPOCHS_ACCESS))
WITH_EPOCH(Win_post, WIN_GROUP, OPENS(EPOCHS_EXPOSURE))
WITH_EPOCH(Win_wait, WIN, CLOSES(EPOCHS_EXPOSURE))

BODY(Win_test, BY_HAND, WIN_TEST)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Win_test, site);
    ANNOUNCE_WIN;
    call_start(&call);
    int error = real(win, flag);
    call_stop(&call, error);
    bool nothing = call.succeeded && !*flag;
    call_leave(&call, !nothing);
    uint64_t sought = ~(uint64_t)mpi_handle_bits(win);
    if (nothing) {
        account_seek(&call, sought);
        return error;
    }
    struct traffic traffic = TRAFFIC_WIN;
    struct ledger_sample *sample = account_call(&call, traffic);
    account_find(&call, sought, sample);
    CLOSES(EPOCHS_EXPOSURE);
    return error;
}

/* Persistent requests, and requests that end without completion */

BODY(Start, BY_HAND, START)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Start, site);
    if (__builtin_expect(message_numbers_are_concurrent, 0))
        account_claim_restart(&call, handle_at(request));
    call_start(&call);
    int error = real(request);
    call_end(&call, error);
    account_simple(&call);
    traffic_check(&call);
    if (call.succeeded)
        account_restart(&call, mpi_handle_load(request, 0));
    return error;
}

BODY(Startall, BY_HAND, STARTALL)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Startall, site);
    int readable = requests ? count : 0;
    for (int i = 0; message_numbers_are_concurrent && mpi_abi.known && i < readable; i++)
        account_claim_restart(&call, mpi_handle_load(requests, (size_t)i));
    call_start(&call);
    int error = real(count, requests);
    call_end(&call, error);
    account_simple(&call);
    traffic_check(&call);
    for (int i = 0; call.succeeded && i < readable; i++)
        account_restart(&call, mpi_handle_load(requests, (size_t)i));
    return error;
}

BODY(Request_free, BY_HAND, REQUEST)
{
    mpi_handle handle = handle_at(request);
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Request_free, site);
    int error = real(request);
    call_end(&call, error);
    account_simple(&call);
    if (call.succeeded) {
        wait_array_settle(&call.thread->wait_array);
        account_forgotten(&call, handle);
    }
    return error;
}

/* A cancelled request still completes; its status says whether it was cancelled. It was counted as
 * a message. */
BODY(Cancel, BY_HAND, REQUEST)
{
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Cancel, site);
    int error = real(request);
    call_end(&call, error);
    account_simple(&call);
    message_numbers_end();
    return error;
}

/* Buffers of MPI_Bsend */

static int wrap_Buffer_flush(call_site site, int (*real)(void))
{
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Buffer_flush, site);
    int error = real();
    call_end(&call, error);
    account_simple(&call);
    return error;
}

EXPORT int MPI_Buffer_flush(void);
int MPI_Buffer_flush(void)
{
    call_site site = provider_site(__builtin_return_address(0));
    return wrap_Buffer_flush(
        site, (int (*)(void))function_target(FUNCTION_Buffer_flush, ENTRY_MPI, site));
}

EXPORT int PMPI_Buffer_flush(void);
int PMPI_Buffer_flush(void)
{
    call_site site = provider_site(__builtin_return_address(0));
    return wrap_Buffer_flush(
        site, (int (*)(void))function_target(FUNCTION_Buffer_flush, ENTRY_PMPI, site));
}

BODY(Buffer_iflush, BY_HAND, REQUEST)
{
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Buffer_iflush, site);
    int error = real(request);
    call_end(&call, error);
    struct traffic traffic = traffic_nowhere();
    account_started(&call, &traffic, request, 0);
    return error;
}

/* Completion. MPI overwrites handles when requests complete, so they are read before the call. */

/* The request may also be in the wait array of the thread's earlier calls, so the time of these
 * calls is charged first. */
HOT void account_alone(const struct call *call, mpi_handle handle, const void *status)
{
    wait_array_settle(&call->thread->wait_array);
    traffic_check(call);
    account_completed(call, handle, call->succeeded ? status : NULL, 0);
}

BODY(Wait, BY_HAND, WAIT)
{
    struct own_status ours;
    struct call call UNTIL_RETURN;
    status = enter_with_status(&call, CALL_Wait, site, status, &ours);
    if (__builtin_expect(!call.thread, 0))
        return real(request, status);
    mpi_handle handle = handle_at(request);
    announce_wait(&call, handle);
    call_start(&call);
    int error = real(request, status);
    call_end(&call, error);
    account_waited(&call);
    if (mpi_abi.known)
        account_alone(&call, handle, status);
    return error;
}

BODY(Test, BY_HAND, TEST)
{
    struct own_status ours;
    struct call call UNTIL_RETURN;
    status = enter_with_status(&call, CALL_Test, site, status, &ours);
    mpi_handle handle = handle_at(request);
    call_start(&call);
    int error = real(request, flag, status);
    call_stop(&call, error);
    bool nothing = call.succeeded && !*flag;
    call_leave(&call, !nothing);
    if (nothing)
        account_test_poll(&call);
    else
        account_waited(&call);
    if (!call.thread || !mpi_abi.known)
        return error;
    if (nothing)
        account_incomplete(&call, handle);
    else
        account_alone(&call, handle, status);
    return error;
}

/* The requests of one call for several, with the handles that they had before it, and our own
 * statuses for them. */
struct batch {
    struct wait_array *wait_array; /* NULL: the array is not followed from call to call */
    const char *handles;           /* NULL: not tracked */
    int count;
    void *statuses;
};

HOT bool is_readable(const struct call *call, int count, const void *requests)
{
    return call->thread && mpi_abi.known && count > 0 && requests;
}

/* Follows an array whose requests may stay. The statuses are in the thread's scratch memory, which
 * grows as needed and is retained. */
HOT struct batch batch_begin(const struct call *call, int count, const void *requests,
                             int status_count)
{
    struct batch batch = {NULL, NULL, 0, NULL};
    if (!is_readable(call, count, requests) ||
        !wait_array_look(&call->thread->wait_array, requests, count))
        return batch;
    batch.wait_array = &call->thread->wait_array;
    batch.handles = batch.wait_array->handles;
    batch.count = count;
    if (status_count > 0)
        batch.statuses = thread_scratch(call->thread, (size_t)status_count * mpi_abi.status_bytes);
    return batch;
}

/* A call that completes all of an array. If no earlier call has waited for it, a copy of the
 * handles is enough. */
HOT struct batch batch_begin_all(const struct call *call, int count, const void *requests)
{
    if (!is_readable(call, count, requests))
        return (struct batch){NULL, NULL, 0, NULL};
    if (__builtin_expect(wait_array_has_waited(&call->thread->wait_array, requests, count), 0))
        return batch_begin(call, count, requests, count);
    wait_array_settle(&call->thread->wait_array);
    size_t statuses_bytes = (size_t)count * mpi_abi.status_bytes;
    char *scratch =
        thread_scratch(call->thread, statuses_bytes + (size_t)count * mpi_abi.handle_bytes);
    if (!scratch)
        return (struct batch){NULL, NULL, 0, NULL};
    for (int i = 0; i < count; i++)
        mpi_handle_copy(scratch + statuses_bytes, requests, (size_t)i);
    return (struct batch){NULL, scratch + statuses_bytes, count, scratch};
}

/* Announces the first of several requests that is not known to have completed. */
HOT void announce_first(struct call *call, const struct batch *batch)
{
    int first = batch->wait_array ? wait_array_first(batch->wait_array) : 0;
    while (first < batch->count &&
           mpi_handle_load(batch->handles, (size_t)first) == mpi_abi.request_null)
        first++;
    if (first < batch->count)
        announce_wait(call, mpi_handle_load(batch->handles, (size_t)first));
}

HOT void account_entry(const struct call *call, const struct batch *batch, int index,
                       const void *status)
{
    mpi_handle handle = mpi_handle_load(batch->handles, (size_t)index);
    account_completed(call, handle, status,
                      batch->wait_array ? wait_array_done(batch->wait_array, index) : 0);
}

/* The call's duration is blocked time of the requests that it has not completed. */
HOT void account_passed(const struct call *call, const struct batch *batch)
{
    if (batch->wait_array)
        wait_array_passed(batch->wait_array, call->start, call->end);
}

/* After an error, only requests whose handles MPI has set to MPI_REQUEST_NULL are sure to have
 * completed; their sizes are unknown. */
static __attribute__((noinline)) void account_after_error(struct call call, struct batch batch,
                                                          const void *requests)
{
    traffic_check(&call);
    for (int i = 0; i < batch.count; i++)
        if (mpi_handle_load(requests, (size_t)i) == mpi_abi.request_null)
            account_entry(&call, &batch, i, NULL);
        else if (!batch.wait_array)
            account_incomplete(&call, mpi_handle_load(batch.handles, (size_t)i));
    account_passed(&call, &batch);
}

HOT void account_all(const struct call *call, const struct batch *batch, const void *requests,
                     void *statuses)
{
    if (!batch->handles)
        return;
    if (__builtin_expect(!call->succeeded, 0)) {
        account_after_error(*call, *batch, requests);
        return;
    }
    bool readable = statuses != mpi_abi.status_ignore;
    for (int i = 0; i < batch->count; i++)
        account_entry(call, batch, i, readable ? mpi_status_at(statuses, (size_t)i) : NULL);
    account_passed(call, batch);
}

HOT void account_one(const struct call *call, const struct batch *batch, const void *requests,
                     const int *done, const void *status)
{
    if (!batch->wait_array)
        return;
    if (__builtin_expect(!call->succeeded, 0)) {
        account_after_error(*call, *batch, requests);
        return;
    }
    if (*done < 0 || *done >= batch->count)
        return; /* none was active */
    account_entry(call, batch, *done, status);
    account_passed(call, batch);
}

HOT void account_some(const struct call *call, const struct batch *batch, const void *requests,
                      const int *done, const int *indices, void *statuses)
{
    if (!batch->wait_array)
        return;
    if (__builtin_expect(!call->succeeded, 0)) {
        account_after_error(*call, *batch, requests);
        return;
    }
    bool readable = statuses != mpi_abi.status_ignore;
    for (int i = 0; i < *done; i++)
        if (indices[i] >= 0 && indices[i] < batch->count)
            account_entry(call, batch, indices[i],
                          readable ? mpi_status_at(statuses, (size_t)i) : NULL);
    account_passed(call, batch);
}

BODY(Waitall, BY_HAND, WAITALL)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Waitall, site);
    if (__builtin_expect(!call.thread, 0))
        return real(count, requests, statuses);
    struct batch batch = batch_begin_all(&call, count, requests);
    statuses = statuses_or(statuses, batch.statuses);
    announce_first(&call, &batch);
    call_start(&call);
    int error = real(count, requests, statuses);
    call_end(&call, error);
    account_waited(&call);
    account_all(&call, &batch, requests, statuses);
    return error;
}

BODY(Testall, BY_HAND, TESTALL)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Testall, site);
    struct batch batch = batch_begin(&call, count, requests, count);
    statuses = statuses_or(statuses, batch.statuses);
    call_start(&call);
    int error = real(count, requests, flag, statuses);
    call_stop(&call, error);
    bool nothing = call.succeeded && !*flag;
    call_leave(&call, !nothing);
    if (nothing) {
        account_test_poll(&call);
        account_passed(&call, &batch);
        return error;
    }
    account_waited(&call);
    account_all(&call, &batch, requests, statuses);
    return error;
}

BODY(Waitany, BY_HAND, WAITANY)
{
    struct own_status ours;
    struct call call UNTIL_RETURN;
    status = enter_with_status(&call, CALL_Waitany, site, status, &ours);
    if (__builtin_expect(!call.thread, 0))
        return real(count, requests, index, status);
    struct batch batch = batch_begin(&call, count, requests, 0);
    announce_first(&call, &batch);
    call_start(&call);
    int error = real(count, requests, index, status);
    call_end(&call, error);
    account_waited(&call);
    account_one(&call, &batch, requests, index, status);
    return error;
}

BODY(Testany, BY_HAND, TESTANY)
{
    struct own_status ours;
    struct call call UNTIL_RETURN;
    status = enter_with_status(&call, CALL_Testany, site, status, &ours);
    struct batch batch = batch_begin(&call, count, requests, 0);
    call_start(&call);
    int error = real(count, requests, index, flag, status);
    call_stop(&call, error);
    bool nothing = call.succeeded && !*flag;
    call_leave(&call, !nothing);
    if (nothing) {
        account_test_poll(&call);
        account_passed(&call, &batch);
        return error;
    }
    account_waited(&call);
    account_one(&call, &batch, requests, index, status);
    return error;
}

BODY(Waitsome, BY_HAND, SOME)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Waitsome, site);
    struct batch batch = batch_begin(&call, count, requests, count);
    statuses = statuses_or(statuses, batch.statuses);
    announce_first(&call, &batch);
    call_start(&call);
    int error = real(count, requests, outcount, indices, statuses);
    call_end(&call, error);
    account_waited(&call);
    account_some(&call, &batch, requests, outcount, indices, statuses);
    return error;
}

BODY(Testsome, BY_HAND, SOME)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Testsome, site);
    struct batch batch = batch_begin(&call, count, requests, count);
    statuses = statuses_or(statuses, batch.statuses);
    call_start(&call);
    int error = real(count, requests, outcount, indices, statuses);
    call_stop(&call, error);
    bool nothing = call.succeeded && *outcount == 0;
    call_leave(&call, !nothing);
    if (nothing) {
        account_test_poll(&call);
        account_passed(&call, &batch);
        return error;
    }
    account_waited(&call);
    account_some(&call, &batch, requests, outcount, indices, statuses);
    return error;
}

/* Communicators */

/* MPI_Comm_idup is both a constructor and a nonblocking operation. */
static void account_duplicating(const struct call *call, mpi_handle comm, const void *newcomm,
                                const void *request)
{
    struct traffic traffic = traffic_none(call, comm);
    account_started(call, &traffic, request, 0);
    if (call->succeeded && mpi_abi.known)
        communicators_duplicated(mpi_handle_load(newcomm, 0), call->id, comm);
}

BODY(Comm_idup, BY_HAND, IDUP)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Comm_idup, site);
    announce_collective(&call, comm, 0);
    call_start(&call);
    int error = real(comm, newcomm, request);
    call_end(&call, error);
    account_duplicating(&call, comm, newcomm, request);
    return error;
}

BODY(Comm_idup_with_info, BY_HAND, IDUP_WITH_INFO)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Comm_idup_with_info, site);
    announce_collective(&call, comm, 0);
    call_start(&call);
    int error = real(comm, info, newcomm, request);
    call_end(&call, error);
    account_duplicating(&call, comm, newcomm, request);
    return error;
}

static inline void announce_end(struct call *call, const void *comm)
{
    if (call->thread && mpi_abi.known && comm)
        announce_collective(call, mpi_handle_load(comm, 0), 0);
}

/* As soon as MPI has freed the handle, it may be another thread's new communicator. So it is
 * unregistered before the call, and registered again if MPI refuses (MPI_COMM_WORLD, an attribute
 * callback that fails). */
static inline struct communicator *forget(const struct call *call, const void *comm)
{
    return call->thread && mpi_abi.known && comm ? communicators_freeing(mpi_handle_load(comm, 0))
                                                 : NULL;
}

static inline void gone_or_not(const struct call *call, struct communicator *going)
{
    if (going && call->succeeded)
        communicators_freed(going);
    else if (going)
        communicators_restore(going);
}

BODY(Comm_free, BY_HAND, COMM)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Comm_free, site);
    announce_end(&call, comm);
    struct communicator *going = forget(&call, comm);
    call_start(&call);
    int error = real(comm);
    call_end(&call, error);
    account_simple(&call);
    gone_or_not(&call, going);
    return error;
}

BODY(Comm_disconnect, BY_HAND, COMM)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Comm_disconnect, site);
    announce_end(&call, comm);
    struct communicator *going = forget(&call, comm);
    call_start(&call);
    int error = real(comm);
    call_end(&call, error);
    account_simple(&call);
    gone_or_not(&call, going);
    return error;
}

BODY(Comm_set_name, BY_HAND, SET_NAME)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Comm_set_name, site);
    announce_on(&call, comm);
    call_start(&call);
    int error = real(comm, name);
    call_end(&call, error);
    account_call(&call, traffic_none(&call, comm));
    if (call.succeeded)
        communicators_named(comm, name);
    return error;
}

#define BY_HAND(NAME, SHAPE, FORMS) EXPORT_##FORMS(NAME, BY_HAND, SHAPE)
#define STARTING_BY_HAND(NAME, SHAPE, FORMS) EXPORT_##FORMS(NAME, BY_HAND, SHAPE)
#include "expand.h"
