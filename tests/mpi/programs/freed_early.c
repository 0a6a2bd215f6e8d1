/* Frees what an active request uses: its type, its communicator, the request itself. */
#include <mpi.h>

#include "check.h"

enum { ROUNDS = 100 };

static int rank, sent[64], received[64];

static void free_the_type(void)
{
    MPI_Datatype every_other;
    MPI_Request request;
    MPI_Type_vector(3, 1, 2, MPI_INT, &every_other); /* 12 bytes spread over 20 */
    MPI_Type_commit(&every_other);
    if (rank == 0)
        MPI_Isend(sent, 2, every_other, 1, 0, MPI_COMM_WORLD, &request);
    else
        MPI_Irecv(received, 4, every_other, 0, 0, MPI_COMM_WORLD, &request);
    MPI_Type_free(&every_other);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void free_the_communicator(void)
{
    MPI_Comm backwards;
    MPI_Request request;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards); /* world rank 0 is rank 1 in it */
    if (rank == 1)
        MPI_Irecv(received, 64, MPI_INT, MPI_ANY_SOURCE, 1, backwards, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Issend(sent, 10, MPI_INT, 0, 1, backwards, &request);
    MPI_Comm_free(&backwards);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void free_the_request(void)
{
    MPI_Request request;
    for (int i = 0; i < ROUNDS; i++) {
        if (rank == 0) {
            MPI_Ibsend(sent, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
            MPI_Ibsend(sent, 2, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(received, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(received, 2, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

int main(int argc, char **argv)
{
    static char attached[65536];
    void *detached;
    int detached_bytes;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Buffer_attach(attached, sizeof attached);
    free_the_type();
    free_the_communicator();
    free_the_request();
    MPI_Buffer_detach(&detached, &detached_bytes);
    MPI_Finalize();
    return 0;
}
