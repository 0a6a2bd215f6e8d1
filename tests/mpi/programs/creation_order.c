/* Four ranks create communicators in different orders, use them in different orders, complete idups
 * in different orders, and create one after freeing another one. The size of its one Allreduce
 * identifies each communicator: the n-th kind moves n integers. test_communicators.py checks that
 * the ranks agree on their identities. */
#include <mpi.h>

#include "check.h"

enum {
    PAIR_01 = 1,
    PAIR_02,
    PAIR_13,
    PAIR_23,
    FIRST_DUP,
    SECOND_DUP,
    THIRD_DUP,
    FIRST_IDUP,
    SECOND_IDUP,
    SPLIT_AS_DUP,
    FIRST_PASSING,
    KINDS = FIRST_PASSING + 4
};

static int rank, numbers[KINDS];

static void use_as(int kind, MPI_Comm comm)
{
    MPI_Allreduce(MPI_IN_PLACE, numbers, kind, MPI_INT, MPI_SUM, comm);
}

static void make_pair(int kind, int low, int high)
{
    const int pair[] = {low, high};
    MPI_Group world, group;
    MPI_Comm comm;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, pair, &group);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, kind, &comm);
    use_as(kind, comm);
    MPI_Group_free(&world), MPI_Group_free(&group);
}

static void make_pairs_in_own_order(void)
{
    if (rank == 0)
        make_pair(PAIR_01, 0, 1), make_pair(PAIR_02, 0, 2);
    if (rank == 1)
        make_pair(PAIR_01, 0, 1), make_pair(PAIR_13, 1, 3);
    if (rank == 2)
        make_pair(PAIR_23, 2, 3), make_pair(PAIR_02, 0, 2);
    if (rank == 3)
        make_pair(PAIR_23, 2, 3), make_pair(PAIR_13, 1, 3);
}

static void use_dups_in_another_order(void)
{
    MPI_Comm first, second, third, split;
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &split);
    MPI_Comm_dup(first, &third);
    use_as(SPLIT_AS_DUP, split);
    /* the first uses differ between ranks: nonblocking calls may be posted in any order */
    MPI_Request requests[2];
    if (rank % 2 == 0) {
        MPI_Iallreduce(MPI_IN_PLACE, numbers, FIRST_DUP, MPI_INT, MPI_SUM, first, &requests[0]);
        MPI_Iallreduce(MPI_IN_PLACE, numbers + 1, SECOND_DUP, MPI_INT, MPI_SUM, second,
                       &requests[1]);
    } else {
        MPI_Iallreduce(MPI_IN_PLACE, numbers + 1, SECOND_DUP, MPI_INT, MPI_SUM, second,
                       &requests[1]);
        MPI_Iallreduce(MPI_IN_PLACE, numbers, FIRST_DUP, MPI_INT, MPI_SUM, first, &requests[0]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    use_as(FIRST_DUP, first), use_as(SECOND_DUP, second), use_as(THIRD_DUP, third);
}

static void complete_idups_in_another_order(void)
{
    MPI_Comm first, second;
    MPI_Request requests[2];
    MPI_Comm_idup(MPI_COMM_WORLD, &first, &requests[0]);
    MPI_Comm_idup(MPI_COMM_WORLD, &second, &requests[1]);
    MPI_Wait(&requests[rank % 2], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1 - rank % 2], MPI_STATUS_IGNORE);
    use_as(FIRST_IDUP, first), use_as(SECOND_IDUP, second);
}

static void reuse_the_handle_of_a_freed_one(void)
{
    for (int i = 0; i < 4; i++) {
        MPI_Comm passing;
        MPI_Comm_dup(MPI_COMM_WORLD, &passing);
        use_as(FIRST_PASSING + i, passing);
        MPI_Comm_free(&passing);
    }
}

static void make_some_that_only_rank_3_has(void)
{
    MPI_Comm own;
    for (int i = 0; rank == 3 && i < 5; i++) {
        MPI_Comm_dup(MPI_COMM_SELF, &own);
        MPI_Barrier(own);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    make_some_that_only_rank_3_has();
    make_pairs_in_own_order();
    use_dups_in_another_order();
    complete_idups_in_another_order();
    reuse_the_handle_of_a_freed_one();
    MPI_Finalize();
    return 0;
}
