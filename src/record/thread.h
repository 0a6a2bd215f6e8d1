/* The state of one thread of the job: its counters in the ledger, its region, its sampling
 * window. */
#ifndef COMMPROF_THREAD_H
#define COMMPROF_THREAD_H

#include "host_time.h"
#include "ledger/cells.h"
#include "ledger/peers.h"
#include "ledger/samples.h"
#include "recent.h"
#include "wait_array.h"

/* Bits of `wrapper`, below those of an address in a frame. */
enum {
    WRAPPER_IN_MPI = 1, /* in the real function. Otherwise our own code runs: a call of a signal
                           handler finds the state half changed */
    WRAPPER_NESTED = 2, /* it is inside another wrapper */
    WRAPPER_AROUND = 4, /* others have been inside it */
    WRAPPER_BITS = 15,
    WRAPPERS_NESTED = 8, /* at most */
    THREAD_RECENT_CELLS = 16,
};

/* A wrapper in which the thread is, around the one that `wrapper` means: what the inner call
 * changes, as it was before. */
struct around {
    uintptr_t wrapper;
    uint64_t entered_ticks; /* when the inner call began */
    uint64_t nested_ticks;
    uint64_t doing, since_ticks, bytes; /* the announcement */
    int32_t peer, tag;
    struct wait_array wait_array;
    void *scratch;
    size_t scratch_bytes;
};

/* A thread that ends passes it to the next thread that starts. */
struct thread {
    struct cells cells; /* first: the same address */
    uintptr_t
        wrapper;    /* frame of the innermost wrapper that the thread is in, and bits; 0: in none */
    uint32_t epoch; /* of the counters */
    uint32_t depth; /* of `around` */
    uint64_t nested_ticks; /* spent in calls inside that wrapper */
    uint64_t region;       /* the innermost open region (regions.h), shifted as in a cell's key */
    struct peers peers;
    struct wait_array wait_array;
    struct samples_window window;
    struct recent recent[1 << RECENT_LOG2];
    struct ledger_cell *recent_cells[THREAD_RECENT_CELLS]; /* account_cell_again */
    struct host_time host_time;
    void *scratch;
    size_t scratch_bytes;
    struct around around[WRAPPERS_NESTED];
    /* unsuccessful Tests since the last call that completed requests: begin of the first, duration
     * of all */
    uint64_t polled_since_ticks, polled_ticks;
    /* polls for something other than requests, and for what: as above (account_seek) */
    uint64_t sought, sought_since_ticks, sought_ticks;
    struct negotiation *negotiations; /* negotiation.c */
    struct regions *regions;          /* NULL: the thread has not begun one yet */
    struct thread *next_free;
};

/* The current epoch; 0 while nothing is recorded. Calls are recorded from the end of MPI_Init to
 * MPI_Finalize, in the process that called MPI_Init. A thread whose own epoch differs (every thread
 * before its first call, or after a reset) must catch up before it counts. */
extern uint32_t thread_epoch;

/* Set `wrapper`: what a signal handler's call sees before and after. */
HOT void thread_set_wrapper(struct thread *thread, uintptr_t wrapper)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&thread->wrapper, wrapper, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Never NULL: a thread without a state points to thread_nobody, whose epoch never matches. */
extern _Thread_local struct thread *this_thread __attribute__((tls_model("initial-exec")));
extern struct thread thread_nobody;

/* Call before the first thread is adopted. Each thread that ends calls `leaving` before another
 * thread can take its state. */
void thread_begin(void (*leaving)(struct thread *thread));

/* This thread's state, created at its first call. NULL when out of memory or when the ledger is
 * full. */
struct thread *thread_adopt(void);

/* This thread's state in the current epoch; adopts the thread if needed. NULL while nothing is
 * recorded, or as for thread_adopt. */
struct thread *thread_ready(void);

/* Move this thread's counters to another epoch: they restart at zero. Call only from the thread
 * that owns the state. */
void thread_catch_up(struct thread *thread, uint32_t epoch);

/* Discard what this thread remembers from call to call: it left our code half way, by a longjmp or
 * by its end. */
void thread_forget(struct thread *thread);

/* A buffer of this thread with at least `bytes` bytes, valid until the next call of this function.
 * NULL when out of memory. */
void *thread_scratch(struct thread *thread, size_t bytes);

#endif
