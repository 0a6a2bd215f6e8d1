/* Creates and frees as many communicators as the argument says: duplicates of the world, parts of
 * each duplicate, groups with tags. Memory is allocated and freed in between, so that handles that
 * are addresses differ. Prints by how many kilobytes the process grew during the last nine
 * tenths. */
#include <string.h>

#include <mpi.h>

#include "check.h"

static long resident_kilobytes(void)
{
    char line[256];
    long kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kilobytes = atol(line + 6);
    fclose(status);
    return kilobytes;
}

enum { BLOCKS = 64 };

static void move_memory(int i)
{
    static void *blocks[BLOCKS];
    free(blocks[i % BLOCKS]);
    blocks[i % BLOCKS] = malloc(300 + (size_t)i * 7919 % 900);
}

static void make_and_free(int i, MPI_Group both)
{
    MPI_Comm copy, part, group;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    move_memory(i);
    MPI_Comm_split(copy, 0, 0, &part);
    if (i % 100 == 0)
        MPI_Barrier(part);
    MPI_Comm_free(&copy);
    MPI_Comm_create_group(MPI_COMM_WORLD, both, i % 30000, &group);
    MPI_Comm_free(&group);
    MPI_Comm_free(&part);
}

int main(int argc, char **argv)
{
    int rank, rounds = argc > 1 ? atoi(argv[1]) / 3 : 1000;
    long before = 0;
    MPI_Group both;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_group(MPI_COMM_WORLD, &both);
    for (int i = 0; i < rounds; i++) {
        if (i == rounds / 10)
            before = resident_kilobytes();
        make_and_free(i, both);
    }
    printf("rank %d grew by %ld kB\n", rank, resident_kilobytes() - before);
    fflush(stdout);
    MPI_Group_free(&both);
    MPI_Finalize();
    return 0;
}
