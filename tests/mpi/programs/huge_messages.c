/* Messages above 2 GiB that move no data: collectives of one process, in place, and requests that
 * are never matched or are matched by a short message. test_sizes.py has the expected counts. */
#include <sys/mman.h>

#include <mpi.h>

#include "check.h"

static const size_t ROOM = (size_t)4 << 30;

int main(int argc, char **argv)
{
    int three = 3, nowhere = 0, number = 1;
    MPI_Datatype gibibyte;
    MPI_Request request, never_started;
    MPI_Init(&argc, &argv);
    char *memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    MPI_Type_contiguous(1 << 30, MPI_BYTE, &gibibyte);
    MPI_Type_commit(&gibibyte);

    MPI_Bcast(memory, 3, gibibyte, 0, MPI_COMM_SELF);
    MPI_Allreduce(MPI_IN_PLACE, memory, 300000000, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, memory, 3, gibibyte, 0, MPI_COMM_SELF);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, memory, &three, &nowhere, gibibyte,
                   MPI_COMM_SELF);
    MPI_Send_init(memory, 3, gibibyte, 0, 1, MPI_COMM_SELF, &never_started);
    MPI_Request_free(&never_started);

    MPI_Irecv(memory, 3, gibibyte, 0, 2, MPI_COMM_SELF, &request);
    MPI_Send(&number, 1, MPI_INT, 0, 2, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);

    MPI_Type_free(&gibibyte);
    MPI_Finalize();
    return 0;
}
