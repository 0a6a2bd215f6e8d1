#include "run_folder.h"

#include "clock.h"
#include "ledger/ledger.h"
#include "places.h"
#include "provenance.h"
#include "settings.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_PATTERN "commprof-%p-%j"

static bool append(char *text, size_t bytes, const char *more)
{
    size_t used = strlen(text);
    return (size_t)snprintf(text + used, bytes - used, "%s", more) < bytes - used;
}

enum { EVERY_RANK = -2 };

/* %h host, %p program, %r rank, %j job id, %% a percent sign; anything else stands for itself. */
static bool expand(char *path, size_t bytes, const char *pattern, int world_rank)
{
    char number[16], letter[3];
    snprintf(number, sizeof number, "%d", world_rank);
    const char *rank = world_rank == EVERY_RANK ? (char[]){ANY_RANK, '\0'} : number;
    const char *host = world_rank == EVERY_RANK ? (char[]){ANY_HOST, '\0'} : provenance_host();
    path[0] = '\0';
    for (; *pattern; pattern++) {
        const char *piece = letter;
        snprintf(letter, sizeof letter, "%c", *pattern);
        if (pattern[0] == '%' && pattern[1] && strchr("hprj%", pattern[1])) {
            pattern++;
            piece = *pattern == 'h'   ? host
                    : *pattern == 'p' ? provenance_program()
                    : *pattern == 'r' ? rank
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
    if (errno != EEXIST || stat(part, &there) != 0)
        return errno;
    return !S_ISDIR(there.st_mode) ? ENOTDIR : places_foreign(part) ? PLACE_FOREIGN : 0;
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

static int move_if_there(const char *from, const char *to)
{
    return exists(from) && rename(from, to) != 0 ? errno : 0;
}

/* Its k-th snapshot, as long as there is one: they were taken in order. */
static int move_snapshots(const char *folder, const char *earlier, int world_rank)
{
    char from[PATH_MAX], into[PATH_MAX], to[PATH_MAX];
    for (int k = 1;; k++) {
        if (snprintf(from, sizeof from, "%s/snapshot-%d/rank-%d.db", folder, k, world_rank) >= (int)sizeof from ||
            snprintf(into, sizeof into, "%s/snapshot-%d", earlier, k) >= (int)sizeof into ||
            snprintf(to, sizeof to, "%s/rank-%d.db", into, world_rank) >= (int)sizeof to)
            return ENAMETOOLONG;
        if (!exists(from))
            return 0;
        int error = make_folders(into);
        if (!error)
            error = move_if_there(from, to);
        if (error)
            return error;
    }
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
    if (!error)
        error = move_if_there(folder->database, database);
    if (!error)
        error = move_if_there(folder->ledger, ledger);
    return error ? error : move_snapshots(folder->path, earlier, world_rank);
}

static int name_files(struct run_folder *folder, int world_rank)
{
    if (snprintf(folder->database, PATH_MAX, "%s/rank-%d.db", folder->path, world_rank) >= PATH_MAX ||
        snprintf(folder->ledger, PATH_MAX, "%s/rank-%d.ledger", folder->path, world_rank) >= PATH_MAX)
        return ENAMETOOLONG;
    memcpy(folder->ledger_file, folder->ledger, sizeof folder->ledger);
    return 0;
}

/* What the names of a run's ledgers on a node begin with: a hash of the run folder (FNV-1a). */
static void name_of_run(const char *path, char name[32])
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * 0x100000001b3;
    snprintf(name, 32, "%016llx-rank-", (unsigned long long)hash);
}

/* Whether a line of /proc/<pid>/maps is about a ledger of the run in this folder: one on the node, known by its name, or one in it,
 * known by its inode, for the folder may have other names. */
static bool is_ledger_of(const char *path, const char *line)
{
    char ledger[PATH_MAX], run[32];
    unsigned long inode;
    int rank;
    struct stat there;
    const char *name = strrchr(line, '/');
    name_of_run(path, run);
    if (!name || strstr(name, " (deleted)"))
        return false;
    if (strncmp(name + 1, run, strlen(run)) == 0)
        return true;
    if (sscanf(name, "/rank-%d", &rank) != 1 || sscanf(line, "%*s %*s %*s %*s %lu", &inode) != 1)
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

static int open_at(struct run_folder *folder, int world_rank, int spawned_size)
{
    int error = make_folders(folder->path);
    if (!error)
        error = make_absolute(folder->path);
    if (!error)
        error = spawned_size ? go_where_no_world_is(folder, world_rank, spawned_size) : go_where_no_rank_that_started_us_is(folder);
    if (!error)
        error = name_files(folder, world_rank);
    if (!error)
        error = move_aside(folder, world_rank);
    return !error && access(folder->path, W_OK | X_OK) != 0 ? errno : error;
}

/* Under the name that it has by default, for another job may have the same COMMPROF_OUTPUT elsewhere. */
static int open_in_temporary(struct run_folder *folder, const char *place, int world_rank, int spawned_size)
{
    char name[PATH_MAX];
    int error = places_private_folder(place, folder->path, sizeof folder->path);
    if (error)
        return error;
    if (!expand(name, sizeof name, DEFAULT_PATTERN, world_rank) || !append(folder->path, sizeof folder->path, "/") ||
        !append(folder->path, sizeof folder->path, name))
        return ENAMETOOLONG;
    return open_at(folder, world_rank, spawned_size);
}

/* Before the job changes its working directory. What lies below the folder of the setting (of a spawned world) is alike on all ranks. */
static void name_of_all(struct run_folder *folder, const char *pattern, int world_rank)
{
    static char own[PATH_MAX], all[PATH_MAX], start[PATH_MAX];
    folder->of_all[0] = '\0';
    if (!expand(own, sizeof own, pattern, world_rank) || !expand(all, sizeof all, pattern, EVERY_RANK) ||
        !all[strcspn(all, (char[]){ANY_RANK, ANY_HOST, '\0'})] || make_absolute(own) != 0 || strncmp(own, folder->path, strlen(own)) != 0 ||
        (*all != '/' && !getcwd(start, sizeof start)))
        return;
    const char *prefix = *all == '/' ? "" : start, *slash = *all == '/' ? "" : "/";
    if (snprintf(folder->of_all, PATH_MAX, "%s%s%s%s", prefix, slash, all, folder->path + strlen(own)) >= PATH_MAX)
        folder->of_all[0] = '\0';
}

int run_folder_open(struct run_folder *folder, int world_rank, int spawned_size, void (*complain)(const char *line))
{
    static struct run_folder instead; /* large */
    char line[3 * PATH_MAX];
    const char *pattern = *settings.output ? settings.output : DEFAULT_PATTERN;
    int error = expand(folder->path, sizeof folder->path, pattern, world_rank) ? open_at(folder, world_rank, spawned_size) : ENAMETOOLONG;
    if (!error) {
        name_of_all(folder, pattern, world_rank);
        return 0;
    }
    for (unsigned i = 0; places_temporary(i); i++) {
        if (open_in_temporary(&instead, places_temporary(i), world_rank, spawned_size) != 0)
            continue;
        snprintf(line, sizeof line, "cannot use the run folder %s: %s; on %s it is %s", folder->path, places_reason(error),
                 provenance_host(), instead.path);
        *folder = instead;
        complain(line);
        return 0;
    }
    return error;
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

/* A ledger on the node */

bool run_folder_ledger_is_elsewhere(const struct run_folder *folder)
{
    return strcmp(folder->ledger, folder->ledger_file) != 0;
}

static int try_ledger_in(struct run_folder *folder, const char *place, int world_rank, size_t limit_bytes)
{
    char private[PATH_MAX], run[32];
    int error = places_are_safe(place) ? places_private_folder(place, private, sizeof private) : PLACE_UNSAFE;
    if (error)
        return error;
    name_of_run(folder->path, run);
    int length =
        snprintf(folder->ledger_file, PATH_MAX, "%s/%s%d-%llx.ledger", private, run, world_rank, (unsigned long long)clock_unix_ns());
    return length < PATH_MAX ? ledger_open(folder->ledger_file, limit_bytes) : ENAMETOOLONG;
}

/* The folder of our own may be removed by a rank that ends before we have put a file there. */
static int open_ledger_in(struct run_folder *folder, const char *place, int world_rank, size_t limit_bytes)
{
    int error;
    unsigned attempts = 1000;
    do
        error = try_ledger_in(folder, place, world_rank, limit_bytes);
    while (error == ENOENT && --attempts > 0);
    return error;
}

static int open_ledger_where_the_user_wants_it(struct run_folder *folder, int world_rank, size_t limit_bytes)
{
    char place[PATH_MAX];
    memcpy(folder->ledger_file, settings.ledger, sizeof settings.ledger);
    if (!expand(place, sizeof place, settings.ledger, world_rank))
        return ENAMETOOLONG;
    int error = make_folders(place);
    if (!error)
        error = make_absolute(place);
    return error ? error : open_ledger_in(folder, place, world_rank, limit_bytes);
}

static int open_ledger_on_the_node(struct run_folder *folder, int world_rank, size_t limit_bytes)
{
    int error = open_ledger_in(folder, "/dev/shm", world_rank, limit_bytes);
    for (unsigned i = 0; error && places_temporary(i); i++)
        error = open_ledger_in(folder, places_temporary(i), world_rank, limit_bytes);
    return error;
}

/* That a run folder is not safe is no news: most are on a network. */
static int open_ledger(struct run_folder *folder, int world_rank, size_t limit_bytes, void (*complain)(const char *line))
{
    char line[2 * PATH_MAX + 256];
    bool is_safe = places_are_safe(folder->path);
    int error = *settings.ledger ? open_ledger_where_the_user_wants_it(folder, world_rank, limit_bytes)
                : is_safe        ? ledger_open(folder->ledger_file, limit_bytes)
                                 : PLACE_UNSAFE;
    if (!error)
        return 0;
    int used = snprintf(line, sizeof line, "cannot keep the ledger in %s: %s; ", folder->ledger_file, places_reason(error));
    bool is_news = *settings.ledger || is_safe;
    if (open_ledger_on_the_node(folder, world_rank, limit_bytes) != 0) {
        memcpy(folder->ledger_file, folder->ledger, sizeof folder->ledger);
        error = ledger_open(folder->ledger_file, limit_bytes);
        if (error)
            return error;
        is_news = true;
    }
    snprintf(line + used, sizeof line - (size_t)used, "it is %s%s", folder->ledger_file,
             is_safe || run_folder_ledger_is_elsewhere(folder) ? "" : ", and a failure of that file system would end the job");
    if (is_news)
        complain(line);
    return 0;
}

int run_folder_open_ledger(struct run_folder *folder, int world_rank, size_t limit_bytes, void (*complain)(const char *line))
{
    char line[256];
    int error = open_ledger(folder, world_rank, limit_bytes, complain);
    if (error)
        return error;
    the_ledger.complain = complain;
    snprintf(line, sizeof line, "no address space for a ledger of %zu kB; it has %zu kB, beyond which the rarest message sizes fold",
             limit_bytes >> 10, the_ledger.limit_bytes >> 10);
    if (the_ledger.limit_bytes + LEDGER_CHUNK_BYTES < limit_bytes)
        complain(line);
    return 0;
}

void run_folder_remove_ledger(struct run_folder *folder, bool with_copy)
{
    ledger_remove();
    if (!run_folder_ledger_is_elsewhere(folder))
        return;
    if (with_copy)
        unlink(folder->ledger);
    rmdir(dirname(folder->ledger_file)); /* the folder that was made for it; fails while others have theirs there */
}
