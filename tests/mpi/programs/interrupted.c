/* Calls during a thousand signals per second, of two kinds, whose handlers make no MPI calls; and
 * system calls of the job that such a signal interrupts. With an argument, a handler then leaves a
 * waiting receive by siglongjmp, and calls continue. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

#include "check.h"

enum { CALLS = 100000 };

static volatile sig_atomic_t alarms, profilings;
static sigjmp_buf recovery;

static void count(int signal)
{
    if (signal == SIGALRM)
        alarms++;
    else
        profilings++;
}

static void leave(int signal)
{
    (void)signal;
    siglongjmp(recovery, 1);
}

static void handle(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    CHECK(sigaction(signal, &action, NULL) == 0);
}

static void every(int which, int microseconds)
{
    struct itimerval interval = {{0, microseconds}, {0, microseconds}};
    CHECK(setitimer(which, &interval, NULL) == 0);
}

static void call_on(void)
{
    int one = 1, sum, back;
    for (int i = 0; i < CALLS; i++) {
        MPI_Request request;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
        MPI_Irecv(&back, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
        MPI_Send(&i, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sum == 1 && back == i);
    }
}

/* An interrupted read fails or is restarted, depending on how the handler was installed. */
static void be_interrupted(void)
{
    int ends[2];
    char byte;
    struct timespec long_enough = {100, 0};
    CHECK(pipe(ends) == 0);
    CHECK(read(ends[0], &byte, 1) == -1 && errno == EINTR);
    CHECK(nanosleep(&long_enough, NULL) == -1 && errno == EINTR);
}

static void leave_a_receive(void)
{
    static int never;
    int one = 1, sum;
    volatile int left = 0;
    handle(SIGALRM, leave, 0);
    struct itimerval once = {{0, 0}, {0, 50000}};
    if (sigsetjmp(recovery, 1) == 0) {
        setitimer(ITIMER_REAL, &once, NULL);
        MPI_Recv(&never, 1, MPI_INT, 0, 77, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    } else {
        left = 1;
    }
    CHECK(left);
    for (int i = 0; i < 10; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    one = 5;
    MPI_Send(&one, 1, MPI_INT, 0, 77, MPI_COMM_SELF); /* the receive was still waiting */
    CHECK(never == 5);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    handle(SIGALRM, count, 0);
    handle(SIGPROF, count, SA_RESTART);
    every(ITIMER_REAL, 1000);
    every(ITIMER_PROF, 1000);
    call_on();
    be_interrupted();
    while (!profilings)
        ; /* the signals depend on the processor time used */
    every(ITIMER_REAL, 0);
    every(ITIMER_PROF, 0);
    CHECK(alarms > 0);
    if (argc > 1)
        leave_a_receive();
    printf("done\n");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
