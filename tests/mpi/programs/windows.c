/* RMA on two ranks with all kinds of synchronization, each data call with a different size.
 * test_windows.py has the expected counts. */
#include "large_counts.h"

#include "check.h"

enum { ROOM = 256 };

static int rank, other, sent[ROOM], received[ROOM];
static MPI_Win window;

static void between_fences(void)
{
    MPI_Win_fence(0, window);
    for (int i = 0; i < 3; i++)
        MPI_Put(sent, 10, MPI_INT, other, 0, 10, MPI_INT, window);
    MPI_Put(sent, 99, MPI_INT, MPI_PROC_NULL, 0, 99, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Get(received, 10, MPI_INT, other, 0, 10, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK(received[9] == 9);
    if (rank == 0)
        MPI_Accumulate(sent, 20, MPI_INT, other, 100, 20, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
}

static void under_locks(void)
{
    int one = 1, zero = 0, before;
    MPI_Win_lock(MPI_LOCK_SHARED, other, 0, window);
    MPI_Get_accumulate(sent, 3, MPI_INT, received, 3, MPI_INT, other, 200, 3, MPI_INT, MPI_SUM,
                       window);
    MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, received, 5, MPI_INT, other, 200, 5, MPI_INT,
                       MPI_NO_OP, window);
    MPI_Win_flush_local(other, window);
    MPI_Fetch_and_op(&one, &before, MPI_INT, other, 220, MPI_SUM, window);
    MPI_Win_flush(other, window);
    MPI_Win_unlock(other, window);

    MPI_Win_lock_all(0, window);
    MPI_Compare_and_swap(&one, &zero, &before, MPI_INT, other, 221, window);
    MPI_Win_flush_local_all(window);
    MPI_Win_flush_all(window);
    MPI_Win_sync(window);
    MPI_Win_unlock_all(window);
}

static void by_request(void)
{
    MPI_Request requests[4];
    MPI_Win_lock(MPI_LOCK_SHARED, other, 0, window);
    MPI_Rput(sent, 30, MPI_INT, other, 0, 30, MPI_INT, window, &requests[0]);
    MPI_Rget(received, 40, MPI_INT, other, 0, 40, MPI_INT, window, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Raccumulate(sent, 50, MPI_INT, other, 100, 50, MPI_INT, MPI_SUM, window, &requests[2]);
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    MPI_Rget_accumulate(sent, 60, MPI_INT, received, 60, MPI_INT, other, 100, 60, MPI_INT, MPI_SUM,
                        window, &requests[3]);
    MPI_Wait(&requests[3], MPI_STATUS_IGNORE);
    MPI_Win_unlock(other, window);
}

/* Rank 0 writes to rank 1, which waits by MPI_Win_wait and by MPI_Win_test. */
static void between_post_and_wait(void)
{
    MPI_Group world, peer;
    int is_over = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &other, &peer);
    for (int i = 0; i < 2; i++) {
        if (rank == 0) {
            MPI_Win_start(peer, 0, window);
            MPI_Put(sent, 2, MPI_INT, other, 0, 2, MPI_INT, window);
            MPI_Win_complete(window);
        } else {
            MPI_Win_post(peer, 0, window);
            if (i == 0)
                MPI_Win_wait(window);
            else
                do
                    MPI_Win_test(window, &is_over);
                while (!is_over);
        }
    }
    MPI_Group_free(&peer);
    MPI_Group_free(&world);
}

static void other_windows(void)
{
    int *memory, mine[8] = {0};
    MPI_Aint address;
    MPI_Win created, dynamic, shared;
    MPI_Info hints;

    MPI_Win_create(mine, sizeof mine, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &created);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, created);
    MPI_Put(sent + 7, 1, MPI_INT, rank, 3, 1, MPI_INT, created);
    MPI_Win_unlock(rank, created);
    CHECK(mine[3] == 7);
    MPI_Win_free(&created);

    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
    MPI_Win_attach(dynamic, mine, sizeof mine);
    MPI_Get_address(&mine[4], &address);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, dynamic);
    MPI_Put(sent + 8, 1, MPI_INT, rank, address, 1, MPI_INT, dynamic);
    MPI_Win_unlock(rank, dynamic);
    CHECK(mine[4] == 8);
    MPI_Win_detach(dynamic, mine);
    MPI_Win_free(&dynamic);

    MPI_Win_allocate_shared(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &memory, &shared);
    MPI_Info_create(&hints);
    MPI_Win_set_info(shared, hints);
    MPI_Info_free(&hints);
    MPI_Win_free(&shared);
}

int main(int argc, char **argv)
{
    int *memory;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    for (int i = 0; i < ROOM; i++)
        sent[i] = i;
    MPI_Win_allocate(ROOM * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &window);
    for (int i = 0; i < ROOM; i++)
        memory[i] = 0;
    between_fences();
    under_locks();
    MPI_Barrier(MPI_COMM_WORLD);
    by_request();
    MPI_Barrier(MPI_COMM_WORLD);
    between_post_and_wait();
    MPI_Win_free(&window);
    other_windows();
    MPI_Finalize();
    return 0;
}
