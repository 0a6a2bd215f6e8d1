/* The run folder: one folder for the files of all ranks. Each rank derives its name without
 * communicating.
 *
 * The ledger is in the run folder if a mapped file is safe there (filesystems.h); else on the node,
 * in a private folder commprof-<uid>/ under the first usable of COMMPROF_LEDGER, /dev/shm, $TMPDIR
 * and /tmp. */
#ifndef COMMPROF_RUN_FOLDER_H
#define COMMPROF_RUN_FOLDER_H

#include "base/filesystems.h"
#include "claims.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { ANY_RANK = '\1', ANY_HOST = '\2', ANY_PROGRAM = '\3' };

struct run_folder_rank {
    int world_rank, world_size;
    bool is_spawned; /* its world was created by MPI_Comm_spawn */
    bool is_first;   /* of those that are recorded */
};

struct run_folder {
    char path[PATH_MAX];     /* absolute, like the other paths */
    char of_all[PATH_MAX];   /* if %h, %r or %p may give each host, rank or program its own folder:
                            * the folders of all ranks, with ANY_HOST, ANY_RANK and ANY_PROGRAM for
                            * the parts that differ; "" if all ranks have `path` */
    char database[PATH_MAX]; /* rank-<n>.db */
    char ledger[PATH_MAX]; /* rank-<n>.ledger: the ledger, or its copy if the ledger is elsewhere */
    char ledger_file[PATH_MAX];
    char archive[PATH_MAX]; /* node-<run>-<host>-<boot>.tar, which gets the database if there is one
                               file per node; "": there is not */
    struct claim claim;
    char moved[3 * PATH_MAX]; /* a message why `path` is a subfolder of the requested folder; "" if
                                 it is that folder */
    bool moves_alone;         /* the other ranks of the job may still use the requested folder */
    struct filesystems_folder identity,
        root; /* this folder, and the root folder of this process, as they were at the start */
    char was[PATH_MAX]; /* `path` before the folder was renamed; "": it was not */
};

/* Prepare the folder for this rank: create it, and move files of an earlier run with the same names
 * to earlier-<k>/. If another job writes or may write to the folder, this job uses the subfolder
 * job-<job>/, and `folder->moved` says so (claims.h). A spawned world uses
 * spawned-<job>-of-<size>/. If the folder cannot be created or written to, or another user may have
 * planted it, the run folder is commprof-<uid>/commprof-<program>-<job id> under $TMPDIR or /tmp,
 * and `complain` gets a message; not with profile=site. Returns 0, or a reason (filesystems.h)
 * about `folder->path`. The caller releases `folder->claim` at the end. */
int run_folder_open(struct run_folder *folder, const struct run_folder_rank *rank,
                    void (*complain)(const char *line));

/* Whether this rank has its database, ledger or stub in the folder. */
bool run_folder_has(const struct run_folder *folder, int world_rank);

/* Find the folder again, whose path may mean something else by now. If it was renamed, all paths
 * are changed accordingly. Returns 0, or a reason why nothing can be written there. */
int run_folder_find(struct run_folder *folder);

/* Whether that reason is about this process: others may still find the folder at its path (setuid,
 * chroot, no free descriptor). */
bool run_folder_is_hidden(const struct run_folder *folder, int reason);

/* Set `ledger` to the path of snapshot `number` and create its folder. Returns 0 or a reason. */
int run_folder_snapshot(struct run_folder *folder, unsigned number, char ledger[PATH_MAX]);

/* Open this rank's the_ledger, which may grow to limit_bytes. Returns 0, or a reason about
 * `folder->ledger_file`. `complain` gets a message if the ledger is not where the user may expect
 * it. */
int run_folder_open_ledger(struct run_folder *folder, int world_rank, size_t limit_bytes,
                           void (*complain)(const char *line));

/* Whether the ledger is outside the run folder, so that `folder->ledger` is its copy. */
bool run_folder_ledger_is_elsewhere(const struct run_folder *folder);

/* Delete the ledger and, if `with_copy`, its copy. */
void run_folder_remove_ledger(struct run_folder *folder, bool with_copy);

#endif
