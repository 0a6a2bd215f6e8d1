/* Checks what commprof.h promises: regions nest; each thread has its own; they have no effect
 * before MPI_Init, in a callback from MPI, in a forked child and after MPI_Finalize. Rank 1 marks
 * one step more. */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <commprof.h>
#include <mpi.h>

#include "check.h"

enum { STEPS = 10 };

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_SELF);
}

static void *worker(void *unused)
{
    commprof_region_begin("worker");
    barrier();
    commprof_region_end();
    barrier();
    return unused;
}

static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    commprof_step();
    commprof_region_begin("callback");
    return MPI_SUCCESS;
}

static void free_a_communicator(void)
{
    int key;
    MPI_Comm comm;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_attr(comm, key, &key);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&key);
}

static void fork_a_child(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        commprof_step();
        commprof_region_begin("child");
        _exit(commprof_is_recording());
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
    int level, rank;
    pthread_t thread;
    bool is_profiled = argc > 1 && strcmp(argv[1], "profiled") == 0;
    commprof_step();
    commprof_region_begin("early");
    CHECK(!commprof_is_recording());
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(commprof_is_recording() == is_profiled);
    MPI_Pcontrol(0);
    CHECK(!commprof_is_recording());
    MPI_Pcontrol(1);
    commprof_region_end(); /* of a region that was not begun */
    barrier();
    for (int i = 0; i < STEPS + rank; i++) {
        commprof_step();
        commprof_region_begin("epoch");
        commprof_region_begin("forward");
        barrier();
        barrier();
        commprof_region_end();
        barrier();
        commprof_region_end();
    }
    free_a_communicator();
    barrier();
    fork_a_child();
    commprof_region_begin("never ended");
    if (level == MPI_THREAD_MULTIPLE) {
        pthread_create(&thread, NULL, worker, NULL);
        pthread_join(thread, NULL);
    }
    MPI_Finalize();
    CHECK(!commprof_is_recording());
    commprof_step();
    commprof_region_begin("late");
    return 0;
}
