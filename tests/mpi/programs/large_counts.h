/* Programs written with count_t and displacement_t are built twice: unchanged, and
 * (-DLARGE_COUNTS, by the ending _large) with every call in its large-count form. Open MPI 4 has no
 * such forms: a program may check for them by a weak declaration, as mpi4py does, and then finds
 * those of the profiler. */
#ifndef LARGE_COUNTS_H
#define LARGE_COUNTS_H

#include <mpi.h>

#ifndef LARGE_COUNTS

typedef int count_t;
typedef int displacement_t;

#else

typedef MPI_Count count_t;
typedef MPI_Aint displacement_t;

#if MPI_VERSION < 4
#define WEAK __attribute__((weak))
WEAK int MPI_Send_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
WEAK int MPI_Bsend_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
WEAK int MPI_Ssend_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
WEAK int MPI_Rsend_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
WEAK int MPI_Recv_c(void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
WEAK int MPI_Mrecv_c(void *, MPI_Count, MPI_Datatype, MPI_Message *, MPI_Status *);
WEAK int MPI_Sendrecv_c(const void *, MPI_Count, MPI_Datatype, int, int, void *, MPI_Count,
                        MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
WEAK int MPI_Sendrecv_replace_c(void *, MPI_Count, MPI_Datatype, int, int, int, int, MPI_Comm,
                                MPI_Status *);
WEAK int MPI_Isend_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
WEAK int MPI_Ibsend_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
WEAK int MPI_Issend_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
WEAK int MPI_Irsend_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
WEAK int MPI_Irecv_c(void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
WEAK int MPI_Imrecv_c(void *, MPI_Count, MPI_Datatype, MPI_Message *, MPI_Request *);
WEAK int MPI_Isendrecv_c(const void *, MPI_Count, MPI_Datatype, int, int, void *, MPI_Count,
                         MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
WEAK int MPI_Isendrecv_replace_c(void *, MPI_Count, MPI_Datatype, int, int, int, int, MPI_Comm,
                                 MPI_Request *);
WEAK int MPI_Send_init_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
WEAK int MPI_Bsend_init_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
WEAK int MPI_Ssend_init_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
WEAK int MPI_Rsend_init_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
WEAK int MPI_Recv_init_c(void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
WEAK int MPI_Bcast_c(void *, MPI_Count, MPI_Datatype, int, MPI_Comm);
WEAK int MPI_Gather_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int,
                      MPI_Comm);
WEAK int MPI_Gatherv_c(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *,
                       const MPI_Aint *, MPI_Datatype, int, MPI_Comm);
WEAK int MPI_Scatter_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int,
                       MPI_Comm);
WEAK int MPI_Scatterv_c(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *,
                        MPI_Count, MPI_Datatype, int, MPI_Comm);
WEAK int MPI_Allgather_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
                         MPI_Comm);
WEAK int MPI_Allgatherv_c(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *,
                          const MPI_Aint *, MPI_Datatype, MPI_Comm);
WEAK int MPI_Alltoall_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
                        MPI_Comm);
WEAK int MPI_Alltoallv_c(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *,
                         const MPI_Count *, const MPI_Aint *, MPI_Datatype, MPI_Comm);
WEAK int MPI_Alltoallw_c(const void *, const MPI_Count *, const MPI_Aint *, const MPI_Datatype *,
                         void *, const MPI_Count *, const MPI_Aint *, const MPI_Datatype *,
                         MPI_Comm);
WEAK int MPI_Reduce_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm);
WEAK int MPI_Allreduce_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
WEAK int MPI_Reduce_scatter_c(const void *, void *, const MPI_Count *, MPI_Datatype, MPI_Op,
                              MPI_Comm);
WEAK int MPI_Reduce_scatter_block_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op,
                                    MPI_Comm);
WEAK int MPI_Scan_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
WEAK int MPI_Exscan_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
WEAK int MPI_Ibcast_c(void *, MPI_Count, MPI_Datatype, int, MPI_Comm, MPI_Request *);
WEAK int MPI_Igather_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int,
                       MPI_Comm, MPI_Request *);
WEAK int MPI_Igatherv_c(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *,
                        const MPI_Aint *, MPI_Datatype, int, MPI_Comm, MPI_Request *);
WEAK int MPI_Iscatter_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int,
                        MPI_Comm, MPI_Request *);
WEAK int MPI_Iscatterv_c(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *,
                         MPI_Count, MPI_Datatype, int, MPI_Comm, MPI_Request *);
WEAK int MPI_Iallgather_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
                          MPI_Comm, MPI_Request *);
WEAK int MPI_Iallgatherv_c(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *,
                           const MPI_Aint *, MPI_Datatype, MPI_Comm, MPI_Request *);
WEAK int MPI_Ialltoall_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
                         MPI_Comm, MPI_Request *);
WEAK int MPI_Ialltoallv_c(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *,
                          const MPI_Count *, const MPI_Aint *, MPI_Datatype, MPI_Comm,
                          MPI_Request *);
WEAK int MPI_Ialltoallw_c(const void *, const MPI_Count *, const MPI_Aint *, const MPI_Datatype *,
                          void *, const MPI_Count *, const MPI_Aint *, const MPI_Datatype *,
                          MPI_Comm, MPI_Request *);
WEAK int MPI_Ireduce_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm,
                       MPI_Request *);
WEAK int MPI_Iallreduce_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm,
                          MPI_Request *);
WEAK int MPI_Ireduce_scatter_c(const void *, void *, const MPI_Count *, MPI_Datatype, MPI_Op,
                               MPI_Comm, MPI_Request *);
WEAK int MPI_Ireduce_scatter_block_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op,
                                     MPI_Comm, MPI_Request *);
WEAK int MPI_Iscan_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm,
                     MPI_Request *);
WEAK int MPI_Iexscan_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm,
                       MPI_Request *);
WEAK int MPI_Neighbor_allgather_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count,
                                  MPI_Datatype, MPI_Comm);
WEAK int MPI_Neighbor_allgatherv_c(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *,
                                   const MPI_Aint *, MPI_Datatype, MPI_Comm);
WEAK int MPI_Neighbor_alltoall_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count,
                                 MPI_Datatype, MPI_Comm);
WEAK int MPI_Neighbor_alltoallv_c(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype,
                                  void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype,
                                  MPI_Comm);
WEAK int MPI_Neighbor_alltoallw_c(const void *, const MPI_Count *, const MPI_Aint *,
                                  const MPI_Datatype *, void *, const MPI_Count *, const MPI_Aint *,
                                  const MPI_Datatype *, MPI_Comm);
WEAK int MPI_Ineighbor_allgather_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count,
                                   MPI_Datatype, MPI_Comm, MPI_Request *);
WEAK int MPI_Ineighbor_allgatherv_c(const void *, MPI_Count, MPI_Datatype, void *,
                                    const MPI_Count *, const MPI_Aint *, MPI_Datatype, MPI_Comm,
                                    MPI_Request *);
WEAK int MPI_Ineighbor_alltoall_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count,
                                  MPI_Datatype, MPI_Comm, MPI_Request *);
WEAK int MPI_Ineighbor_alltoallv_c(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype,
                                   void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype,
                                   MPI_Comm, MPI_Request *);
WEAK int MPI_Ineighbor_alltoallw_c(const void *, const MPI_Count *, const MPI_Aint *,
                                   const MPI_Datatype *, void *, const MPI_Count *,
                                   const MPI_Aint *, const MPI_Datatype *, MPI_Comm, MPI_Request *);
WEAK int MPI_Put_c(const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype,
                   MPI_Win);
WEAK int MPI_Get_c(void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype,
                   MPI_Win);
WEAK int MPI_Accumulate_c(const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count,
                          MPI_Datatype, MPI_Op, MPI_Win);
WEAK int MPI_Get_accumulate_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count,
                              MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Op,
                              MPI_Win);
WEAK int MPI_Rput_c(const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype,
                    MPI_Win, MPI_Request *);
WEAK int MPI_Rget_c(void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype,
                    MPI_Win, MPI_Request *);
WEAK int MPI_Raccumulate_c(const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count,
                           MPI_Datatype, MPI_Op, MPI_Win, MPI_Request *);
WEAK int MPI_Rget_accumulate_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count,
                               MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Op,
                               MPI_Win, MPI_Request *);
WEAK int MPI_Win_create_c(void *, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, MPI_Win *);
WEAK int MPI_Win_allocate_c(MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void *, MPI_Win *);
WEAK int MPI_Win_allocate_shared_c(MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void *, MPI_Win *);
WEAK int MPI_Buffer_attach_c(void *, MPI_Count);
WEAK int MPI_Buffer_detach_c(void *, MPI_Count *);
WEAK int MPI_File_read_c(MPI_File, void *, MPI_Count, MPI_Datatype, MPI_Status *);
WEAK int MPI_File_read_all_c(MPI_File, void *, MPI_Count, MPI_Datatype, MPI_Status *);
WEAK int MPI_File_read_shared_c(MPI_File, void *, MPI_Count, MPI_Datatype, MPI_Status *);
WEAK int MPI_File_read_ordered_c(MPI_File, void *, MPI_Count, MPI_Datatype, MPI_Status *);
WEAK int MPI_File_read_at_c(MPI_File, MPI_Offset, void *, MPI_Count, MPI_Datatype, MPI_Status *);
WEAK int MPI_File_read_at_all_c(MPI_File, MPI_Offset, void *, MPI_Count, MPI_Datatype,
                                MPI_Status *);
WEAK int MPI_File_iread_c(MPI_File, void *, MPI_Count, MPI_Datatype, MPI_Request *);
WEAK int MPI_File_iread_all_c(MPI_File, void *, MPI_Count, MPI_Datatype, MPI_Request *);
WEAK int MPI_File_iread_shared_c(MPI_File, void *, MPI_Count, MPI_Datatype, MPI_Request *);
WEAK int MPI_File_iread_at_c(MPI_File, MPI_Offset, void *, MPI_Count, MPI_Datatype, MPI_Request *);
WEAK int MPI_File_iread_at_all_c(MPI_File, MPI_Offset, void *, MPI_Count, MPI_Datatype,
                                 MPI_Request *);
WEAK int MPI_File_read_all_begin_c(MPI_File, void *, MPI_Count, MPI_Datatype);
WEAK int MPI_File_read_ordered_begin_c(MPI_File, void *, MPI_Count, MPI_Datatype);
WEAK int MPI_File_read_at_all_begin_c(MPI_File, MPI_Offset, void *, MPI_Count, MPI_Datatype);
WEAK int MPI_File_write_c(MPI_File, const void *, MPI_Count, MPI_Datatype, MPI_Status *);
WEAK int MPI_File_write_all_c(MPI_File, const void *, MPI_Count, MPI_Datatype, MPI_Status *);
WEAK int MPI_File_write_shared_c(MPI_File, const void *, MPI_Count, MPI_Datatype, MPI_Status *);
WEAK int MPI_File_write_ordered_c(MPI_File, const void *, MPI_Count, MPI_Datatype, MPI_Status *);
WEAK int MPI_File_write_at_c(MPI_File, MPI_Offset, const void *, MPI_Count, MPI_Datatype,
                             MPI_Status *);
WEAK int MPI_File_write_at_all_c(MPI_File, MPI_Offset, const void *, MPI_Count, MPI_Datatype,
                                 MPI_Status *);
WEAK int MPI_File_iwrite_c(MPI_File, const void *, MPI_Count, MPI_Datatype, MPI_Request *);
WEAK int MPI_File_iwrite_all_c(MPI_File, const void *, MPI_Count, MPI_Datatype, MPI_Request *);
WEAK int MPI_File_iwrite_shared_c(MPI_File, const void *, MPI_Count, MPI_Datatype, MPI_Request *);
WEAK int MPI_File_iwrite_at_c(MPI_File, MPI_Offset, const void *, MPI_Count, MPI_Datatype,
                              MPI_Request *);
WEAK int MPI_File_iwrite_at_all_c(MPI_File, MPI_Offset, const void *, MPI_Count, MPI_Datatype,
                                  MPI_Request *);
WEAK int MPI_File_write_all_begin_c(MPI_File, const void *, MPI_Count, MPI_Datatype);
WEAK int MPI_File_write_ordered_begin_c(MPI_File, const void *, MPI_Count, MPI_Datatype);
WEAK int MPI_File_write_at_all_begin_c(MPI_File, MPI_Offset, const void *, MPI_Count, MPI_Datatype);
WEAK int MPI_Bcast_init_c(void *, MPI_Count, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request *);
WEAK int MPI_Gather_init_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
                           int, MPI_Comm, MPI_Info, MPI_Request *);
WEAK int MPI_Gatherv_init_c(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *,
                            const MPI_Aint *, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request *);
WEAK int MPI_Scatter_init_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
                            int, MPI_Comm, MPI_Info, MPI_Request *);
WEAK int MPI_Scatterv_init_c(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype,
                             void *, MPI_Count, MPI_Datatype, int, MPI_Comm, MPI_Info,
                             MPI_Request *);
WEAK int MPI_Allgather_init_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count,
                              MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request *);
WEAK int MPI_Allgatherv_init_c(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *,
                               const MPI_Aint *, MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request *);
WEAK int MPI_Alltoall_init_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
                             MPI_Comm, MPI_Info, MPI_Request *);
WEAK int MPI_Alltoallv_init_c(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype,
                              void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, MPI_Comm,
                              MPI_Info, MPI_Request *);
WEAK int MPI_Alltoallw_init_c(const void *, const MPI_Count *, const MPI_Aint *,
                              const MPI_Datatype *, void *, const MPI_Count *, const MPI_Aint *,
                              const MPI_Datatype *, MPI_Comm, MPI_Info, MPI_Request *);
WEAK int MPI_Reduce_init_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm,
                           MPI_Info, MPI_Request *);
WEAK int MPI_Allreduce_init_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm,
                              MPI_Info, MPI_Request *);
WEAK int MPI_Reduce_scatter_init_c(const void *, void *, const MPI_Count *, MPI_Datatype, MPI_Op,
                                   MPI_Comm, MPI_Info, MPI_Request *);
WEAK int MPI_Reduce_scatter_block_init_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op,
                                         MPI_Comm, MPI_Info, MPI_Request *);
WEAK int MPI_Scan_init_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                         MPI_Request *);
WEAK int MPI_Exscan_init_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm,
                           MPI_Info, MPI_Request *);
WEAK int MPI_Neighbor_allgather_init_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count,
                                       MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request *);
WEAK int MPI_Neighbor_allgatherv_init_c(const void *, MPI_Count, MPI_Datatype, void *,
                                        const MPI_Count *, const MPI_Aint *, MPI_Datatype, MPI_Comm,
                                        MPI_Info, MPI_Request *);
WEAK int MPI_Neighbor_alltoall_init_c(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count,
                                      MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request *);
WEAK int MPI_Neighbor_alltoallv_init_c(const void *, const MPI_Count *, const MPI_Aint *,
                                       MPI_Datatype, void *, const MPI_Count *, const MPI_Aint *,
                                       MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request *);
WEAK int MPI_Neighbor_alltoallw_init_c(const void *, const MPI_Count *, const MPI_Aint *,
                                       const MPI_Datatype *, void *, const MPI_Count *,
                                       const MPI_Aint *, const MPI_Datatype *, MPI_Comm, MPI_Info,
                                       MPI_Request *);
#undef WEAK
#endif

#define MPI_Send MPI_Send_c
#define MPI_Bsend MPI_Bsend_c
#define MPI_Ssend MPI_Ssend_c
#define MPI_Rsend MPI_Rsend_c
#define MPI_Recv MPI_Recv_c
#define MPI_Mrecv MPI_Mrecv_c
#define MPI_Sendrecv MPI_Sendrecv_c
#define MPI_Sendrecv_replace MPI_Sendrecv_replace_c
#define MPI_Isend MPI_Isend_c
#define MPI_Ibsend MPI_Ibsend_c
#define MPI_Issend MPI_Issend_c
#define MPI_Irsend MPI_Irsend_c
#define MPI_Irecv MPI_Irecv_c
#define MPI_Imrecv MPI_Imrecv_c
#define MPI_Send_init MPI_Send_init_c
#define MPI_Bsend_init MPI_Bsend_init_c
#define MPI_Ssend_init MPI_Ssend_init_c
#define MPI_Rsend_init MPI_Rsend_init_c
#define MPI_Recv_init MPI_Recv_init_c
#define MPI_Bcast MPI_Bcast_c
#define MPI_Gather MPI_Gather_c
#define MPI_Gatherv MPI_Gatherv_c
#define MPI_Scatter MPI_Scatter_c
#define MPI_Scatterv MPI_Scatterv_c
#define MPI_Allgather MPI_Allgather_c
#define MPI_Allgatherv MPI_Allgatherv_c
#define MPI_Alltoall MPI_Alltoall_c
#define MPI_Alltoallv MPI_Alltoallv_c
#define MPI_Alltoallw MPI_Alltoallw_c
#define MPI_Reduce MPI_Reduce_c
#define MPI_Allreduce MPI_Allreduce_c
#define MPI_Reduce_scatter MPI_Reduce_scatter_c
#define MPI_Reduce_scatter_block MPI_Reduce_scatter_block_c
#define MPI_Scan MPI_Scan_c
#define MPI_Exscan MPI_Exscan_c
#define MPI_Ibcast MPI_Ibcast_c
#define MPI_Igather MPI_Igather_c
#define MPI_Igatherv MPI_Igatherv_c
#define MPI_Iscatter MPI_Iscatter_c
#define MPI_Iscatterv MPI_Iscatterv_c
#define MPI_Iallgather MPI_Iallgather_c
#define MPI_Iallgatherv MPI_Iallgatherv_c
#define MPI_Ialltoall MPI_Ialltoall_c
#define MPI_Ialltoallv MPI_Ialltoallv_c
#define MPI_Ialltoallw MPI_Ialltoallw_c
#define MPI_Ireduce MPI_Ireduce_c
#define MPI_Iallreduce MPI_Iallreduce_c
#define MPI_Ireduce_scatter MPI_Ireduce_scatter_c
#define MPI_Ireduce_scatter_block MPI_Ireduce_scatter_block_c
#define MPI_Iscan MPI_Iscan_c
#define MPI_Iexscan MPI_Iexscan_c
#define MPI_Neighbor_allgather MPI_Neighbor_allgather_c
#define MPI_Neighbor_allgatherv MPI_Neighbor_allgatherv_c
#define MPI_Neighbor_alltoall MPI_Neighbor_alltoall_c
#define MPI_Neighbor_alltoallv MPI_Neighbor_alltoallv_c
#define MPI_Neighbor_alltoallw MPI_Neighbor_alltoallw_c
#define MPI_Ineighbor_allgather MPI_Ineighbor_allgather_c
#define MPI_Ineighbor_allgatherv MPI_Ineighbor_allgatherv_c
#define MPI_Ineighbor_alltoall MPI_Ineighbor_alltoall_c
#define MPI_Ineighbor_alltoallv MPI_Ineighbor_alltoallv_c
#define MPI_Ineighbor_alltoallw MPI_Ineighbor_alltoallw_c
#define MPI_Put MPI_Put_c
#define MPI_Get MPI_Get_c
#define MPI_Accumulate MPI_Accumulate_c
#define MPI_Get_accumulate MPI_Get_accumulate_c
#define MPI_Rput MPI_Rput_c
#define MPI_Rget MPI_Rget_c
#define MPI_Raccumulate MPI_Raccumulate_c
#define MPI_Rget_accumulate MPI_Rget_accumulate_c
#define MPI_Win_create MPI_Win_create_c
#define MPI_Win_allocate MPI_Win_allocate_c
#define MPI_Win_allocate_shared MPI_Win_allocate_shared_c
#define MPI_Buffer_attach MPI_Buffer_attach_c
#define MPI_Buffer_detach MPI_Buffer_detach_c
#define MPI_File_read MPI_File_read_c
#define MPI_File_read_all MPI_File_read_all_c
#define MPI_File_read_shared MPI_File_read_shared_c
#define MPI_File_read_ordered MPI_File_read_ordered_c
#define MPI_File_read_at MPI_File_read_at_c
#define MPI_File_read_at_all MPI_File_read_at_all_c
#define MPI_File_iread MPI_File_iread_c
#define MPI_File_iread_all MPI_File_iread_all_c
#define MPI_File_iread_shared MPI_File_iread_shared_c
#define MPI_File_iread_at MPI_File_iread_at_c
#define MPI_File_iread_at_all MPI_File_iread_at_all_c
#define MPI_File_read_all_begin MPI_File_read_all_begin_c
#define MPI_File_read_ordered_begin MPI_File_read_ordered_begin_c
#define MPI_File_read_at_all_begin MPI_File_read_at_all_begin_c
#define MPI_File_write MPI_File_write_c
#define MPI_File_write_all MPI_File_write_all_c
#define MPI_File_write_shared MPI_File_write_shared_c
#define MPI_File_write_ordered MPI_File_write_ordered_c
#define MPI_File_write_at MPI_File_write_at_c
#define MPI_File_write_at_all MPI_File_write_at_all_c
#define MPI_File_iwrite MPI_File_iwrite_c
#define MPI_File_iwrite_all MPI_File_iwrite_all_c
#define MPI_File_iwrite_shared MPI_File_iwrite_shared_c
#define MPI_File_iwrite_at MPI_File_iwrite_at_c
#define MPI_File_iwrite_at_all MPI_File_iwrite_at_all_c
#define MPI_File_write_all_begin MPI_File_write_all_begin_c
#define MPI_File_write_ordered_begin MPI_File_write_ordered_begin_c
#define MPI_File_write_at_all_begin MPI_File_write_at_all_begin_c
#define MPI_Bcast_init MPI_Bcast_init_c
#define MPI_Gather_init MPI_Gather_init_c
#define MPI_Gatherv_init MPI_Gatherv_init_c
#define MPI_Scatter_init MPI_Scatter_init_c
#define MPI_Scatterv_init MPI_Scatterv_init_c
#define MPI_Allgather_init MPI_Allgather_init_c
#define MPI_Allgatherv_init MPI_Allgatherv_init_c
#define MPI_Alltoall_init MPI_Alltoall_init_c
#define MPI_Alltoallv_init MPI_Alltoallv_init_c
#define MPI_Alltoallw_init MPI_Alltoallw_init_c
#define MPI_Reduce_init MPI_Reduce_init_c
#define MPI_Allreduce_init MPI_Allreduce_init_c
#define MPI_Reduce_scatter_init MPI_Reduce_scatter_init_c
#define MPI_Reduce_scatter_block_init MPI_Reduce_scatter_block_init_c
#define MPI_Scan_init MPI_Scan_init_c
#define MPI_Exscan_init MPI_Exscan_init_c
#define MPI_Neighbor_allgather_init MPI_Neighbor_allgather_init_c
#define MPI_Neighbor_allgatherv_init MPI_Neighbor_allgatherv_init_c
#define MPI_Neighbor_alltoall_init MPI_Neighbor_alltoall_init_c
#define MPI_Neighbor_alltoallv_init MPI_Neighbor_alltoallv_init_c
#define MPI_Neighbor_alltoallw_init MPI_Neighbor_alltoallw_init_c
#define MPI_Isendrecv MPI_Isendrecv_c
#define MPI_Isendrecv_replace MPI_Isendrecv_replace_c

#endif

#endif
