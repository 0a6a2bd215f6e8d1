/* The shapes of MPI functions: for each its parameters, its arguments, and how its traffic is counted.
 *
 *   PARAMETERS_x(C, A, D)   the parameter list; C is the type of a count, A of an element of an array of counts, D of an
 *                           element of an array of displacements: (int, int, int), or (mpi_count, mpi_count, mpi_aint)
 *                           in the large-count form. A wrapper's body serves both with (mpi_count, void, void): a
 *                           register or stack slot passes an int and a 64-bit image of it alike (mpi_handle relies on the
 *                           same rule of the calling conventions), and `wide` says what the arrays hold.
 *   ARGUMENTS_x             the same names, to pass on
 *   TRAFFIC_x               the traffic of a call, in terms of those names and of `call` and `wide`
 *   MADE_x                  of a constructor: handle, parent, whether there is a parent, tag (communicators_made) */
#ifndef COMMPROF_SHAPES_H
#define COMMPROF_SHAPES_H

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
#define PARAMETERS_MESSAGE(C, A, D) const void *buf, C count, mpi_handle type, int dest, int tag, mpi_handle comm
#define ARGUMENTS_MESSAGE buf, count, type, dest, tag, comm
#define TRAFFIC_MESSAGE traffic_message(&call, count, type, dest, comm)

#define PARAMETERS_RECEIVE(C, A, D) void *buf, C count, mpi_handle type, int source, int tag, mpi_handle comm
#define ARGUMENTS_RECEIVE buf, count, type, source, tag, comm
#define TRAFFIC_RECEIVE traffic_receive(&call, count, type, comm)

#define PARAMETERS_RECV(C, A, D) void *buf, C count, mpi_handle type, int source, int tag, mpi_handle comm, void *status
#define ARGUMENTS_RECV buf, count, type, source, tag, comm, status
#define PARAMETERS_MRECV(C, A, D) void *buf, C count, mpi_handle type, void *message, void *status
#define ARGUMENTS_MRECV buf, count, type, message, status
#define PARAMETERS_IMRECV(C, A, D) void *buf, C count, mpi_handle type, void *message, void *request
#define ARGUMENTS_IMRECV buf, count, type, message, request

#define PARAMETERS_EXCHANGE(C, A, D)                                                                                               \
    const void *sendbuf, C sendcount, mpi_handle sendtype, int dest, int sendtag, void *recvbuf, C recvcount, mpi_handle recvtype, \
        int source, int recvtag, mpi_handle comm
#define ARGUMENTS_EXCHANGE sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm
#define TRAFFIC_EXCHANGE traffic_message(&call, sendcount, sendtype, dest, comm)
#define PARAMETERS_EXCHANGE_REPLACE(C, A, D) \
    void *buf, C count, mpi_handle type, int dest, int sendtag, int source, int recvtag, mpi_handle comm
#define ARGUMENTS_EXCHANGE_REPLACE buf, count, type, dest, sendtag, source, recvtag, comm
#define TRAFFIC_EXCHANGE_REPLACE traffic_message(&call, count, type, dest, comm)
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
#define PARAMETERS_IMPROBE(C, A, D) int source, int tag, mpi_handle comm, int *flag, void *message, void *status
#define ARGUMENTS_IMPROBE source, tag, comm, flag, message, status

/* Completion */
#define PARAMETERS_WAIT(C, A, D) void *request, void *status
#define ARGUMENTS_WAIT request, status
#define PARAMETERS_WAITALL(C, A, D) int count, void *requests, void *statuses
#define ARGUMENTS_WAITALL count, requests, statuses
#define PARAMETERS_WAITANY(C, A, D) int count, void *requests, int *index, void *status
#define ARGUMENTS_WAITANY count, requests, index, status
#define PARAMETERS_SOME(C, A, D) int count, void *requests, int *outcount, int *indices, void *statuses
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

#define PARAMETERS_BCAST(C, A, D) void *buffer, C count, mpi_handle type, int root, mpi_handle comm
#define ARGUMENTS_BCAST buffer, count, type, root, comm
#define TRAFFIC_BCAST traffic_bcast(&call, count, type, root, comm)

#define PARAMETERS_GATHER(C, A, D) \
    const void *sendbuf, C sendcount, mpi_handle sendtype, void *recvbuf, C recvcount, mpi_handle recvtype, int root, mpi_handle comm
#define ARGUMENTS_GATHER sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm
#define TRAFFIC_GATHER traffic_gather(&call, sendbuf, sendcount, sendtype, recvcount, recvtype, root, comm)

#define PARAMETERS_SCATTER(C, A, D) PARAMETERS_GATHER(C, A, D)
#define ARGUMENTS_SCATTER ARGUMENTS_GATHER
#define TRAFFIC_SCATTER traffic_scatter(&call, sendcount, sendtype, recvcount, recvtype, root, comm)

#define PARAMETERS_GATHERV(C, A, D)                                                                                                  \
    const void *sendbuf, C sendcount, mpi_handle sendtype, void *recvbuf, const A *recvcounts, const D *displs, mpi_handle recvtype, \
        int root, mpi_handle comm
#define ARGUMENTS_GATHERV sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm
#define TRAFFIC_GATHERV traffic_gatherv(&call, sendbuf, sendcount, sendtype, COUNTS(recvcounts), recvtype, root, comm)

#define PARAMETERS_SCATTERV(C, A, D)                                                                                                 \
    const void *sendbuf, const A *sendcounts, const D *displs, mpi_handle sendtype, void *recvbuf, C recvcount, mpi_handle recvtype, \
        int root, mpi_handle comm
#define ARGUMENTS_SCATTERV sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm
#define TRAFFIC_SCATTERV traffic_scatterv(&call, COUNTS(sendcounts), sendtype, recvcount, recvtype, root, comm)

#define PARAMETERS_ALLGATHER(C, A, D) \
    const void *sendbuf, C sendcount, mpi_handle sendtype, void *recvbuf, C recvcount, mpi_handle recvtype, mpi_handle comm
#define ARGUMENTS_ALLGATHER sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm
#define TRAFFIC_ALLGATHER traffic_allgather(&call, sendbuf, sendcount, sendtype, recvcount, recvtype, comm)

#define PARAMETERS_ALLTOALL(C, A, D) PARAMETERS_ALLGATHER(C, A, D)
#define ARGUMENTS_ALLTOALL ARGUMENTS_ALLGATHER
#define TRAFFIC_ALLTOALL traffic_alltoall(&call, sendbuf, sendcount, sendtype, recvcount, recvtype, comm)

#define PARAMETERS_ALLGATHERV(C, A, D)                                                                                               \
    const void *sendbuf, C sendcount, mpi_handle sendtype, void *recvbuf, const A *recvcounts, const D *displs, mpi_handle recvtype, \
        mpi_handle comm
#define ARGUMENTS_ALLGATHERV sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm
#define TRAFFIC_ALLGATHERV traffic_allgatherv(&call, sendbuf, sendcount, sendtype, COUNTS(recvcounts), recvtype, comm)

#define PARAMETERS_ALLTOALLV(C, A, D)                                                                                                      \
    const void *sendbuf, const A *sendcounts, const D *sdispls, mpi_handle sendtype, void *recvbuf, const A *recvcounts, const D *rdispls, \
        mpi_handle recvtype, mpi_handle comm
#define ARGUMENTS_ALLTOALLV sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm
#define TRAFFIC_ALLTOALLV traffic_alltoallv(&call, sendbuf, COUNTS(sendcounts), sendtype, COUNTS(recvcounts), recvtype, comm)

#define PARAMETERS_ALLTOALLW(C, A, D)                                                                                      \
    const void *sendbuf, const A *sendcounts, const D *sdispls, const void *sendtypes, void *recvbuf, const A *recvcounts, \
        const D *rdispls, const void *recvtypes, mpi_handle comm
#define ARGUMENTS_ALLTOALLW sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm
#define TRAFFIC_ALLTOALLW traffic_alltoallw(&call, sendbuf, COUNTS(sendcounts), sendtypes, COUNTS(recvcounts), recvtypes, comm)

#define PARAMETERS_REDUCE(C, A, D) const void *sendbuf, void *recvbuf, C count, mpi_handle type, mpi_handle op, int root, mpi_handle comm
#define ARGUMENTS_REDUCE sendbuf, recvbuf, count, type, op, root, comm
#define TRAFFIC_REDUCE traffic_reduce(&call, count, type, root, comm)

#define PARAMETERS_ALLREDUCE(C, A, D) const void *sendbuf, void *recvbuf, C count, mpi_handle type, mpi_handle op, mpi_handle comm
#define ARGUMENTS_ALLREDUCE sendbuf, recvbuf, count, type, op, comm
#define TRAFFIC_ALLREDUCE traffic_allreduce(&call, count, type, comm)

#define PARAMETERS_REDUCE_SCATTER_BLOCK(C, A, D) PARAMETERS_ALLREDUCE(C, A, D)
#define ARGUMENTS_REDUCE_SCATTER_BLOCK ARGUMENTS_ALLREDUCE
#define TRAFFIC_REDUCE_SCATTER_BLOCK traffic_reduce_scatter_block(&call, count, type, comm)

#define PARAMETERS_REDUCE_SCATTER(C, A, D) \
    const void *sendbuf, void *recvbuf, const A *recvcounts, mpi_handle type, mpi_handle op, mpi_handle comm
#define ARGUMENTS_REDUCE_SCATTER sendbuf, recvbuf, recvcounts, type, op, comm
#define TRAFFIC_REDUCE_SCATTER traffic_reduce_scatter(&call, COUNTS(recvcounts), type, comm)

/* Communicators */
#define PARAMETERS_DUP(C, A, D) mpi_handle comm, void *newcomm
#define ARGUMENTS_DUP comm, newcomm
#define MADE_DUP comm, true, 0
#define PARAMETERS_DUP_WITH_INFO(C, A, D) mpi_handle comm, mpi_handle info, void *newcomm
#define ARGUMENTS_DUP_WITH_INFO comm, info, newcomm
#define MADE_DUP_WITH_INFO comm, true, 0
#define PARAMETERS_IDUP(C, A, D) mpi_handle comm, void *newcomm, void *request
#define ARGUMENTS_IDUP comm, newcomm, request
#define PARAMETERS_IDUP_WITH_INFO(C, A, D) mpi_handle comm, mpi_handle info, void *newcomm, void *request
#define ARGUMENTS_IDUP_WITH_INFO comm, info, newcomm, request
#define PARAMETERS_CREATE(C, A, D) mpi_handle comm, mpi_handle group, void *newcomm
#define ARGUMENTS_CREATE comm, group, newcomm
#define MADE_CREATE comm, true, 0
#define PARAMETERS_CREATE_GROUP(C, A, D) mpi_handle comm, mpi_handle group, int tag, void *newcomm
#define ARGUMENTS_CREATE_GROUP comm, group, tag, newcomm
#define MADE_CREATE_GROUP comm, true, (uint32_t)tag + 1ull
#define PARAMETERS_FROM_GROUP(C, A, D) mpi_handle group, const char *stringtag, mpi_handle info, mpi_handle errhandler, void *newcomm
#define ARGUMENTS_FROM_GROUP group, stringtag, info, errhandler, newcomm
#define MADE_FROM_GROUP 0, false, communicators_tag(stringtag)
#define PARAMETERS_SPLIT(C, A, D) mpi_handle comm, int color, int key, void *newcomm
#define ARGUMENTS_SPLIT comm, color, key, newcomm
#define MADE_SPLIT comm, true, 0
#define PARAMETERS_SPLIT_TYPE(C, A, D) mpi_handle comm, int split_type, int key, mpi_handle info, void *newcomm
#define ARGUMENTS_SPLIT_TYPE comm, split_type, key, info, newcomm
#define MADE_SPLIT_TYPE comm, true, 0
#define PARAMETERS_CART(C, A, D) mpi_handle comm, int ndims, const int *dims, const int *periods, int reorder, void *newcomm
#define ARGUMENTS_CART comm, ndims, dims, periods, reorder, newcomm
#define MADE_CART comm, true, 0
#define PARAMETERS_CART_SUB(C, A, D) mpi_handle comm, const int *remain_dims, void *newcomm
#define ARGUMENTS_CART_SUB comm, remain_dims, newcomm
#define MADE_CART_SUB comm, true, 0
#define PARAMETERS_GRAPH(C, A, D) mpi_handle comm, int nnodes, const int *index, const int *edges, int reorder, void *newcomm
#define ARGUMENTS_GRAPH comm, nnodes, index, edges, reorder, newcomm
#define MADE_GRAPH comm, true, 0
#define PARAMETERS_DIST_GRAPH(C, A, D)                                                                                            \
    mpi_handle comm, int n, const int *sources, const int *degrees, const int *destinations, const int *weights, mpi_handle info, \
        int reorder, void *newcomm
#define ARGUMENTS_DIST_GRAPH comm, n, sources, degrees, destinations, weights, info, reorder, newcomm
#define MADE_DIST_GRAPH comm, true, 0
#define PARAMETERS_DIST_GRAPH_ADJACENT(C, A, D)                                                                          \
    mpi_handle comm, int indegree, const int *sources, const int *sourceweights, int outdegree, const int *destinations, \
        const int *destweights, mpi_handle info, int reorder, void *newcomm
#define ARGUMENTS_DIST_GRAPH_ADJACENT comm, indegree, sources, sourceweights, outdegree, destinations, destweights, info, reorder, newcomm
#define MADE_DIST_GRAPH_ADJACENT comm, true, 0
#define PARAMETERS_INTERCOMM(C, A, D) mpi_handle comm, int local_leader, mpi_handle peer_comm, int remote_leader, int tag, void *newcomm
#define ARGUMENTS_INTERCOMM comm, local_leader, peer_comm, remote_leader, tag, newcomm
#define MADE_INTERCOMM comm, true, (uint32_t)tag + 1ull
#define PARAMETERS_INTERCOMM_FROM_GROUPS(C, A, D)                                                                                 \
    mpi_handle local_group, int local_leader, mpi_handle remote_group, int remote_leader, const char *stringtag, mpi_handle info, \
        mpi_handle errhandler, void *newcomm
#define ARGUMENTS_INTERCOMM_FROM_GROUPS local_group, local_leader, remote_group, remote_leader, stringtag, info, errhandler, newcomm
#define MADE_INTERCOMM_FROM_GROUPS 0, false, communicators_tag(stringtag)
#define PARAMETERS_MERGE(C, A, D) mpi_handle intercomm, int high, void *newcomm
#define ARGUMENTS_MERGE intercomm, high, newcomm
#define MADE_MERGE intercomm, true, 0
#define PARAMETERS_SPAWN(C, A, D) \
    const char *command, char **argv, int maxprocs, mpi_handle info, int root, mpi_handle comm, void *newcomm, int *errcodes
#define ARGUMENTS_SPAWN command, argv, maxprocs, info, root, comm, newcomm, errcodes
#define MADE_SPAWN comm, true, 0
#define PARAMETERS_SPAWN_MULTIPLE(C, A, D)                                                                                       \
    int count, char **commands, char ***argvs, const int *maxprocs, const void *infos, int root, mpi_handle comm, void *newcomm, \
        int *errcodes
#define ARGUMENTS_SPAWN_MULTIPLE count, commands, argvs, maxprocs, infos, root, comm, newcomm, errcodes
#define MADE_SPAWN_MULTIPLE comm, true, 0
#define PARAMETERS_CONNECT(C, A, D) const char *port_name, mpi_handle info, int root, mpi_handle comm, void *newcomm
#define ARGUMENTS_CONNECT port_name, info, root, comm, newcomm
#define MADE_CONNECT comm, true, 0
#define PARAMETERS_JOIN(C, A, D) int fd, void *newcomm
#define ARGUMENTS_JOIN fd, newcomm
#define MADE_JOIN 0, false, 0
#define PARAMETERS_COMM(C, A, D) void *comm
#define ARGUMENTS_COMM comm
#define PARAMETERS_SET_NAME(C, A, D) mpi_handle comm, const char *name
#define ARGUMENTS_SET_NAME comm, name

#endif
