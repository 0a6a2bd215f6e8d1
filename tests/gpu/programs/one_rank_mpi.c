/* An MPI of one rank. It touches no buffer: any pointer will do, of a GPU's memory too. */
#include "mpi.h"

#include <stdio.h>
#include <stdlib.h>

int *MPI_UNWEIGHTED; /* by this the ABI is known */

#define BOTH(NAME, PARAMETERS)                                             \
    int MPI_##NAME PARAMETERS __attribute__((weak, alias("PMPI_" #NAME))); \
    int PMPI_##NAME PARAMETERS;                                            \
    int PMPI_##NAME PARAMETERS

static int put(int *where, int value)
{
    *where = value;
    return MPI_SUCCESS;
}

BOTH(Init, (int *argc, char ***argv))
{
    return (void)argc, (void)argv, MPI_SUCCESS;
}

BOTH(Init_thread, (int *argc, char ***argv, int required, int *provided))
{
    (void)argc, (void)argv;
    return put(provided, required);
}

BOTH(Query_thread, (int *provided))
{
    return put(provided, MPI_THREAD_MULTIPLE);
}

BOTH(Finalize, (void))
{
    return MPI_SUCCESS;
}

BOTH(Comm_rank, (MPI_Comm comm, int *rank))
{
    return (void)comm, put(rank, 0);
}

BOTH(Comm_size, (MPI_Comm comm, int *size))
{
    return (void)comm, put(size, 1);
}

BOTH(Comm_test_inter, (MPI_Comm comm, int *inter))
{
    return (void)comm, put(inter, 0);
}

BOTH(Comm_group, (MPI_Comm comm, int *group))
{
    return (void)comm, put(group, 1);
}

BOTH(Group_size, (int group, int *size))
{
    return (void)group, put(size, 1);
}

BOTH(Group_rank, (int group, int *rank))
{
    return (void)group, put(rank, 0);
}

BOTH(Group_free, (int *group))
{
    return put(group, 0);
}

BOTH(Type_size, (MPI_Datatype type, int *size))
{
    return put(size, type >> 8 & 0xff);
}

BOTH(Group_translate_ranks, (int group, int count, const int *ranks, int other, int *theirs))
{
    (void)group, (void)other;
    for (int i = 0; i < count; i++)
        theirs[i] = ranks[i];
    return MPI_SUCCESS;
}

BOTH(Get_library_version, (char *version, int *length))
{
    return put(length, sprintf(version, "one rank (tests/gpu)"));
}

BOTH(Barrier, (MPI_Comm comm))
{
    return (void)comm, MPI_SUCCESS;
}

BOTH(Pcontrol, (const int level, ...))
{
    return (void)level, MPI_SUCCESS;
}

BOTH(Bcast, (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm))
{
    return (void)buffer, (void)count, (void)type, (void)root, (void)comm, MPI_SUCCESS;
}

BOTH(Allreduce,
     (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm))
{
    return (void)from, (void)to, (void)count, (void)type, (void)op, (void)comm, MPI_SUCCESS;
}

BOTH(Sendrecv, (const void *from, int sent, MPI_Datatype sent_type, int to_rank, int sent_tag,
                void *to, int received, MPI_Datatype received_type, int from_rank, int received_tag,
                MPI_Comm comm, MPI_Status *status))
{
    (void)from, (void)sent, (void)sent_type, (void)to_rank, (void)sent_tag, (void)to,
        (void)received_type, (void)comm;
    if (status != MPI_STATUS_IGNORE)
        *status =
            (MPI_Status){.count_low = received, .MPI_SOURCE = from_rank, .MPI_TAG = received_tag};
    return MPI_SUCCESS;
}

BOTH(Abort, (MPI_Comm comm, int code))
{
    (void)comm;
    _Exit(code);
}
