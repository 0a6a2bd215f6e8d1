/* Forks a child before MPI_Init and two after: one ends by exit(), with all its exit handlers, one
 * becomes /bin/true. */
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>

#include "check.h"

static void wait_for(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static pid_t fork_one_that_exits(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        exit(0);
    return child;
}

static pid_t fork_one_that_becomes_another_program(void)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    return child;
}

int main(int argc, char **argv)
{
    int one = 1, sum;
    wait_for(fork_one_that_exits());
    MPI_Init(&argc, &argv);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wait_for(fork_one_that_exits());
    wait_for(fork_one_that_becomes_another_program());
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
