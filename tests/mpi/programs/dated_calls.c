/* Reads the wall clock before and after each MPI_Allreduce and writes the times to
 * argv[1]/RANK.json, in the form of PyTorch's profiler. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { CALLS = 200 };

static int64_t unix_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void write_trace(const char *path, int64_t base_ns, int64_t times_ns[CALLS][2])
{
    FILE *file = fopen(path, "w");
    CHECK(file);
    fprintf(file, "{\"baseTimeNanoseconds\": %lld, \"traceEvents\": [", (long long)base_ns);
    for (int i = 0; i < CALLS; i++) {
        double start_us = (double)(times_ns[i][0] - base_ns) / 1e3,
               span_us = (double)(times_ns[i][1] - times_ns[i][0]) / 1e3;
        fprintf(file,
                "{\"ph\": \"X\", \"name\": \"outside\", \"pid\": %d, \"tid\": 1, \"ts\": %.3f, "
                "\"dur\": %.3f},",
                getpid(), start_us, span_us);
    }
    fprintf(file,
            "{\"ph\": \"M\", \"name\": \"process_labels\", \"pid\": %d, \"args\": {\"labels\": "
            "\"CPU\"}}]}\n",
            getpid());
    CHECK(fclose(file) == 0);
}

int main(int argc, char **argv)
{
    static int64_t times_ns[CALLS][2];
    int64_t base_ns = unix_ns() / 3600000000000 * 3600000000000;
    MPI_Init(&argc, &argv);
    int rank, one = 1, sum;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < CALLS; i++) {
        times_ns[i][0] = unix_ns();
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        times_ns[i][1] = unix_ns();
    }
    CHECK(argc == 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.json", argv[1], rank);
    write_trace(path, base_ns, times_ns);
    MPI_Finalize();
    return 0;
}
