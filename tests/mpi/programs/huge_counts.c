/* Passes a count that exceeds an int to the large-count forms. An MPI library that has them accepts
 * it; if only the profiler has them, it is refused with MPI_ERR_COUNT, and a small count is
 * accepted. Prints the error classes. */
#define LARGE_COUNTS
#include "large_counts.h"

#include <sys/mman.h>

#include "check.h"

static const MPI_Count THREE_BILLION = 3000000000;

static int class_of(int error)
{
    int error_class;
    MPI_Error_class(error, &error_class);
    return error_class;
}

int main(int argc, char **argv)
{
    MPI_Request request;
    MPI_Aint nowhere = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char *memory = mmap(NULL, THREE_BILLION, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);

    printf("Bcast %d\n", class_of(MPI_Bcast(memory, THREE_BILLION, MPI_BYTE, 0, MPI_COMM_SELF)));
    printf("Bcast of 5 %d\n", class_of(MPI_Bcast(memory, 5, MPI_BYTE, 0, MPI_COMM_SELF)));
    printf("Allgatherv %d\n",
           class_of(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, memory, &THREE_BILLION,
                                   &nowhere, MPI_BYTE, MPI_COMM_SELF)));
    int error = MPI_Send_init(memory, THREE_BILLION, MPI_BYTE, 0, 1, MPI_COMM_SELF, &request);
    printf("Send_init %d\n", class_of(error));
    if (error == MPI_SUCCESS)
        MPI_Request_free(&request);
    MPI_Finalize();
    return 0;
}
