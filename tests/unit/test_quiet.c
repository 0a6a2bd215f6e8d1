#include "base/quiet.h"

#include "unit.h"

static const int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

static bool is_fault(int number)
{
    bool is_one = false;
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++)
        is_one |= number == FAULTS[i];
    return is_one;
}

static sigset_t blocked_now(void)
{
    sigset_t blocked;
    CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    return blocked;
}

TEST(all_signals_wait_but_those_of_faults)
{
    struct quiet before = quiet_begin();
    sigset_t blocked = blocked_now();
    for (int number = 1; number < 32; number++) { /* an emulator has real-time signals of its own */
        bool can_be_blocked = number != SIGKILL && number != SIGSTOP;
        CHECK_EQUAL(sigismember(&blocked, number) == 1, can_be_blocked && !is_fault(number));
    }
    quiet_end(&before);
}

TEST(afterwards_the_signals_are_blocked_that_were_before)
{
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &usr1, NULL);
    struct quiet before = quiet_begin();
    quiet_end(&before);
    sigset_t blocked = blocked_now();
    for (int number = 1; number < 32; number++)
        CHECK_EQUAL(sigismember(&blocked, number), number == SIGUSR1);
}

/* By its previous state, which it leaves as it was. */
static bool is_cancellable(void)
{
    int state, unused;
    CHECK_EQUAL(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state), 0);
    CHECK_EQUAL(pthread_setcancelstate(state, &unused), 0);
    return state == PTHREAD_CANCEL_ENABLE;
}

TEST(a_part_within_another_one_ends_neither)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct quiet before = quiet_begin(), within = quiet_lock(&lock);
    quiet_unlock(&lock, &within);
    sigset_t blocked = blocked_now();
    CHECK_EQUAL(sigismember(&blocked, SIGTERM), 1);
    CHECK(!is_cancellable());
    quiet_end(&before);
    CHECK(is_cancellable());
}
