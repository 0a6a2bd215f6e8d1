/* Every round (the argument is their number) uses a new message size, tag, communicator, thread,
 * persistent request and two requests in flight. Prints in kilobytes by how much the process's own
 * memory grew from the first tenth of the rounds to the last, and the size of its ledger (0: none).
 * Then it kills itself, so that the ledger remains. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include <mpi.h>

#include "check.h"

enum { LARGEST = 1 << 16 };

static char out[LARGEST], in[LARGEST];
static int round_number;

static long own_kilobytes(void)
{
    char line[256];
    long kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status))
        if (strncmp(line, "RssAnon:", 8) == 0)
            kilobytes = atol(line + 8);
    fclose(status);
    return kilobytes;
}

static long ledger_kilobytes(void)
{
    char line[8192];
    struct stat ledger = {0};
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        line[strcspn(line, "\n")] = '\0';
        if (strstr(line, ".ledger"))
            CHECK(stat(strchr(line, '/'), &ledger) == 0);
    }
    fclose(maps);
    return (long)((ledger.st_size + 1023) / 1024);
}

static void exchange(MPI_Comm comm, int bytes)
{
    MPI_Request requests[2], persistent;
    MPI_Irecv(in, LARGEST, MPI_BYTE, 0, round_number % 32768, comm, &requests[0]);
    MPI_Isend(out, bytes, MPI_BYTE, 0, round_number % 32768, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Send_init(out, bytes, MPI_BYTE, MPI_PROC_NULL, 0, comm, &persistent);
    MPI_Start(&persistent);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    MPI_Request_free(&persistent);
}

static void *one_round(void *unused)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    exchange(comm, round_number % LARGEST);
    MPI_Comm_free(&comm);
    return unused;
}

int main(int argc, char **argv)
{
    int provided, rounds = argc > 1 ? atoi(argv[1]) : 0;
    long first_tenth = 0;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    for (round_number = 1; round_number <= rounds; round_number++) {
        CHECK(pthread_create(&thread, NULL, one_round, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        if (round_number == rounds / 10)
            first_tenth = own_kilobytes();
    }
    printf("%ld %ld\n", own_kilobytes() - first_tenth, ledger_kilobytes());
    fflush(stdout);
    raise(SIGKILL);
}
