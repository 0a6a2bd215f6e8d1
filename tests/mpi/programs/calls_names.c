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

#ifdef OPEN_MPI
#define IS_OPEN_MPI 1
#else
#define IS_OPEN_MPI 0
#endif

/* MPICH before 4.3 fails if a persistent scatter is started a second time. */
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40300000
#define ROUNDS 1
#else
#define ROUNDS 2
#endif

#ifndef MPI_ERRORS_ABORT
#define MPI_ERRORS_ABORT 0
#endif

int64_t calls_name(const char *name, int *is_known)
{
#define NAME(name) {#name, (intptr_t)MPI_##name},
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
        {"VERSION", MPI_VERSION},
        {"IS_OPEN_MPI", IS_OPEN_MPI},
        {"ERRORS_ABORT", (intptr_t)MPI_ERRORS_ABORT},
        {"ERROR_AT", offsetof(MPI_Status, MPI_ERROR)},
#include "calls_names.inc"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((*is_known = strcmp(names[i].name, name) == 0))
            return names[i].value;
    return 0;
}
