/* finalized_late WAY [LIBRARY]: six Barriers in main; then, on the way out of the process, an
 * Allreduce of 16 bytes and MPI_Finalize, in a handler or destructor that WAY names. With -DLIBRARY
 * this is a library whose destructor does that; it is linked with the program (WAY "linked") or
 * opened by it. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "check.h"

static void finalize(void)
{
    double sent[2] = {1, 2}, received[2];
    MPI_Allreduce(sent, received, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (getenv("KILLED_LATE")) /* the last thing that the profiler can see */
        raise(SIGKILL);
    MPI_Finalize();
}

#ifdef LIBRARY
__attribute__((destructor)) static void leave(void)
{
    int is_initialized, is_finalized;
    MPI_Initialized(&is_initialized);
    MPI_Finalized(&is_finalized);
    if (is_initialized && !is_finalized)
        finalize();
}

void library_touch(void)
{
}
#else
#pragma weak library_touch
void library_touch(void);

static void finalize_with_status(int status, void *unused)
{
    (void)status, (void)unused;
    finalize();
}

static void *exit_here(void *unused)
{
    (void)unused;
    exit(0);
}

static bool is_way(const char *way, const char *name)
{
    return strcmp(way, name) == 0;
}

static void leave_by(const char *way, const char *library)
{
    pthread_t thread;
    if (is_way(way, "atexit_after_init"))
        CHECK(atexit(finalize) == 0);
    else if (is_way(way, "on_exit"))
        CHECK(on_exit(finalize_with_status, NULL) == 0);
    else if (is_way(way, "at_quick_exit")) {
        CHECK(at_quick_exit(finalize) == 0);
        quick_exit(0);
    } else if (is_way(way, "quick_exit"))
        quick_exit(0);
    else if (is_way(way, "exit_of_another_thread")) {
        CHECK(atexit(finalize) == 0);
        CHECK(pthread_create(&thread, NULL, exit_here, NULL) == 0);
        pthread_join(thread, NULL);
    } else if (is_way(way, "opened"))
        CHECK(dlopen(library, RTLD_NOW) != NULL);
    else if (is_way(way, "closed"))
        CHECK(dlclose(dlopen(library, RTLD_NOW)) == 0);
}

int main(int argc, char **argv)
{
    int level;
    CHECK(argc > 1);
    if (is_way(argv[1], "atexit_before_init"))
        CHECK(atexit(finalize) == 0);
    if (library_touch)
        library_touch();
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    for (int i = 0; i < 6; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    leave_by(argv[1], argc > 2 ? argv[2] : NULL);
    return 0;
}
#endif
