/* Parts of our code in which nothing else runs on this thread: no signal of the job is delivered
 * and the thread is not cancelled. A lock of ours is held only there. Otherwise a handler that
 * calls MPI would wait for a lock of the thread that it interrupts, and one that leaves by
 * siglongjmp would keep it forever. tests/layers checks that no other file locks a mutex.
 *
 * A signal to the process that arrives meanwhile goes to another thread that does not block it,
 * such as UCX's. A handler that leaves from there by siglongjmp ends the job.
 *
 * Signals that report a fault of the running instruction stay as they are: the kernel kills a
 * process that has blocked them, and a tool may use them to learn which pages are written to. */
#ifndef COMMPROF_QUIET_H
#define COMMPROF_QUIET_H

#include <pthread.h>
#include <signal.h>

/* State to restore. Parts may lie in each other. */
struct quiet {
    sigset_t signals;
    int cancel_state, cancel_type;
};

struct quiet quiet_begin(void);
void quiet_end(const struct quiet *before);

struct quiet quiet_lock(pthread_mutex_t *lock);
void quiet_unlock(pthread_mutex_t *lock, const struct quiet *before);

#endif
