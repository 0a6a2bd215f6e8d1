#include "quiet.h"

struct quiet quiet_begin(void)
{
    static const int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    struct quiet before;
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++)
        sigdelset(&blocked, FAULTS[i]);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before.cancel_state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before.cancel_type);
    pthread_sigmask(SIG_BLOCK, &blocked, &before.signals);
    return before;
}

/* A cancellation that has come meanwhile is acted upon by the last function. If it were by
 * pthread_setcancelstate, the thread's exit status would not be PTHREAD_CANCELED in glibc 2.36. */
void quiet_end(const struct quiet *before)
{
    int unused;
    pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
    pthread_setcancelstate(before->cancel_state, &unused);
    pthread_setcanceltype(before->cancel_type, &unused);
}

struct quiet quiet_lock(pthread_mutex_t *lock)
{
    struct quiet before = quiet_begin();
    pthread_mutex_lock(lock);
    return before;
}

void quiet_unlock(pthread_mutex_t *lock, const struct quiet *before)
{
    pthread_mutex_unlock(lock);
    quiet_end(before);
}
