/* Creates a communicator by every constructor of MPI, on four ranks, and synchronizes once on each.
 * test_communicators.py has the expected descriptions. */
#include <mpi.h>

#include "mpi_4.h"
#include "check.h"

static int rank;

static void use(MPI_Comm comm)
{
    if (comm != MPI_COMM_NULL)
        MPI_Barrier(comm);
}

static void free_if_member(MPI_Comm *comm)
{
    if (*comm != MPI_COMM_NULL)
        MPI_Comm_free(comm);
}

static void duplicate(void)
{
    MPI_Comm first, second, informed, later;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_set_name(first, "gradients");
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &informed);
    MPI_Comm_idup(MPI_COMM_WORLD, &later, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    use(first), use(second), use(informed), use(later);
#if HAS_MPI_4
    MPI_Comm later_informed;
    MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &later_informed, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(MPI_IN_PLACE, &(int){1}, 1, MPI_INT, MPI_SUM, later_informed);
#endif
    MPI_Comm_free(&first);
    MPI_Comm_disconnect(&second);
    /* `informed` and `later` are never freed, as in many programs */
}

static void select_members(void)
{
    const int even[] = {0, 2}, odd[] = {1, 3};
    MPI_Group world, even_group, odd_group;
    MPI_Comm created, grouped = MPI_COMM_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, even, &even_group);
    MPI_Group_incl(world, 2, odd, &odd_group);

    MPI_Comm_create(MPI_COMM_WORLD, even_group, &created);
    if (rank % 2 == 1)
        MPI_Comm_create_group(MPI_COMM_WORLD, odd_group, 7, &grouped);
    use(created), use(grouped);
    free_if_member(&created), free_if_member(&grouped);
    MPI_Group_free(&world), MPI_Group_free(&even_group), MPI_Group_free(&odd_group);
}

static void split(void)
{
    MPI_Comm halves, three, node;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &halves); /* higher ranks first */
    MPI_Comm_set_name(halves, rank % 2 == 0 ? "even" : "odd");
    MPI_Comm_split(MPI_COMM_WORLD, rank == 3 ? MPI_UNDEFINED : 0, 0, &three);
    CHECK((three == MPI_COMM_NULL) == (rank == 3));
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    use(halves), use(three), use(node);
    MPI_Comm_free(&halves), free_if_member(&three), MPI_Comm_free(&node);
}

static void arrange(void)
{
    const int dims[] = {2, 2}, line[] = {3}, periods[] = {0, 0}, keep_columns[] = {0, 1};
    const int index[] = {1, 2, 3, 4}, edges[] = {1, 0, 3, 2};
    int neighbour = rank ^ 1, one = 1;
    MPI_Comm grid, rows, shorter, graph, general, adjacent;

    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_sub(grid, keep_columns, &rows);
    MPI_Cart_create(MPI_COMM_WORLD, 1, line, periods, 0, &shorter);
    MPI_Graph_create(MPI_COMM_WORLD, 4, index, edges, 0, &graph);
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &neighbour, MPI_UNWEIGHTED, MPI_INFO_NULL,
                          0, &general);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &neighbour, MPI_UNWEIGHTED, 1, &neighbour,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &adjacent);
    use(grid), use(rows), use(shorter), use(graph), use(general), use(adjacent);
    MPI_Comm_free(&grid), MPI_Comm_free(&rows), free_if_member(&shorter);
    MPI_Comm_free(&graph), MPI_Comm_free(&general), MPI_Comm_free(&adjacent);
}

static void connect(void)
{
    int is_odd = rank % 2, number = rank, from_remote[2];
    MPI_Comm local, bridge, merged;
    MPI_Comm_split(MPI_COMM_WORLD, is_odd, rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - is_odd, 5, &bridge);
    use(bridge);
    MPI_Allgather(&number, 1, MPI_INT, from_remote, 1, MPI_INT, bridge);
    CHECK(from_remote[1] == (is_odd ? 2 : 3));
    /* each rank sends to its counterpart in the other group: remote rank i is world rank 2i or 2i +
     * 1 */
    MPI_Sendrecv(&number, 1, MPI_INT, rank / 2, 1, from_remote, 1, MPI_INT, rank / 2, 1, bridge,
                 MPI_STATUS_IGNORE);
    CHECK(from_remote[0] == (rank ^ 1));
    MPI_Bcast(&number, 1, MPI_INT, is_odd ? 1 : rank == 2 ? MPI_ROOT : MPI_PROC_NULL, bridge);
    CHECK(number == (is_odd ? 2 : rank));
    MPI_Intercomm_merge(bridge, is_odd, &merged);
    use(merged);
    MPI_Comm_free(&merged), MPI_Comm_free(&bridge), MPI_Comm_free(&local);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    use(MPI_COMM_WORLD), use(MPI_COMM_SELF);
    duplicate();
    select_members();
    split();
    arrange();
    connect();
    MPI_Finalize();
    return 0;
}
