/* Prints a process's own state while MPI runs and afterwards: next file descriptor, signal
 * handlers, locale, working directory, umask, environment. The output must be the same with and
 * without a profiler. */
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mpi.h>

#include "check.h"

extern char **environ;

static void print_next_file(const char *when)
{
    int next = dup(0);
    close(next);
    printf("%s: the next file opened is %d\n", when, next);
}

static void print_signal_handlers(const char *when)
{
    sigset_t blocked;
    unsigned handled_mask = 0, blocked_mask = 0;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int number = 1; number < 32; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            handled_mask |= 1u << number;
        if (sigismember(&blocked, number) == 1)
            blocked_mask |= 1u << number;
    }
    printf("%s: handled signals %x, blocked %x\n", when, handled_mask, blocked_mask);
}

static void print_environment(const char *when)
{
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, "MARKED_", 7) == 0 || strncmp(*entry, "PATH=", 5) == 0 ||
            strncmp(*entry, "HOME=", 5) == 0)
            printf("%s: %s\n", when, *entry);
}

static void print_surroundings(const char *when)
{
    char folder[4096];
    mode_t mask = umask(0);
    umask(mask);
    print_next_file(when);
    print_signal_handlers(when);
    print_environment(when);
    printf("%s: locale %s, mask %o, folder %s\n", when, setlocale(LC_ALL, NULL), (unsigned)mask,
           getcwd(folder, sizeof folder));
}

int main(int argc, char **argv)
{
    int one = 1, sum;
    print_surroundings("before");
    MPI_Init(&argc, &argv);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    print_surroundings("during");
    MPI_Finalize();
    print_surroundings("after");
    return 0;
}
