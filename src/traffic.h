/* How many bytes a call moves. One function per way of counting, with the arguments that MPI's own text calls significant;
 * calls.def says which call uses which. All answer zero for calls that are not counted or have failed.
 *
 *   bytes          the message size as the OSU micro-benchmarks define it: count x type size for point-to-point, Bcast, Reduce,
 *                  Allreduce, Scan; one process's block for Gather, Scatter, Allgather, Alltoall; the whole send buffer for
 *                  Reduce_scatter; for v- and w-variants what this rank sends (Scatterv off the root: what it receives)
 *   volume_bytes   what this rank hands to the call in total */
#ifndef COMMPROF_TRAFFIC_H
#define COMMPROF_TRAFFIC_H

#include "call.h"

/* An array of counts, of int or of MPI_Count. */
struct counts {
    const void *at;
    bool wide;
};

struct traffic traffic_none(const struct call *call, mpi_handle comm);
struct traffic traffic_message(const struct call *call, mpi_count count, mpi_handle type, int dest, mpi_handle comm);
struct traffic traffic_receive(const struct call *call, mpi_count count, mpi_handle type, mpi_handle comm);
struct traffic traffic_arrival(const struct call *call, struct mpi_arrival arrival, mpi_handle comm);

struct traffic traffic_bcast(const struct call *call, mpi_count count, mpi_handle type, int root, mpi_handle comm);
struct traffic traffic_reduce(const struct call *call, mpi_count count, mpi_handle type, int root, mpi_handle comm);
struct traffic traffic_allreduce(const struct call *call, mpi_count count, mpi_handle type, mpi_handle comm);
struct traffic traffic_reduce_scatter_block(const struct call *call, mpi_count count, mpi_handle type, mpi_handle comm);
struct traffic traffic_reduce_scatter(const struct call *call, struct counts counts, mpi_handle type, mpi_handle comm);

struct traffic traffic_gather(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype, mpi_count recvcount,
                              mpi_handle recvtype, int root, mpi_handle comm);
struct traffic traffic_scatter(const struct call *call, mpi_count sendcount, mpi_handle sendtype, mpi_count recvcount,
                               mpi_handle recvtype, int root, mpi_handle comm);
struct traffic traffic_allgather(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                                 mpi_count recvcount, mpi_handle recvtype, mpi_handle comm);
struct traffic traffic_alltoall(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype, mpi_count recvcount,
                                mpi_handle recvtype, mpi_handle comm);

struct traffic traffic_gatherv(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                               struct counts recvcounts, mpi_handle recvtype, int root, mpi_handle comm);
struct traffic traffic_scatterv(const struct call *call, struct counts sendcounts, mpi_handle sendtype, mpi_count recvcount,
                                mpi_handle recvtype, int root, mpi_handle comm);
struct traffic traffic_allgatherv(const struct call *call, const void *sendbuf, mpi_count sendcount, mpi_handle sendtype,
                                  struct counts recvcounts, mpi_handle recvtype, mpi_handle comm);
struct traffic traffic_alltoallv(const struct call *call, const void *sendbuf, struct counts sendcounts, mpi_handle sendtype,
                                 struct counts recvcounts, mpi_handle recvtype, mpi_handle comm);
struct traffic traffic_alltoallw(const struct call *call, const void *sendbuf, struct counts sendcounts, const void *sendtypes,
                                 struct counts recvcounts, const void *recvtypes, mpi_handle comm);

/* count elements of a type, in bytes. The type must be a valid one. */
uint64_t traffic_bytes(mpi_count count, mpi_handle type);

#endif
