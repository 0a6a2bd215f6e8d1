/* Jobs that hang in different ways; often the last rank computes forever. One job runs forever
 * without hanging. The test kills them. */
#include <mpi.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void compute_for_ever(void)
{
    for (;;)
        pause();
}

static void last_rank_computes(void)
{
    if (rank == size - 1)
        compute_for_ever();
}

static void skipped_barrier(void)
{
    last_rank_computes();
    MPI_Barrier(MPI_COMM_WORLD);
}

static void different_functions(void)
{
    double number = 1, sum;
    if (rank == 0)
        MPI_Allreduce(&number, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    else
        MPI_Bcast(&number, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

/* A broadcast that delivers less than requested, long before the job hangs. For MPICH that is an
 * error. */
static void different_sizes(void)
{
    char bytes[8] = "";
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Bcast(bytes, rank == 0 ? 4 : 8, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    skipped_barrier();
}

/* The root and the last rank compute. */
static void late_root(void)
{
    double number = 1;
    last_rank_computes();
    if (rank == 0)
        compute_for_ever();
    MPI_Bcast(&number, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static void circle(void)
{
    int number;
    MPI_Recv(&number, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void chain(void)
{
    int number;
    last_rank_computes();
    MPI_Recv(&number, 1, MPI_INT, rank + 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void nonblocking(void)
{
    double number[2] = {1, 2}, sum[2];
    MPI_Request requests[2];
    MPI_Iallreduce(&number[0], &sum[0], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    last_rank_computes();
    MPI_Iallreduce(&number[1], &sum[1], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void requests(void)
{
    int number;
    MPI_Request request;
    last_rank_computes();
    MPI_Irecv(&number, 1, MPI_INT, rank + 1, 3, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Half of the ranks make a collective of their own; one of them waits for a message that never
 * arrives instead. */
static void sub_communicator(void)
{
    MPI_Comm half;
    int number;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    if (rank == 2)
        MPI_Recv(&number, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        compute_for_ever();
    MPI_Barrier(half);
}

/* Rank 0 continues, which shows that the others make no calls. */
static void polling(void)
{
    int number, flag;
    last_rank_computes();
    for (; rank == 0;)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Recv(&number, 1, MPI_INT, size - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void healthy(void)
{
    double number = 1, sum;
    for (;;)
        MPI_Allreduce(&number, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*hang)(void);
} WAYS[] = {
    {"skipped_barrier", skipped_barrier},
    {"different_functions", different_functions},
    {"different_sizes", different_sizes},
    {"late_root", late_root},
    {"circle", circle},
    {"chain", chain},
    {"nonblocking", nonblocking},
    {"requests", requests},
    {"sub_communicator", sub_communicator},
    {"polling", polling},
    {"healthy", healthy},
};

int main(int argc, char **argv)
{
    int number = 1, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++)
        if (argc > 1 && strcmp(argv[1], WAYS[i].name) == 0)
            WAYS[i].hang();
    MPI_Finalize();
    return 0;
}
