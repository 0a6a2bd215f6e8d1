/* phases MILLISECONDS [kill]: phase after phase for that long, and at least 60. Each has 200
 * Allreduces, a message around the ring and a Bcast; its number plus one is the count of elements.
 * Rank 0 prints when each began and ended, on CLOCK_MONOTONIC. kill: all ranks are killed at the
 * end. */
#include <mpi.h>

#include <signal.h>
#include <string.h>

#include "check.h"
#include "own_clock.h"

enum { REDUCED = 200, FEWEST = 60, MOST = 1 << 16 };

static void run_phase(int rank, int size, int count)
{
    static double sent[MOST], received[MOST];
    for (int i = 0; i < REDUCED; i++)
        MPI_Allreduce(sent, received, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Sendrecv(sent, count, MPI_DOUBLE, (rank + 1) % size, 7, received, count, MPI_DOUBLE,
                 (rank + size - 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, goes_on = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int64_t end_ns = now_ns() + atoll(argv[1]) * 1000000;
    for (int phase = 0; goes_on; phase++) {
        int64_t begin_ns = now_ns();
        CHECK(phase < MOST);
        run_phase(rank, size, phase + 1);
        if (rank == 0)
            printf("phase %d %lld %lld\n", phase, (long long)begin_ns, (long long)now_ns());
        goes_on = phase < FEWEST || now_ns() < end_ns;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 2 && strcmp(argv[2], "kill") == 0)
        raise(SIGKILL);
    MPI_Finalize();
    return 0;
}
