/* Thousands of requests in flight at once, of two sizes, many of them with the same handle (small
 * sends and sends to MPI_PROC_NULL are complete before they return), completed by Waitall, Waitany
 * and Wait, from the last to the first. */
#include <mpi.h>

#include "check.h"

enum { MESSAGES = 4000, TO_NOBODY = 1000, ROOM = 8 };

static int sent[ROOM], received[MESSAGES][ROOM];
static MPI_Request requests[MESSAGES], to_nobody[TO_NOBODY];

int main(int argc, char **argv)
{
    int rank, index;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < MESSAGES; i++) {
        if (rank == 0)
            MPI_Isend(sent, i % 2 == 0 ? 2 : 4, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Irecv(received[i], ROOM, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < TO_NOBODY; i++)
        MPI_Isend(sent, 4, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &to_nobody[i]);

    for (int i = 0; i < 100; i++)
        MPI_Waitany(MESSAGES, requests, &index, MPI_STATUS_IGNORE);
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    for (int i = TO_NOBODY - 1; i >= 0; i--)
        MPI_Wait(&to_nobody[i], MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
