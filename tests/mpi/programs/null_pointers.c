/* Passes NULL for pointers that MPI reads or writes, and frees objects that cannot be freed. MPI
 * returns errors, and existing objects remain usable. Prints the error classes. */
#include <mpi.h>

#include "check.h"

static int rank;

static void report(const char *what, int error)
{
    int error_class;
    MPI_Error_class(error, &error_class);
    printf("rank %d: %s: class %d\n", rank, what, error_class);
}

static int refuse(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)comm, (void)keyval, (void)value;
    return *(int *)state ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void complete_nothing(void)
{
    int index = 0, flag = 0, done = 0;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    report("Wait", MPI_Wait(NULL, MPI_STATUS_IGNORE));
    report("Test", MPI_Test(NULL, &flag, MPI_STATUS_IGNORE));
    report("Test without a flag", MPI_Test(requests, NULL, MPI_STATUS_IGNORE));
    report("Waitall", MPI_Waitall(2, NULL, MPI_STATUSES_IGNORE));
    report("Testall", MPI_Testall(2, NULL, &flag, MPI_STATUSES_IGNORE));
    report("Testall without a flag", MPI_Testall(2, requests, NULL, MPI_STATUSES_IGNORE));
    report("Waitany", MPI_Waitany(2, NULL, &index, MPI_STATUS_IGNORE));
    report("Waitany without an index", MPI_Waitany(2, requests, NULL, MPI_STATUS_IGNORE));
    report("Testany without an index", MPI_Testany(2, requests, NULL, &flag, MPI_STATUS_IGNORE));
    report("Waitsome", MPI_Waitsome(2, NULL, &done, &index, MPI_STATUSES_IGNORE));
    report("Waitsome without a count",
           MPI_Waitsome(2, requests, NULL, &index, MPI_STATUSES_IGNORE));
    report("Testsome without a count",
           MPI_Testsome(2, requests, NULL, &index, MPI_STATUSES_IGNORE));
    report("Waitall of -1", MPI_Waitall(-1, requests, MPI_STATUSES_IGNORE));
    report("Waitall of none", MPI_Waitall(0, NULL, NULL));
}

static void start_nothing(void)
{
    int number = 0;
    report("Isend", MPI_Isend(&number, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, NULL));
    report("Start", MPI_Start(NULL));
    report("Startall", MPI_Startall(1, NULL));
    report("Request_free", MPI_Request_free(NULL));
    report("Cancel", MPI_Cancel(NULL));
    report("Comm_dup", MPI_Comm_dup(MPI_COMM_SELF, NULL));
}

static void free_what_cannot_be_freed(void)
{
    int keyval, refusing = 1;
    MPI_Comm world = MPI_COMM_WORLD, kept;
#ifndef OPEN_MPI /* which reads there without a check */
    report("Comm_free of nowhere", MPI_Comm_free(NULL));
#endif
    report("Comm_free of the world", MPI_Comm_free(&world));
    MPI_Barrier(MPI_COMM_WORLD);

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &keyval, &refusing);
    MPI_Comm_dup(MPI_COMM_WORLD, &kept);
    MPI_Comm_set_name(kept, "kept");
    MPI_Comm_set_attr(kept, keyval, &refusing);
    MPI_Barrier(kept);
    report("Comm_free that is refused", MPI_Comm_free(&kept));
    CHECK(kept != MPI_COMM_NULL);
    MPI_Barrier(kept);
    refusing = 0;
    report("Comm_free", MPI_Comm_free(&kept));
    MPI_Comm_free_keyval(&keyval);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    complete_nothing();
    start_nothing();
    free_what_cannot_be_freed();
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
