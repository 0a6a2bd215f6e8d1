/* Which job has a run folder. All ranks of a job come to the same answer without a word between them, at any time and on any node.
 *
 * The job that has the folder writes to it. A job that finds it taken, or cannot tell, has to go elsewhere: nothing of a job that may
 * still run is moved or replaced. A folder whose job has ended is taken over. */
#ifndef COMMPROF_CLAIMS_H
#define COMMPROF_CLAIMS_H

#include <limits.h>
#include <stdbool.h>

struct claim {
    bool is_ours;        /* the folder */
    unsigned run;        /* which run of the folder this is, counted from 1; meaningless if it is not ours */
    char why[1024];      /* why it is not: "process 4711 of node17 writes to it" */
    char held[PATH_MAX]; /* what this very process has to give back at its end; "": nothing */
};

/* Ask for `folder` (absolute) in the name of `job`, which is text for a file name. Returns 0, or a reason (places.h). */
int claims_take(struct claim *claim, const char *folder, const char *job, int world_rank);

/* Whether the ledger of a rank may have a writer still; then `why` says so. */
bool claims_ledger_in_use(const char *folder, int world_rank, char *why, unsigned why_bytes);

/* This process writes to the folder no more. */
void claims_give_back(struct claim *claim);

#endif
