/* Five thousand threads, eight at a time, that make a few calls each and end: by returning, by
 * pthread_exit, by cancellation between two calls, and with a call in a thread-specific
 * destructor. */
#include <pthread.h>

#include <mpi.h>

#include "check.h"

enum { THREADS = 5000, AT_A_TIME = 8, CALLS = 4 };

static pthread_key_t last_words;

static void reduce(void)
{
    int one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
}

static void say_last_words(void *unused)
{
    (void)unused;
    MPI_Barrier(MPI_COMM_SELF);
}

static void *live(void *argument)
{
    long number = (long)argument;
    pthread_setspecific(last_words, argument);
    for (int i = 0; i < CALLS; i++)
        reduce();
    if (number % 3 == 1)
        pthread_exit(NULL);
    if (number % 3 == 2) {
        pthread_cancel(pthread_self());
        pthread_testcancel();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[AT_A_TIME];
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
    CHECK(pthread_key_create(&last_words, say_last_words) == 0);
    for (long i = 0; i < THREADS; i += AT_A_TIME) {
        for (int k = 0; k < AT_A_TIME; k++)
            CHECK(pthread_create(&threads[k], NULL, live, (void *)(i + k + 1)) == 0);
        for (int k = 0; k < AT_A_TIME; k++)
            pthread_join(threads[k], NULL);
    }
    MPI_Finalize();
    return 0;
}
