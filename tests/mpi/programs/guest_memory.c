/* Signals and cancellations between any two instructions of calls of ever new kinds.
 *
 *     watched     the program's allocator looks who calls it: never the profiler in a call
 *     allocates   a handler allocates and prints, 10,000 times a second
 *     calls       a handler duplicates a communicator; Open MPI may die of it, also bare
 *     cancelled   threads are cancelled asynchronously */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <mpi.h>

#include "check.h"

extern void *__libc_malloc(size_t bytes), *__libc_calloc(size_t count, size_t bytes),
    *__libc_realloc(void *memory, size_t bytes);
extern void __libc_free(void *memory);

static char buffer[1 << 20];
static int is_watched, found;
static __thread int looking;

/* Whether the profiler has called this function, itself or through the C library or the loader. */
static __attribute__((noinline)) void look(void)
{
    void *frames[64];
    if (!is_watched || looking++)
        return;
    int count = backtrace(frames, 64);
    for (int i = 2; i < count; i++) {
        Dl_info object;
        if (!dladdr(frames[i], &object) || strstr(object.dli_fname, "/libc.so") ||
            strstr(object.dli_fname, "/ld-linux"))
            continue;
        if (strstr(object.dli_fname, "libcommprof") && !found++)
            backtrace_symbols_fd(frames, count, 2);
        break;
    }
    looking = 0;
}

void *malloc(size_t bytes)
{
    look();
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    look();
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    look();
    return __libc_realloc(memory, bytes);
}

void free(void *memory)
{
    look();
    __libc_free(memory);
}

static void calls_of_new_sizes(int sizes)
{
    for (int i = 0; i < sizes; i++)
        MPI_Bcast(buffer, i, MPI_CHAR, 0, MPI_COMM_SELF);
}

static void *thread_of_new_sizes(void *unused)
{
    calls_of_new_sizes(500);
    return unused;
}

static void calls_on_new_communicators(void)
{
    for (int i = 0; i < 200; i++) {
        MPI_Comm duplicate, part;
        MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
        MPI_Comm_split(duplicate, 0, 0, &part);
        MPI_Barrier(part);
        MPI_Allreduce(MPI_IN_PLACE, buffer, i + 1, MPI_LONG_LONG, MPI_BAND, part);
        MPI_Comm_free(&part);
        MPI_Comm_free(&duplicate);
    }
}

static void calls_with_many_requests(void)
{
    static MPI_Request requests[3000];
    int index, flag;
    for (int i = 0; i < 3000; i++)
        MPI_Irecv(buffer, 1, MPI_CHAR, MPI_ANY_SOURCE, i, MPI_COMM_SELF, &requests[i]);
    for (int count = 1; count <= 3000; count *= 2)
        MPI_Testany(count, requests, &index, &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3000; i++)
        MPI_Send(buffer + 8, 1, MPI_CHAR, 0, i, MPI_COMM_SELF);
    MPI_Waitall(3000, requests, MPI_STATUSES_IGNORE);
}

static void calls_in_new_regions(void)
{
    char name[32];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "region %d", i);
        MPI_Pcontrol(5, name);
        MPI_Barrier(MPI_COMM_SELF);
        MPI_Pcontrol(6);
    }
    MPI_Pcontrol(2);
    MPI_Pcontrol(3);
}

static void calls_of_new_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, thread_of_new_sizes, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void all_calls(void)
{
    calls_of_new_sizes(10000);
    calls_on_new_communicators();
    calls_with_many_requests();
    calls_in_new_regions();
    calls_of_new_threads();
}

static void watch(void)
{
    void *frames[1];
    backtrace(frames, 1); /* it allocates at its first use */
    __atomic_store_n(&is_watched, 1, __ATOMIC_SEQ_CST);
    all_calls();
    __atomic_store_n(&is_watched, 0, __ATOMIC_SEQ_CST);
    CHECK(!found);
}

static void allocate(int signal)
{
    FILE *null = fopen("/dev/null", "w");
    fprintf(null, "%d\n", signal);
    fclose(null);
}

static void duplicate(int signal)
{
    (void)signal;
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Comm_free(&copy);
}

static void interrupt(void (*handler)(int))
{
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 100}, {0, 100}}, NULL);
    calls_of_new_sizes(60000);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    signal(SIGALRM, SIG_IGN);
}

static int sizes;

static void *call_until_cancelled(void *unused)
{
    int before;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    for (;;)
        MPI_Bcast(buffer, __atomic_add_fetch(&sizes, 1, __ATOMIC_SEQ_CST) % (int)sizeof buffer,
                  MPI_CHAR, 0, MPI_COMM_SELF);
    return unused;
}

static void cancel_threads(void)
{
    for (int i = 1; i <= 200; i++) {
        pthread_t thread;
        void *result;
        int first = __atomic_load_n(&sizes, __ATOMIC_SEQ_CST);
        CHECK(pthread_create(&thread, NULL, call_until_cancelled, NULL) == 0);
        while (__atomic_load_n(&sizes, __ATOMIC_SEQ_CST) < first + 7 * i)
            continue;
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &result) == 0);
        CHECK(result == PTHREAD_CANCELED);
    }
}

int main(int count, char **arguments)
{
    int provided;
    const char *what = count > 1 ? arguments[1] : "watched";
    bool has_threads = strcmp(what, "watched") == 0 || strcmp(what, "cancelled") == 0;
    MPI_Init_thread(&count, &arguments, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &provided);
    if (strcmp(what, "watched") == 0)
        watch();
    else if (strcmp(what, "cancelled") == 0)
        cancel_threads();
    else
        interrupt(strcmp(what, "calls") == 0 ? duplicate : allocate);
    MPI_Finalize();
    puts("done");
    return 0;
}
