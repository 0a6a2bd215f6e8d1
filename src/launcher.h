/* The launcher that started this process, by its environment, which says nothing of whether the MPI library has understood it. A program
 * under the launcher of another MPI is as many jobs of one rank as there are processes. */
#ifndef COMMPROF_LAUNCHER_H
#define COMMPROF_LAUNCHER_H

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

#endif
