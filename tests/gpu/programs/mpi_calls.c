/* MPI for Python programs that have no mpi4py: a library that makes the calls for them, compiled
 * with any MPI. */
#include <mpi.h>

int calls_begin(void);
int calls_begin(void)
{
    int provided;
    return MPI_Init_thread(0, 0, MPI_THREAD_MULTIPLE, &provided);
}

int calls_end(void);
int calls_end(void)
{
    return MPI_Finalize();
}

int calls_rank(void);
int calls_rank(void)
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int calls_size(void);
int calls_size(void)
{
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

int calls_barrier(void);
int calls_barrier(void)
{
    return MPI_Barrier(MPI_COMM_WORLD);
}

int calls_allreduce(const void *from, void *to, int bytes);
int calls_allreduce(const void *from, void *to, int bytes)
{
    return MPI_Allreduce(from, to, bytes, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
}

int calls_send_to_self(const void *from, void *to, int bytes);
int calls_send_to_self(const void *from, void *to, int bytes)
{
    return MPI_Sendrecv(from, bytes, MPI_BYTE, 0, 1, to, bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF,
                        MPI_STATUS_IGNORE);
}

int calls_pcontrol(int level);
int calls_pcontrol(int level)
{
    return MPI_Pcontrol(level);
}

int calls_abort(int code);
int calls_abort(int code)
{
    return MPI_Abort(MPI_COMM_WORLD, code);
}
