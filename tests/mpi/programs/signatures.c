/* signatures: calls with known datatypes, counts and operations. Writes a line for each call of
 * this rank that has moved something into $TRUTH/truth-RANK, in their order: the call; datatype,
 * size, extent, blocks; count; operation, whether it commutes; whether it is in place; its vector
 * of counts. `-` is null. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_RANKS = 16 };
static int rank, ranks, rising[MOST_RANKS], places[MOST_RANKS];
static FILE *out;
static float sent[4096], received[4096];

static void take_first(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
}

static void say(const char *call, const char *type, int count, const char *op, int in_place,
                const int *counts)
{
    fprintf(out, "%s|%s|%d|%s|%d|", call, type, count, op, in_place);
    for (int i = 0; counts && i < ranks; i++)
        fprintf(out, "%d,", counts[i]);
    fprintf(out, counts ? "\n" : "-\n");
}

/* Broadcasts two elements of a new type, and frees it. */
static void broadcast(MPI_Datatype type, const char *as)
{
    MPI_Type_commit(&type);
    MPI_Bcast(sent, 2, type, 0, MPI_COMM_WORLD);
    say("MPI_Bcast", as, 2, "|-", 0, NULL);
    MPI_Type_free(&type);
}

static void derived_types(void)
{
    const int sizes[] = {4, 5, 6}, part[] = {2, 3, 4}, corner[] = {0, 1, 0}, lengths[] = {1, 2, 3},
              at[] = {0, 4, 8};
    const MPI_Aint offsets[] = {0, 16, 32};
    const MPI_Datatype members[] = {MPI_INT, MPI_FLOAT, MPI_CHAR};
    MPI_Datatype type, within;
    for (int round = 0; round < 3; round++) { /* of one size and extent, mostly under one handle */
        MPI_Type_vector(3, 2, 4, MPI_INT, &type);
        broadcast(type, "vector|24|40|3");
        MPI_Type_vector(2, 3, 7, MPI_INT, &type);
        broadcast(type, "vector|24|40|2");
    }
    MPI_Type_vector(3, 2, 4, MPI_INT, &within);
    MPI_Type_create_resized(within, 0, 4, &type);
    broadcast(type, "resized|24|4|3");
    MPI_Type_dup(within, &type);
    MPI_Type_free(&within);
    broadcast(type, "dup|24|40|3");
    MPI_Type_contiguous(5, MPI_INT, &type);
    broadcast(type, "contiguous|20|20|1");
    MPI_Type_create_hvector(5, 1, 8, MPI_INT, &type);
    broadcast(type, "hvector|20|36|5");
    MPI_Type_create_subarray(3, sizes, part, corner, MPI_ORDER_C, MPI_INT, &type);
    broadcast(type, "subarray|96|480|6");
    MPI_Type_create_subarray(3, sizes, part, corner, MPI_ORDER_FORTRAN, MPI_INT, &type);
    broadcast(type, "subarray|96|480|12");
    MPI_Type_indexed(3, lengths, at, MPI_INT, &type);
    broadcast(type, "indexed|24|44|3");
    MPI_Type_create_hindexed(3, lengths, offsets, MPI_INT, &type);
    broadcast(type, "hindexed|24|44|3");
    MPI_Type_create_indexed_block(3, 2, at, MPI_INT, &type);
    broadcast(type, "indexed_block|24|40|3");
    MPI_Type_create_hindexed_block(3, 2, offsets, MPI_INT, &type);
    broadcast(type, "hindexed_block|24|40|3");
    MPI_Type_create_struct(3, lengths, offsets, members, &type);
    broadcast(type, "struct|15|36|3");
#if MPI_VERSION >= 4
    MPI_Type_vector_c(3, 2, 4, MPI_INT, &type);
    broadcast(type, "vector|24|40|3");
#endif
}

static void reduce_by_user(int commutes)
{
    MPI_Op op;
    MPI_Op_create(take_first, commutes, &op);
    MPI_Reduce(sent, received, 7, MPI_INT, op, 0, MPI_COMM_WORLD);
    say("MPI_Reduce", "MPI_INT|4|4|1", 7, commutes ? "user|1" : "user|0", 0, NULL);
    MPI_Op_free(&op);
}

static void reductions(void)
{
    MPI_Request request;
    for (int i = 0; i < 2; i++) {
        MPI_Allreduce(sent, received, 10, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        say("MPI_Allreduce", "MPI_FLOAT|4|4|1", 10, "MPI_SUM|1", 0, NULL);
        MPI_Allreduce(MPI_IN_PLACE, received, 10, MPI_FLOAT, MPI_PROD, MPI_COMM_WORLD);
        say("MPI_Allreduce", "MPI_FLOAT|4|4|1", 10, "MPI_PROD|1", 1, NULL);
    }
#if MPI_VERSION >= 4
    MPI_Allreduce_c(sent, received, 10, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    say("MPI_Allreduce", "MPI_FLOAT|4|4|1", 10, "MPI_SUM|1", 0, NULL);
#endif
    MPI_Iallreduce(sent, received, 3, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD, &request);
    say("MPI_Iallreduce", "MPI_DOUBLE_INT|12|16|1", 3, "MPI_MAXLOC|1", 0, NULL);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Reduce_scatter(sent, received, rising, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
    say("MPI_Reduce_scatter", "MPI_LONG|8|8|1", ranks * (ranks + 1) / 2, "MPI_MIN|1", 0, rising);
    for (int i = 0; i < 4; i++) /* mostly under one handle */
        reduce_by_user(i % 2);
    MPI_Allreduce(sent, received, 0, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); /* moves nothing */
    MPI_Barrier(MPI_COMM_WORLD);
}

static void vectors(void)
{
    MPI_Datatype types[MOST_RANKS];
    int other[MOST_RANKS], is_root = rank == 1;
    for (int i = 0; i < ranks; i++) {
        types[i] = MPI_INT;
        other[i] = rising[ranks - 1 - i];
    }
    MPI_Allgatherv(sent, rank + 1, MPI_INT, received, rising, places, MPI_INT, MPI_COMM_WORLD);
    say("MPI_Allgatherv", "MPI_INT|4|4|1", rank + 1, "|-", 0, rising);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, received, other, places, MPI_INT,
                   MPI_COMM_WORLD);
    say("MPI_Allgatherv", "MPI_INT|4|4|1", ranks - rank, "|-", 1, other);
    MPI_Gatherv(sent, rank + 1, MPI_INT, received, rising, places, MPI_INT, 1, MPI_COMM_WORLD);
    say("MPI_Gatherv", "MPI_INT|4|4|1", rank + 1, "|-", 0, is_root ? rising : NULL);
    MPI_Scatterv(sent, rising, places, MPI_INT, received, rank + 1, MPI_INT, 1, MPI_COMM_WORLD);
    say("MPI_Scatterv", "MPI_INT|4|4|1", is_root ? ranks * (ranks + 1) / 2 : rank + 1, "|-", 0,
        is_root ? rising : NULL);
    for (int i = 0; i < ranks; i++)
        other[i] = rank + i + 1;
    MPI_Alltoallv(sent, other, places, MPI_INT, received, other, places, MPI_INT, MPI_COMM_WORLD);
    say("MPI_Alltoallv", "MPI_INT|4|4|1", ranks * rank + ranks * (ranks + 1) / 2, "|-", 0, other);
    MPI_Alltoallw(sent, other, places, types, received, other, places, types, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++)
        other[i] *= 4;
    fprintf(out, "MPI_Alltoallw||-|-|-|-||-|0|");
    for (int i = 0; i < ranks; i++)
        fprintf(out, "%d,", other[i]);
    fprintf(out, "\n");
    MPI_Gather(is_root ? MPI_IN_PLACE : (void *)sent, 2, MPI_SHORT, received, 2, MPI_SHORT, 1,
               MPI_COMM_WORLD);
    say("MPI_Gather", "MPI_SHORT|2|2|1", 2, "|-", is_root, NULL);
    MPI_Alltoall(sent, 3, MPI_CHAR, received, 3, MPI_CHAR, MPI_COMM_WORLD);
    say("MPI_Alltoall", "MPI_CHAR|1|1|1", 3, "|-", 0, NULL);
}

static void messages(void)
{
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    MPI_Request requests[2];
    MPI_Sendrecv(sent, 6, MPI_INT, right, 0, received, 24, MPI_BYTE, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    say("MPI_Sendrecv", "MPI_INT|4|4|1", 6, "|-", 0, NULL);
    MPI_Irecv(received, 100, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
    say("MPI_Irecv", "MPI_INT|4|4|1", 100, "|-", 0, NULL);
    MPI_Isend(sent, 5, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[1]);
    say("MPI_Isend", "MPI_DOUBLE|8|8|1", 5, "|-", 0, NULL);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Send_init(sent, 4, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[1]);
    say("MPI_Send_init", "MPI_INT|4|4|1", 4, "|-", 0, NULL);
    MPI_Start(&requests[1]);
    MPI_Recv(received, 50, MPI_INT, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    say("MPI_Recv", "MPI_INT|4|4|1", 50, "|-", 0, NULL);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Request_free(&requests[1]);
    MPI_Send(sent, 9, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD); /* moves nothing */
}

static void windows(void)
{
    MPI_Win win;
    MPI_Win_create(received, sizeof received, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Accumulate(sent, 8, MPI_INT, 0, 0, 8, MPI_INT, MPI_SUM, win);
    say("MPI_Accumulate", "MPI_INT|4|4|1", 8, "MPI_SUM|1", 0, NULL);
    MPI_Accumulate(sent, 8, MPI_INT, 0, 64, 8, MPI_INT, MPI_REPLACE, win);
    say("MPI_Accumulate", "MPI_INT|4|4|1", 8, "MPI_REPLACE|0", 0, NULL);
    MPI_Win_fence(0, win);
    MPI_Put(sent, 2, MPI_INT, 0, 1024 + 8 * rank, 2, MPI_INT, win);
    say("MPI_Put", "MPI_INT|4|4|1", 2, "|-", 0, NULL);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    char path[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < ranks; i++) {
        rising[i] = i + 1;
        places[i] = 16 * i;
    }
    snprintf(path, sizeof path, "%s/truth-%d", getenv("TRUTH"), rank);
    out = fopen(path, "w");
    reductions();
    derived_types();
    vectors();
    messages();
    windows();
    fclose(out);
    MPI_Finalize();
    return 0;
}
