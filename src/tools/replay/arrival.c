/* Ranks leave a barrier one after the other. To enter together they agree on a time at which all
 * are back from agreeing (an Allreduce), and wait for it on the clock of rank 0, as in Hunold and
 * Carpen-Amarie's "round time" (2018). */
#include "arrival.h"

#include "base/host.h"
#include "mpi/datatypes.h"
#include "objects.h"

#include <string.h>
#include <time.h>

enum { CLOCK_TAG = 0, EXCHANGES = 30, LONGEST_NS = 1000000, IDENTITY_BYTES = 128 };

static int64_t ahead_ns; /* this rank's clock, of that of rank 0 */
static int64_t agreeing_ns = LONGEST_NS;

static struct {
    int (*Allreduce)(void *, void *, int, mpi_handle, mpi_handle, mpi_handle);
    int (*Barrier)(mpi_handle);
    int (*Bcast)(void *, int, mpi_handle, int, mpi_handle);
    int (*Send)(void *, int, mpi_handle, int, int, mpi_handle);
    int (*Recv)(void *, int, mpi_handle, int, int, mpi_handle, void *);
    int (*Pcontrol)(int, ...);
} mpi;

static void resolve(void)
{
#define FUNCTION(NAME) (mpi.NAME = (__typeof__(mpi.NAME))library_function("MPI_" #NAME))
    FUNCTION(Allreduce), FUNCTION(Barrier), FUNCTION(Bcast), FUNCTION(Send), FUNCTION(Recv),
        FUNCTION(Pcontrol);
#undef FUNCTION
}

int64_t arrival_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Rank 0 answers each rank with its time; the quickest of the answers bounds it best. */
static void answer(int peer)
{
    for (int i = 0; i < EXCHANGES; i++) {
        mpi.Recv(NULL, 0, mpi_abi.byte, peer, CLOCK_TAG, mpi_abi.comm_world, mpi_abi.status_ignore);
        int64_t own_ns = arrival_now_ns();
        mpi.Send(&own_ns, sizeof own_ns, mpi_abi.byte, peer, CLOCK_TAG, mpi_abi.comm_world);
    }
}

static int64_t ask(void)
{
    int64_t its_ns = 0, ahead = 0, quickest_ns = INT64_MAX;
    for (int i = 0; i < EXCHANGES; i++) {
        int64_t before_ns = arrival_now_ns();
        mpi.Send(NULL, 0, mpi_abi.byte, 0, CLOCK_TAG, mpi_abi.comm_world);
        mpi.Recv(&its_ns, sizeof its_ns, mpi_abi.byte, 0, CLOCK_TAG, mpi_abi.comm_world,
                 mpi_abi.status_ignore);
        int64_t took_ns = arrival_now_ns() - before_ns;
        if (took_ns < quickest_ns) {
            quickest_ns = took_ns;
            ahead = before_ns + took_ns / 2 - its_ns;
        }
    }
    return ahead;
}

/* Processes with an equal one read one clock. */
static void clock_identity(char identity[IDENTITY_BYTES])
{
    memset(identity, 0, IDENTITY_BYTES);
    host_boot_id(identity, IDENTITY_BYTES / 2);
    host_link("/proc/self/ns/time", identity + IDENTITY_BYTES / 2, IDENTITY_BYTES / 2);
}

static void compare_clocks(int rank, int ranks)
{
    char own[IDENTITY_BYTES], first[IDENTITY_BYTES];
    clock_identity(own);
    memcpy(first, own, sizeof first);
    mpi.Bcast(first, sizeof first, mpi_abi.byte, 0, mpi_abi.comm_world);
    for (int peer = 1; rank == 0 && peer < ranks; peer++)
        answer(peer);
    int64_t measured_ns = rank == 0 ? 0 : ask();
    ahead_ns = memcmp(first, own, sizeof own) == 0 ? 0 : measured_ns;
}

int64_t arrival_common_ns(void)
{
    return arrival_now_ns() - ahead_ns;
}

void arrival_begin(enum arrival arrival, bool compares, int rank, int ranks)
{
    resolve();
    if (arrival == ARRIVAL_TOGETHER || compares)
        compare_clocks(rank, ranks);
}

/* A time, on this rank's clock, at which all are back: twice what the last agreement took after the
 * last rank had come to it. */
static int64_t agreed_ns(mpi_handle comm)
{
    double own[2] = {(double)(arrival_now_ns() - ahead_ns), (double)agreeing_ns}, last[2];
    mpi.Allreduce(own, last, 2, mpi_type_named("MPI_DOUBLE"), mpi_op_named("MPI_MAX"), comm);
    int64_t all_came_ns = (int64_t)last[0] + ahead_ns, took_ns = arrival_now_ns() - all_came_ns;
    agreeing_ns = took_ns < 0 ? 0 : took_ns < LONGEST_NS ? took_ns : LONGEST_NS;
    return all_came_ns + 2 * (int64_t)last[1];
}

void arrival_wait(enum arrival arrival, mpi_handle comm, bool is_counted)
{
    int64_t enter_ns = 0;
    if (arrival == ARRIVAL_RECORDED)
        return;
    mpi.Pcontrol(0);
    if (arrival == ARRIVAL_TOGETHER)
        enter_ns = agreed_ns(comm);
    else
        mpi.Barrier(comm);
    mpi.Pcontrol(is_counted);
    while (arrival_now_ns() < enter_ns)
        continue;
}
