/* Where the files of a run go: one folder for all ranks, whose name each rank works out alone.
 *
 * The ledger lies in the run folder where a mapped file is safe there (places.h); else on the node, in a folder that is ours alone:
 * <place>/commprof-<uid>/, the place being COMMPROF_LEDGER, /dev/shm, $TMPDIR or /tmp, whichever is the first that will do. */
#ifndef COMMPROF_RUN_FOLDER_H
#define COMMPROF_RUN_FOLDER_H

#include "claims.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { ANY_RANK = '\1', ANY_HOST = '\2' };

struct run_folder_rank {
    int world_rank, world_size;
    bool is_spawned; /* its world, by MPI_Comm_spawn */
};

struct run_folder {
    char path[PATH_MAX];     /* absolute, like the others */
    char of_all[PATH_MAX];   /* where %h or %r give each host or rank a folder: the folders of all ranks, with ANY_HOST and ANY_RANK for
                              * the parts that differ; "" where `path` is every rank's */
    char database[PATH_MAX]; /* rank-<n>.db */
    char ledger[PATH_MAX];   /* rank-<n>.ledger: the ledger, or a copy of it where it lies elsewhere */
    char ledger_file[PATH_MAX];
    struct claim claim;
    char moved[3 * PATH_MAX]; /* a line on why `path` is not the folder that was wanted but one in it; "" if it is */
    bool moves_alone;         /* and the other ranks of the job may be in the one that was wanted */
};

/* Make the folder ready for this rank: create it, and move files that an earlier run left under the same names aside, to earlier-<k>/. A
 * folder that another job still writes to, or may write to, is left alone: this job's is job-<job>/ in it, and `folder->moved` says so
 * (claims.h). A spawned world has spawned-<job id>-of-<size>/. A folder that cannot be made or written to, and one that somebody else may
 * have laid out for us, is replaced by <place>/commprof-<uid>/commprof-<program>-<job id>, the place being $TMPDIR or /tmp; `complain` gets
 * a line then. Returns 0, or a reason (places.h) with `folder->path` saying where. The claim is given back at the end. */
int run_folder_open(struct run_folder *folder, const struct run_folder_rank *rank, void (*complain)(const char *line));

/* Name the database of a rank's k-th snapshot and make its folder. Returns 0 or an errno. */
int run_folder_snapshot(const struct run_folder *folder, unsigned number, char database[PATH_MAX]);

/* Open the_ledger of this rank, which may grow up to limit_bytes. Returns 0, or a reason with `folder->ledger_file` saying where.
 * `complain` gets a line where it does not lie where the user may expect it. */
int run_folder_open_ledger(struct run_folder *folder, int world_rank, size_t limit_bytes, void (*complain)(const char *line));

/* Whether it lies on the node, so that `folder->ledger` is a copy of it. */
bool run_folder_ledger_is_elsewhere(const struct run_folder *folder);

/* Delete the ledger, and the copy of it. */
void run_folder_remove_ledger(struct run_folder *folder, bool with_copy);

#endif
