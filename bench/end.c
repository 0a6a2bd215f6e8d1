/* How long MPI_Finalize takes after N calls (half of them messages), in milliseconds: by the clock,
 * and on a core. With 200,000 calls the sample log is full. Linked with toy_mpi.c.
 *
 *     end N */
#include "timing.h"
#include "toy_mpi.h"

#include <stdio.h>

static char out[8], in[8];

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    int provided, request, calls = argc > 1 ? atoi(argv[1]) : 0;
    MPI_Init_thread(&argc, &argv, 0, &provided);
    for (int i = 0; i < calls; i += 4) {
        MPI_Allreduce(out, in, 8, TOY_BYTE, TOY_SUM, TOY_WORLD);
        MPI_Irecv(in, 8, TOY_BYTE, i % TOY_RANKS, 0, TOY_WORLD, &request);
        MPI_Send(out, 8, TOY_BYTE, i % TOY_RANKS, 0, TOY_WORLD);
        MPI_Wait(&request, TOY_IGNORE);
    }
    double ns = now_ns(), ms = cpu_ms();
    MPI_Finalize();
    printf("%.1f %.1f\n", (now_ns() - ns) / 1e6, cpu_ms() - ms);
    return 0;
}
