/* A program that checks by weak references which functions MPI has, and uses those that it finds,
 * as newer programs do with older libraries. With the argument "session" it only opens and closes a
 * session. */
#include <mpi.h>

#include "check.h"

/* Declared as in MPI-4, because the library's own header may lack them. */
#define WEAK __attribute__((weak))
#if defined OPEN_MPI || MPI_VERSION < 4
#ifdef OPEN_MPI
typedef struct ompi_instance_t *session;
#define NO_SESSION NULL
#else
typedef int session;
#define NO_SESSION 0
#endif
typedef MPI_Count count;
WEAK int MPI_Allreduce_c(const void *, void *, count, MPI_Datatype, MPI_Op, MPI_Comm);
WEAK int MPI_Session_init(MPI_Info, MPI_Errhandler, session *);
WEAK int MPI_Session_finalize(session *);
WEAK int MPI_Comm_create_from_group(MPI_Group, const char *, MPI_Info, MPI_Errhandler, MPI_Comm *);
WEAK int MPI_Isendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int,
                       int, MPI_Comm, MPI_Request *);
#else
typedef MPI_Session session;
#pragma weak MPI_Allreduce_c
#pragma weak MPI_Session_init
#pragma weak MPI_Session_finalize
#pragma weak MPI_Comm_create_from_group
#pragma weak MPI_Isendrecv
#define NO_SESSION MPI_SESSION_NULL
#endif

static void open_a_session(void)
{
    session one = NO_SESSION;
    if (!MPI_Session_init) {
        printf("there are no sessions\n");
        return;
    }
    int error = MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &one);
    printf("a session: %s\n", error == MPI_SUCCESS     ? "opened"
                              : error == MPI_ERR_OTHER ? "no such thing"
                                                       : "failed");
    if (error == MPI_SUCCESS)
        CHECK(MPI_Session_finalize(&one) == MPI_SUCCESS);
    else
        CHECK(one == NO_SESSION);
}

static void reduce(void)
{
    int one = 1, sum = 0;
    if (MPI_Allreduce_c)
        CHECK(MPI_Allreduce_c(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    else
        CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(sum >= 1);
}

static void exchange_at_once(void)
{
    int sent = 5, received = 0, error = MPI_ERR_OTHER;
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Isendrecv)
        error = MPI_Isendrecv(&sent, 1, MPI_INT, 0, 1, &received, 1, MPI_INT, 0, 1, MPI_COMM_SELF,
                              &request);
    if (error != MPI_SUCCESS) {
        CHECK(error == MPI_ERR_OTHER && request == MPI_REQUEST_NULL);
        return;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(received == 5);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        open_a_session();
        return 0;
    }
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 5; i++)
        reduce();
    exchange_at_once();
    open_a_session();
    reduce();
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
