/* Error handlers that leave the failed call by longjmp, at several depths of the stack; with an
 * argument also in three threads (which MPICH does not survive). After each jump the next calls are
 * made from deeper in the stack than the failed one, below arrays that are never written. All of
 * these calls must be counted. */
#include <pthread.h>
#include <setjmp.h>

#include <mpi.h>

#include "check.h"

enum { ROUNDS = 100, THREADS_MAX = 3 };

static _Thread_local jmp_buf recovery;

static void jump(MPI_Comm *comm, int *error, ...)
{
    (void)comm, (void)error;
    longjmp(recovery, 1);
}

static __attribute__((noinline)) void reduce_below(MPI_Comm comm, int bytes)
{
    volatile char unwritten[bytes];
    int one = 1, sum = 0;
    unwritten[0] = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == 1 && unwritten[0] == 1);
}

static __attribute__((noinline)) void fail_below(MPI_Comm comm, int bytes)
{
    volatile char unwritten[bytes];
    unwritten[0] = 1;
    MPI_Send((void *)&unwritten[0], 1, MPI_CHAR, 99, 0, comm);
}

static void *jump_and_go_on(void *argument)
{
    MPI_Comm comm = *(MPI_Comm *)argument;
    volatile int jumps = 0;
    for (volatile int i = 1; i <= ROUNDS; i++) {
        if (setjmp(recovery) == 0)
            fail_below(comm, 16);
        else
            jumps++;
        for (int bytes = 16; bytes <= 65536; bytes *= 4)
            reduce_below(comm, bytes);
        if (setjmp(recovery) == 0)
            fail_below(comm, 16 * i);
        else
            jumps++;
        reduce_below(comm, 65536);
        reduce_below(comm, 16);
    }
    CHECK(jumps == 2 * ROUNDS);
    return NULL;
}

int main(int argc, char **argv)
{
    MPI_Errhandler jumping;
    MPI_Comm comms[1 + THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    int level, count = argc > 1 ? THREADS_MAX : 0;
    MPI_Init_thread(&argc, &argv, count ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    CHECK(count == 0 || level == MPI_THREAD_MULTIPLE);
    MPI_Comm_create_errhandler(jump, &jumping);
    for (int i = 0; i <= count; i++) {
        MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
        MPI_Comm_set_errhandler(comms[i], jumping);
    }
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, jump_and_go_on, &comms[i]) == 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    jump_and_go_on(&comms[count]);
    for (int i = 0; i <= count; i++)
        MPI_Comm_free(&comms[i]);
    MPI_Errhandler_free(&jumping);
    MPI_Finalize();
    return 0;
}
