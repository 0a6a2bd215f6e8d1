/* Names the calls of a rank that do not end, and ends a job in which none does: its kit lacks a
 * message, or the library hangs. */
#ifndef COMMPROF_WATCH_H
#define COMMPROF_WATCH_H

#include "kit.h"
#include "mpi/mpi_abi.h"

enum { WATCH_EXIT = 3, WATCH_PATIENCE_S = 300 };
#define WATCH_WAIT "MPI_Wait after its calls" /* for a request; other numbers: communicators */

/* In which call a thread is; it stores, another thread looks. */
struct watched {
    const struct kit_made *made; /* of the kit; NULL: none */
    const char *own;             /* of those that the kit has not; NULL: none */
    int number;                  /* of what it makes or completes; KIT_NONE: of nothing */
    size_t ended;                /* calls */
    char apart[96];              /* no two in one line of a cache */
};

/* From now on until the process ends. `patience_s`: 0: for ever. */
void watch_begin(int patience_s);

/* After MPI_Init: whose calls they are, and how long a rank may wait for others that compute. */
void watch_kit(const struct kit *kit, int rank, bool has_gaps, int (*abort)(mpi_handle, int));

/* The slot of a program of this rank; the first is also that of the set-up and the end. */
struct watched *watch_slot(int program);

static inline void watch_enter(struct watched *slot, const struct kit_made *made)
{
    __atomic_store_n(&slot->made, made, __ATOMIC_RELAXED);
}

static inline void watch_leave(struct watched *slot)
{
    __atomic_store_n(&slot->made, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->ended, slot->ended + 1, __ATOMIC_RELEASE);
}

/* A call that the kit has not; then watch_own_end. */
void watch_own(struct watched *slot, const char *call, int number);
void watch_own_end(struct watched *slot);

#endif
