#include "service_thread.h"

#include "clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 256 << 10 };

/* The stack is small; if the thread-local variables of the job's libraries do not fit into it
 * (EINVAL), 8 MB. */
int service_thread_start(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    error = pthread_create(&thread, &attributes, run, argument);
    if (error == EINVAL) {
        pthread_attr_setstacksize(&attributes, 32 * (size_t)STACK_BYTES);
        error = pthread_create(&thread, &attributes, run, argument);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

void service_thread_wait_while(const uint32_t *word, uint32_t value, int64_t until_ns)
{
    struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value,
            until_ns == INT64_MAX ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

bool service_thread_await(const uint32_t *word, uint32_t value, int64_t until_ns)
{
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value && clock_monotonic_ns() < until_ns)
        service_thread_wait_while(word, value, until_ns);
    return __atomic_load_n(word, __ATOMIC_ACQUIRE) != value;
}

void service_thread_wake(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
