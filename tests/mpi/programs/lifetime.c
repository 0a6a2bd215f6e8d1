/* lifetime HOW: the ways in which a process initializes and ends MPI. In between, rank 0 sends one
 * integer to rank 1 five times, and both synchronize twice. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>

#include "check.h"

static int rank, pid_of_rank_1;

static void communicate(void)
{
    int number = 42;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 5; i++) {
        if (rank == 0)
            MPI_Send(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        else if (rank == 1)
            MPI_Recv(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    pid_of_rank_1 = getpid();
    MPI_Bcast(&pid_of_rank_1, 1, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Launchers kill the other ranks when one exits without MPI_Finalize: rank 1 must not be killed
 * before it has ended by itself. */
static void let_rank_1_leave_first(void)
{
    while (rank == 0 && kill(pid_of_rank_1, 0) == 0)
        sched_yield();
}

/* For a ledger outside the run folder. Until its first copy there is a stub, of one line. */
static void wait_for_a_copy(void)
{
    enum { LONGEST_STUB = 8192 };
    struct stat about = {0};
    CHECK(chdir(getenv("COMMPROF_OUTPUT")) == 0);
    while (stat("rank-1.ledger", &about) != 0 || about.st_size <= LONGEST_STUB)
        sched_yield();
}

/* Whatever children do, this process has not ended. */
static void let_children_leave(void)
{
    if (fork() == 0)
        _exit(0);
    if (vfork() == 0) {
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    while (wait(NULL) > 0)
        continue;
}

/* Or stay, where there is no such program. */
static void leave(const char *how)
{
    if (strcmp(how, "_exit") == 0)
        _exit(7);
    else if (strcmp(how, "_Exit") == 0)
        _Exit(7);
    else if (strcmp(how, "quick_exit") == 0)
        quick_exit(7);
    else if (strcmp(how, "execl") == 0)
        execl("/bin/sh", "sh", "-c", "exit $0", "7", (char *)NULL);
    else if (strcmp(how, "execvp") == 0)
        execvp("true", (char *const[]){"true", NULL});
    else if (strcmp(how, "execle") == 0)
        execle("/no/such/program", "program", (char *)NULL, (char *const[]){NULL});
}

static void finalize(void)
{
    MPI_Finalize();
}

static void *whole_life(void *unused)
{
    int level;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    communicate();
    MPI_Finalize();
    return unused;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "plain";
    pthread_t thread;
    int level;

    if (strcmp(how, "on_another_thread") == 0) {
        CHECK(pthread_create(&thread, NULL, whole_life, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        return 0;
    }
    if (strcmp(how, "funneled") == 0)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    else
        MPI_Init(&argc, &argv);
    communicate();

    if (strcmp(how, "finalize_at_exit") == 0)
        atexit(finalize);
    else if (strcmp(how, "exit_without_finalize") == 0) {
        let_rank_1_leave_first();
        exit(0);
    } else if (strcmp(how, "abort") == 0 && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 5);
    else if (strcmp(how, "kill") == 0 && rank == 1) {
        let_children_leave();
        raise(SIGKILL);
    } else if (strcmp(how, "kill_once_copied") == 0 && rank == 1) {
        wait_for_a_copy();
        raise(SIGKILL);
    } else {
        if (rank == 1)
            leave(how);
        MPI_Finalize();
    }
    return strcmp(how, "return_7") == 0 ? 7 : 0;
}
