#include "toy_mpi.h"

#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

int MPI_UNWEIGHTED[1]; /* the mark of MPICH's ABI */

/* Defines PMPI_x, and MPI_x as another name for it. */
#define TOY(NAME, PARAMETERS)                                                                 \
    __typeof__(int PARAMETERS) PMPI_##NAME, MPI_##NAME __attribute__((alias("PMPI_" #NAME))); \
    int PMPI_##NAME PARAMETERS

enum {
    FIRST_REQUEST = (int)0x98000000,
    FIRST_COMM = (int)0x84000000,
    WINDOW = (int)0xa0000000,
    GROUP = (int)0x88000000
};
int toy_next_request, toy_freed_count;
static int next_prepared, next_comm, thread_level;

/* struct { int count_lo, count_hi_and_cancelled, source, tag, error; } */
static void set_status(int *status)
{
    if (status != TOY_IGNORE)
        memcpy(status, (int[]){8, 0, 0, 0, 0}, 5 * sizeof(int));
}

/* As MPI libraries do, it gives out again the handle that was freed last. */
static int freed[1 << 20];

static int start(int *request)
{
    *request =
        toy_freed_count ? freed[--toy_freed_count] : FIRST_REQUEST + (toy_next_request++ & 0x7ffff);
    return 0;
}

static void end(int *request)
{
    if (*request != TOY_REQUEST_NULL && toy_freed_count < 1 << 20)
        freed[toy_freed_count++] = *request;
    *request = TOY_REQUEST_NULL;
}

TOY(Init_thread, (int *argc, char ***argv, int required, int *provided))
{
    return *provided = thread_level = required, 0;
}
TOY(Init, (int *argc, char ***argv))
{
    return 0;
}
TOY(Finalize, (void))
{
    return 0;
}
TOY(Query_thread, (int *provided))
{
    return *provided = thread_level, 0;
}
TOY(Get_library_version, (char *text, int *length))
{
    return *length = (int)strlen(strcpy(text, "toy")), 0;
}
TOY(Comm_size, (int comm, int *size))
{
    return *size = TOY_RANKS, 0;
}
TOY(Comm_rank, (int comm, int *rank))
{
    const char *text = getenv("TOY_RANK");
    return *rank = text ? atoi(text) : 0, 0;
}
TOY(Comm_test_inter, (int comm, int *inter))
{
    return *inter = 0, 0;
}
TOY(Comm_group, (int comm, int *group))
{
    return *group = GROUP, 0;
}
TOY(Group_size, (int group, int *size))
{
    return *size = TOY_RANKS, 0;
}
TOY(Group_rank, (int group, int *rank))
{
    return *rank = 0, 0;
}
TOY(Group_free, (int *group))
{
    return 0;
}
TOY(Group_translate_ranks, (int from, int count, const int *ranks, int to, int *result))
{
    memcpy(result, ranks, (size_t)count * sizeof *ranks);
    return 0;
}
TOY(Type_size, (int type, int *size))
{
    return *size = 1, 0;
}
TOY(Topo_test, (int comm, int *topology))
{
    return *topology = 2, 0;
}
TOY(Cartdim_get, (int comm, int *dimensions))
{
    return *dimensions = 2, 0;
}
TOY(Comm_dup, (int comm, int *copy))
{
    return *copy = FIRST_COMM + next_comm++, 0;
}
TOY(Comm_free, (int *comm))
{
    return *comm = 0x04000000, 0;
}

TOY(Barrier, (int comm))
{
    return 0;
}
TOY(Bcast, (void *data, int count, int type, int root, int comm))
{
    return 0;
}
TOY(Gatherv, (const void *in, int count, int type, void *out, const int *counts, const int *places,
              int out_type, int root, int comm))
{
    return 0;
}
TOY(Allreduce, (const void *in, void *out, int count, int type, int op, int comm))
{
    return 0;
}
TOY(Alltoall,
    (const void *in, int count, int type, void *out, int out_count, int out_type, int comm))
{
    return 0;
}
TOY(Alltoallv, (const void *in, const int *counts, const int *places, int type, void *out,
                const int *out_counts, const int *out_places, int out_type, int comm))
{
    return 0;
}
TOY(Neighbor_alltoall,
    (const void *in, int count, int type, void *out, int out_count, int out_type, int comm))
{
    return 0;
}
TOY(Iallreduce, (const void *in, void *out, int count, int type, int op, int comm, int *request))
{
    return start(request);
}

TOY(Send, (const void *data, int count, int type, int peer, int tag, int comm))
{
    return 0;
}
TOY(Recv, (void *data, int count, int type, int peer, int tag, int comm, int *status))
{
    return set_status(status), 0;
}
TOY(Isend, (const void *data, int count, int type, int peer, int tag, int comm, int *request))
{
    return start(request);
}
TOY(Irecv, (void *data, int count, int type, int peer, int tag, int comm, int *request))
{
    return start(request);
}
TOY(Send_init, (const void *data, int count, int type, int peer, int tag, int comm, int *request))
{
    return *request = FIRST_REQUEST + 0x100000 + next_prepared++,
           0; /* these stay, and the others come round again */
}
TOY(Start, (int *request))
{
    return 0;
}
TOY(Pready, (int partition, int request))
{
    return 0;
}
TOY(Iprobe, (int peer, int tag, int comm, int *flag, int *status))
{
    return *flag = 0, 0;
}

TOY(Wait, (int *request, int *status))
{
    set_status(status);
    end(request);
    return 0;
}
TOY(Waitall, (int count, int *requests, int *statuses))
{
    for (int i = 0; i < count; i++) {
        end(&requests[i]);
        if (statuses != TOY_IGNORE)
            set_status(statuses + 5 * i);
    }
    return 0;
}
TOY(Waitany, (int count, int *requests, int *index, int *status))
{
    static unsigned next;
    *index = (int)(next++ % (unsigned)count);
    end(&requests[*index]);
    set_status(status);
    return 0;
}
TOY(Test, (int *request, int *flag, int *status))
{
    return *flag = 0, 0;
}
TOY(Testsome, (int count, int *requests, int *done, int *indices, int *statuses))
{
    return *done = 0, 0;
}

TOY(Win_create, (void *base, intptr_t size, int unit, int info, int comm, int *win))
{
    return *win = WINDOW, 0;
}
TOY(Put, (const void *data, int count, int type, int peer, intptr_t at, int their_count,
          int their_type, int win))
{
    return 0;
}
TOY(Win_flush, (int peer, int win))
{
    return 0;
}
TOY(File_open, (int comm, const char *path, int mode, int info, void **file))
{
    return *file = &next_comm, 0;
}
TOY(File_write_at, (void *file, int64_t at, const void *data, int count, int type, int *status))
{
    return 0;
}
