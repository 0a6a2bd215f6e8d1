/* The calls of completions.inc, which Fortran programs include, from C. */
#include <mpi.h>
#include <stddef.h>

int main(void)
{
    MPI_Request requests[2];
    MPI_Status statuses[2], status;
    int indices[2], at, done, flag, nothing[1];
    MPI_Init(NULL, NULL);
    for (int i = 0; i < 10; i++) {
        requests[0] = requests[1] = MPI_REQUEST_NULL;
        MPI_Startall(0, requests);
        MPI_Waitall(0, requests, statuses);
        MPI_Waitany(0, requests, &at, &status);
        MPI_Waitsome(0, requests, &done, indices, statuses);
        MPI_Testall(0, requests, &flag, statuses);
        MPI_Testany(0, requests, &at, &flag, &status);
        MPI_Testsome(0, requests, &done, indices, statuses);

        MPI_Waitall(0, requests, MPI_STATUSES_IGNORE);
        MPI_Waitany(0, requests, &at, MPI_STATUS_IGNORE);
        MPI_Waitsome(0, requests, &done, indices, MPI_STATUSES_IGNORE);
        MPI_Testall(0, requests, &flag, MPI_STATUSES_IGNORE);
        MPI_Testany(0, requests, &at, &flag, MPI_STATUS_IGNORE);
        MPI_Testsome(0, requests, &done, indices, MPI_STATUSES_IGNORE);

        MPI_Wait(&requests[0], &status);
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        MPI_Request_get_status(requests[0], &flag, &status);
        MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
        MPI_Waitall(2, requests, statuses);
        MPI_Waitany(2, requests, &at, &status);
        MPI_Waitsome(2, requests, &done, indices, statuses);
        MPI_Testall(2, requests, &flag, statuses);
        MPI_Testany(2, requests, &at, &flag, &status);
        MPI_Testsome(2, requests, &done, indices, statuses);

        MPI_Ibarrier(MPI_COMM_SELF, &requests[0]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Ibarrier(MPI_COMM_SELF, &requests[0]);
        MPI_Waitany(2, requests, &at, MPI_STATUS_IGNORE);
        MPI_Ibarrier(MPI_COMM_SELF, &requests[0]);
        MPI_Waitsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);

        MPI_Send(nothing, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
        MPI_Recv(nothing, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Bcast(nothing, 0, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
