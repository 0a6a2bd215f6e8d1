/* Calls MPI for half a second, in which a profiler could look at it several times, and prints what
 * of CUDA's it has open then, and which threads run in it: "mapped libcuda.so.1", "thread
 * commprof-gpu". */
#include <mpi.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print_libraries(void)
{
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        const char *name = strrchr(line, '/');
        if (name &&
            (strstr(name, "libcuda") || strstr(name, "libcupti") || strstr(name, "libnccl")))
            printf("mapped %s", name + 1);
    }
    fclose(maps);
}

static void print_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));) {
        char path[512], name[64] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file))
            printf("thread %s", name);
        if (file)
            fclose(file);
    }
    closedir(tasks);
}

int main(int argc, char **argv)
{
    int one = 1, sum;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 50; i++) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        usleep(10000);
    }
    print_libraries();
    print_threads();
    MPI_Finalize();
    return 0;
}
