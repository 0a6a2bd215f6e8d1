/* Makes errors, and prints the result of each: error class, statuses, how often the error handler
 * has run since the previous line. The output must be the same with and without a profiler. */
#include <mpi.h>

#include "check.h"

enum { UNTOUCHED = 4711 };

static int rank, handled, numbers[8];
static MPI_Request requests[3];
static MPI_Status statuses[3];

static void count_error(MPI_Comm *comm, int *error, ...)
{
    (void)comm, (void)error;
    handled++;
}

static int class_of(int error)
{
    int error_class;
    MPI_Error_class(error, &error_class);
    return error_class;
}

static void report(const char *what, int error)
{
    printf("rank %d: %s: class %d, handled %d\n", rank, what, class_of(error), handled);
    handled = 0;
}

static void report_status(const char *what, const MPI_Status *status)
{
    printf("rank %d:   %s: source %d tag %d error %d\n", rank, what, status->MPI_SOURCE,
           status->MPI_TAG,
           status->MPI_ERROR == UNTOUCHED ? UNTOUCHED : class_of(status->MPI_ERROR));
}

static void forget(void)
{
    for (int i = 0; i < 3; i++) {
        statuses[i].MPI_SOURCE = statuses[i].MPI_TAG = UNTOUCHED;
        statuses[i].MPI_ERROR = UNTOUCHED;
        requests[i] = MPI_REQUEST_NULL;
    }
}

/* Two messages: the first fits, the second is too long. */
static void post_a_short_receive(void)
{
    forget();
    MPI_Irecv(numbers, 4, MPI_INT, 0, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(numbers + 4, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Send(NULL, 0, MPI_INT, 0, 9, MPI_COMM_WORLD);
    /* once this message has arrived, the two before it have, too */
    MPI_Recv(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_one_too_long(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        MPI_Recv(NULL, 0, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(numbers, 4, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Send(numbers, 4, MPI_INT, 1, 1, MPI_COMM_WORLD);
        MPI_Send(NULL, 0, MPI_INT, 1, 2, MPI_COMM_WORLD);
    }
}

static void truncate_blocking(void)
{
    if (rank == 0) {
        for (int i = 0; i < 4; i++)
            MPI_Send(numbers, 4, MPI_INT, 1, 0, MPI_COMM_WORLD);
        return;
    }
    forget();
    report("Recv too long", MPI_Recv(numbers, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &statuses[0]));
    report_status("status", &statuses[0]);
    report("Recv too long, ignored",
           MPI_Recv(numbers, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    forget();
    report("Recv that fits", MPI_Recv(numbers, 8, MPI_INT, 0, 0, MPI_COMM_WORLD, &statuses[0]));
    report_status("status", &statuses[0]);
    report("Recv that fits, ignored",
           MPI_Recv(numbers, 8, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void complete_truncated(void)
{
    int index = -1, flag = -1, completed = -1, indices[3] = {0, 0, 0};
    if (rank == 0) {
        send_one_too_long(11);
        return;
    }

    post_a_short_receive();
    report("Wait", MPI_Wait(&requests[0], &statuses[0]));
    report_status("fits", &statuses[0]);
    report("Wait", MPI_Wait(&requests[1], &statuses[1]));
    report_status("too long", &statuses[1]);
    post_a_short_receive();
    report("Wait ignored", MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    report("Wait ignored", MPI_Wait(&requests[1], MPI_STATUS_IGNORE));

    post_a_short_receive();
    report("Waitall", MPI_Waitall(2, requests, statuses));
    report_status("fits", &statuses[0]);
    report_status("too long", &statuses[1]);
    post_a_short_receive();
    report("Waitall ignored", MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));

    post_a_short_receive();
    report("Waitany", MPI_Waitany(1, requests + 1, &index, &statuses[0]));
    report_status("too long", &statuses[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    post_a_short_receive();
    report("Waitsome", MPI_Waitsome(2, requests, &completed, indices, statuses));
    printf("rank 1:   %d completed\n", completed);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    post_a_short_receive();
    report("Waitsome ignored", MPI_Waitsome(2, requests, &completed, indices, MPI_STATUSES_IGNORE));
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);

    post_a_short_receive();
    report("Test", MPI_Test(&requests[1], &flag, &statuses[1]));
    report_status("too long", &statuses[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    post_a_short_receive();
    report("Testall", MPI_Testall(2, requests, &flag, statuses));
    report_status("fits", &statuses[0]);
    report_status("too long", &statuses[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    post_a_short_receive();
    report("Testall ignored", MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE));
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    post_a_short_receive();
    report("Testany", MPI_Testany(1, requests + 1, &index, &flag, MPI_STATUS_IGNORE));
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void call_with_nonsense(void)
{
    int flag;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    report("Send to rank 99", MPI_Send(numbers, 1, MPI_INT, 99, 0, MPI_COMM_WORLD));
    report("Send with tag -5", MPI_Send(numbers, 1, MPI_INT, MPI_PROC_NULL, -5, MPI_COMM_WORLD));
    report("Send of -1", MPI_Send(numbers, -1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    report("Send of no type", MPI_Send(numbers, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD));
    report("Isend of no type",
           MPI_Isend(numbers, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD, &request));
    report("Send on no communicator", MPI_Send(numbers, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
    report("Recv from rank 99",
           MPI_Recv(numbers, 1, MPI_INT, 99, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    report("Irecv of no type",
           MPI_Irecv(numbers, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD, &request));
    report("Bcast from root 99", MPI_Bcast(numbers, 1, MPI_INT, 99, MPI_COMM_WORLD));
    report("Bcast of no type", MPI_Bcast(numbers, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
    /* (an invalid type would end the job with MPICH 5.0.2) */
    report("Allreduce by no operation",
           MPI_Allreduce(numbers, numbers + 4, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD));
    report("Allreduce on no communicator",
           MPI_Allreduce(numbers, numbers + 4, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL));
    report("Barrier on no communicator", MPI_Barrier(MPI_COMM_NULL));
    report("Comm_dup of no communicator", MPI_Comm_dup(MPI_COMM_NULL, &comm));
    report("Comm_free of no communicator", MPI_Comm_free(&comm));
    report("Comm_split with color -7", MPI_Comm_split(MPI_COMM_SELF, -7, 0, &comm));
    report("Wait for no request", MPI_Wait(&request, MPI_STATUS_IGNORE));
    report("Test of no request", MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    report("Start of no request", MPI_Start(&request));
    report("Request_free of no request", MPI_Request_free(&request));
    report("Waitall for none", MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
}

int main(int argc, char **argv)
{
    MPI_Errhandler counting;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_errhandler(count_error, &counting);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, argc > 1 ? MPI_ERRORS_RETURN : counting);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, argc > 1 ? MPI_ERRORS_RETURN : counting);

    truncate_blocking();
    complete_truncated();
    call_with_nonsense();
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
