/* Ownership is recorded by two kinds of symbolic links in <run folder>/.jobs. Each is created once
 * and never changed: symlink() fails if the name exists, on network file systems, too. They are
 * never followed; the target is text:
 *
 *     job-<job> -> "<run> <process> <why>"    this job's decision: the folder's run number, or 0:
 *                                             use another folder, and why
 *     run-<run> -> "<job>"                    the job that has this run number
 *
 *     rank of job B:  job-B exists? -no--> find the folder's owner --> create job-B
 *                          |yes                                        (another rank was faster:
 *                          v                                            read it)
 *                     "0 ..."  -> use another folder
 *                     "2 ..."  -> create run-2 = B; fails if another job has run 2; all ranks of B
 *                                 get the same result
 *
 * The result does not depend on when ranks start, which of them are killed, or whether the previous
 * owner ends meanwhile. The process that created job-B removes it at its end. Until then other jobs
 * assume that B runs, unless they know that this process has ended; afterwards they check the
 * ledgers. */
#include "claims.h"

#include "alive.h"
#include "base/filesystems.h"
#include "provenance.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ATTEMPTS = 100, LOOKED_AT = 64, LONGEST = 3800, TEXT_BYTES = ALIVE_NAME_BYTES + 1100 };

static bool exists(const char *path)
{
    struct stat there;
    return lstat(path, &there) == 0;
}

static int read_link(const char *path, char *text, size_t bytes)
{
    ssize_t length = readlink(path, text, bytes - 1);
    if (length < 0)
        return errno;
    text[length] = '\0';
    return 0;
}

static void job_link(char path[PATH_MAX], const char *folder, const char *job)
{
    snprintf(path, PATH_MAX, "%.3800s/.jobs/job-%s", folder, job);
}

static void run_link(char path[PATH_MAX], const char *folder, unsigned run)
{
    snprintf(path, PATH_MAX, "%.3800s/.jobs/run-%u", folder, run);
}

static bool has_run(const char *folder, unsigned run)
{
    char path[PATH_MAX];
    run_link(path, folder, run);
    return exists(path);
}

/* The highest run number; 0: none. Numbers have no gaps, so a binary search finds it. */
static unsigned last_run(const char *folder)
{
    unsigned before = 0, beyond = 1;
    while (has_run(folder, beyond)) {
        before = beyond;
        beyond *= 2;
    }
    while (beyond - before > 1) {
        unsigned middle = before + (beyond - before) / 2;
        if (has_run(folder, middle))
            before = middle;
        else
            beyond = middle;
    }
    return before;
}

/* Ledgers */

/* From this node, a job that was killed on another node looks like one that still runs. */
#define CANNOT_BE_SEEN ", which cannot be seen from this node; if it has ended, rename the folder"

static bool has_rank(const char *folder, int world_rank)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.3800s/rank-%d.ledger", folder, world_rank);
    if (exists(path))
        return true;
    snprintf(path, sizeof path, "%.3800s/rank-%d.db", folder, world_rank);
    return exists(path);
}

bool claims_ledger_in_use(const char *folder, int world_rank, char *why, unsigned why_bytes)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.3800s/rank-%d.ledger", folder, world_rank);
    enum alive alive = alive_ledger(path);
    snprintf(why, why_bytes, "the writer of rank-%d.ledger there %s", world_rank,
             alive == ALIVE_YES ? "still runs" : "may still run" CANNOT_BE_SEEN);
    return alive != ALIVE_NO;
}

/* The process that claimed the folder has ended, so its job has ended or is about to. Only the
 * first ranks' ledgers are checked, since a job may have very many; each rank checks its own ledger
 * again before moving it. Ranks may be missing: their databases are in an archive. */
static bool any_ledger_in_use(const char *folder, bool has_runs, int world_rank, char *why,
                              unsigned why_bytes)
{
    for (int rank = 0; rank < LOOKED_AT && (has_runs || has_rank(folder, rank)); rank++)
        if (claims_ledger_in_use(folder, rank, why, why_bytes))
            return true;
    return claims_ledger_in_use(folder, world_rank, why, why_bytes);
}

/* Jobs */

static void explain(const char *process, enum alive alive, char *why, unsigned why_bytes)
{
    char host[256] = "another node";
    int pid = 0;
    sscanf(process, "%255s %*s %*s %d", host, &pid);
    snprintf(why, why_bytes, "process %d of %s %s", pid, host,
             alive == ALIVE_YES ? "writes to it" : "may write to it" CANNOT_BE_SEEN);
}

static bool job_in_use(const char *folder, const char *job, char *why, unsigned why_bytes)
{
    char path[PATH_MAX], decision[TEXT_BYTES];
    job_link(path, folder, job);
    int at = 0;
    if (read_link(path, decision, sizeof decision) != 0 || sscanf(decision, "%*u %n", &at) != 0 ||
        !at)
        return false;
    enum alive alive = alive_process(decision + at, filesystems_are_safe(folder));
    explain(decision + at, alive, why, why_bytes);
    return alive != ALIVE_NO;
}

/* The run number for this job; 0: it must use another folder. */
static unsigned look_for_room(const char *folder, const char *job, int world_rank, char *why,
                              unsigned why_bytes)
{
    char path[PATH_MAX], owner[NAME_MAX + 1] = "";
    unsigned last = last_run(folder);
    run_link(path, folder, last);
    if (last && read_link(path, owner, sizeof owner) == 0 && strcmp(owner, job) == 0)
        return last; /* an earlier job of the same name (launchers reuse names): each rank moves its
                        files aside */
    if (*owner && job_in_use(folder, owner, why, why_bytes))
        return 0;
    return any_ledger_in_use(folder, last > 0, world_rank, why, why_bytes) ? 0 : last + 1;
}

static int make_link(const char *text, const char *path, const char *folder)
{
    char links[PATH_MAX];
    if (symlink(text, path) == 0)
        return 0;
    if (errno != ENOENT)
        return errno;
    snprintf(links, sizeof links, "%.3800s/.jobs", folder);
    int error = filesystems_make_folders(links);
    return error ? error : symlink(text, path) == 0 ? 0 : errno;
}

static int decide(struct claim *claim, const char *folder, const char *job, int world_rank,
                  const char *path)
{
    char text[TEXT_BYTES], process[ALIVE_NAME_BYTES];
    unsigned run = look_for_room(folder, job, world_rank, claim->why, sizeof claim->why);
    alive_name_self(process);
    snprintf(text, sizeof text, "%u %s %s", run, process, run ? "" : claim->why);
    int error = make_link(text, path, folder);
    if (!error)
        snprintf(claim->held, sizeof claim->held, "%s", path);
    return error == EEXIST ? 0 : error;
}

static int read_decision(struct claim *claim, const char *path)
{
    char text[TEXT_BYTES];
    int why = 0, error = read_link(path, text, sizeof text);
    if (error)
        return error;
    if (sscanf(text, "%u %*s %*s %*s %*s %*s %n", &claim->run, &why) != 1)
        return EINVAL;
    snprintf(claim->why, sizeof claim->why, "%s", text + why);
    return 0;
}

/* The run belongs to another job if that one was faster, or came later and found that ours had
 * ended. */
static int take_run(struct claim *claim, const char *folder, const char *job)
{
    char path[PATH_MAX], owner[NAME_MAX + 1];
    if (!claim->run)
        return 0;
    run_link(path, folder, claim->run);
    int error = make_link(job, path, folder);
    if (error && error != EEXIST)
        return error;
    error = read_link(path, owner, sizeof owner);
    if (error)
        return error;
    claim->is_ours = strcmp(owner, job) == 0 && !has_run(folder, claim->run + 1);
    snprintf(claim->why, sizeof claim->why, "job %.200s took it at the same time", owner);
    return 0;
}

static int take(struct claim *claim, const char *folder, const char *job, int world_rank)
{
    char path[PATH_MAX];
    int error = ENOENT;
    job_link(path, folder, job);
    for (int i = 0; i < ATTEMPTS && error == ENOENT; i++) {
        error = read_decision(claim, path);
        if (error == ENOENT) {
            int refused = decide(claim, folder, job, world_rank, path);
            if (refused)
                return refused;
        }
    }
    return error ? error : take_run(claim, folder, job);
}

/* Without links (FAT, or .jobs of another user) jobs cannot agree on an owner, so none gets the
 * folder itself. */
int claims_take(struct claim *claim, const char *folder, const char *job, int world_rank)
{
    *claim = (struct claim){0};
    if (strlen(folder) > LONGEST)
        return ENAMETOOLONG;
    int error = take(claim, folder, job, world_rank);
    if (error <= 0)
        return error;
    claim->is_ours = false;
    snprintf(claim->why, sizeof claim->why, "no links can be made in its folder .jobs: %s",
             strerror(error));
    return 0;
}

void claims_give_back(struct claim *claim)
{
    if (*claim->held)
        unlink(claim->held);
    claim->held[0] = '\0';
}

static bool has_files(const char *folder)
{
    bool found = false;
    DIR *files = opendir(folder);
    for (struct dirent *file; files && !found && (file = readdir(files));)
        found = strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0 &&
                strcmp(file->d_name, ".jobs") != 0;
    if (files)
        closedir(files);
    return found;
}

void claims_remove_empty(const struct claim *claim, const char *folder)
{
    char path[PATH_MAX];
    if (has_files(folder))
        return;
    if (claim->is_ours) {
        run_link(path, folder, claim->run);
        unlink(path);
        snprintf(path, sizeof path, "%.3800s/.jobs", folder);
        rmdir(path);
    }
    rmdir(folder);
}
