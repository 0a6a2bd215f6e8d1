/* Which job owns a run folder. All ranks of a job get the same answer without communicating, at any
 * time and on any node.
 *
 * Only the owner writes to the folder. A job must use another folder if this one has an owner that
 * runs or may still run: no files of such a job are moved or replaced. If the owner has ended, the
 * next job takes over the folder. */
#ifndef COMMPROF_CLAIMS_H
#define COMMPROF_CLAIMS_H

#include <limits.h>
#include <stdbool.h>

struct claim {
    bool is_ours; /* this job owns the folder */
    /* which run of the folder this is, counted from 1; meaningless if it is not ours */
    unsigned run;
    char why[1024];      /* why it does not: "process 4711 of node17 writes to it" */
    char held[PATH_MAX]; /* the link that this process removes at its end; "": none */
};

/* Claim `folder` (absolute) for `job`, a name that is valid in a file name. Returns 0, or a reason
 * (filesystems.h). */
int claims_take(struct claim *claim, const char *folder, const char *job, int world_rank);

/* Whether a rank's ledger may still have a writer; if so, `why` describes it. */
bool claims_ledger_in_use(const char *folder, int world_rank, char *why, unsigned why_bytes);

/* Release the claim: this process no longer writes to the folder. */
void claims_give_back(struct claim *claim);

/* Delete the folder, with what it holds about this run's claim, unless there are other files in
 * it. */
void claims_remove_empty(const struct claim *claim, const char *folder);

#endif
