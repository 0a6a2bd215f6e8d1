/* Efficient and inefficient patterns, in pairs: `message_shapes MODE STEPS`. In each step the ranks
 * sum a large array. Before that they sum many small ones (`many_small`) or the same bytes at once
 * (`fused`); many single values (`tiny`) or all values at once (`together`); make many Barriers
 * (`barriers`); or rank 1 sleeps (`late`). `large`: nothing else. `receive_early`: rank 1 sleeps in
 * every second step and sends, rank 0 receives and sleeps; `receive_late`: rank 0 posts the receive
 * before it sleeps. Each rank prints in nanoseconds how long all steps took, how long the fastest
 * step, and how long it slept: "took RANK ALL FASTEST SLEPT". */
#include <mpi.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "own_clock.h"

enum { SMALL = 18, MANY = 1000, LARGE = SMALL * MANY, SLEEP_NS = 10000000 };

static float mine[LARGE], sum[LARGE];
static const char *mode;
static int rank;
static int64_t slept_ns;

static int is(const char *name)
{
    return strcmp(mode, name) == 0;
}

static void sleep_in_place_of_work(void)
{
    int64_t start_ns = now_ns();
    nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    slept_ns += now_ns() - start_ns;
}

static void sum_floats(int count, int times)
{
    for (int i = 0; i < times; i++)
        MPI_Allreduce(mine, sum, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void pass_one(int is_posted_first, int is_late)
{
    if (rank == 0 && is_posted_first) {
        MPI_Request request;
        MPI_Irecv(sum, SMALL, MPI_FLOAT, 1, 0, MPI_COMM_WORLD, &request);
        sleep_in_place_of_work();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 0) {
        MPI_Recv(sum, SMALL, MPI_FLOAT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sleep_in_place_of_work();
    } else if (rank == 1) {
        if (is_late)
            sleep_in_place_of_work();
        MPI_Send(mine, SMALL, MPI_FLOAT, 0, 0, MPI_COMM_WORLD);
    }
}

static void step(int number)
{
    if (is("many_small"))
        sum_floats(SMALL, MANY);
    if (is("fused"))
        sum_floats(LARGE, 1);
    if (is("tiny"))
        sum_floats(1, MANY);
    if (is("together"))
        sum_floats(MANY, 1);
    for (int i = 0; is("barriers") && i < MANY; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    if (is("late") && rank == 1)
        sleep_in_place_of_work();
    if (is("receive_early") || is("receive_late"))
        pass_one(is("receive_late"), number % 2);
    sum_floats(LARGE, 1);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(argc == 3);
    mode = argv[1];
    int64_t start_ns = now_ns(), end_ns = start_ns, fastest_ns = INT64_MAX;
    for (int i = 0; i < atoi(argv[2]); i++) {
        int64_t begin_ns = end_ns;
        step(i);
        end_ns = now_ns();
        fastest_ns = end_ns - begin_ns < fastest_ns ? end_ns - begin_ns : fastest_ns;
    }
    printf("took %d %lld %lld %lld\n", rank, (long long)(end_ns - start_ns), (long long)fastest_ns,
           (long long)slept_ns);
    MPI_Finalize();
    return 0;
}
