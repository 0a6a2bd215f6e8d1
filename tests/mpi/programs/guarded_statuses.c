/* Every completion call and receive, with statuses that are filled with a pattern and surrounded by
 * guard bytes: prints which bytes of which status MPI has written. Then with ignored statuses, with
 * no requests, with requests that are null, inactive or copies, and with read-only arrays where MPI
 * need not write. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mpi.h>

#include "check.h"

enum { PATTERN = 0x5a, STATUSES = 4, GUARD = 256 };

static struct {
    unsigned char before[GUARD];
    MPI_Status at[STATUSES];
    unsigned char after[GUARD];
} guarded;

static int numbers[STATUSES], rank;
static MPI_Request requests[STATUSES];

static void prepare(void)
{
    memset(&guarded, PATTERN, sizeof guarded);
}

static int was_written(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)at)[i] != PATTERN)
            return 1;
    return 0;
}

static void show(const char *what)
{
    CHECK(!was_written(guarded.before, GUARD) && !was_written(guarded.after, GUARD));
    printf("rank %d: %s:", rank, what);
    for (int i = 0; i < STATUSES; i++) {
        const MPI_Status *status = &guarded.at[i];
        int elements = -1, cancelled = -1, written = was_written(status, sizeof *status);
        printf(" [%s", written ? "written" : "untouched");
        if (was_written(&status->MPI_SOURCE, sizeof(int))) {
            MPI_Get_count(status, MPI_INT, &elements);
            MPI_Test_cancelled(status, &cancelled);
            printf(" source %d tag %d count %d cancelled %d", status->MPI_SOURCE, status->MPI_TAG,
                   elements, cancelled);
        }
        if (was_written(&status->MPI_ERROR, sizeof(int)))
            printf(" error %d", status->MPI_ERROR);
        printf("]");
    }
    printf("\n");
    prepare();
}

/* Receives of one to four ints from this process, all arrived. */
static void post(void)
{
    static const int SENT[STATUSES] = {10, 11, 12, 13};
    for (int i = 0; i < STATUSES; i++)
        MPI_Irecv(&numbers[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
    for (int i = 0; i < STATUSES; i++)
        MPI_Send(&SENT[i], 1, MPI_INT, 0, i, MPI_COMM_SELF);
}

static void complete_all(MPI_Status *statuses)
{
    int index, flag, count, indices[STATUSES];
    post();
    MPI_Waitall(STATUSES, requests, statuses);
    show("Waitall");
    post();
    MPI_Testall(STATUSES, requests, &flag, statuses);
    CHECK(flag);
    show("Testall");
    post();
    MPI_Waitsome(STATUSES, requests, &count, indices, statuses);
    CHECK(count == STATUSES);
    show("Waitsome");
    post();
    MPI_Testsome(STATUSES, requests, &count, indices, statuses);
    CHECK(count == STATUSES);
    show("Testsome");
    post();
    MPI_Waitany(STATUSES, requests, &index,
                statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[2]);
    show("Waitany");
    MPI_Testany(STATUSES, requests, &index, &flag,
                statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[1]);
    show("Testany");
    MPI_Waitall(STATUSES, requests, statuses);
    show("Waitall of those that are left");
    for (int i = 0; i < STATUSES; i++)
        CHECK(numbers[i] == 10 + i && requests[i] == MPI_REQUEST_NULL);
}

static void complete_one(MPI_Status *status)
{
    int flag, one = 1;
    MPI_Message message;
    post();
    MPI_Wait(&requests[0], status);
    show("Wait");
    MPI_Test(&requests[1], &flag, status);
    show("Test");
    MPI_Waitall(STATUSES, requests, MPI_STATUSES_IGNORE);
    MPI_Iprobe(0, 9, MPI_COMM_SELF, &flag, status);
    show("Iprobe of nothing");
    MPI_Isend(&one, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &requests[0]);
    MPI_Iprobe(0, 9, MPI_COMM_SELF, &flag, status);
    show("Iprobe");
    MPI_Probe(0, 9, MPI_COMM_SELF, status);
    show("Probe");
    MPI_Mprobe(0, 9, MPI_COMM_SELF, &message, status);
    show("Mprobe");
    MPI_Mrecv(numbers, 1, MPI_INT, &message, status);
    show("Mrecv");
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Isend(&one, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &requests[0]);
    MPI_Recv(numbers, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, status);
    show("Recv");
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Sendrecv(&one, 1, MPI_INT, 0, 8, numbers, 4, MPI_INT, 0, 8, MPI_COMM_SELF, status);
    show("Sendrecv");
    MPI_Sendrecv_replace(&one, 1, MPI_INT, 0, 8, 0, 8, MPI_COMM_SELF, status);
    show("Sendrecv_replace");
    MPI_Recv(numbers, 4, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_SELF, status);
    show("Recv from MPI_PROC_NULL");
}

static void complete_nothing(void)
{
    int index = 5, flag = 5, count = 5;
    MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Testall(0, NULL, &flag, NULL);
    CHECK(flag == 1);
    MPI_Waitany(0, NULL, &index, MPI_STATUS_IGNORE);
    CHECK(index == MPI_UNDEFINED);
    MPI_Testany(0, NULL, &index, &flag, MPI_STATUS_IGNORE);
    CHECK(index == MPI_UNDEFINED && flag == 1);
    MPI_Waitsome(0, NULL, &count, NULL, NULL);
    CHECK(count == MPI_UNDEFINED);
    MPI_Testsome(0, NULL, &count, NULL, NULL);
    CHECK(count == MPI_UNDEFINED);
    MPI_Waitall(2, none, guarded.at);
    show("Waitall of null requests");
    MPI_Waitany(2, none, &index, guarded.at);
    CHECK(index == MPI_UNDEFINED);
    show("Waitany of null requests");
    MPI_Waitsome(2, none, &count, &index, guarded.at);
    CHECK(count == MPI_UNDEFINED);
    show("Waitsome of null requests");
    MPI_Wait(none, guarded.at);
    show("Wait for a null request");
    MPI_Test(none, &flag, guarded.at);
    CHECK(flag == 1);
    show("Test of a null request");
}

/* An active request between an inactive and a null one, several times. The job may copy
 * requests. */
static void complete_among_inactive(void)
{
    MPI_Request mixed[3], copy;
    int one = 7, index, count, indices[3];
    MPI_Recv_init(&numbers[0], 1, MPI_INT, 0, 1, MPI_COMM_SELF, &mixed[0]);
    MPI_Recv_init(&numbers[1], 1, MPI_INT, 0, 2, MPI_COMM_SELF, &mixed[2]);
    mixed[1] = MPI_REQUEST_NULL;
    for (int i = 0; i < 4; i++) {
        MPI_Start(&mixed[0]);
        MPI_Send(&one, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
        copy = mixed[0];
        if (i == 0)
            MPI_Waitall(3, mixed, guarded.at);
        else if (i == 1)
            MPI_Waitany(3, mixed, &index, guarded.at);
        else if (i == 2)
            MPI_Waitsome(3, mixed, &count, indices, guarded.at);
        else
            MPI_Wait(&copy, guarded.at);
        CHECK(mixed[0] == copy && copy != MPI_REQUEST_NULL && mixed[1] == MPI_REQUEST_NULL);
        show("one among inactive ones");
    }
    MPI_Wait(&mixed[2], guarded.at);
    show("Wait for an inactive one");
    MPI_Request_free(&mixed[0]);
    MPI_Request_free(&mixed[2]);
}

/* MPI writes neither incomplete requests nor the statuses of null ones. */
static void test_read_only(void)
{
    long page = sysconf(_SC_PAGESIZE);
    MPI_Request *fixed = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                pending[2];
    int one = 1, flag = 0, index, count;
    MPI_Irecv(&numbers[0], 1, MPI_INT, 0, 1, MPI_COMM_SELF, &pending[0]);
    MPI_Irecv(&numbers[1], 1, MPI_INT, 0, 2, MPI_COMM_SELF, &pending[1]);
    memcpy(fixed, pending, sizeof pending);
    CHECK(mprotect(fixed, (size_t)page, PROT_READ) == 0);
    MPI_Test(&fixed[0], &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Testall(2, fixed, &flag, MPI_STATUSES_IGNORE);
    CHECK(!flag);
    MPI_Testany(2, fixed, &index, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Testsome(2, fixed, &count, &index, MPI_STATUSES_IGNORE);
    CHECK(count == 0);
    MPI_Send(&one, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
    MPI_Send(&one, 1, MPI_INT, 0, 2, MPI_COMM_SELF);
    MPI_Waitall(2, pending, MPI_STATUSES_IGNORE);
    CHECK(munmap(fixed, (size_t)page) == 0);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    prepare();
    complete_all(guarded.at);
    complete_all(MPI_STATUSES_IGNORE);
    complete_one(&guarded.at[1]);
    complete_one(MPI_STATUS_IGNORE);
    complete_nothing();
    complete_among_inactive();
    test_read_only();
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
