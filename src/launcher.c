/* SLURM_NTASKS is in no line: a batch script has it too, and so has what a user starts in an allocation by hand. SLURM_STEP_NUM_TASKS is
 * set by srun alone, but also around the daemons of a launcher, so that srun comes last. */
#include "launcher.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define OWN_MPIRUN "use that MPI's own mpirun"

/* clang-format off */
static const struct launcher LAUNCHERS[] = {
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", NULL, "Open MPI", "open-mpi.org", OWN_MPIRUN},
    {"MVAPICH's mpirun", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", NULL, "MPICH", NULL, OWN_MPIRUN},
    {"Hydra (mpirun of MPICH or Intel MPI)", "PMI_SIZE", "MPI_LOCALNRANKS", NULL, "MPICH", "HYDRA", OWN_MPIRUN},
    {"PALS's mpiexec", "PMI_SIZE", "PALS_APID", NULL, "MPICH", NULL, OWN_MPIRUN},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_PTY_PORT", NULL, NULL, "use srun --mpi=pmix or --mpi=pmi2"},
};
/* clang-format on */
enum { COUNT = sizeof LAUNCHERS / sizeof *LAUNCHERS, SRUN = COUNT - 1 };

/* 0: it has not started this process. */
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
