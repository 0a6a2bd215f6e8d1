/* Single calls: status queries of requests, ports, hints. test_odds_and_ends.py has the expected
 * counts. */
#include <mpi.h>

#include "check.h"

static void ask_for_statuses(int other)
{
    int sent = 7, received = 0, is_done = 0;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Irecv(&received, 1, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Request_get_status(requests[0], &is_done, MPI_STATUS_IGNORE);
    CHECK(!is_done); /* the other rank sends only after our message */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(&sent, 1, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[1]);
    while (!is_done)
        MPI_Request_get_status(requests[0], &is_done, &status);
    CHECK(status.MPI_SOURCE == other);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(received == 7);
}

/* Asks for several statuses by the functions of MPI-4.1. */
static void ask_for_several_statuses(void)
{
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    int is_done, index, count, indices[2];
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, flushed;
    MPI_Request_get_status_all(2, requests, &is_done, MPI_STATUSES_IGNORE);
    CHECK(is_done);
    MPI_Request_get_status_any(2, requests, &index, &is_done, MPI_STATUS_IGNORE);
    MPI_Request_get_status_some(2, requests, &count, indices, MPI_STATUSES_IGNORE);

    static char memory[4096];
    void *back;
    int bytes;
    MPI_Comm_attach_buffer(MPI_COMM_WORLD, memory, sizeof memory);
    MPI_Comm_flush_buffer(MPI_COMM_WORLD);
    MPI_Comm_iflush_buffer(MPI_COMM_WORLD, &flushed);
    MPI_Wait(&flushed, MPI_STATUS_IGNORE);
    MPI_Comm_detach_buffer(MPI_COMM_WORLD, &back, &bytes);
    CHECK(back == memory && bytes == sizeof memory);
    MPI_Buffer_attach(memory, sizeof memory);
    MPI_Buffer_flush();
    MPI_Buffer_iflush(&flushed);
    MPI_Wait(&flushed, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&back, &bytes);
    CHECK(back == memory && bytes == sizeof memory);
#endif
}

int main(int argc, char **argv)
{
    int rank;
    char port[MPI_MAX_PORT_NAME];
    MPI_Info hints;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    ask_for_statuses(1 - rank);
    ask_for_several_statuses();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPI_Open_port(MPI_INFO_NULL, port) == MPI_SUCCESS) /* some transports have none */
        MPI_Close_port(port);
    MPI_Info_create(&hints);
    MPI_Comm_set_info(MPI_COMM_WORLD, hints);
    MPI_Info_free(&hints);
    MPI_Finalize();
    return 0;
}
