/* Finds the launcher that started this process from its environment variables. They do not show
 * whether the MPI library understood the launcher: under the launcher of another MPI, a program
 * runs as many jobs of one rank as there are processes. */
#ifndef COMMPROF_LAUNCHER_H
#define COMMPROF_LAUNCHER_H

#include <stdbool.h>

struct launcher {
    const char *name;     /* as users call it */
    const char *size;     /* the variable that holds its number of processes */
    const char *mark;     /* another variable that only it sets */
    const char *not_with; /* if this variable is set, a user may have started the process by hand;
                             NULL: none */
    const char *mpi_abi;  /* of the MPI libraries that work with it; NULL: several, depending on its
                             configuration */
    const char *version;  /* text in its answer to --version; NULL: it is not asked */
    const char *advice;   /* what to do if the MPI library does not work with it */
};

/* The launcher of this process, and how many processes it has started by its own account; NULL:
 * none is known. If the variables of several are set (one was started within the job of another),
 * the smaller job is chosen: a missing diagnosis is better than a wrong one. */
const struct launcher *launcher_find(int *processes);

/* The launcher that prints this text for --version; NULL: none that is known. */
const struct launcher *launcher_of_version(const char *text);

/* Whether an ancestor of this process has an MPI library loaded. That ancestor is a rank, and this
 * process is a job of its own, even if it has inherited the environment of a rank. */
bool launcher_is_within_a_rank(void);

/* Whether an ancestor of this process has mapped a file with this text in its path. */
bool launcher_has_ancestor_with(const char *mapped);

/* This process's rank and the size of its world as the launcher's environment gives them, or
 * `otherwise`. */
int launcher_rank(int otherwise);
int launcher_size(int otherwise);

/* True on the first rank of each node: a fault of a whole node is reported once on it, not by each
 * of its ranks. */
bool launcher_speaks_for_the_node(void);

/* Whether all ranks of a world of this size are on this host. */
bool launcher_is_on_one_host(int world_size);

#endif
