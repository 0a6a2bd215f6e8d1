/* Rank 0 sends 20,000 messages of different sizes from a thread with a stack of 16 kB, and prints
 * how much of it was used. */
#include <mpi.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { SIZES = 20000, STACK_BYTES = 16 << 10, OWN_BYTES = 1 << 10, UNTOUCHED = 0xa5 };

static char buffer[SIZES];

static void *send_all(void *unused)
{
    volatile char own[OWN_BYTES] = "a program uses some of it, too";
    for (int bytes = 0; bytes < SIZES && own[0]; bytes++)
        MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    return unused;
}

static unsigned char *new_stack(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *memory =
        mmap(NULL, STACK_BYTES + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK(mprotect(memory, page, PROT_NONE) == 0);
    return memset(memory + page, UNTOUCHED, STACK_BYTES);
}

static void send_from_small_stack(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    unsigned char *stack = new_stack();
    int free_bytes = 0;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstack(&attributes, stack, STACK_BYTES) == 0);
    CHECK(pthread_create(&thread, &attributes, send_all, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    while (stack[free_bytes] == UNTOUCHED)
        free_bytes++;
    printf("%d\n", STACK_BYTES - free_bytes);
}

int main(int argc, char **argv)
{
    int rank, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        send_from_small_stack();
    else
        for (int i = 0; i < SIZES; i++)
            MPI_Recv(buffer, SIZES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
