/* Finds the launcher that started this process from its environment variables. They do not show whether the MPI library understood the
 * launcher: under the launcher of another MPI, a program runs as many jobs of one rank as there are processes. */
#ifndef COMMPROF_LAUNCHER_H
#define COMMPROF_LAUNCHER_H

#include <stdbool.h>

struct launcher {
    const char *name;     /* as users call it */
    const char *size;     /* the variable that holds its number of processes */
    const char *mark;     /* another variable that only it sets */
    const char *not_with; /* set where the process may be one that a user started by hand; NULL: none */
    const char *mpi_abi;  /* of the MPI libraries that understand it; NULL: several, by how it was configured */
    const char *version;  /* what the answer to --version has in it; NULL: it is not asked */
    const char *advice;   /* what to do where the MPI library has not understood it */
};

/* The launcher and how many processes it says to have started; NULL: none is known. Where one was started within the job of another,
 * the smaller job is taken: a missing diagnosis is better than a wrong one. */
const struct launcher *launcher_find(int *processes);

/* The launcher that says this when it is asked for its version; NULL: none that is known. */
const struct launcher *launcher_of_version(const char *text);

/* Whether an ancestor of this process has an MPI library loaded: that ancestor is a rank, and what it starts is a job of its own, whatever
 * the environment says. */
bool launcher_is_within_a_rank(void);

/* This process's rank and the size of its world as the launcher's environment gives them, or `otherwise`. */
int launcher_rank(int otherwise);
int launcher_size(int otherwise);

/* True on the first rank of each node: a fault of a whole node is reported once on it, not by each of its ranks. */
bool launcher_speaks_for_the_node(void);

/* Whether all ranks of a world of this size are on this host. */
bool launcher_is_on_one_host(int world_size);

#endif
