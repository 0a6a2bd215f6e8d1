/* An MPI of one rank, where a machine has no other: what mpi_calls.c needs, in the ABI of MPICH. */
#ifndef ONE_RANK_MPI_H
#define ONE_RANK_MPI_H

typedef int MPI_Comm, MPI_Datatype, MPI_Op;
typedef struct {
    int count_low, count_high_and_cancelled, MPI_SOURCE, MPI_TAG, MPI_ERROR;
} MPI_Status;

#define MPI_COMM_WORLD 0x44000000
#define MPI_COMM_SELF 0x44000001
#define MPI_BYTE 0x4c00010d
#define MPI_BOR 0x58000008
#define MPI_STATUS_IGNORE ((MPI_Status *)1)

enum { MPI_SUCCESS = 0, MPI_THREAD_MULTIPLE = 3 };

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int MPI_Finalize(void);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_size(MPI_Comm comm, int *size);
int MPI_Barrier(MPI_Comm comm);
int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm);
int MPI_Sendrecv(const void *from, int sent, MPI_Datatype sent_type, int to_rank, int sent_tag,
                 void *to, int received, MPI_Datatype received_type, int from_rank,
                 int received_tag, MPI_Comm comm, MPI_Status *status);
int MPI_Pcontrol(const int level, ...);
int MPI_Abort(MPI_Comm comm, int code);

#endif
