/* An MPI library that does nothing, in MPICH's ABI: what a call takes under the profiler is then
 * what the profiler takes, and there can be a thousand ranks, communicators, threads or requests on
 * one machine. Requests are done when a Wait says so, never before. */
#ifndef TOY_MPI_H
#define TOY_MPI_H

#include <stdint.h>

enum {
    TOY_RANKS = 1024,
    TOY_BYTE = 0x4c00010d,
    TOY_LONG_LONG = 0x4c000809,
    TOY_SUM = 0x58000003,
    TOY_BAND = 0x58000006,
    TOY_INFO_NULL = 0x1c000000,
    TOY_REQUEST_NULL = 0x2c000000
};
#define TOY_WORLD 0x44000000
#define TOY_IGNORE ((int *)1)

/* How many requests were given out for the first time, and are free: to take back direct calls,
 * whose requests nobody completes. */
extern int toy_next_request, toy_freed_count;

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int MPI_Finalize(void);
int MPI_Comm_dup(int comm, int *copy);
int MPI_Comm_free(int *comm);
int MPI_Barrier(int comm);
int MPI_Bcast(void *data, int count, int type, int root, int comm);
int MPI_Gatherv(const void *in, int count, int type, void *out, const int *counts,
                const int *places, int out_type, int root, int comm);
int MPI_Allreduce(const void *in, void *out, int count, int type, int op, int comm);
int MPI_Alltoall(const void *in, int count, int type, void *out, int out_count, int out_type,
                 int comm);
int MPI_Alltoallv(const void *in, const int *counts, const int *places, int type, void *out,
                  const int *out_counts, const int *out_places, int out_type, int comm);
int MPI_Neighbor_alltoall(const void *in, int count, int type, void *out, int out_count,
                          int out_type, int comm);
int MPI_Iallreduce(const void *in, void *out, int count, int type, int op, int comm, int *request);
int MPI_Send(const void *data, int count, int type, int peer, int tag, int comm);
int MPI_Recv(void *data, int count, int type, int peer, int tag, int comm, int *status);
int MPI_Isend(const void *data, int count, int type, int peer, int tag, int comm, int *request);
int MPI_Irecv(void *data, int count, int type, int peer, int tag, int comm, int *request);
int MPI_Send_init(const void *data, int count, int type, int peer, int tag, int comm, int *request);
int MPI_Start(int *request);
int MPI_Pready(int partition, int request);
int MPI_Iprobe(int peer, int tag, int comm, int *flag, int *status);
int MPI_Wait(int *request, int *status);
int MPI_Waitall(int count, int *requests, int *statuses);
int MPI_Waitany(int count, int *requests, int *index, int *status);
int MPI_Test(int *request, int *flag, int *status);
int MPI_Testsome(int count, int *requests, int *done, int *indices, int *statuses);
int MPI_Win_create(void *base, intptr_t size, int unit, int info, int comm, int *win);
int MPI_Put(const void *data, int count, int type, int peer, intptr_t at, int their_count,
            int their_type, int win);
int MPI_Win_flush(int peer, int win);
int MPI_File_open(int comm, const char *path, int mode, int info, void **file);
int MPI_File_write_at(void *file, int64_t at, const void *data, int count, int type, int *status);

#endif
