/* Calls whose instructions bench/instructions.py counts, with callgrind: of each kind some first,
 * which do not count, then those in measured_x. Linked with toy_mpi.c, an MPI library that does
 * nothing.
 *
 *     instructions N     N times each */
#include "toy_mpi.h"

#include <stdlib.h>

static char out[8], in[8];
static int pair[2];

/* Two functions, so that the first calls have a name of their own. */
#define TWICE(NAME, ...)                                          \
    static inline void repeated_##NAME(int times)                 \
    {                                                             \
        for (int i = 0; i < times; i++) {                         \
            __VA_ARGS__;                                          \
        }                                                         \
    }                                                             \
    __attribute__((noipa)) static void first_##NAME(int times)    \
    {                                                             \
        repeated_##NAME(times);                                   \
    }                                                             \
    __attribute__((noipa)) static void measured_##NAME(int times) \
    {                                                             \
        repeated_##NAME(times);                                   \
    }

TWICE(Allreduce, MPI_Allreduce(out, in, 8, TOY_BYTE, TOY_SUM, TOY_WORLD))
TWICE(Bcast, MPI_Bcast(out, 8, TOY_BYTE, 0, TOY_WORLD))
TWICE(Barrier, MPI_Barrier(TOY_WORLD))
TWICE(Send, MPI_Send(out, 8, TOY_BYTE, 1, 0, TOY_WORLD))
TWICE(Recv, MPI_Recv(in, 8, TOY_BYTE, 1, 0, TOY_WORLD, TOY_IGNORE))
TWICE(triple, MPI_Irecv(in, 8, TOY_BYTE, 1, 0, TOY_WORLD, &pair[0]);
      MPI_Isend(out, 8, TOY_BYTE, 1, 0, TOY_WORLD, &pair[1]); MPI_Waitall(2, pair, TOY_IGNORE))
TWICE(Wait, MPI_Irecv(in, 8, TOY_BYTE, 1, 0, TOY_WORLD, &pair[0]); MPI_Wait(&pair[0], TOY_IGNORE))

int main(int argc, char **argv)
{
    int provided, times = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Init_thread(NULL, NULL, 0, &provided);
#define BOTH(NAME)       \
    first_##NAME(times); \
    measured_##NAME(times);
    BOTH(Allreduce)
    BOTH(Bcast)
    BOTH(Barrier)
    BOTH(Send)
    BOTH(Recv)
    BOTH(triple)
    BOTH(Wait)
    first_Allreduce(0); /* callgrind writes what it has counted before each of these functions */
    MPI_Finalize();
    return 0;
}
