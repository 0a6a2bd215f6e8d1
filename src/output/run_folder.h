/* Where the files of a run go: one folder for all ranks, whose name each rank works out alone. */
#ifndef COMMPROF_RUN_FOLDER_H
#define COMMPROF_RUN_FOLDER_H

#include <limits.h>
#include <stdbool.h>

struct run_folder {
    char path[PATH_MAX];     /* absolute, like the others */
    char database[PATH_MAX]; /* rank-<n>.db */
    char ledger[PATH_MAX];   /* rank-<n>.ledger: the file, or a link to it where the ledger lies elsewhere */
    char ledger_file[PATH_MAX];
};

/* Make the folder ready for this rank: create it and move files that an earlier run left under the same names aside, to
 * earlier-<k>/. A spawned world (MPI_Comm_spawn) of `spawned_size` processes, and a job that a rank which still writes there has
 * started otherwise (spawned_size is 0 then), gets a folder of its own within it. Returns 0, or an errno with `folder->path` saying
 * where. */
int run_folder_open(struct run_folder *folder, int world_rank, int spawned_size);

/* Name the database of a rank's k-th snapshot and make its folder. Returns 0 or an errno. */
int run_folder_snapshot(const struct run_folder *folder, unsigned number, char database[PATH_MAX]);

/* The link to a ledger elsewhere, made once the ledger is there and removed with it. */
void run_folder_link_ledger(const struct run_folder *folder);
void run_folder_unlink_ledger(const struct run_folder *folder);

#endif
