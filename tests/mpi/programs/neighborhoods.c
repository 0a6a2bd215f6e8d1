/* Every neighborhood collective on four ranks, on a grid, a line, and a star whose center only
 * sends. test_neighborhoods.py has the expected counts. */
#include "collective_forms.h"

#include "check.h"

enum { RANKS = 4, ROOM = 64 };

static int rank, sent[ROOM], received[ROOM];

/* Two by two, both dimensions periodic: four neighbors each. */
static void over_a_grid(void)
{
    MPI_Comm grid;
    int dimensions[2] = {2, 2}, periods[2] = {1, 1};
    MPI_Cart_create(MPI_COMM_WORLD, 2, dimensions, periods, 0, &grid);
    MPI_Comm_set_name(grid, "grid");

    count_t counts[4] = {2, 2, 3, 3}; /* in each dimension both neighbors are the same rank; their
                                         order differs between MPI libraries */
    displacement_t places[4] = {0, 8, 16, 24};
    MPI_Aint byte_places[4] = {0, 32, 64, 96};
    MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    count_t alike[4] = {3, 3, 3, 3};

    COLLECTIVE(Neighbor_allgather, neighbor_allgather, sent, 5, MPI_INT, received, 5, MPI_INT,
               grid);
    CHECK(received[19] == 4);
    COLLECTIVE(Neighbor_allgatherv, neighbor_allgatherv, sent, 3, MPI_INT, received, alike, places,
               MPI_INT, grid);
    CHECK(received[26] == 2);
    COLLECTIVE(Neighbor_alltoall, neighbor_alltoall, sent, 2, MPI_INT, received, 2, MPI_INT, grid);
    COLLECTIVE(Neighbor_alltoallv, neighbor_alltoallv, sent, counts, places, MPI_INT, received,
               counts, places, MPI_INT, grid);
    COLLECTIVE(Neighbor_alltoallw, neighbor_alltoallw, sent, alike, byte_places, types, received,
               alike, byte_places, types, grid);
    MPI_Comm_free(&grid);
}

/* A line: the missing neighbors at both ends (MPI_PROC_NULL) count like others. */
static void over_a_line(void)
{
    MPI_Comm line, copy;
    int dimension = RANKS, period = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &dimension, &period, 0, &line);
    MPI_Comm_dup(line, &copy); /* copies the topology */
    MPI_Comm_set_name(copy, "line");
    COLLECTIVE(Neighbor_alltoall, neighbor_alltoall, sent, 7, MPI_INT, received, 7, MPI_INT, copy);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&line);
}

/* Rank 0 sends to all others, which only receive. */
static void over_a_star(void)
{
    MPI_Comm star;
    int others[RANKS - 1] = {1, 2, 3}, center = 0;
    if (rank == 0)
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_UNWEIGHTED, 3, others,
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &star);
    else
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &center, MPI_UNWEIGHTED, 0, NULL,
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &star);
    MPI_Comm_set_name(star, "star");

    count_t out[3] = {1, 2, 3}, in = rank;
    displacement_t places[3] = {0, 1, 3}, at = 0;
    COLLECTIVE(Neighbor_alltoall, neighbor_alltoall, sent, 3, MPI_INT, received, 3, MPI_INT, star);
    if (rank == 0)
        COLLECTIVE(Neighbor_alltoallv, neighbor_alltoallv, sent, out, places, MPI_INT, received,
                   &in, &at, MPI_INT, star);
    else
        COLLECTIVE(Neighbor_alltoallv, neighbor_alltoallv, sent, &in, &at, MPI_INT, received, &in,
                   &at, MPI_INT, star);
    CHECK(rank == 0 || received[rank - 1] == (int)places[rank - 1] + rank - 1);
    MPI_Comm_free(&star);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ROOM; i++)
        sent[i] = i;
    over_a_grid();
    over_a_line();
    over_a_star();
    MPI_Finalize();
    return 0;
}
