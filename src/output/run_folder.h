/* Where the files of a run go: one folder for all ranks, whose name each rank works out alone.
 *
 * The ledger lies in the run folder where a mapped file is safe there (places.h); else on the node, in a folder that is ours alone:
 * <place>/commprof-<uid>/, the place being COMMPROF_LEDGER, /dev/shm, $TMPDIR or /tmp, whichever is the first that will do. */
#ifndef COMMPROF_RUN_FOLDER_H
#define COMMPROF_RUN_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { ANY_RANK = '\1', ANY_HOST = '\2' };

struct run_folder {
    char path[PATH_MAX];     /* absolute, like the others */
    char of_all[PATH_MAX];   /* where %h or %r give each host or rank a folder: the folders of all ranks, with ANY_HOST and ANY_RANK for
                              * the parts that differ; "" where `path` is every rank's */
    char database[PATH_MAX]; /* rank-<n>.db */
    char ledger[PATH_MAX];   /* rank-<n>.ledger: the ledger, or a copy of it where it lies elsewhere */
    char ledger_file[PATH_MAX];
};

/* Make the folder ready for this rank: create it and move files that an earlier run left under the same names aside, to
 * earlier-<k>/. A spawned world (MPI_Comm_spawn) of `spawned_size` processes, and a job that a rank which still writes there has
 * started otherwise (spawned_size is 0 then), gets a folder of its own within it. A folder that cannot be made or written to, and one
 * that somebody else may have laid out for us, is replaced by <place>/commprof-<uid>/commprof-<program>-<job id>, the place being $TMPDIR
 * or /tmp; `complain` gets a line then. Returns 0, or a reason (places.h) with `folder->path` saying where. */
int run_folder_open(struct run_folder *folder, int world_rank, int spawned_size, void (*complain)(const char *line));

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
