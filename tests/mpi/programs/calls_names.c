/* Constants of mpi.h for calls.py, which opens this as a library, and MPI with it. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mpi_4.h"

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
#define HAS_MPI_4_1 1
#else
#define HAS_MPI_4_1 0
#endif

/* MPICH before 4.3 fails if a persistent scatter is started a second time. */
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40300000
#define ROUNDS 1
#else
#define ROUNDS 2
#endif

int64_t calls_name(const char *name, int *is_known)
{
#define NAME(name)                  \
    {                               \
#name, (intptr_t)MPI_##name \
    }
    const struct {
        const char *name;
        intptr_t value;
    } names[] = {
        {"WORLD", (intptr_t)MPI_COMM_WORLD},
        {"SELF", (intptr_t)MPI_COMM_SELF},
        {"IN_PLACE", (intptr_t)MPI_IN_PLACE},
        {"HANDLE_BYTES", sizeof(MPI_Comm)},
        {"STATUS_BYTES", sizeof(MPI_Status)},
        {"SOURCE_AT", offsetof(MPI_Status, MPI_SOURCE)},
        {"TAG_AT", offsetof(MPI_Status, MPI_TAG)},
        {"HAS_MPI_4", HAS_MPI_4},
        {"HAS_MPI_4_1", HAS_MPI_4_1},
        {"ROUNDS", ROUNDS},
        NAME(SUCCESS),
        NAME(PROC_NULL),
        NAME(ANY_SOURCE),
        NAME(ANY_TAG),
        NAME(UNDEFINED),
        NAME(ROOT),
        NAME(STATUS_IGNORE),
        NAME(STATUSES_IGNORE),
        NAME(ERRORS_RETURN),
        NAME(COMM_TYPE_SHARED),
        NAME(COMM_NULL),
        NAME(REQUEST_NULL),
        NAME(MESSAGE_NULL),
        NAME(MESSAGE_NO_PROC),
        NAME(INFO_NULL),
        NAME(DATATYPE_NULL),
        NAME(UNWEIGHTED),
        NAME(THREAD_MULTIPLE),
        NAME(CHAR),
        NAME(BYTE),
        NAME(SHORT),
        NAME(INT),
        NAME(LONG),
        NAME(UNSIGNED_LONG),
        NAME(LONG_LONG),
        NAME(UINT64_T),
        NAME(FLOAT),
        NAME(DOUBLE),
        NAME(DOUBLE_INT),
        NAME(SUM),
        NAME(PROD),
        NAME(MIN),
        NAME(MAX),
        NAME(MAXLOC),
        NAME(BAND),
        NAME(BOR),
        NAME(NO_OP),
        NAME(REPLACE),
        NAME(LOCK_SHARED),
        NAME(LOCK_EXCLUSIVE),
        NAME(MODE_CREATE),
        NAME(MODE_RDWR),
        NAME(MODE_RDONLY),
        NAME(MODE_WRONLY),
        NAME(MODE_DELETE_ON_CLOSE),
        NAME(SEEK_SET),
        NAME(ORDER_C),
        NAME(ORDER_FORTRAN),
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((*is_known = strcmp(names[i].name, name) == 0))
            return names[i].value;
    return 0;
}
