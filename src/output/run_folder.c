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

int run_folder_open(struct run_folder *folder, int world_rank, bool spawned)
{
    const char *pattern = *settings.output ? settings.output : "commprof-%p-%j";
    bool fits = expand(folder->path, sizeof folder->path, pattern, world_rank);
    if (fits && spawned)
        fits = append(folder->path, sizeof folder->path, "/spawned-") && append(folder->path, sizeof folder->path, provenance_job_id());
    if (!fits)
        return ENAMETOOLONG;
    int error = make_folders(folder->path);
    if (!error)
        error = make_absolute(folder->path);
    if (!error)
        error = name_files(folder, world_rank);
    return error ? error : move_aside(folder, world_rank);
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
