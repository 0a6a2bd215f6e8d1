/* The shapes of MPI functions: for each, its parameters and arguments and how its traffic is
 * counted.
 *
 *   PARAMETERS_x(C, A, D)   the parameter list. C is the type of a count, A of an element of an
 *                           array of counts, D of an element of an array of displacements: (int,
 *                           int, int), or (mpi_count, mpi_count, mpi_aint) in the large-count form.
 *                           A wrapper's body serves both with (mpi_count, void, void): by the
 *                           calling conventions, an int and a 64-bit value are passed in the same
 *                           register or stack slot (mpi_handle relies on this too), and `wide`
 *                           gives the type of the arrays' elements.
 *   ARGUMENTS_x             the same names, to pass on
 *   ANNOUNCE_x              what is announced about a call before it is made (announce.h)
 *   TRAFFIC_x               the traffic of a call and its buffers (traffic.h), in terms of those
 *                           names and of `call` and `wide`
 *   SIGNATURE_x             the number of a sampled call's signature (signatures.h), in terms of
 *                           those names and of `traffic`; 0: it moves no data. Of a call that sends
 *                           and receives it is that of the side that `bytes` counts
 *   FOUND_x                 for a call that polls: whether it was successful
 *   CREATED_x               for a constructor of communicators: parent, whether there is one, tag
 *                           (communicators_created)
 *   KEY_x                   for a call that creates or frees a window or a file: its key
 *                           (communicators_attach) */
#ifndef COMMPROF_SHAPES_H
#define COMMPROF_SHAPES_H

/* The parameters and arguments of a shape, with what the kind adds. */
#define PARAMETERS_OF_BLOCKING(SHAPE, C, A, D) PARAMETERS_##SHAPE(C, A, D)
#define PARAMETERS_OF_BY_HAND(SHAPE, C, A, D) PARAMETERS_##SHAPE(C, A, D)
#define PARAMETERS_OF_READING(SHAPE, C, A, D) PARAMETERS_##SHAPE(C, A, D)
#define PARAMETERS_OF_POLLING(SHAPE, C, A, D) PARAMETERS_##SHAPE(C, A, D)
#define PARAMETERS_OF_MAKING(SHAPE, C, A, D) PARAMETERS_##SHAPE(C, A, D)
#define PARAMETERS_OF_ENDING(SHAPE, C, A, D) PARAMETERS_##SHAPE(C, A, D)
#define PARAMETERS_OF_STARTING(SHAPE, C, A, D) PARAMETERS_##SHAPE(C, A, D), void *request
#define PARAMETERS_OF_PREPARING_WITH_INFO(SHAPE, C, A, D) \
    PARAMETERS_##SHAPE(C, A, D), mpi_handle info, void *request
#define ARGUMENTS_OF_BLOCKING(SHAPE) ARGUMENTS_##SHAPE
#define ARGUMENTS_OF_BY_HAND(SHAPE) ARGUMENTS_##SHAPE
#define ARGUMENTS_OF_READING(SHAPE) ARGUMENTS_##SHAPE
#define ARGUMENTS_OF_POLLING(SHAPE) ARGUMENTS_##SHAPE
#define ARGUMENTS_OF_MAKING(SHAPE) ARGUMENTS_##SHAPE
#define ARGUMENTS_OF_ENDING(SHAPE) ARGUMENTS_##SHAPE
#define ARGUMENTS_OF_STARTING(SHAPE) ARGUMENTS_##SHAPE, request
#define ARGUMENTS_OF_PREPARING_WITH_INFO(SHAPE) ARGUMENTS_##SHAPE, info, request

/* Setup */
#define PARAMETERS_INIT(C, A, D) int *argc, char ***argv
#define ARGUMENTS_INIT argc, argv
#define PARAMETERS_INIT_THREAD(C, A, D) int *argc, char ***argv, int required, int *provided
#define ARGUMENTS_INIT_THREAD argc, argv, required, provided
#define PARAMETERS_SESSION_INIT(C, A, D) mpi_handle info, mpi_handle errhandler, void *session
#define ARGUMENTS_SESSION_INIT info, errhandler, session
#define PARAMETERS_SESSION_FINALIZE(C, A, D) void *session
#define ARGUMENTS_SESSION_FINALIZE session
#define PARAMETERS_ABORT(C, A, D) mpi_handle comm, int errorcode
#define ARGUMENTS_ABORT comm, errorcode

/* Point-to-point */
#define PARAMETERS_MESSAGE(C, A, D) \
    const void *buf, C count, mpi_handle type, int dest, int tag, mpi_handle comm
#define ARGUMENTS_MESSAGE buf, count, type, dest, tag, comm
#define TRAFFIC_MESSAGE traffic_at(buf, traffic_message(&call, count, type, dest, tag, comm))
#define SIGNATURE_MESSAGE SIGNATURE_OF(.count = count, .type = type, .buffer = buf)
#define ANNOUNCE_MESSAGE \
    announce_send(&call, comm, announce_counted(&call, comm, count, type, 0, false), dest, tag)

#define PARAMETERS_RECEIVE(C, A, D) \
    void *buf, C count, mpi_handle type, int source, int tag, mpi_handle comm
#define ARGUMENTS_RECEIVE buf, count, type, source, tag, comm
#define TRAFFIC_RECEIVE traffic_at(buf, traffic_receive(&call, count, type, source, tag, comm))
#define SIGNATURE_RECEIVE SIGNATURE_MESSAGE
#define ANNOUNCE_RECEIVE \
    announce_receive(&call, comm, announce_counted(&call, comm, count, type, 0, false), source, tag)

#define PARAMETERS_RECV(C, A, D) \
    void *buf, C count, mpi_handle type, int source, int tag, mpi_handle comm, void *status
#define ARGUMENTS_RECV buf, count, type, source, tag, comm, status
#define SIGNATURE_RECV SIGNATURE_MESSAGE
#define PARAMETERS_MRECV(C, A, D) void *buf, C count, mpi_handle type, void *message, void *status
#define ARGUMENTS_MRECV buf, count, type, message, status
#define SIGNATURE_MRECV SIGNATURE_MESSAGE
#define PARAMETERS_IMRECV(C, A, D) void *buf, C count, mpi_handle type, void *message, void *request
#define ARGUMENTS_IMRECV buf, count, type, message, request
#define SIGNATURE_IMRECV SIGNATURE_MESSAGE

#define PARAMETERS_EXCHANGE(C, A, D)                                                             \
    const void *sendbuf, C sendcount, mpi_handle sendtype, int dest, int sendtag, void *recvbuf, \
        C recvcount, mpi_handle recvtype, int source, int recvtag, mpi_handle comm
#define ARGUMENTS_EXCHANGE \
    sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm
#define TRAFFIC_EXCHANGE                \
    traffic_exchanged(sendbuf, recvbuf, \
                      traffic_message(&call, sendcount, sendtype, dest, sendtag, comm))
#define SIGNATURE_EXCHANGE \
    SIGNATURE_OF(.count = sendcount, .type = sendtype, .buffer = sendbuf, .received = recvbuf)
#define ANNOUNCE_EXCHANGE                                                                      \
    announce_exchange(&call, comm, announce_bytes(recvcount, recvtype), dest, sendtag, source, \
                      recvtag)
#define PARAMETERS_EXCHANGE_REPLACE(C, A, D)                                             \
    void *buf, C count, mpi_handle type, int dest, int sendtag, int source, int recvtag, \
        mpi_handle comm
#define ARGUMENTS_EXCHANGE_REPLACE buf, count, type, dest, sendtag, source, recvtag, comm
#define TRAFFIC_EXCHANGE_REPLACE \
    traffic_at(buf, traffic_message(&call, count, type, dest, sendtag, comm))
#define SIGNATURE_EXCHANGE_REPLACE SIGNATURE_MESSAGE
#define ANNOUNCE_EXCHANGE_REPLACE                                                              \
    announce_exchange(&call, comm, announce_counted(&call, comm, count, type, 0, false), dest, \
                      sendtag, source, recvtag)
#define PARAMETERS_SENDRECV(C, A, D) PARAMETERS_EXCHANGE(C, A, D), void *status
#define ARGUMENTS_SENDRECV ARGUMENTS_EXCHANGE, status
#define PARAMETERS_SENDRECV_REPLACE(C, A, D) PARAMETERS_EXCHANGE_REPLACE(C, A, D), void *status
#define ARGUMENTS_SENDRECV_REPLACE ARGUMENTS_EXCHANGE_REPLACE, status

#define PARAMETERS_START(C, A, D) void *request
#define ARGUMENTS_START request
#define PARAMETERS_STARTALL(C, A, D) int count, void *requests
#define ARGUMENTS_STARTALL count, requests
#define PARAMETERS_REQUEST(C, A, D) void *request
#define ARGUMENTS_REQUEST request

#define PARAMETERS_PROBE(C, A, D) int source, int tag, mpi_handle comm, void *status
#define ARGUMENTS_PROBE source, tag, comm, status
#define PARAMETERS_IPROBE(C, A, D) int source, int tag, mpi_handle comm, int *flag, void *status
#define ARGUMENTS_IPROBE source, tag, comm, flag, status
#define PARAMETERS_MPROBE(C, A, D) int source, int tag, mpi_handle comm, void *message, void *status
#define ARGUMENTS_MPROBE source, tag, comm, message, status
#define PARAMETERS_IMPROBE(C, A, D) \
    int source, int tag, mpi_handle comm, int *flag, void *message, void *status
#define ARGUMENTS_IMPROBE source, tag, comm, flag, message, status

/* Partitioned: communicator and peer are known when the call is made, on the receiving side too (no
 * wildcards). */
#define PARAMETERS_PARTITIONED_SEND(C, A, D)                                              \
    const void *buf, int partitions, mpi_count count, mpi_handle type, int dest, int tag, \
        mpi_handle comm
#define ARGUMENTS_PARTITIONED_SEND buf, partitions, count, type, dest, tag, comm
#define TRAFFIC_PARTITIONED_SEND \
    traffic_at(buf, traffic_partitioned(&call, partitions *count, type, dest, comm))
#define SIGNATURE_PARTITIONED_SEND SIGNATURE_OF(.count = partitions * count, .type = type)
#define ANNOUNCE_PARTITIONED_SEND \
    announce_message(&call, comm, \
                     announce_counted(&call, comm, partitions *count, type, 0, false), dest, tag)
#define PARAMETERS_PARTITIONED_RECEIVE(C, A, D)                                       \
    void *buf, int partitions, mpi_count count, mpi_handle type, int source, int tag, \
        mpi_handle comm
#define ARGUMENTS_PARTITIONED_RECEIVE buf, partitions, count, type, source, tag, comm
#define TRAFFIC_PARTITIONED_RECEIVE \
    traffic_at(buf, traffic_incoming(&call, partitions *count, type, source, comm))
#define SIGNATURE_PARTITIONED_RECEIVE SIGNATURE_PARTITIONED_SEND
#define ANNOUNCE_PARTITIONED_RECEIVE                                                           \
    announce_message(&call, comm,                                                              \
                     announce_counted(&call, comm, partitions *count, type, 0, false), source, \
                     tag)
#define PARAMETERS_READY(C, A, D) int partition, mpi_handle request
#define ARGUMENTS_READY partition, request
#define TRAFFIC_READY traffic_nowhere()
#define SIGNATURE_READY 0
#define ANNOUNCE_READY announce_nothing()
#define PARAMETERS_READY_RANGE(C, A, D) int partition_low, int partition_high, mpi_handle request
#define ARGUMENTS_READY_RANGE partition_low, partition_high, request
#define TRAFFIC_READY_RANGE traffic_nowhere()
#define SIGNATURE_READY_RANGE 0
#define ANNOUNCE_READY_RANGE announce_nothing()
#define PARAMETERS_READY_LIST(C, A, D) int length, const int *partitions, mpi_handle request
#define ARGUMENTS_READY_LIST length, partitions, request
#define TRAFFIC_READY_LIST traffic_nowhere()
#define SIGNATURE_READY_LIST 0
#define ANNOUNCE_READY_LIST announce_nothing()
#define PARAMETERS_ARRIVED(C, A, D) mpi_handle request, int partition, int *flag
#define ARGUMENTS_ARRIVED request, partition, flag
#define TRAFFIC_ARRIVED traffic_nowhere()
#define ANNOUNCE_ARRIVED announce_nothing()
#define FOUND_ARRIVED (*flag)

/* Buffers of MPI_Bsend: detaching and flushing wait until the buffered messages have been sent. */
#define PARAMETERS_BUFFER_ATTACH(C, A, D) void *buffer, C size
#define ARGUMENTS_BUFFER_ATTACH buffer, size
#define TRAFFIC_BUFFER_ATTACH traffic_nowhere()
#define SIGNATURE_BUFFER_ATTACH 0
#define ANNOUNCE_BUFFER_ATTACH announce_nothing()
#define PARAMETERS_BUFFER_DETACH(C, A, D) void *buffer, A *size
#define ARGUMENTS_BUFFER_DETACH buffer, size
#define TRAFFIC_BUFFER_DETACH traffic_nowhere()
#define SIGNATURE_BUFFER_DETACH 0
#define ANNOUNCE_BUFFER_DETACH announce_nothing()
#define PARAMETERS_COMM_ATTACH(C, A, D) mpi_handle comm, void *buffer, C size
#define ARGUMENTS_COMM_ATTACH comm, buffer, size
#define TRAFFIC_COMM_ATTACH traffic_none(&call, comm)
#define SIGNATURE_COMM_ATTACH 0
#define ANNOUNCE_COMM_ATTACH announce_on(&call, comm)
#define PARAMETERS_COMM_DETACH(C, A, D) mpi_handle comm, void *buffer, A *size
#define ARGUMENTS_COMM_DETACH comm, buffer, size
#define TRAFFIC_COMM_DETACH traffic_none(&call, comm)
#define SIGNATURE_COMM_DETACH 0
#define ANNOUNCE_COMM_DETACH announce_on(&call, comm)
#define PARAMETERS_COMM_FLUSH(C, A, D) mpi_handle comm
#define ARGUMENTS_COMM_FLUSH comm
#define TRAFFIC_COMM_FLUSH traffic_none(&call, comm)
#define SIGNATURE_COMM_FLUSH 0
#define ANNOUNCE_COMM_FLUSH announce_on(&call, comm)
#define PARAMETERS_SESSION(C, A, D) mpi_handle session
#define ARGUMENTS_SESSION session
#define TRAFFIC_SESSION traffic_nowhere()
#define SIGNATURE_SESSION 0
#define ANNOUNCE_SESSION announce_nothing()
#define PARAMETERS_SESSION_ATTACH(C, A, D) mpi_handle session, void *buffer, C size
#define ARGUMENTS_SESSION_ATTACH session, buffer, size
#define TRAFFIC_SESSION_ATTACH traffic_nowhere()
#define SIGNATURE_SESSION_ATTACH 0
#define ANNOUNCE_SESSION_ATTACH announce_nothing()
#define PARAMETERS_SESSION_DETACH(C, A, D) mpi_handle session, void *buffer, A *size
#define ARGUMENTS_SESSION_DETACH session, buffer, size
#define TRAFFIC_SESSION_DETACH traffic_nowhere()
#define SIGNATURE_SESSION_DETACH 0
#define ANNOUNCE_SESSION_DETACH announce_nothing()

/* Completion */
#define PARAMETERS_GET_STATUS(C, A, D) mpi_handle request, int *flag, void *status
#define ARGUMENTS_GET_STATUS request, flag, status
#define TRAFFIC_GET_STATUS traffic_nowhere()
#define ANNOUNCE_GET_STATUS announce_nothing()
#define FOUND_GET_STATUS (*flag)
#define PARAMETERS_GET_STATUS_ALL(C, A, D) \
    int count, const void *requests, int *flag, void *statuses
#define ARGUMENTS_GET_STATUS_ALL count, requests, flag, statuses
#define TRAFFIC_GET_STATUS_ALL traffic_nowhere()
#define ANNOUNCE_GET_STATUS_ALL announce_nothing()
#define FOUND_GET_STATUS_ALL (*flag)
#define PARAMETERS_GET_STATUS_ANY(C, A, D) \
    int count, const void *requests, int *index, int *flag, void *status
#define ARGUMENTS_GET_STATUS_ANY count, requests, index, flag, status
#define TRAFFIC_GET_STATUS_ANY traffic_nowhere()
#define ANNOUNCE_GET_STATUS_ANY announce_nothing()
#define FOUND_GET_STATUS_ANY (*flag)
#define PARAMETERS_GET_STATUS_SOME(C, A, D) \
    int count, const void *requests, int *outcount, int *indices, void *statuses
#define ARGUMENTS_GET_STATUS_SOME count, requests, outcount, indices, statuses
#define TRAFFIC_GET_STATUS_SOME traffic_nowhere()
#define ANNOUNCE_GET_STATUS_SOME announce_nothing()
#define FOUND_GET_STATUS_SOME (*outcount != 0)
#define PARAMETERS_GENERALIZED(C, A, D) \
    void *query_fn, void *free_fn, void *cancel_fn, void *extra_state
#define ARGUMENTS_GENERALIZED query_fn, free_fn, cancel_fn, extra_state
#define TRAFFIC_GENERALIZED traffic_nowhere()
#define SIGNATURE_GENERALIZED 0
#define ANNOUNCE_GENERALIZED announce_nothing()
#define PARAMETERS_GENERALIZED_COMPLETE(C, A, D) mpi_handle request
#define ARGUMENTS_GENERALIZED_COMPLETE request
#define TRAFFIC_GENERALIZED_COMPLETE traffic_nowhere()
#define SIGNATURE_GENERALIZED_COMPLETE 0
#define ANNOUNCE_GENERALIZED_COMPLETE announce_nothing()
#define PARAMETERS_WAIT(C, A, D) void *request, void *status
#define ARGUMENTS_WAIT request, status
#define PARAMETERS_WAITALL(C, A, D) int count, void *requests, void *statuses
#define ARGUMENTS_WAITALL count, requests, statuses
#define PARAMETERS_WAITANY(C, A, D) int count, void *requests, int *index, void *status
#define ARGUMENTS_WAITANY count, requests, index, status
#define PARAMETERS_SOME(C, A, D) \
    int count, void *requests, int *outcount, int *indices, void *statuses
#define ARGUMENTS_SOME count, requests, outcount, indices, statuses
#define PARAMETERS_TEST(C, A, D) void *request, int *flag, void *status
#define ARGUMENTS_TEST request, flag, status
#define PARAMETERS_TESTALL(C, A, D) int count, void *requests, int *flag, void *statuses
#define ARGUMENTS_TESTALL count, requests, flag, statuses
#define PARAMETERS_TESTANY(C, A, D) int count, void *requests, int *index, int *flag, void *status
#define ARGUMENTS_TESTANY count, requests, index, flag, status

/* Collectives */
#define COUNTS(ARRAY) ((struct counts){ARRAY, wide})

#define PARAMETERS_BARRIER(C, A, D) mpi_handle comm
#define ARGUMENTS_BARRIER comm
#define TRAFFIC_BARRIER traffic_none(&call, comm)
#define SIGNATURE_BARRIER 0
#define ANNOUNCE_BARRIER announce_collective(&call, comm, 0)

#define PARAMETERS_BCAST(C, A, D) void *buffer, C count, mpi_handle type, int root, mpi_handle comm
#define ARGUMENTS_BCAST buffer, count, type, root, comm
#define TRAFFIC_BCAST traffic_at(buffer, traffic_bcast(&call, count, type, root, comm))
#define SIGNATURE_BCAST SIGNATURE_OF(.count = count, .type = type, .buffer = buffer)
#define ANNOUNCE_BCAST \
    announce_rooted(&call, comm, announce_counted(&call, comm, count, type, 0, false), root)

#define PARAMETERS_GATHER(C, A, D)                                                     \
    const void *sendbuf, C sendcount, mpi_handle sendtype, void *recvbuf, C recvcount, \
        mpi_handle recvtype, int root, mpi_handle comm
#define ARGUMENTS_GATHER sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm
#define TRAFFIC_GATHER          \
    traffic_gathered(           \
        sendbuf, recvbuf, root, \
        traffic_gather(&call, sendbuf, sendcount, sendtype, recvcount, recvtype, root, comm))
#define SIGNATURE_GATHER                                                                 \
    (traffic_root_receives(traffic.communicator, sendbuf, root)                          \
         ? SIGNATURE_OF(.count = recvcount, .type = recvtype, .buffer = sendbuf,         \
                        .received = recvbuf, .is_in_place = sendbuf == mpi_abi.in_place) \
         : SIGNATURE_OF(.count = sendcount, .type = sendtype, .buffer = sendbuf))
#define ANNOUNCE_GATHER                                                                 \
    announce_rooted(&call, comm,                                                        \
                    announce_bytes(sendbuf == mpi_abi.in_place ? recvcount : sendcount, \
                                   sendbuf == mpi_abi.in_place ? recvtype : sendtype),  \
                    root)

#define PARAMETERS_SCATTER(C, A, D) PARAMETERS_GATHER(C, A, D)
#define ARGUMENTS_SCATTER ARGUMENTS_GATHER
#define TRAFFIC_SCATTER         \
    traffic_scattered(          \
        sendbuf, recvbuf, root, \
        traffic_scatter(&call, sendcount, sendtype, recvcount, recvtype, root, comm))
#define SIGNATURE_SCATTER                                                                \
    (traffic_is_root(traffic.communicator, root)                                         \
         ? SIGNATURE_OF(.count = sendcount, .type = sendtype, .buffer = sendbuf,         \
                        .received = recvbuf, .is_in_place = recvbuf == mpi_abi.in_place) \
         : SIGNATURE_OF(.count = recvcount, .type = recvtype, .received = recvbuf))
#define ANNOUNCE_SCATTER                                                                \
    announce_rooted(&call, comm,                                                        \
                    announce_bytes(recvbuf == mpi_abi.in_place ? sendcount : recvcount, \
                                   recvbuf == mpi_abi.in_place ? sendtype : recvtype),  \
                    root)

#define PARAMETERS_GATHERV(C, A, D)                                                            \
    const void *sendbuf, C sendcount, mpi_handle sendtype, void *recvbuf, const A *recvcounts, \
        const D *displs, mpi_handle recvtype, int root, mpi_handle comm
#define ARGUMENTS_GATHERV \
    sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm
#define TRAFFIC_GATHERV                                                                       \
    traffic_gathered(sendbuf, recvbuf, root,                                                  \
                     traffic_gatherv(&call, sendbuf, sendcount, sendtype, COUNTS(recvcounts), \
                                     recvtype, root, comm))
#define SIGNATURE_GATHERV                                                                     \
    (traffic_is_root(traffic.communicator, root)                                              \
         ? SIGNATURE_OF(.type = sendbuf == mpi_abi.in_place ? recvtype : sendtype,            \
                        .counts = COUNTS(recvcounts),                                         \
                        .length = traffic_others_in(traffic.communicator), .buffer = sendbuf, \
                        .received = recvbuf, .is_in_place = sendbuf == mpi_abi.in_place)      \
         : SIGNATURE_OF(.count = sendcount, .type = sendtype, .buffer = sendbuf))
#define ANNOUNCE_GATHERV announce_rooted(&call, comm, LEDGER_BYTES_UNKNOWN, root)

#define PARAMETERS_SCATTERV(C, A, D)                                                               \
    const void *sendbuf, const A *sendcounts, const D *displs, mpi_handle sendtype, void *recvbuf, \
        C recvcount, mpi_handle recvtype, int root, mpi_handle comm
#define ARGUMENTS_SCATTERV \
    sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm
#define TRAFFIC_SCATTERV        \
    traffic_scattered(          \
        sendbuf, recvbuf, root, \
        traffic_scatterv(&call, COUNTS(sendcounts), sendtype, recvcount, recvtype, root, comm))
#define SIGNATURE_SCATTERV                                                                    \
    (traffic_is_root(traffic.communicator, root)                                              \
         ? SIGNATURE_OF(.type = sendtype, .counts = COUNTS(sendcounts),                       \
                        .length = traffic_others_in(traffic.communicator), .buffer = sendbuf, \
                        .received = recvbuf, .is_in_place = recvbuf == mpi_abi.in_place)      \
         : SIGNATURE_OF(.count = recvcount, .type = recvtype, .received = recvbuf))
#define ANNOUNCE_SCATTERV announce_rooted(&call, comm, LEDGER_BYTES_UNKNOWN, root)

#define PARAMETERS_ALLGATHER(C, A, D)                                                  \
    const void *sendbuf, C sendcount, mpi_handle sendtype, void *recvbuf, C recvcount, \
        mpi_handle recvtype, mpi_handle comm
#define ARGUMENTS_ALLGATHER sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm
#define TRAFFIC_ALLGATHER \
    traffic_between(      \
        sendbuf, recvbuf, \
        traffic_allgather(&call, sendbuf, sendcount, sendtype, recvcount, recvtype, comm))
#define SIGNATURE_ALLGATHER                                                                    \
    SIGNATURE_OF(.count = sendbuf == mpi_abi.in_place ? recvcount : sendcount,                 \
                 .type = sendbuf == mpi_abi.in_place ? recvtype : sendtype, .buffer = sendbuf, \
                 .received = recvbuf, .is_in_place = sendbuf == mpi_abi.in_place)
#define ANNOUNCE_ALLGATHER                                                                  \
    announce_collective(&call, comm,                                                        \
                        announce_bytes(sendbuf == mpi_abi.in_place ? recvcount : sendcount, \
                                       sendbuf == mpi_abi.in_place ? recvtype : sendtype))

#define PARAMETERS_ALLTOALL(C, A, D) PARAMETERS_ALLGATHER(C, A, D)
#define ARGUMENTS_ALLTOALL ARGUMENTS_ALLGATHER
#define TRAFFIC_ALLTOALL  \
    traffic_between(      \
        sendbuf, recvbuf, \
        traffic_alltoall(&call, sendbuf, sendcount, sendtype, recvcount, recvtype, comm))
#define SIGNATURE_ALLTOALL SIGNATURE_ALLGATHER
#define ANNOUNCE_ALLTOALL ANNOUNCE_ALLGATHER

#define PARAMETERS_ALLGATHERV(C, A, D)                                                         \
    const void *sendbuf, C sendcount, mpi_handle sendtype, void *recvbuf, const A *recvcounts, \
        const D *displs, mpi_handle recvtype, mpi_handle comm
#define ARGUMENTS_ALLGATHERV \
    sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm
#define TRAFFIC_ALLGATHERV                                                                        \
    traffic_exchanged(sendbuf, recvbuf,                                                           \
                      traffic_allgatherv(&call, sendbuf, sendcount, sendtype, COUNTS(recvcounts), \
                                         recvtype, comm))
#define SIGNATURE_ALLGATHERV                                                                      \
    SIGNATURE_OF(.type = sendbuf == mpi_abi.in_place ? recvtype : sendtype,                       \
                 .counts = COUNTS(recvcounts), .length = traffic_others_in(traffic.communicator), \
                 .buffer = sendbuf, .received = recvbuf,                                          \
                 .is_in_place = sendbuf == mpi_abi.in_place)
#define ANNOUNCE_ALLGATHERV announce_collective(&call, comm, LEDGER_BYTES_UNKNOWN)

#define PARAMETERS_ALLTOALLV(C, A, D)                                                \
    const void *sendbuf, const A *sendcounts, const D *sdispls, mpi_handle sendtype, \
        void *recvbuf, const A *recvcounts, const D *rdispls, mpi_handle recvtype, mpi_handle comm
#define ARGUMENTS_ALLTOALLV \
    sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm
#define TRAFFIC_ALLTOALLV                                                             \
    traffic_exchanged(sendbuf, recvbuf,                                               \
                      traffic_alltoallv(&call, sendbuf, COUNTS(sendcounts), sendtype, \
                                        COUNTS(recvcounts), recvtype, comm))
#define SIGNATURE_ALLTOALLV                                                               \
    SIGNATURE_OF(.type = sendbuf == mpi_abi.in_place ? recvtype : sendtype,               \
                 .counts = COUNTS(sendbuf == mpi_abi.in_place ? recvcounts : sendcounts), \
                 .length = traffic_others_in(traffic.communicator), .buffer = sendbuf,    \
                 .received = recvbuf, .is_in_place = sendbuf == mpi_abi.in_place)
#define ANNOUNCE_ALLTOALLV ANNOUNCE_ALLGATHERV

#define PARAMETERS_ALLTOALLW(C, A, D)                                                  \
    const void *sendbuf, const A *sendcounts, const D *sdispls, const void *sendtypes, \
        void *recvbuf, const A *recvcounts, const D *rdispls, const void *recvtypes,   \
        mpi_handle comm
#define ARGUMENTS_ALLTOALLW \
    sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm
#define TRAFFIC_ALLTOALLW                                                              \
    traffic_exchanged(sendbuf, recvbuf,                                                \
                      traffic_alltoallw(&call, sendbuf, COUNTS(sendcounts), sendtypes, \
                                        COUNTS(recvcounts), recvtypes, comm))
#define SIGNATURE_ALLTOALLW                                                               \
    SIGNATURE_OF(.types = sendbuf == mpi_abi.in_place ? recvtypes : sendtypes,            \
                 .counts = COUNTS(sendbuf == mpi_abi.in_place ? recvcounts : sendcounts), \
                 .length = traffic_others_in(traffic.communicator), .buffer = sendbuf,    \
                 .received = recvbuf, .is_in_place = sendbuf == mpi_abi.in_place)
#define ANNOUNCE_ALLTOALLW ANNOUNCE_ALLGATHERV

#define PARAMETERS_REDUCE(C, A, D)                                                         \
    const void *sendbuf, void *recvbuf, C count, mpi_handle type, mpi_handle op, int root, \
        mpi_handle comm
#define ARGUMENTS_REDUCE sendbuf, recvbuf, count, type, op, root, comm
#define TRAFFIC_REDUCE \
    traffic_gathered(sendbuf, recvbuf, root, traffic_reduce(&call, count, type, root, comm))
#define SIGNATURE_REDUCE                                                                   \
    SIGNATURE_OF(.count = count, .type = type, .op = op, .buffer = sendbuf,                \
                 .received = traffic_is_root(traffic.communicator, root) ? recvbuf : NULL, \
                 .is_in_place = sendbuf == mpi_abi.in_place)
#define ANNOUNCE_REDUCE                                                                          \
    announce_rooted(&call, comm,                                                                 \
                    announce_counted(&call, comm, count, type, op, sendbuf == mpi_abi.in_place), \
                    root)

#define PARAMETERS_ALLREDUCE(C, A, D) \
    const void *sendbuf, void *recvbuf, C count, mpi_handle type, mpi_handle op, mpi_handle comm
#define ARGUMENTS_ALLREDUCE sendbuf, recvbuf, count, type, op, comm
#define TRAFFIC_ALLREDUCE \
    traffic_between(sendbuf, recvbuf, traffic_allreduce(&call, count, type, comm))
#define SIGNATURE_ALLREDUCE                                                                      \
    SIGNATURE_OF(.count = count, .type = type, .op = op, .buffer = sendbuf, .received = recvbuf, \
                 .is_in_place = sendbuf == mpi_abi.in_place)
#define ANNOUNCE_ALLREDUCE \
    announce_collective(   \
        &call, comm, announce_counted(&call, comm, count, type, op, sendbuf == mpi_abi.in_place))

#define PARAMETERS_REDUCE_SCATTER_BLOCK(C, A, D) PARAMETERS_ALLREDUCE(C, A, D)
#define ARGUMENTS_REDUCE_SCATTER_BLOCK ARGUMENTS_ALLREDUCE
#define TRAFFIC_REDUCE_SCATTER_BLOCK \
    traffic_between(sendbuf, recvbuf, traffic_reduce_scatter_block(&call, count, type, comm))
#define SIGNATURE_REDUCE_SCATTER_BLOCK SIGNATURE_ALLREDUCE
#define ANNOUNCE_REDUCE_SCATTER_BLOCK announce_blocks(&call, comm, count, type)

#define PARAMETERS_REDUCE_SCATTER(C, A, D)                                                   \
    const void *sendbuf, void *recvbuf, const A *recvcounts, mpi_handle type, mpi_handle op, \
        mpi_handle comm
#define ARGUMENTS_REDUCE_SCATTER sendbuf, recvbuf, recvcounts, type, op, comm
#define TRAFFIC_REDUCE_SCATTER \
    traffic_between(sendbuf, recvbuf, traffic_reduce_scatter(&call, COUNTS(recvcounts), type, comm))
#define SIGNATURE_REDUCE_SCATTER                                                               \
    SIGNATURE_OF(.type = type, .op = op, .counts = COUNTS(recvcounts),                         \
                 .length = traffic.communicator->size, .buffer = sendbuf, .received = recvbuf, \
                 .is_in_place = sendbuf == mpi_abi.in_place)
#define ANNOUNCE_REDUCE_SCATTER ANNOUNCE_ALLGATHERV

/* Neighborhood collectives. Displacements of the w-variant are MPI_Aint in both forms. */
#define PARAMETERS_NEIGHBOR_ALLGATHER(C, A, D) PARAMETERS_ALLGATHER(C, A, D)
#define ARGUMENTS_NEIGHBOR_ALLGATHER ARGUMENTS_ALLGATHER
#define TRAFFIC_NEIGHBOR_ALLGATHER      \
    traffic_exchanged(sendbuf, recvbuf, \
                      traffic_neighbor_allgather(&call, sendcount, sendtype, comm))
#define SIGNATURE_NEIGHBOR_ALLGATHER SIGNATURE_OF(.count = sendcount, .type = sendtype)
#define ANNOUNCE_NEIGHBOR_ALLGATHER ANNOUNCE_ALLGATHERV
#define PARAMETERS_NEIGHBOR_ALLGATHERV(C, A, D) PARAMETERS_ALLGATHERV(C, A, D)
#define ARGUMENTS_NEIGHBOR_ALLGATHERV ARGUMENTS_ALLGATHERV
#define TRAFFIC_NEIGHBOR_ALLGATHERV TRAFFIC_NEIGHBOR_ALLGATHER
#define SIGNATURE_NEIGHBOR_ALLGATHERV SIGNATURE_NEIGHBOR_ALLGATHER
#define ANNOUNCE_NEIGHBOR_ALLGATHERV ANNOUNCE_ALLGATHERV
#define PARAMETERS_NEIGHBOR_ALLTOALL(C, A, D) PARAMETERS_ALLGATHER(C, A, D)
#define ARGUMENTS_NEIGHBOR_ALLTOALL ARGUMENTS_ALLGATHER
#define TRAFFIC_NEIGHBOR_ALLTOALL \
    traffic_exchanged(sendbuf, recvbuf, traffic_neighbor_alltoall(&call, sendcount, sendtype, comm))
#define SIGNATURE_NEIGHBOR_ALLTOALL SIGNATURE_NEIGHBOR_ALLGATHER
#define ANNOUNCE_NEIGHBOR_ALLTOALL ANNOUNCE_ALLGATHERV
#define PARAMETERS_NEIGHBOR_ALLTOALLV(C, A, D) PARAMETERS_ALLTOALLV(C, A, D)
#define ARGUMENTS_NEIGHBOR_ALLTOALLV ARGUMENTS_ALLTOALLV
#define TRAFFIC_NEIGHBOR_ALLTOALLV      \
    traffic_exchanged(sendbuf, recvbuf, \
                      traffic_neighbor_alltoallv(&call, COUNTS(sendcounts), sendtype, comm))
#define SIGNATURE_NEIGHBOR_ALLTOALLV                             \
    SIGNATURE_OF(.type = sendtype, .counts = COUNTS(sendcounts), \
                 .length = communicators_out_neighbors(traffic.communicator))
#define ANNOUNCE_NEIGHBOR_ALLTOALLV ANNOUNCE_ALLGATHERV
#define PARAMETERS_NEIGHBOR_ALLTOALLW(C, A, D) PARAMETERS_ALLTOALLW(C, A, mpi_aint)
#define ARGUMENTS_NEIGHBOR_ALLTOALLW ARGUMENTS_ALLTOALLW
#define TRAFFIC_NEIGHBOR_ALLTOALLW      \
    traffic_exchanged(sendbuf, recvbuf, \
                      traffic_neighbor_alltoallw(&call, COUNTS(sendcounts), sendtypes, comm))
#define SIGNATURE_NEIGHBOR_ALLTOALLW                               \
    SIGNATURE_OF(.types = sendtypes, .counts = COUNTS(sendcounts), \
                 .length = communicators_out_neighbors(traffic.communicator))
#define ANNOUNCE_NEIGHBOR_ALLTOALLW ANNOUNCE_ALLGATHERV

/* RMA */
#define PARAMETERS_TO_TARGET(C, A, D)                                                              \
    C origin_count, mpi_handle origin_type, int target_rank, mpi_aint target_disp, C target_count, \
        mpi_handle target_type
#define ARGUMENTS_TO_TARGET \
    origin_count, origin_type, target_rank, target_disp, target_count, target_type
#define PARAMETERS_PUT(C, A, D) const void *origin, PARAMETERS_TO_TARGET(C, A, D), mpi_handle win
#define ARGUMENTS_PUT origin, ARGUMENTS_TO_TARGET, win
#define TRAFFIC_PUT \
    traffic_at(origin, traffic_put(&call, origin_count, origin_type, target_rank, win))
#define SIGNATURE_PUT SIGNATURE_OF(.count = origin_count, .type = origin_type)
#define ANNOUNCE_PUT                                                                               \
    announce_target(&call, win, announce_counted(&call, win, origin_count, origin_type, 0, false), \
                    target_rank)
#define PARAMETERS_GET(C, A, D) void *origin, PARAMETERS_TO_TARGET(C, A, D), mpi_handle win
#define ARGUMENTS_GET ARGUMENTS_PUT
#define TRAFFIC_GET \
    traffic_at(origin, traffic_get(&call, origin_count, origin_type, target_rank, win))
#define SIGNATURE_GET SIGNATURE_PUT
#define ANNOUNCE_GET ANNOUNCE_PUT
#define PARAMETERS_ACCUMULATE(C, A, D) \
    const void *origin, PARAMETERS_TO_TARGET(C, A, D), mpi_handle op, mpi_handle win
#define ARGUMENTS_ACCUMULATE origin, ARGUMENTS_TO_TARGET, op, win
#define TRAFFIC_ACCUMULATE TRAFFIC_PUT
#define SIGNATURE_ACCUMULATE SIGNATURE_OF(.count = origin_count, .type = origin_type, .op = op)
#define ANNOUNCE_ACCUMULATE                                                             \
    announce_target(&call, win,                                                         \
                    announce_counted(&call, win, origin_count, origin_type, op, false), \
                    target_rank)
#define PARAMETERS_GET_ACCUMULATE(C, A, D)                                                    \
    const void *origin, C origin_count, mpi_handle origin_type, void *result, C result_count, \
        mpi_handle result_type, int target_rank, mpi_aint target_disp, C target_count,        \
        mpi_handle target_type, mpi_handle op, mpi_handle win
#define ARGUMENTS_GET_ACCUMULATE                                                       \
    origin, origin_count, origin_type, result, result_count, result_type, target_rank, \
        target_disp, target_count, target_type, op, win
#define TRAFFIC_GET_ACCUMULATE                                                 \
    traffic_between(origin, result,                                            \
                    traffic_put(&call, target_count, target_type, target_rank, \
                                win)) /* MPI_NO_OP ignores the origin */
#define SIGNATURE_GET_ACCUMULATE SIGNATURE_OF(.count = target_count, .type = target_type, .op = op)
#define ANNOUNCE_GET_ACCUMULATE                                                         \
    announce_target(&call, win,                                                         \
                    announce_counted(&call, win, target_count, target_type, op, false), \
                    target_rank)
#define PARAMETERS_FETCH_AND_OP(C, A, D)                                                      \
    const void *origin, void *result, mpi_handle type, int target_rank, mpi_aint target_disp, \
        mpi_handle op, mpi_handle win
#define ARGUMENTS_FETCH_AND_OP origin, result, type, target_rank, target_disp, op, win
#define TRAFFIC_FETCH_AND_OP \
    traffic_between(origin, result, traffic_put(&call, 1, type, target_rank, win))
#define SIGNATURE_FETCH_AND_OP SIGNATURE_OF(.count = 1, .type = type, .op = op)
#define ANNOUNCE_FETCH_AND_OP \
    announce_target(&call, win, announce_counted(&call, win, 1, type, op, false), target_rank)
#define PARAMETERS_COMPARE_AND_SWAP(C, A, D)                                                 \
    const void *origin, const void *compare, void *result, mpi_handle type, int target_rank, \
        mpi_aint target_disp, mpi_handle win
#define ARGUMENTS_COMPARE_AND_SWAP origin, compare, result, type, target_rank, target_disp, win
#define TRAFFIC_COMPARE_AND_SWAP TRAFFIC_FETCH_AND_OP
#define SIGNATURE_COMPARE_AND_SWAP SIGNATURE_OF(.count = 1, .type = type)
#define ANNOUNCE_COMPARE_AND_SWAP \
    announce_target(&call, win, announce_counted(&call, win, 1, type, 0, false), target_rank)

#define PARAMETERS_WIN(C, A, D) mpi_handle win
#define ARGUMENTS_WIN win
#define TRAFFIC_WIN traffic_window(&call, win)
#define SIGNATURE_WIN 0
#define ANNOUNCE_WIN announce_on_object(&call, communicators_key_of_window(win))
#define PARAMETERS_WIN_ASSERTED(C, A, D) int assertion, mpi_handle win
#define ARGUMENTS_WIN_ASSERTED assertion, win
#define TRAFFIC_WIN_ASSERTED TRAFFIC_WIN
#define SIGNATURE_WIN_ASSERTED 0
#define ANNOUNCE_WIN_ASSERTED ANNOUNCE_WIN
#define PARAMETERS_WIN_GROUP(C, A, D) mpi_handle group, int assertion, mpi_handle win
#define ARGUMENTS_WIN_GROUP group, assertion, win
#define PARAMETERS_WIN_LOCK(C, A, D) int lock_type, int target_rank, int assertion, mpi_handle win
#define ARGUMENTS_WIN_LOCK lock_type, target_rank, assertion, win
#define TRAFFIC_WIN_LOCK TRAFFIC_WIN
#define SIGNATURE_WIN_LOCK 0
#define ANNOUNCE_WIN_LOCK ANNOUNCE_WIN_TARGET
#define PARAMETERS_WIN_TARGET(C, A, D) int target_rank, mpi_handle win
#define ARGUMENTS_WIN_TARGET target_rank, win
#define TRAFFIC_WIN_TARGET TRAFFIC_WIN
#define SIGNATURE_WIN_TARGET 0
#define ANNOUNCE_WIN_TARGET announce_target(&call, win, LEDGER_BYTES_UNKNOWN, target_rank)
#define PARAMETERS_WIN_TEST(C, A, D) mpi_handle win, int *flag
#define ARGUMENTS_WIN_TEST win, flag
#define PARAMETERS_WIN_ATTACH(C, A, D) mpi_handle win, void *base, mpi_aint size
#define ARGUMENTS_WIN_ATTACH win, base, size
#define TRAFFIC_WIN_ATTACH TRAFFIC_WIN
#define SIGNATURE_WIN_ATTACH 0
#define ANNOUNCE_WIN_ATTACH ANNOUNCE_WIN
#define PARAMETERS_WIN_DETACH(C, A, D) mpi_handle win, const void *base
#define ARGUMENTS_WIN_DETACH win, base
#define TRAFFIC_WIN_DETACH TRAFFIC_WIN
#define SIGNATURE_WIN_DETACH 0
#define ANNOUNCE_WIN_DETACH ANNOUNCE_WIN
#define PARAMETERS_WIN_SET_INFO(C, A, D) mpi_handle win, mpi_handle info
#define ARGUMENTS_WIN_SET_INFO win, info
#define TRAFFIC_WIN_SET_INFO TRAFFIC_WIN
#define SIGNATURE_WIN_SET_INFO 0
#define ANNOUNCE_WIN_SET_INFO ANNOUNCE_WIN
#define PARAMETERS_WIN_CREATE(C, A, D) \
    void *base, mpi_aint size, C disp_unit, mpi_handle info, mpi_handle comm, void *newwin
#define ARGUMENTS_WIN_CREATE base, size, disp_unit, info, comm, newwin
#define KEY_WIN_CREATE window_key(newwin)
#define PARAMETERS_WIN_ALLOCATE(C, A, D) \
    mpi_aint size, C disp_unit, mpi_handle info, mpi_handle comm, void *base, void *newwin
#define ARGUMENTS_WIN_ALLOCATE size, disp_unit, info, comm, base, newwin
#define KEY_WIN_ALLOCATE KEY_WIN_CREATE
#define PARAMETERS_WIN_CREATE_DYNAMIC(C, A, D) mpi_handle info, mpi_handle comm, void *newwin
#define ARGUMENTS_WIN_CREATE_DYNAMIC info, comm, newwin
#define KEY_WIN_CREATE_DYNAMIC KEY_WIN_CREATE
#define PARAMETERS_WIN_FREE(C, A, D) void *win
#define ARGUMENTS_WIN_FREE win
#define KEY_WIN_FREE window_key(win)

/* MPI-IO */
#define PARAMETERS_FILE(C, A, D) mpi_handle file
#define ARGUMENTS_FILE file
#define TRAFFIC_FILE traffic_file(&call, 0, 0, file)
#define SIGNATURE_FILE 0
#define ANNOUNCE_FILE announce_on_object(&call, communicators_key_of_file(file))
#define PARAMETERS_FILE_OPEN(C, A, D) \
    mpi_handle comm, const char *filename, int amode, mpi_handle info, void *newfile
#define ARGUMENTS_FILE_OPEN comm, filename, amode, info, newfile
#define KEY_FILE_OPEN file_key(newfile)
#define PARAMETERS_FILE_CLOSE(C, A, D) void *file
#define ARGUMENTS_FILE_CLOSE file
#define KEY_FILE_CLOSE file_key(file)
#define PARAMETERS_FILE_DELETE(C, A, D) const char *filename, mpi_handle info
#define ARGUMENTS_FILE_DELETE filename, info
#define TRAFFIC_FILE_DELETE traffic_nowhere()
#define SIGNATURE_FILE_DELETE 0
#define ANNOUNCE_FILE_DELETE announce_nothing()
#define PARAMETERS_FILE_SET_VIEW(C, A, D)                                                         \
    mpi_handle file, mpi_offset disp, mpi_handle etype, mpi_handle filetype, const char *datarep, \
        mpi_handle info
#define ARGUMENTS_FILE_SET_VIEW file, disp, etype, filetype, datarep, info
#define TRAFFIC_FILE_SET_VIEW TRAFFIC_FILE
#define SIGNATURE_FILE_SET_VIEW 0
#define ANNOUNCE_FILE_SET_VIEW ANNOUNCE_FILE
#define PARAMETERS_FILE_SET_INFO(C, A, D) mpi_handle file, mpi_handle info
#define ARGUMENTS_FILE_SET_INFO file, info
#define TRAFFIC_FILE_SET_INFO TRAFFIC_FILE
#define SIGNATURE_FILE_SET_INFO 0
#define ANNOUNCE_FILE_SET_INFO ANNOUNCE_FILE
#define PARAMETERS_FILE_SIZE(C, A, D) mpi_handle file, mpi_offset size
#define ARGUMENTS_FILE_SIZE file, size
#define TRAFFIC_FILE_SIZE TRAFFIC_FILE
#define SIGNATURE_FILE_SIZE 0
#define ANNOUNCE_FILE_SIZE ANNOUNCE_FILE
#define PARAMETERS_FILE_GET_SIZE(C, A, D) mpi_handle file, mpi_offset *size
#define ARGUMENTS_FILE_GET_SIZE file, size
#define TRAFFIC_FILE_GET_SIZE TRAFFIC_FILE
#define SIGNATURE_FILE_GET_SIZE 0
#define ANNOUNCE_FILE_GET_SIZE ANNOUNCE_FILE
#define PARAMETERS_FILE_SET_ATOMICITY(C, A, D) mpi_handle file, int atomic
#define ARGUMENTS_FILE_SET_ATOMICITY file, atomic
#define TRAFFIC_FILE_SET_ATOMICITY TRAFFIC_FILE
#define SIGNATURE_FILE_SET_ATOMICITY 0
#define ANNOUNCE_FILE_SET_ATOMICITY ANNOUNCE_FILE
#define PARAMETERS_FILE_SEEK(C, A, D) mpi_handle file, mpi_offset offset, int whence
#define ARGUMENTS_FILE_SEEK file, offset, whence
#define TRAFFIC_FILE_SEEK TRAFFIC_FILE
#define SIGNATURE_FILE_SEEK 0
#define ANNOUNCE_FILE_SEEK ANNOUNCE_FILE

#define PARAMETERS_FILE_IREAD(C, A, D) mpi_handle file, void *buf, C count, mpi_handle type
#define ARGUMENTS_FILE_IREAD file, buf, count, type
#define TRAFFIC_FILE_IREAD traffic_at(buf, traffic_file(&call, count, type, file))
#define SIGNATURE_FILE_IREAD SIGNATURE_OF(.count = count, .type = type)
#define ANNOUNCE_FILE_IREAD ANNOUNCE_FILE
#define PARAMETERS_FILE_IREAD_AT(C, A, D) \
    mpi_handle file, mpi_offset offset, void *buf, C count, mpi_handle type
#define ARGUMENTS_FILE_IREAD_AT file, offset, buf, count, type
#define TRAFFIC_FILE_IREAD_AT TRAFFIC_FILE_IREAD
#define SIGNATURE_FILE_IREAD_AT SIGNATURE_FILE_IREAD
#define ANNOUNCE_FILE_IREAD_AT ANNOUNCE_FILE
#define PARAMETERS_FILE_IWRITE(C, A, D) mpi_handle file, const void *buf, C count, mpi_handle type
#define ARGUMENTS_FILE_IWRITE file, buf, count, type
#define TRAFFIC_FILE_IWRITE traffic_at(buf, traffic_written(&call, count, type, file))
#define SIGNATURE_FILE_IWRITE SIGNATURE_FILE_IREAD
#define ANNOUNCE_FILE_IWRITE ANNOUNCE_FILE
#define PARAMETERS_FILE_IWRITE_AT(C, A, D) \
    mpi_handle file, mpi_offset offset, const void *buf, C count, mpi_handle type
#define ARGUMENTS_FILE_IWRITE_AT file, offset, buf, count, type
#define TRAFFIC_FILE_IWRITE_AT TRAFFIC_FILE_IWRITE
#define SIGNATURE_FILE_IWRITE_AT SIGNATURE_FILE_IREAD
#define ANNOUNCE_FILE_IWRITE_AT ANNOUNCE_FILE
#define PARAMETERS_FILE_READ(C, A, D) PARAMETERS_FILE_IREAD(C, A, D), void *status
#define ARGUMENTS_FILE_READ ARGUMENTS_FILE_IREAD, status
#define SIGNATURE_FILE_READ SIGNATURE_FILE_IREAD
#define PARAMETERS_FILE_READ_AT(C, A, D) PARAMETERS_FILE_IREAD_AT(C, A, D), void *status
#define ARGUMENTS_FILE_READ_AT ARGUMENTS_FILE_IREAD_AT, status
#define SIGNATURE_FILE_READ_AT SIGNATURE_FILE_IREAD
#define PARAMETERS_FILE_WRITE(C, A, D) PARAMETERS_FILE_IWRITE(C, A, D), void *status
#define ARGUMENTS_FILE_WRITE ARGUMENTS_FILE_IWRITE, status
#define TRAFFIC_FILE_WRITE TRAFFIC_FILE_IWRITE
#define SIGNATURE_FILE_WRITE SIGNATURE_FILE_IREAD
#define ANNOUNCE_FILE_WRITE ANNOUNCE_FILE
#define PARAMETERS_FILE_WRITE_AT(C, A, D) PARAMETERS_FILE_IWRITE_AT(C, A, D), void *status
#define ARGUMENTS_FILE_WRITE_AT ARGUMENTS_FILE_IWRITE_AT, status
#define TRAFFIC_FILE_WRITE_AT TRAFFIC_FILE_IWRITE
#define SIGNATURE_FILE_WRITE_AT SIGNATURE_FILE_IREAD
#define ANNOUNCE_FILE_WRITE_AT ANNOUNCE_FILE
#define PARAMETERS_FILE_READ_END(C, A, D) mpi_handle file, void *buf, void *status
#define ARGUMENTS_FILE_READ_END file, buf, status
#define TRAFFIC_FILE_READ_END TRAFFIC_FILE
#define SIGNATURE_FILE_READ_END 0
#define ANNOUNCE_FILE_READ_END ANNOUNCE_FILE
#define PARAMETERS_FILE_WRITE_END(C, A, D) mpi_handle file, const void *buf, void *status
#define ARGUMENTS_FILE_WRITE_END file, buf, status
#define TRAFFIC_FILE_WRITE_END TRAFFIC_FILE
#define SIGNATURE_FILE_WRITE_END 0
#define ANNOUNCE_FILE_WRITE_END ANNOUNCE_FILE

/* Communicators */
#define PARAMETERS_DUP(C, A, D) mpi_handle comm, void *newcomm
#define ARGUMENTS_DUP comm, newcomm
#define CREATED_DUP comm, true, 0
#define ANNOUNCE_DUP announce_collective(&call, comm, 0)
#define PARAMETERS_DUP_WITH_INFO(C, A, D) mpi_handle comm, mpi_handle info, void *newcomm
#define ARGUMENTS_DUP_WITH_INFO comm, info, newcomm
#define CREATED_DUP_WITH_INFO comm, true, 0
#define ANNOUNCE_DUP_WITH_INFO announce_collective(&call, comm, 0)
#define PARAMETERS_IDUP(C, A, D) mpi_handle comm, void *newcomm, void *request
#define ARGUMENTS_IDUP comm, newcomm, request
#define PARAMETERS_IDUP_WITH_INFO(C, A, D) \
    mpi_handle comm, mpi_handle info, void *newcomm, void *request
#define ARGUMENTS_IDUP_WITH_INFO comm, info, newcomm, request
#define PARAMETERS_CREATE(C, A, D) mpi_handle comm, mpi_handle group, void *newcomm
#define ARGUMENTS_CREATE comm, group, newcomm
#define CREATED_CREATE comm, true, 0
#define ANNOUNCE_CREATE announce_collective(&call, comm, 0)
#define PARAMETERS_CREATE_GROUP(C, A, D) mpi_handle comm, mpi_handle group, int tag, void *newcomm
#define ARGUMENTS_CREATE_GROUP comm, group, tag, newcomm
#define CREATED_CREATE_GROUP comm, true, (uint32_t)tag + 1ull
#define ANNOUNCE_CREATE_GROUP announce_on(&call, comm)
#define PARAMETERS_FROM_GROUP(C, A, D) \
    mpi_handle group, const char *stringtag, mpi_handle info, mpi_handle errhandler, void *newcomm
#define ARGUMENTS_FROM_GROUP group, stringtag, info, errhandler, newcomm
#define CREATED_FROM_GROUP 0, false, communicators_tag(stringtag)
#define ANNOUNCE_FROM_GROUP announce_nothing()
#define PARAMETERS_SPLIT(C, A, D) mpi_handle comm, int color, int key, void *newcomm
#define ARGUMENTS_SPLIT comm, color, key, newcomm
#define CREATED_SPLIT comm, true, 0
#define ANNOUNCE_SPLIT announce_collective(&call, comm, 0)
#define PARAMETERS_SPLIT_TYPE(C, A, D) \
    mpi_handle comm, int split_type, int key, mpi_handle info, void *newcomm
#define ARGUMENTS_SPLIT_TYPE comm, split_type, key, info, newcomm
#define CREATED_SPLIT_TYPE comm, true, 0
#define ANNOUNCE_SPLIT_TYPE announce_collective(&call, comm, 0)
#define PARAMETERS_CART(C, A, D) \
    mpi_handle comm, int ndims, const int *dims, const int *periods, int reorder, void *newcomm
#define ARGUMENTS_CART comm, ndims, dims, periods, reorder, newcomm
#define CREATED_CART comm, true, 0
#define ANNOUNCE_CART announce_collective(&call, comm, 0)
#define PARAMETERS_CART_SUB(C, A, D) mpi_handle comm, const int *remain_dims, void *newcomm
#define ARGUMENTS_CART_SUB comm, remain_dims, newcomm
#define CREATED_CART_SUB comm, true, 0
#define ANNOUNCE_CART_SUB announce_collective(&call, comm, 0)
#define PARAMETERS_GRAPH(C, A, D) \
    mpi_handle comm, int nnodes, const int *index, const int *edges, int reorder, void *newcomm
#define ARGUMENTS_GRAPH comm, nnodes, index, edges, reorder, newcomm
#define CREATED_GRAPH comm, true, 0
#define ANNOUNCE_GRAPH announce_collective(&call, comm, 0)
#define PARAMETERS_DIST_GRAPH(C, A, D)                                                       \
    mpi_handle comm, int n, const int *sources, const int *degrees, const int *destinations, \
        const int *weights, mpi_handle info, int reorder, void *newcomm
#define ARGUMENTS_DIST_GRAPH \
    comm, n, sources, degrees, destinations, weights, info, reorder, newcomm
#define CREATED_DIST_GRAPH comm, true, 0
#define ANNOUNCE_DIST_GRAPH announce_collective(&call, comm, 0)
#define PARAMETERS_DIST_GRAPH_ADJACENT(C, A, D)                                                 \
    mpi_handle comm, int indegree, const int *sources, const int *sourceweights, int outdegree, \
        const int *destinations, const int *destweights, mpi_handle info, int reorder,          \
        void *newcomm
#define ARGUMENTS_DIST_GRAPH_ADJACENT                                                            \
    comm, indegree, sources, sourceweights, outdegree, destinations, destweights, info, reorder, \
        newcomm
#define CREATED_DIST_GRAPH_ADJACENT comm, true, 0
#define ANNOUNCE_DIST_GRAPH_ADJACENT announce_collective(&call, comm, 0)
#define PARAMETERS_INTERCOMM(C, A, D)                                                    \
    mpi_handle comm, int local_leader, mpi_handle peer_comm, int remote_leader, int tag, \
        void *newcomm
#define ARGUMENTS_INTERCOMM comm, local_leader, peer_comm, remote_leader, tag, newcomm
#define CREATED_INTERCOMM comm, true, (uint32_t)tag + 1ull
#define ANNOUNCE_INTERCOMM announce_collective(&call, comm, 0)
#define PARAMETERS_INTERCOMM_FROM_GROUPS(C, A, D)                                         \
    mpi_handle local_group, int local_leader, mpi_handle remote_group, int remote_leader, \
        const char *stringtag, mpi_handle info, mpi_handle errhandler, void *newcomm
#define ARGUMENTS_INTERCOMM_FROM_GROUPS \
    local_group, local_leader, remote_group, remote_leader, stringtag, info, errhandler, newcomm
#define CREATED_INTERCOMM_FROM_GROUPS 0, false, communicators_tag(stringtag)
#define ANNOUNCE_INTERCOMM_FROM_GROUPS announce_nothing()
#define PARAMETERS_MERGE(C, A, D) mpi_handle intercomm, int high, void *newcomm
#define ARGUMENTS_MERGE intercomm, high, newcomm
#define CREATED_MERGE intercomm, true, 0
#define ANNOUNCE_MERGE announce_collective(&call, intercomm, 0)
#define PARAMETERS_SPAWN(C, A, D)                                                               \
    const char *command, char **argv, int maxprocs, mpi_handle info, int root, mpi_handle comm, \
        void *newcomm, int *errcodes
#define ARGUMENTS_SPAWN command, argv, maxprocs, info, root, comm, newcomm, errcodes
#define CREATED_SPAWN comm, true, 0
#define ANNOUNCE_SPAWN announce_rooted(&call, comm, 0, root)
#define PARAMETERS_SPAWN_MULTIPLE(C, A, D)                                                       \
    int count, char **commands, char ***argvs, const int *maxprocs, const void *infos, int root, \
        mpi_handle comm, void *newcomm, int *errcodes
#define ARGUMENTS_SPAWN_MULTIPLE \
    count, commands, argvs, maxprocs, infos, root, comm, newcomm, errcodes
#define CREATED_SPAWN_MULTIPLE comm, true, 0
#define ANNOUNCE_SPAWN_MULTIPLE announce_rooted(&call, comm, 0, root)
#define PARAMETERS_CONNECT(C, A, D) \
    const char *port_name, mpi_handle info, int root, mpi_handle comm, void *newcomm
#define ARGUMENTS_CONNECT port_name, info, root, comm, newcomm
#define CREATED_CONNECT comm, true, 0
#define ANNOUNCE_CONNECT announce_rooted(&call, comm, 0, root)
#define PARAMETERS_JOIN(C, A, D) int fd, void *newcomm
#define ARGUMENTS_JOIN fd, newcomm
#define CREATED_JOIN 0, false, 0
#define ANNOUNCE_JOIN announce_nothing()
#define PARAMETERS_COMM(C, A, D) void *comm
#define ARGUMENTS_COMM comm
#define PARAMETERS_SET_NAME(C, A, D) mpi_handle comm, const char *name
#define ARGUMENTS_SET_NAME comm, name
#define PARAMETERS_SET_INFO(C, A, D) mpi_handle comm, mpi_handle info
#define ARGUMENTS_SET_INFO comm, info
#define TRAFFIC_SET_INFO traffic_none(&call, comm)
#define SIGNATURE_SET_INFO 0
#define ANNOUNCE_SET_INFO announce_on(&call, comm)
#define PARAMETERS_OPEN_PORT(C, A, D) mpi_handle info, char *port_name
#define ARGUMENTS_OPEN_PORT info, port_name
#define TRAFFIC_OPEN_PORT traffic_nowhere()
#define SIGNATURE_OPEN_PORT 0
#define ANNOUNCE_OPEN_PORT announce_nothing()
#define PARAMETERS_CLOSE_PORT(C, A, D) const char *port_name
#define ARGUMENTS_CLOSE_PORT port_name
#define TRAFFIC_CLOSE_PORT traffic_nowhere()
#define SIGNATURE_CLOSE_PORT 0
#define ANNOUNCE_CLOSE_PORT announce_nothing()
#define PARAMETERS_PUBLISH_NAME(C, A, D) \
    const char *service_name, mpi_handle info, const char *port_name
#define ARGUMENTS_PUBLISH_NAME service_name, info, port_name
#define TRAFFIC_PUBLISH_NAME traffic_nowhere()
#define SIGNATURE_PUBLISH_NAME 0
#define ANNOUNCE_PUBLISH_NAME announce_nothing()
#define PARAMETERS_LOOKUP_NAME(C, A, D) const char *service_name, mpi_handle info, char *port_name
#define ARGUMENTS_LOOKUP_NAME service_name, info, port_name
#define TRAFFIC_LOOKUP_NAME traffic_nowhere()
#define SIGNATURE_LOOKUP_NAME 0
#define ANNOUNCE_LOOKUP_NAME announce_nothing()

#endif
