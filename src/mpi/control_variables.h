/* The control variables of the MPI library (MPI-4.1, 15.3.6): all settings in force, those that
 * nobody has set included. */
#ifndef COMMPROF_CONTROL_VARIABLES_H
#define COMMPROF_CONTROL_VARIABLES_H

struct control_variables {
    int read, all;
};

/* Calls `take` once for each variable that applies to the whole process and can be written as text;
 * returns how many there are. MPI_T is initialized for this, so MPI must be initialized;
 * `thread_level` (0 to 3) must be the job's own. 0 of 0 if the library has no MPI_T. */
struct control_variables control_variables_read(int thread_level,
                                                void (*take)(const char *name, const char *value));

#endif
