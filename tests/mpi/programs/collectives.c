/* Every collective on four ranks, each with a different message size. test_collectives.py has the
 * expected counts. */
#include "collective_forms.h"

#include "check.h"

enum { RANKS = 4, ROOM = 64 };

static int rank, sent[ROOM], received[ROOM];
static double values[ROOM], sums[ROOM];

static void synchronize(void)
{
    for (int i = 0; i < 3; i++)
        COLLECTIVE(Barrier, barrier, MPI_COMM_WORLD);
}

static void from_one(void)
{
    count_t counts[RANKS] = {1, 2, 3, 4};
    displacement_t displacements[RANKS] = {0, 1, 3, 6};

    for (int i = 0; i < 2; i++)
        COLLECTIVE(Bcast, bcast, sent, 10, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(sent[9] == 9);
    COLLECTIVE(Bcast, bcast, sent, 6, MPI_INT, 2, MPI_COMM_WORLD);
    COLLECTIVE(Bcast, bcast, sent, 0, MPI_INT, 0, MPI_COMM_WORLD);

    COLLECTIVE(Scatter, scatter, sent, 6, MPI_INT, received, 6, MPI_INT, 3, MPI_COMM_WORLD);
    COLLECTIVE(Scatterv, scatterv, sent, counts, displacements, MPI_INT, received, rank + 1,
               MPI_INT, 1, MPI_COMM_WORLD);
    CHECK(received[rank] == (int)displacements[rank] + rank);
}

static void to_one(void)
{
    count_t counts[RANKS] = {1, 2, 3, 4};
    displacement_t displacements[RANKS] = {0, 1, 3, 6};

    for (int i = 0; i < 2; i++)
        COLLECTIVE(Reduce, reduce, values, sums, 5, MPI_DOUBLE, MPI_SUM, 1, MPI_COMM_WORLD);
    CHECK(rank != 1 || sums[0] == 4.0);
    COLLECTIVE(Gather, gather, sent, 6, MPI_INT, received, 6, MPI_INT, 0, MPI_COMM_WORLD);
    COLLECTIVE(Gatherv, gatherv, sent, rank + 1, MPI_INT, received, counts, displacements, MPI_INT,
               0, MPI_COMM_WORLD);
    CHECK(rank != 0 || received[9] == 3);
}

static void all_to_all(void)
{
    count_t by_rank[RANKS] = {1, 2, 3, 4}, sent_counts[RANKS], received_counts[RANKS];
    displacement_t by_rank_at[RANKS] = {0, 1, 3, 6}, places[RANKS], byte_places[RANKS];
    MPI_Datatype sent_types[RANKS], received_types[RANKS];

    COLLECTIVE(Allgather, allgather, sent, 8, MPI_INT, received, 8, MPI_INT, MPI_COMM_WORLD);
    CHECK(received[31] == 7);
    COLLECTIVE(Allgatherv, allgatherv, sent, rank + 1, MPI_INT, received, by_rank, by_rank_at,
               MPI_INT, MPI_COMM_WORLD);
    CHECK(received[9] == 3);
    COLLECTIVE(Alltoall, alltoall, sent, 2, MPI_INT, received, 2, MPI_INT, MPI_COMM_WORLD);
    CHECK(received[7] == 2 * rank + 1);

    for (int other = 0; other < RANKS; other++) {
        sent_counts[other] = received_counts[other] = rank + other;
        places[other] = 8 * other;
    }
    COLLECTIVE(Alltoallv, alltoallv, sent, sent_counts, places, MPI_INT, received, received_counts,
               places, MPI_INT, MPI_COMM_WORLD);
    CHECK(received[8 * 3] == 8 * rank);

    for (int other = 0; other < RANKS; other++) {
        sent_counts[other] = rank + 1;
        received_counts[other] = other + 1;
        byte_places[other] = 32 * other;
        sent_types[other] = other % 2 == 0 ? MPI_INT : MPI_DOUBLE;
        received_types[other] = rank % 2 == 0 ? MPI_INT : MPI_DOUBLE;
    }
    COLLECTIVE(Alltoallw, alltoallw, sent, sent_counts, byte_places, sent_types, received,
               received_counts, byte_places, received_types, MPI_COMM_WORLD);
}

static void reduce_for_all(void)
{
    count_t counts[RANKS] = {1, 2, 3, 4};

    for (int i = 0; i < 3; i++)
        COLLECTIVE(Allreduce, allreduce, sent, received, 7, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(received[6] == 24);
    COLLECTIVE(Reduce_scatter, reduce_scatter, sent, received, counts, MPI_INT, MPI_SUM,
               MPI_COMM_WORLD);
    COLLECTIVE(Reduce_scatter_block, reduce_scatter_block, sent, received, 3, MPI_INT, MPI_SUM,
               MPI_COMM_WORLD);
    CHECK(received[2] == 4 * (3 * rank + 2));
    COLLECTIVE(Scan, scan, values, sums, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sums[2] == rank + 1.0);
    COLLECTIVE(Exscan, exscan, sent, received, 11, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ROOM; i++) {
        sent[i] = i;
        values[i] = 1.0;
    }
    synchronize();
    from_one();
    to_one();
    all_to_all();
    reduce_for_all();
    MPI_Finalize();
    return 0;
}
