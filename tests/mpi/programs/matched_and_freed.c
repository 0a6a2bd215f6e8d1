/* Between a matching probe and its receive the communicator may be freed. MPI_MESSAGE_NO_PROC need
 * not be received at all. */
#include <mpi.h>

#include "check.h"

enum { ROUNDS = 100 };

static int rank, sent[10], received[10];

static void match_nobody(void)
{
    MPI_Message message;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Comm another;
        int found;
        MPI_Comm_dup(MPI_COMM_WORLD, &another);
        MPI_Improbe(MPI_PROC_NULL, 0, another, &found, &message, MPI_STATUS_IGNORE);
        CHECK(found && message == MPI_MESSAGE_NO_PROC);
        MPI_Comm_free(&another);
    }
    MPI_Status status;
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(received, 10, MPI_INT, &message, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
}

static void free_the_communicator_of(int tag)
{
    MPI_Comm backwards;
    MPI_Message message;
    MPI_Request request;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards); /* world rank 0 is rank 1 in it */
    MPI_Comm_set_name(backwards, tag == 1 ? "of Mrecv" : "of Imrecv");
    if (rank == 0)
        MPI_Isend(sent, 10, MPI_INT, 0, tag, backwards, &request);
    else
        MPI_Mprobe(1, tag, backwards, &message, MPI_STATUS_IGNORE);
    MPI_Comm_free(&backwards);
    if (rank == 0) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (tag == 1) {
        MPI_Mrecv(received, 10, MPI_INT, &message, MPI_STATUS_IGNORE);
    } else {
        MPI_Imrecv(received, 10, MPI_INT, &message, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    match_nobody();
    free_the_communicator_of(1);
    free_the_communicator_of(2);
    MPI_Finalize();
    return 0;
}
