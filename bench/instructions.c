/* Calls whose instructions bench/instructions.py counts, with callgrind: of each kind some first,
 * which do not count, then those in measured_x. Linked with toy_mpi.c, an MPI library that does
 * nothing.
 *
 *     instructions N     N times each */
#include "toy_mpi.h"

#include <stdlib.h>
#include <time.h>

enum { COMMS = 1000, SIZES = 10000, MANY = 1000 };
static char out[8], in[8];
static const uint64_t offered = 0x3ffffffff;
static uint64_t came = 7;
static int lengths[TOY_RANKS], places[TOY_RANKS];
static int pair[2], comms[COMMS], many[MANY], at;

/* The profiler's clock (COMMPROF_CLOCK=monotonic): all calls take as long on any machine, so that
 * no histogram grows by chance. */
int clock_gettime(clockid_t kind, struct timespec *now)
{
    static int64_t ns;
    (void)kind;
    int64_t read = __atomic_add_fetch(&ns, 100, __ATOMIC_RELAXED);
    *now = (struct timespec){read / 1000000000, read % 1000000000};
    return 0;
}

/* A number below `most`, in an order that does not repeat soon. */
static unsigned turn;
static int any(unsigned most)
{
    return (int)((turn++ * 2654435761u >> 7) % most);
}

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
TWICE(Gatherv, MPI_Gatherv(out, 8, TOY_BYTE, in, lengths, places, TOY_BYTE, 0, TOY_WORLD))
TWICE(Barrier, MPI_Barrier(TOY_WORLD))
TWICE(Send, MPI_Send(out, 8, TOY_BYTE, 1, 0, TOY_WORLD))
TWICE(Recv, MPI_Recv(in, 8, TOY_BYTE, 1, 0, TOY_WORLD, TOY_IGNORE))
TWICE(triple, MPI_Irecv(in, 8, TOY_BYTE, 1, 0, TOY_WORLD, &pair[0]);
      MPI_Isend(out, 8, TOY_BYTE, 1, 0, TOY_WORLD, &pair[1]); MPI_Waitall(2, pair, TOY_IGNORE))
TWICE(sizes, MPI_Allreduce(out, in, 1 + any(SIZES), TOY_BYTE, TOY_SUM, TOY_WORLD))
/* a round of a negotiation: 31 tensors are offered, none is agreed on */
TWICE(round, MPI_Allreduce(&offered, &came, 1, TOY_LONG_LONG, TOY_BAND, TOY_WORLD))
TWICE(comms, MPI_Allreduce(out, in, 8, TOY_BYTE, TOY_SUM, comms[any(COMMS)]))
TWICE(Waitany, MPI_Waitany(MANY, many, &at, TOY_IGNORE))
TWICE(Wait, MPI_Irecv(in, 8, TOY_BYTE, 1, 0, TOY_WORLD, &pair[0]); MPI_Wait(&pair[0], TOY_IGNORE))

int main(int argc, char **argv)
{
    int provided, times = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Init_thread(NULL, NULL, 0, &provided);
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_dup(TOY_WORLD, &comms[i]);
        MPI_Allreduce(out, in, 8, TOY_BYTE, TOY_SUM, comms[i]);
    }
    for (int i = 0; i < SIZES; i++) /* each has been there before */
        MPI_Allreduce(out, in, 1 + i, TOY_BYTE, TOY_SUM, TOY_WORLD);
    for (int i = 0; i < MANY; i++)
        MPI_Irecv(in, 8, TOY_BYTE, 1, 0, TOY_WORLD, &many[i]);
#define BOTH(NAME)       \
    first_##NAME(times); \
    measured_##NAME(times);
/* Others are called last, so that a thread's memory of recent calls has none of them. */
#define ANY(NAME)            \
    first_##NAME(8 * times); \
    turn = 0;                \
    measured_##NAME(times);
    BOTH(Allreduce)
    BOTH(round)
    BOTH(Bcast)
    BOTH(Gatherv)
    BOTH(Barrier)
    BOTH(Send)
    BOTH(Recv)
    ANY(sizes)
    ANY(comms)
    BOTH(triple)
    BOTH(Wait)
    BOTH(Waitany)
    first_Allreduce(0); /* callgrind writes what it has counted before each of these functions */
    MPI_Finalize();
    return 0;
}
