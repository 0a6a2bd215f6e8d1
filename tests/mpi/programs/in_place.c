/* Every collective that accepts MPI_IN_PLACE, on four ranks. Arguments that are not significant are
 * garbage, so that a tool that reads them fails. test_collectives.py has the expected counts. */
#define ROUNDS 1 /* an in-place reduction changes its input */
#include "collective_forms.h"

#include "check.h"

enum { RANKS = 4, ROOM = 64, UNUSED = -12345 };

static int rank, numbers[ROOM], received[ROOM];

static void reset(void)
{
    for (int i = 0; i < ROOM; i++)
        numbers[i] = i;
}

static void at_the_root(void)
{
    count_t counts[RANKS] = {1, 2, 3, 4};
    displacement_t displacements[RANKS] = {0, 1, 3, 6};

    if (rank == 2) {
        COLLECTIVE(Reduce, reduce, MPI_IN_PLACE, numbers, 5, MPI_INT, MPI_SUM, 2, MPI_COMM_WORLD);
        CHECK(numbers[4] == 16);
        COLLECTIVE(Gather, gather, MPI_IN_PLACE, UNUSED, MPI_DATATYPE_NULL, numbers, 6, MPI_INT, 2,
                   MPI_COMM_WORLD);
        COLLECTIVE(Gatherv, gatherv, MPI_IN_PLACE, UNUSED, MPI_DATATYPE_NULL, numbers, counts,
                   displacements, MPI_INT, 2, MPI_COMM_WORLD);
        COLLECTIVE(Scatter, scatter, numbers, 7, MPI_INT, MPI_IN_PLACE, UNUSED, MPI_DATATYPE_NULL,
                   2, MPI_COMM_WORLD);
        COLLECTIVE(Scatterv, scatterv, numbers, counts, displacements, MPI_INT, MPI_IN_PLACE,
                   UNUSED, MPI_DATATYPE_NULL, 2, MPI_COMM_WORLD);
    } else {
        COLLECTIVE(Reduce, reduce, numbers, NULL, 5, MPI_INT, MPI_SUM, 2, MPI_COMM_WORLD);
        COLLECTIVE(Gather, gather, numbers, 6, MPI_INT, NULL, UNUSED, MPI_DATATYPE_NULL, 2,
                   MPI_COMM_WORLD);
        COLLECTIVE(Gatherv, gatherv, numbers, rank + 1, MPI_INT, NULL, NULL, NULL,
                   MPI_DATATYPE_NULL, 2, MPI_COMM_WORLD);
        COLLECTIVE(Scatter, scatter, NULL, UNUSED, MPI_DATATYPE_NULL, received, 7, MPI_INT, 2,
                   MPI_COMM_WORLD);
        COLLECTIVE(Scatterv, scatterv, NULL, NULL, NULL, MPI_DATATYPE_NULL, received, rank + 1,
                   MPI_INT, 2, MPI_COMM_WORLD);
    }
}

static void everywhere(void)
{
    count_t by_rank[RANKS] = {1, 2, 3, 4}, counts[RANKS];
    displacement_t by_rank_at[RANKS] = {0, 1, 3, 6}, places[RANKS], byte_places[RANKS];
    MPI_Datatype types[RANKS] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};

    reset();
    COLLECTIVE(Allreduce, allreduce, MPI_IN_PLACE, numbers, 9, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(numbers[8] == 32);
    COLLECTIVE(Allgather, allgather, MPI_IN_PLACE, UNUSED, MPI_DATATYPE_NULL, numbers, 8, MPI_INT,
               MPI_COMM_WORLD);
    COLLECTIVE(Allgatherv, allgatherv, MPI_IN_PLACE, UNUSED, MPI_DATATYPE_NULL, numbers, by_rank,
               by_rank_at, MPI_INT, MPI_COMM_WORLD);
    COLLECTIVE(Alltoall, alltoall, MPI_IN_PLACE, UNUSED, MPI_DATATYPE_NULL, numbers, 2, MPI_INT,
               MPI_COMM_WORLD);

    for (int other = 0; other < RANKS; other++) {
        counts[other] = rank + other;
        places[other] = 8 * other;
        byte_places[other] = 32 * other;
    }
    reset();
    COLLECTIVE(Alltoallv, alltoallv, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, numbers, counts,
               places, MPI_INT, MPI_COMM_WORLD);
    CHECK(numbers[8 * 3] == 8 * rank);
    reset();
    COLLECTIVE(Alltoallw, alltoallw, MPI_IN_PLACE, NULL, NULL, NULL, numbers, counts, byte_places,
               types, MPI_COMM_WORLD);
    CHECK(numbers[8 * 3] == 8 * rank);

    COLLECTIVE(Reduce_scatter, reduce_scatter, MPI_IN_PLACE, numbers, by_rank, MPI_INT, MPI_SUM,
               MPI_COMM_WORLD);
    COLLECTIVE(Reduce_scatter_block, reduce_scatter_block, MPI_IN_PLACE, numbers, 3, MPI_INT,
               MPI_SUM, MPI_COMM_WORLD);
    reset();
    COLLECTIVE(Scan, scan, MPI_IN_PLACE, numbers, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(numbers[2] == 2 * (rank + 1));
    COLLECTIVE(Exscan, exscan, MPI_IN_PLACE, numbers, 11, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    reset();
    at_the_root();
    everywhere();
    MPI_Finalize();
    return 0;
}
