/* late_objects CALL RANK BUSY_MS ROUNDS: this rank computes before each call in which others wait
 * for it, on a window or a file, as its neighbors on a line, or where they poll. Each rank prints
 * "reading CALL ROUND RANK BEFORE_NS AFTER_NS". Two windows (files) are in use by turns, so that
 * each has a count of its own. */
#include <mpi.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "own_clock.h"

enum { ROUNDS = 64, OBJECTS = 2 };

static int rank, size;
static MPI_Win windows[OBJECTS];
static MPI_File files[OBJECTS];
static MPI_Comm line;
static int64_t readings[ROUNDS][2];

static void fence(int round)
{
    MPI_Win_fence(0, windows[round % OBJECTS]);
}

static void write_all(int round)
{
    MPI_File_write_at_all(files[round % OBJECTS], rank * 8, &round, 1, MPI_INT, MPI_STATUS_IGNORE);
}

static void create(int round)
{
    static int memory[8];
    MPI_Win created;
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &created);
    readings[round][1] = now_ns();
    MPI_Win_free(&created);
}

static void neighbors(int round)
{
    int sent[2] = {round, round}, received[2];
    MPI_Neighbor_alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, line);
}

static void nonblocking_neighbors(int round)
{
    int sent[2] = {round, round}, received[2];
    MPI_Request request;
    MPI_Ineighbor_alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, line, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void polled(int round)
{
    int sum, is_complete = 0;
    MPI_Request request;
    MPI_Iallreduce(&round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    while (!is_complete)
        MPI_Test(&request, &is_complete, MPI_STATUS_IGNORE);
}

static void (*chosen(const char *name))(int)
{
    if (strcmp(name, "MPI_Win_fence") == 0)
        return fence;
    if (strcmp(name, "MPI_File_write_at_all") == 0)
        return write_all;
    if (strcmp(name, "MPI_Neighbor_alltoall") == 0)
        return neighbors;
    if (strcmp(name, "MPI_Ineighbor_alltoall") == 0)
        return nonblocking_neighbors;
    if (strcmp(name, "MPI_Iallreduce") == 0)
        return polled;
    CHECK(strcmp(name, "MPI_Win_create") == 0);
    return create;
}

static void begin(void)
{
    int period = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &period, 0, &line);
    for (int i = 0; i < OBJECTS; i++) {
        int *memory;
        char path[32];
        snprintf(path, sizeof path, "late-%d.data", i);
        MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &windows[i]);
        CHECK(MPI_File_open(MPI_COMM_WORLD, path,
                            MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                            MPI_INFO_NULL, &files[i]) == MPI_SUCCESS);
    }
}

static void end(void)
{
    MPI_Comm_free(&line);
    for (int i = 0; i < OBJECTS; i++) {
        MPI_Win_free(&windows[i]);
        MPI_File_close(&files[i]);
    }
}

static void print_readings(const char *name, int of_rank, int rounds)
{
    for (int round = 0; round < rounds; round++)
        printf("reading %s %d %d %lld %lld\n", name, round, of_rank, (long long)readings[round][0],
               (long long)readings[round][1]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc == 5);
    void (*call)(int) = chosen(argv[1]);
    int late = atoi(argv[2]), rounds = atoi(argv[4]);
    int64_t busy_ns = atoi(argv[3]) * 1000000LL;
    CHECK(rounds <= ROUNDS);
    begin();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < rounds; round++) {
        if (rank == late)
            compute(busy_ns);
        readings[round][0] = now_ns();
        call(round);
        if (call != create)
            readings[round][1] = now_ns();
    }
    if (rank > 0)
        MPI_Send(readings, sizeof readings, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    else
        print_readings(argv[1], 0, rounds);
    for (int other = 1; rank == 0 && other < size; other++) {
        MPI_Recv(readings, sizeof readings, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        print_readings(argv[1], other, rounds);
    }
    end();
    MPI_Finalize();
    return 0;
}
