/* The state of one thread of the job: its counters in the ledger, its region, its sampling window. */
#ifndef COMMPROF_THREAD_H
#define COMMPROF_THREAD_H

#include "host_time.h"
#include "ledger/cells.h"
#include "ledger/peers.h"
#include "ledger/samples.h"
#include "recent.h"
#include "wait_array.h"

/* A thread that ends passes it to the next thread that starts. */
struct thread {
    struct cells cells;  /* first: the same address */
    uintptr_t outermost; /* frame of the outermost wrapper that the thread is in; 0: in none */
    uint32_t epoch;      /* of the counters */
    uint64_t region;     /* the innermost open region (regions.h), shifted as in a cell's key */
    struct peers peers;
    struct wait_array wait_array;
    struct samples_window window;
    struct recent recent[1 << RECENT_LOG2];
    struct host_time host_time;
    void *scratch;
    size_t scratch_bytes;
    struct regions *regions; /* NULL: the thread has not begun one yet */
    struct thread *next_free;
};

/* The current epoch; 0 while nothing is recorded. Calls are recorded from the end of MPI_Init to MPI_Finalize, in the process that called
 * MPI_Init. A thread whose own epoch differs (every thread before its first call, or after a reset) must catch up before it counts. */
extern uint32_t thread_epoch;

/* Never NULL: a thread without a state points to thread_nobody, whose epoch never matches. */
extern _Thread_local struct thread *this_thread __attribute__((tls_model("initial-exec")));
extern struct thread thread_nobody;

/* Call before the first thread is adopted. Each thread that ends calls `leaving` before another thread can take its state. */
void thread_begin(void (*leaving)(struct thread *thread));

/* This thread's state, created at its first call. NULL when out of memory or when the ledger is full. */
struct thread *thread_adopt(void);

/* This thread's state in the current epoch; adopts the thread if needed. NULL while nothing is recorded, or as for thread_adopt. */
struct thread *thread_ready(void);

/* Move this thread's counters to another epoch: they restart at zero. Call only from the thread that owns the state. */
void thread_catch_up(struct thread *thread, uint32_t epoch);

/* A buffer of this thread with at least `bytes` bytes, valid until the next call of this function. NULL when out of memory. */
void *thread_scratch(struct thread *thread, size_t bytes);

#endif
