/* SLURM_NTASKS does not identify srun: batch scripts have it too, and so have programs that a user
 * starts by hand in an allocation. SLURM_STEP_NUM_TASKS is set only by srun, but another launcher
 * may use srun to start its daemons, so srun is checked last. */
#include "launcher.h"

#include "base/host.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN_MPIRUN "use that MPI's own mpirun"

static const struct launcher LAUNCHERS[] = {
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", NULL, "Open MPI",
     "open-mpi.org", OWN_MPIRUN},
    {"MVAPICH's mpirun", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", NULL, "MPICH", NULL,
     OWN_MPIRUN},
    {"Hydra (mpirun of MPICH or Intel MPI)", "PMI_SIZE", "MPI_LOCALNRANKS", NULL, "MPICH", "HYDRA",
     OWN_MPIRUN},
    {"PALS's mpiexec", "PMI_SIZE", "PALS_APID", NULL, "MPICH", NULL, OWN_MPIRUN},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_PTY_PORT", NULL, NULL,
     "use srun with an --mpi=TYPE that this MPI supports, pmix or pmi2"},
};
enum { COUNT = sizeof LAUNCHERS / sizeof *LAUNCHERS, SRUN = COUNT - 1 };

/* The number of processes; 0 if this launcher has not started this process. */
static int processes_of(const struct launcher *launcher)
{
    const char *size = getenv(launcher->size);
    bool is_by_hand = launcher->not_with && getenv(launcher->not_with);
    return size && getenv(launcher->mark) && !is_by_hand ? atoi(size) : 0;
}

const struct launcher *launcher_find(int *processes)
{
    const struct launcher *found = NULL;
    for (int i = 0; i < COUNT && !(found && i == SRUN); i++) {
        int started = processes_of(&LAUNCHERS[i]);
        if (started < 1 || (found && started >= *processes))
            continue;
        found = &LAUNCHERS[i];
        *processes = started;
    }
    return found;
}

const struct launcher *launcher_of_version(const char *text)
{
    for (int i = 0; i < COUNT; i++)
        if (LAUNCHERS[i].version && strstr(text, LAUNCHERS[i].version))
            return &LAUNCHERS[i];
    return NULL;
}

static bool has_mapped(pid_t pid, const char *file)
{
    char name[64], line[PATH_MAX + 128];
    snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(name, "re");
    bool has = false;
    while (maps && !has && fgets(line, sizeof line, maps))
        has = strstr(line, file);
    if (maps)
        fclose(maps);
    return has;
}

bool launcher_has_ancestor_with(const char *mapped)
{
    pid_t pid = getpid();
    for (int depth = 0; depth < 16 && (pid = host_parent_of(pid)) > 1; depth++)
        if (has_mapped(pid, mapped))
            return true;
    return false;
}

bool launcher_is_within_a_rank(void)
{
    return launcher_has_ancestor_with("/libmpi");
}

static int number_from_environment(const char *const names[])
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value && *value)
            return atoi(value);
    }
    return -1;
}

/* torchrun sets RANK and WORLD_SIZE. */
int launcher_rank(int otherwise)
{
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",      "PMI_RANK",
                                        "MV2_COMM_WORLD_RANK",  "RANK",           "SLURM_PROCID",
                                        "PALS_RANKID",          "FLUX_TASK_RANK", NULL};
    int rank = number_from_environment(NAMES);
    return rank < 0 ? otherwise : rank;
}

int launcher_size(int otherwise)
{
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "MV2_COMM_WORLD_SIZE",  "WORLD_SIZE",
                                        "SLURM_NTASKS",         NULL};
    int size = number_from_environment(NAMES);
    return size < 1 ? otherwise : size;
}

bool launcher_speaks_for_the_node(void)
{
    static const char *const NAMES[] = {
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "MV2_COMM_WORLD_LOCAL_RANK",
        "LOCAL_RANK",
        "SLURM_LOCALID",
        "PALS_LOCAL_RANKID",
        "FLUX_TASK_LOCAL_ID",
        NULL,
    };
    return number_from_environment(NAMES) <= 0;
}

bool launcher_is_on_one_host(int world_size)
{
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "MV2_COMM_WORLD_LOCAL_SIZE", NULL};
    return number_from_environment(NAMES) == world_size;
}
