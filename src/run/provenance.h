/* The provenance of a run: facts stored with it, and names derived from them. */
#ifndef COMMPROF_PROVENANCE_H
#define COMMPROF_PROVENANCE_H

#include <stdbool.h>

/* The program's name as its user knows it: "train" for `python3 -u train.py`, "solver" for
 * `./solver`. */
const char *provenance_program(void);

/* An id of this launch, equal on all its processes: the ids of the scheduler and the launcher, as
 * available; without either, the process's start time and process id. Valid in a file name. */
const char *provenance_job_id(void);

/* Whether that id comes from a launcher or scheduler, so that it is equal on all processes. */
bool provenance_is_launched(void);

/* The user's name as the environment has it, else the number; the day on which the job began,
 * 2026-11-23. Valid in a file name. */
const char *provenance_user(void);
const char *provenance_date(void);

/* Write the process's facts to the ledger: host, program, command line, settings, environment of
 * the MPI libraries. */
void provenance_record(void);

#endif
