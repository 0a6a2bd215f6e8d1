/* Starts child processes in every possible way while MPI is in use; the last arguments are the
 * command that each runs. */
#include <pthread.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>

#include "check.h"

extern char **environ;

static char *command[] = {"/bin/sh", "-c", "exit 0", NULL};

static void wait_for(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void reduce(void)
{
    int one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
}

static void by_fork(void)
{
    pid_t child = fork();
    if (child == 0) {
        execv(command[0], command);
        _exit(1);
    }
    wait_for(child);
}

static void by_vfork(void)
{
    pid_t child = vfork();
    if (child == 0) {
        execv(command[0], command);
        _exit(1);
    }
    wait_for(child);
}

/* Does not run the handlers of pthread_atfork. */
static void by_system_call(void)
{
    fflush(NULL);
    pid_t child = (pid_t)syscall(SYS_fork);
    if (child == 0)
        exit(0);
    wait_for(child);
}

static void by_posix_spawn(void)
{
    pid_t child = 0;
    CHECK(posix_spawn(&child, command[0], NULL, NULL, command, environ) == 0);
    wait_for(child);
}

static void by_popen(void)
{
    char line[256] = "";
    FILE *pipe = popen("echo from the pipe", "r");
    CHECK(pipe && fgets(line, sizeof line, pipe));
    CHECK(pclose(pipe) == 0 && strcmp(line, "from the pipe\n") == 0);
}

enum { CALLS = 2000, FORKS = 20 };

static void *call_on(void *argument)
{
    for (int i = 0; i < CALLS; i++)
        reduce();
    return argument;
}

/* Another thread is inside MPI or the profiler when the child is created. */
static void by_fork_beside_calls(void)
{
    pthread_t calling;
    CHECK(pthread_create(&calling, NULL, call_on, NULL) == 0);
    for (int i = 0; i < FORKS; i++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            exit(0); /* runs all exit handlers */
        wait_for(child);
    }
    CHECK(pthread_join(calling, NULL) == 0);
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (argc > 1)
        command[2] = argv[1];
    by_fork();
    reduce();
    by_vfork();
    reduce();
    by_system_call();
    reduce();
    by_posix_spawn();
    reduce();
    by_popen();
    reduce();
    if (level == MPI_THREAD_MULTIPLE)
        by_fork_beside_calls();
    printf("all children have ended\n");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
