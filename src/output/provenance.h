/* Where a run comes from: the facts that are stored with it, and the names derived from them. */
#ifndef COMMPROF_PROVENANCE_H
#define COMMPROF_PROVENANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What the user would call this program: "train" for `python3 -u train.py`, "solver" for `./solver`. */
const char *provenance_program(void);

/* What names this launch, the same on all its processes: the scheduler's job id and the launcher's, as far as there are any;
 * for a process that nobody launched its start time and process id. Safe to use in a file name. */
const char *provenance_job_id(void);

const char *provenance_host(void);

/* The parent of any process of this host; 0 where it cannot be told. */
pid_t provenance_parent_of(pid_t pid);

/* Whether that id is the same on all its processes because a launcher or scheduler gave it. */
bool provenance_is_launched(void);

/* When a process of this host started, in the kernel's ticks since boot, as text; false where it cannot be seen. Not a number for one that
 * has ended and is still waited for. */
bool provenance_start_of(pid_t pid, char start[24]);

/* This boot of the node; "" where it cannot be told. */
void provenance_boot_id(char *id, size_t bytes);

/* What a link of /proc points to; "" where it cannot be read. */
void provenance_link(const char *link, char *name, size_t bytes);

/* Write the process's facts to the ledger: host, program, command line, settings, environment of the MPI libraries. */
void provenance_record(void);

#endif
