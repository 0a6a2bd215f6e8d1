/* A program that uses only MPI's sessions: no MPI_Init, no MPI_COMM_WORLD. */
#include <mpi.h>

#include "check.h"

int main(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int rank, sum;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "commprof.tests", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);

    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < 3; i++)
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == 1);
    MPI_Send(&rank, 1, MPI_INT, MPI_PROC_NULL, 0, comm);

    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return 0;
}
