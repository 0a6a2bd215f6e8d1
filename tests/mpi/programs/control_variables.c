/* control_variables NAME WHEN: a program that uses MPI_T itself. It reads the integer NAME, with
 * MPI_T initialized "always" (before MPI_Init, in between, after MPI_Finalize) or only "within"
 * MPI_Init and MPI_Finalize; "never": it sees whether MPI_T is initialized all the same. */
#include <string.h>

#include <mpi.h>

#include "check.h"

static void init_mpi_t(void)
{
    int level;
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level) == MPI_SUCCESS);
}

static int read_variable(const char *name)
{
    MPI_T_cvar_handle handle;
    int index, count, value = -1;
    CHECK(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS);
    CHECK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS);
    CHECK(count == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS);
    CHECK(MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS);
    return value;
}

static int count_variables(void)
{
    int count;
    CHECK(MPI_T_cvar_get_num(&count) == MPI_SUCCESS);
    return count;
}

static void communicate(void)
{
    int rank, one = 1, sum, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size);
}

/* MPI_T stays initialized: Open MPI 4.1 crashes in an MPI_T_finalize after MPI_Finalize. */
static void read_all_the_time(const char *name)
{
    init_mpi_t();
    int value = read_variable(name);
    MPI_Init(NULL, NULL);
    CHECK(read_variable(name) == value);
    int count = count_variables();
    communicate();
    MPI_Finalize();
    CHECK(read_variable(name) == value);
    printf("%d, %d variables\n", value, count);
}

static void read_within(const char *name)
{
    int level, is_main;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    MPI_Query_thread(&level);
    MPI_Is_thread_main(&is_main);
    CHECK(is_main);
    init_mpi_t();
    printf("%d, %d variables, thread level %d\n", read_variable(name), count_variables(), level);
    MPI_T_finalize();
    communicate();
    MPI_Finalize();
}

static void read_uninitialized(void)
{
    int count;
    MPI_Init(NULL, NULL);
    printf("MPI_T is %sinitialized\n",
           MPI_T_cvar_get_num(&count) == MPI_T_ERR_NOT_INITIALIZED ? "not " : "");
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    if (strcmp(argv[2], "always") == 0)
        read_all_the_time(argv[1]);
    else if (strcmp(argv[2], "within") == 0)
        read_within(argv[1]);
    else
        read_uninitialized();
    return 0;
}
