#include "run_folder.h"

#include "provenance.h"
#include "settings.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool append(char *text, size_t bytes, const char *more)
{
    size_t used = strlen(text);
    return (size_t)snprintf(text + used, bytes - used, "%s", more) < bytes - used;
}

/* %h host, %p program, %r rank, %j job id, %% a percent sign; anything else stands for itself. */
static bool expand(char *path, size_t bytes, const char *pattern, int world_rank)
{
    char number[16], letter[3];
    snprintf(number, sizeof number, "%d", world_rank);
    path[0] = '\0';
    for (; *pattern; pattern++) {
        const char *piece = letter;
        snprintf(letter, sizeof letter, "%c", *pattern);
        if (pattern[0] == '%' && pattern[1] && strchr("hprj%", pattern[1])) {
            pattern++;
            piece = *pattern == 'h'   ? provenance_host()
                    : *pattern == 'p' ? provenance_program()
                    : *pattern == 'r' ? number
                    : *pattern == 'j' ? provenance_job_id()
                                      : "%";
        }
        if (!append(path, bytes, piece))
            return false;
    }
    return true;
}

static int make_folders(const char *path)
{
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *at = part + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST && errno != EISDIR && errno != EROFS && errno != EACCES)
            return errno;
        *at = '/';
    }
    if (mkdir(part, 0777) == 0)
        return 0;
    struct stat there;
    if (errno == EEXIST && stat(part, &there) == 0)
        return S_ISDIR(there.st_mode) ? 0 : ENOTDIR;
    return errno;
}

static bool exists(const char *path)
{
    struct stat there;
    return lstat(path, &there) == 0;
}

/* The job may change its working directory before the end. */
static int make_absolute(char path[PATH_MAX])
{
    char *absolute = realpath(path, NULL);
    if (!absolute)
        return errno;
    int length = snprintf(path, PATH_MAX, "%s", absolute);
    free(absolute);
    return length < PATH_MAX ? 0 : ENAMETOOLONG;
}

static int move_aside(const struct run_folder *folder, int world_rank)
{
    if (!exists(folder->database) && !exists(folder->ledger))
        return 0;
    char earlier[PATH_MAX], database[PATH_MAX], ledger[PATH_MAX];
    int k = 0;
    do {
        k++;
        if (snprintf(earlier, sizeof earlier, "%s/earlier-%d", folder->path, k) >= (int)sizeof earlier ||
            snprintf(database, sizeof database, "%s/rank-%d.db", earlier, world_rank) >= (int)sizeof database ||
            snprintf(ledger, sizeof ledger, "%s/rank-%d.ledger", earlier, world_rank) >= (int)sizeof ledger)
            return ENAMETOOLONG;
    } while (exists(database) || exists(ledger));
    int error = make_folders(earlier);
    if (!error && exists(folder->database) && rename(folder->database, database) != 0)
        error = errno;
    if (!error && exists(folder->ledger) && rename(folder->ledger, ledger) != 0)
        error = errno;
    return error;
}

static int name_ledger_elsewhere(struct run_folder *folder, int world_rank)
{
    char elsewhere[PATH_MAX];
    if (!expand(elsewhere, sizeof elsewhere, settings.ledger, world_rank))
        return ENAMETOOLONG;
    int error = make_folders(elsewhere);
    if (error) {
        memcpy(folder->path, elsewhere, sizeof elsewhere);
        return error;
    }
    error = make_absolute(elsewhere);
    if (error)
        return error;
    int length = snprintf(folder->ledger_file, PATH_MAX, "%s/commprof-%s-%s-rank-%d-%d.ledger", elsewhere, provenance_program(),
                          provenance_job_id(), world_rank, (int)getpid());
    return length < PATH_MAX ? 0 : ENAMETOOLONG;
}

static int name_files(struct run_folder *folder, int world_rank)
{
    if (snprintf(folder->database, PATH_MAX, "%s/rank-%d.db", folder->path, world_rank) >= PATH_MAX ||
        snprintf(folder->ledger, PATH_MAX, "%s/rank-%d.ledger", folder->path, world_rank) >= PATH_MAX)
        return ENAMETOOLONG;
    if (*settings.ledger)
        return name_ledger_elsewhere(folder, world_rank);
    memcpy(folder->ledger_file, folder->ledger, sizeof folder->ledger);
    return 0;
}

/* Whether a line of /proc/<pid>/maps is about a ledger of the run in this folder, or one that is linked from there. */
static bool is_ledger_of(const char *path, const char *line)
{
    char ledger[PATH_MAX];
    unsigned long inode;
    int rank;
    struct stat there;
    const char *name = strrchr(line, '/'), *number = name ? strstr(name, "rank-") : NULL;
    if (!number || sscanf(number, "rank-%d", &rank) != 1 || sscanf(line, "%*s %*s %*s %*s %lu", &inode) != 1)
        return false;
    int length = snprintf(ledger, sizeof ledger, "%s/rank-%d.ledger", path, rank);
    return length < PATH_MAX && stat(ledger, &there) == 0 && there.st_ino == inode;
}

static bool keeps_a_ledger_in(const char *path, pid_t pid)
{
    char name[64], line[PATH_MAX + 128];
    snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(name, "re");
    bool keeps = false;
    while (maps && !keeps && fgets(line, sizeof line, maps))
        keeps = strstr(line, ".ledger") && is_ledger_of(path, line);
    if (maps)
        fclose(maps);
    return keeps;
}

/* A rank of the run in this folder may have started us (a script that it runs, a launcher in it): its files are not ours to move
 * aside. Gives the process that the rank has started, the same for all ranks of our job; 0 where no rank has. */
static pid_t started_by_a_rank_of(const char *path)
{
    pid_t started = getpid();
    for (int depth = 0; depth < 16; depth++) {
        pid_t parent = provenance_parent_of(started);
        if (parent <= 1)
            return 0;
        if (keeps_a_ledger_in(path, parent))
            return started;
        started = parent;
    }
    return 0;
}

static int go_into(struct run_folder *folder, const char *subfolder)
{
    if (!append(folder->path, sizeof folder->path, "/spawned-") || !append(folder->path, sizeof folder->path, subfolder))
        return ENAMETOOLONG;
    return make_folders(folder->path);
}

static bool has_files_of(const char *path, int world_rank)
{
    char database[PATH_MAX], ledger[PATH_MAX];
    snprintf(database, sizeof database, "%.4000s/rank-%d.db", path, world_rank);
    snprintf(ledger, sizeof ledger, "%.4000s/rank-%d.ledger", path, world_rank);
    return exists(database) || exists(ledger);
}

/* Hydra gives all that are spawned the job id of the job itself. So the k-th world of a size goes into the k-th folder of that size: where
 * one rank's files are, all ranks of that world have theirs, or will have. */
static int go_where_no_world_is(struct run_folder *folder, int world_rank, int world_size)
{
    size_t length = strlen(folder->path);
    char subfolder[320];
    int error, k = 1;
    do {
        folder->path[length] = '\0';
        int used = snprintf(subfolder, sizeof subfolder, "%s-of-%d", provenance_job_id(), world_size);
        if (k > 1)
            snprintf(subfolder + used, sizeof subfolder - (size_t)used, "-%d", k);
        error = go_into(folder, subfolder);
        k++;
    } while (!error && has_files_of(folder->path, world_rank));
    return error;
}

static int go_where_no_rank_that_started_us_is(struct run_folder *folder)
{
    char subfolder[300];
    pid_t started = started_by_a_rank_of(folder->path);
    snprintf(subfolder, sizeof subfolder, "%s-%d", provenance_job_id(), (int)started);
    return started ? go_into(folder, subfolder) : 0;
}

int run_folder_open(struct run_folder *folder, int world_rank, int spawned_size)
{
    const char *pattern = *settings.output ? settings.output : "commprof-%p-%j";
    if (!expand(folder->path, sizeof folder->path, pattern, world_rank))
        return ENAMETOOLONG;
    int error = make_folders(folder->path);
    if (!error)
        error = make_absolute(folder->path);
    if (!error)
        error = spawned_size ? go_where_no_world_is(folder, world_rank, spawned_size) : go_where_no_rank_that_started_us_is(folder);
    if (!error)
        error = name_files(folder, world_rank);
    return error ? error : move_aside(folder, world_rank);
}

int run_folder_snapshot(const struct run_folder *folder, unsigned number, char database[PATH_MAX])
{
    char subfolder[PATH_MAX];
    const char *name = strrchr(folder->database, '/');
    int length = snprintf(subfolder, sizeof subfolder, "%s/snapshot-%u", folder->path, number);
    if (length >= PATH_MAX || snprintf(database, PATH_MAX, "%s%s", subfolder, name) >= PATH_MAX)
        return ENAMETOOLONG;
    return make_folders(subfolder);
}

static bool lies_elsewhere(const struct run_folder *folder)
{
    return strcmp(folder->ledger, folder->ledger_file) != 0;
}

void run_folder_link_ledger(const struct run_folder *folder)
{
    char target[PATH_MAX];
    if (lies_elsewhere(folder) && realpath(folder->ledger_file, target) && symlink(target, folder->ledger) != 0)
        unlink(folder->ledger); /* no links here: the ledger's own path is named at the end */
}

void run_folder_unlink_ledger(const struct run_folder *folder)
{
    struct stat there;
    if (lies_elsewhere(folder) && lstat(folder->ledger, &there) == 0 && S_ISLNK(there.st_mode))
        unlink(folder->ledger);
}
