#include "run_folder.h"

#include "alive.h"
#include "base/clock.h"
#include "base/filesystems.h"
#include "base/host.h"
#include "base/rank_list.h"
#include "base/settings.h"
#include "ledger/copy.h"
#include "ledger/ledger.h"
#include "output/archive.h"
#include "provenance.h"

#include <ctype.h>
#include <dirent.h>
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

enum { RANK_BYTES = 16 };

/* The meaning of a letter behind %, or NULL. For EVERY_RANK, names that differ between ranks are
 * a character that matches any; `rank` has room for the number of a rank. */
static const char *meaning(char letter, bool has_job, int world_rank, char *rank)
{
    static const char any_rank[] = {ANY_RANK, '\0'}, any_host[] = {ANY_HOST, '\0'},
                      any_program[] = {ANY_PROGRAM, '\0'};
    bool is_every = world_rank == EVERY_RANK;
    switch (letter) {
    case 'h':
        return is_every ? any_host : host_name();
    case 'p': /* without the job, other runs have such folders */
        return is_every && has_job ? any_program : provenance_program();
    case 'r':
        snprintf(rank, RANK_BYTES, "%d", world_rank);
        return is_every ? any_rank : rank;
    case 'j':
        return provenance_job_id();
    case 'u':
        return provenance_user();
    case 'd':
        return provenance_date();
    case '%':
        return "%";
    default:
        return NULL;
    }
}

/* %h host, %p program, %r rank, %j job id, %u user, %d date, %% a percent sign; all other
 * characters are literal. */
static bool expand(char *path, size_t bytes, const char *pattern, int world_rank)
{
    char rank[RANK_BYTES], letter[2] = "";
    bool has_job = strstr(pattern, "%j");
    path[0] = '\0';
    for (; *pattern; pattern++) {
        const char *piece = *pattern == '%' ? meaning(pattern[1], has_job, world_rank, rank) : NULL;
        if (piece)
            pattern++;
        letter[0] = *pattern;
        if (!append(path, bytes, piece ? piece : letter))
            return false;
    }
    return true;
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
    int error = filesystems_rename(from, to);
    return error == ENOENT ? 0 : error;
}

static int name_files_of(const char *path, int world_rank, char database[PATH_MAX],
                         char ledger[PATH_MAX])
{
    return snprintf(database, PATH_MAX, "%s/rank-%d.db", path, world_rank) < PATH_MAX &&
                   snprintf(ledger, PATH_MAX, "%s/rank-%d.ledger", path, world_rank) < PATH_MAX
               ? 0
               : ENAMETOOLONG;
}

/* A database appears before its ledger goes. */
bool run_folder_has(const struct run_folder *folder, int world_rank)
{
    char database[PATH_MAX], ledger[PATH_MAX];
    return name_files_of(folder->path, world_rank, database, ledger) == 0 &&
           (access(ledger, F_OK) == 0 || access(database, F_OK) == 0);
}

/* The number of the run keeps runs apart; the boot keeps hosts of the same name apart, where locks
 * are each host's own. */
static bool name_archive(const char *path, unsigned run, char archive[PATH_MAX])
{
    char boot_id[64];
    host_boot_id(boot_id, sizeof boot_id);
    int length =
        snprintf(archive, PATH_MAX, "%s/node-%u-%s-%.8s.tar", path, run, host_name(), boot_id);
    if (settings.output_per != OUTPUT_PER_NODE || length >= PATH_MAX)
        archive[0] = '\0';
    return *archive;
}

static bool is_in_archive(const char *path, unsigned run, int world_rank)
{
    char archive[PATH_MAX];
    return name_archive(path, run, archive) && archive_has(archive, world_rank);
}

static bool has_files_of(const char *path, int world_rank)
{
    char database[PATH_MAX], ledger[PATH_MAX];
    return name_files_of(path, world_rank, database, ledger) == 0 &&
           (exists(database) || exists(ledger));
}

static int move_files(const char *earlier, const char *path, int world_rank)
{
    char database[PATH_MAX], ledger[PATH_MAX], from_database[PATH_MAX], from_ledger[PATH_MAX];
    int error = name_files_of(path, world_rank, from_database, from_ledger);
    if (!error)
        error = name_files_of(earlier, world_rank, database, ledger);
    if (!error && (exists(database) || exists(ledger)))
        error = EEXIST;
    if (!error)
        error = filesystems_make_folders(earlier);
    if (!error)
        error = move_if_there(from_database, database);
    return error ? error : move_if_there(from_ledger, ledger);
}

static bool name_snapshot(char snapshot[PATH_MAX], const char *folder, unsigned number)
{
    return snprintf(snapshot, PATH_MAX, "%s/snapshot-%u", folder, number) < PATH_MAX;
}

/* Snapshots are numbered without gaps, so the first missing one ends the loop. */
static int move_to(const char *earlier, const char *path, int world_rank)
{
    char from[PATH_MAX], to[PATH_MAX];
    int error = move_files(earlier, path, world_rank);
    for (unsigned k = 1; !error; k++) {
        if (!name_snapshot(from, path, k) || !name_snapshot(to, earlier, k))
            return ENAMETOOLONG;
        if (!has_files_of(from, world_rank))
            break;
        error = move_files(to, from, world_rank);
    }
    return error;
}

static bool has_snapshot_of(const char *path, int world_rank)
{
    char snapshot[PATH_MAX];
    return name_snapshot(snapshot, path, 1) && has_files_of(snapshot, world_rank);
}

/* All ranks of a job start the search for a free earlier-<k> at the number of the previous run. */
static int move_aside(const char *path, int world_rank, unsigned run)
{
    char earlier[PATH_MAX];
    int error = 0;
    unsigned k = run > 1 ? run - 1 : 1;
    do {
        if (!has_files_of(path, world_rank) && !has_snapshot_of(path, world_rank))
            return 0;
        if (snprintf(earlier, sizeof earlier, "%s/earlier-%u", path, k++) >= (int)sizeof earlier)
            return ENAMETOOLONG;
        error = move_to(earlier, path, world_rank);
    } while (error == EEXIST);
    return error;
}

static int move_archive_aside(const char *path, const char *name, unsigned run)
{
    char from[PATH_MAX], earlier[PATH_MAX], to[PATH_MAX];
    int error;
    unsigned k = run > 1 ? run - 1 : 1;
    do {
        if (snprintf(from, sizeof from, "%s/%s", path, name) >= (int)sizeof from ||
            snprintf(earlier, sizeof earlier, "%s/earlier-%u", path, k++) >= (int)sizeof earlier ||
            snprintf(to, sizeof to, "%s/%s", earlier, name) >= (int)sizeof to)
            return ENAMETOOLONG;
        error = filesystems_make_folders(earlier);
        if (!error)
            error = move_if_there(from, to);
    } while (error == EEXIST);
    return error;
}

static bool is_of_earlier_run(const char *name, unsigned run)
{
    unsigned number;
    int at = 0;
    const char *ending = strrchr(name, '.');
    return sscanf(name, "node-%u-%n", &number, &at) == 1 && at && ending &&
           strcmp(ending, ".tar") == 0 && number < run;
}

/* Nodes of the earlier run may have no rank of this one. */
static void move_archives_aside(const struct run_folder *folder)
{
    unsigned run = folder->claim.run;
    DIR *entries = run > 1 ? opendir(folder->path) : NULL;
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (is_of_earlier_run(entry->d_name, run))
            move_archive_aside(folder->path, entry->d_name, run);
    if (entries)
        closedir(entries);
}

/* `other` and the ranks of an earlier run, larger than this one, that have the same number modulo
 * this one's size. */
static void move_others_aside(const struct run_folder *folder, int other, int world_size)
{
    char why[256];
    for (; has_files_of(folder->path, other); other += world_size)
        if (claims_ledger_in_use(folder->path, other, why, sizeof why) ||
            move_aside(folder->path, other, folder->claim.run) != 0)
            break;
}

/* The earlier run may have had more ranks than this one; the files of the additional ranks are
 * moved, too. Those of a rank that is not chosen this time (COMMPROF_RANKS) are moved by the chosen
 * one before it. */
static int move_earlier_run_aside(const struct run_folder *folder,
                                  const struct run_folder_rank *rank)
{
    int error = move_aside(folder->path, rank->world_rank, folder->claim.run);
    if (!error && archive_has(folder->archive,
                              rank->world_rank)) /* an earlier job of the same name and number */
        error =
            move_archive_aside(folder->path, strrchr(folder->archive, '/') + 1, folder->claim.run);
    if (error)
        return error;
    if (rank->is_first)
        move_archives_aside(folder);
    move_others_aside(folder, rank->world_rank + rank->world_size, rank->world_size);
    for (int k = 1; isdigit((unsigned char)*settings.ranks) && k < rank->world_size; k++) {
        int other = (rank->world_rank + k) % rank->world_size;
        if (rank_list_has(settings.ranks, other))
            break;
        move_others_aside(folder, other, rank->world_size);
    }
    return 0;
}

static int name_files(struct run_folder *folder, int world_rank)
{
    int error = name_files_of(folder->path, world_rank, folder->database, folder->ledger);
    name_archive(folder->path, folder->claim.run, folder->archive);
    memcpy(folder->ledger_file, folder->ledger, sizeof folder->ledger);
    return error;
}

/* Prefix of the names of a run's ledgers on a node: an FNV-1a hash of the run folder. */
static void name_of_run(const char *path, char name[32])
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * 0x100000001b3;
    snprintf(name, 32, "%016llx-rank-", (unsigned long long)hash);
}

static int go_into(struct run_folder *folder, const char *subfolder)
{
    if (!append(folder->path, sizeof folder->path, "/") ||
        !append(folder->path, sizeof folder->path, subfolder))
        return ENAMETOOLONG;
    return filesystems_make_folders(folder->path);
}

/* Use the first of <name>, <name>-2, <name>-3 ... without files of this rank. A folder with one
 * rank's files belongs to all ranks of that rank's job. */
static int go_into_first_free(struct run_folder *folder, int world_rank, const char *name)
{
    size_t length = strlen(folder->path);
    char subfolder[320];
    int error, k = 1;
    do {
        folder->path[length] = '\0';
        snprintf(subfolder, sizeof subfolder, k > 1 ? "%.300s-%d" : "%.300s", name, k);
        error = go_into(folder, subfolder);
        k++;
    } while (!error && (has_files_of(folder->path, world_rank) ||
                        is_in_archive(folder->path, folder->claim.run, world_rank)));
    return error;
}

/* A name that is equal on all ranks of a job and, as far as possible, unique to it. If the launcher
 * does not match the MPI library, several jobs of one rank share an id, so they use host, process
 * id and start time. Without a launcher only the job's size is known. */
static void name_job(char job[256], int world_size)
{
    char start[24];
    if (world_size == 1 && host_start_of(getpid(), start))
        snprintf(job, 256, "%.180s-%d-%s", host_name(), (int)getpid(), start);
    else if (world_size == 1 || provenance_is_launched())
        snprintf(job, 256, "%.220s", provenance_job_id());
    else
        snprintf(job, 256, "of-%d", world_size);
}

/* Since version 4.2, Hydra gives all spawned worlds the job's own id. So the k-th world of a size
 * uses the k-th folder of that size; two that start at the same time may mix their ranks. A world
 * of one rank has a unique name. */
static int go_where_no_world_is(struct run_folder *folder, const struct run_folder_rank *rank)
{
    char job[256], name[320];
    name_job(job, rank->world_size);
    snprintf(name, sizeof name, "spawned-%s-of-%d", job, rank->world_size);
    return go_into_first_free(folder, rank->world_rank, name);
}

static int go_where_no_job_is(struct run_folder *folder, int world_rank, const char *job)
{
    char name[300];
    size_t wanted = strlen(folder->path);
    int length = snprintf(folder->moved, sizeof folder->moved,
                          "%s is left alone: %s; this run is in ", folder->path, folder->claim.why);
    snprintf(name, sizeof name, "job-%s", job);
    int error = go_into_first_free(folder, world_rank, name);
    if (error)
        folder->path[wanted] = '\0'; /* the error is about the requested folder */
    else if (length < (int)sizeof folder->moved)
        snprintf(folder->moved + length, sizeof folder->moved - (size_t)length, "%s", folder->path);
    return error;
}

/* If this rank's ledger is still in use, which the job's decision did not notice, only this rank
 * uses another folder. */
static int share(struct run_folder *folder, const struct run_folder_rank *rank)
{
    char job[256];
    name_job(job, rank->world_size);
    int error = claims_take(&folder->claim, folder->path, job, rank->world_rank);
    if (error)
        return error;
    folder->moves_alone =
        folder->claim.is_ours && claims_ledger_in_use(folder->path, rank->world_rank,
                                                      folder->claim.why, sizeof folder->claim.why);
    return folder->claim.is_ours && !folder->moves_alone
               ? 0
               : go_where_no_job_is(folder, rank->world_rank, job);
}

static int open_at(struct run_folder *folder, const struct run_folder_rank *rank)
{
    folder->moved[0] = '\0';
    folder->claim = (struct claim){0};
    int error = filesystems_make_folders(folder->path);
    if (!error)
        error = make_absolute(folder->path);
    if (!error)
        error = rank->is_spawned ? go_where_no_world_is(folder, rank) : share(folder, rank);
    if (!error)
        error = name_files(folder, rank->world_rank);
    if (!error && folder->claim.is_ours && !folder->moves_alone)
        error = move_earlier_run_aside(folder, rank);
    if (!error && access(folder->path, W_OK | X_OK) != 0)
        error = errno;
    if (error)
        claims_give_back(&folder->claim);
    folder->identity = filesystems_folder_at(folder->path);
    folder->root = filesystems_folder_at("/");
    folder->was[0] = '\0';
    return error;
}

/* Use the default name: another job may have the same COMMPROF_OUTPUT on another file system. */
static int open_in_temporary(struct run_folder *folder, const char *place,
                             const struct run_folder_rank *rank)
{
    char name[PATH_MAX];
    int error = filesystems_private_folder(place, folder->path, sizeof folder->path);
    if (error)
        return error;
    if (!expand(name, sizeof name, DEFAULT_PATTERN, rank->world_rank) ||
        !append(folder->path, sizeof folder->path, "/") ||
        !append(folder->path, sizeof folder->path, name))
        return ENAMETOOLONG;
    return open_at(folder, rank);
}

/* Call before the job changes its working directory. The part below the configured folder (spawned
 * worlds) is equal on all ranks. */
static void name_of_all(struct run_folder *folder, const char *pattern, int world_rank)
{
    static char own[PATH_MAX], all[PATH_MAX], start[PATH_MAX];
    folder->of_all[0] = '\0';
    if (!expand(own, sizeof own, pattern, world_rank) ||
        !expand(all, sizeof all, pattern, EVERY_RANK) ||
        !all[strcspn(all, (char[]){ANY_RANK, ANY_HOST, ANY_PROGRAM, '\0'})] ||
        make_absolute(own) != 0 || strncmp(own, folder->path, strlen(own)) != 0 ||
        (*all != '/' && !getcwd(start, sizeof start)))
        return;
    const char *prefix = *all == '/' ? "" : start, *slash = *all == '/' ? "" : "/";
    if (snprintf(folder->of_all, PATH_MAX, "%s%s%s%s", prefix, slash, all,
                 folder->path + strlen(own)) >= PATH_MAX)
        folder->of_all[0] = '\0';
}

int run_folder_open(struct run_folder *folder, const struct run_folder_rank *rank,
                    void (*complain)(const char *line))
{
    static struct run_folder instead; /* large */
    char line[3 * PATH_MAX];
    const char *pattern = *settings.output ? settings.output : DEFAULT_PATTERN;
    int error = expand(folder->path, sizeof folder->path, pattern, rank->world_rank)
                    ? open_at(folder, rank)
                    : ENAMETOOLONG;
    if (!error) {
        name_of_all(folder, pattern, rank->world_rank);
        return 0;
    }
    for (unsigned i = 0; settings.profile != PROFILE_SITE && filesystems_temporary(i); i++) {
        if (open_in_temporary(&instead, filesystems_temporary(i), rank) != 0)
            continue;
        snprintf(line, sizeof line, "cannot use the run folder %s: %s; on %s it is %s%s%s",
                 folder->path, filesystems_reason(error), host_name(), instead.path,
                 *filesystems_in_the_way() ? "; " : "", filesystems_in_the_way());
        *folder = instead;
        complain(line);
        return 0;
    }
    return error;
}

/* The folder at the end */

static void move_path(char path[PATH_MAX], const char *from, const char *to)
{
    char rest[PATH_MAX];
    size_t length = strlen(from), to_length = strlen(to);
    if (strncmp(path, from, length) != 0 || path[length] != '/')
        return;
    snprintf(rest, sizeof rest, "%s", path + length);
    memcpy(path, to, to_length);
    snprintf(path + to_length, PATH_MAX - to_length, "%s", rest);
}

/* All or none. */
static bool move_paths(struct run_folder *folder, const char *to)
{
    enum { LONGEST = PATH_MAX - NAME_MAX - 16 };
    char *paths[] = {folder->database, folder->ledger, folder->ledger_file, folder->archive,
                     folder->claim.held};
    if (strlen(to) > LONGEST)
        return false;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        move_path(paths[i], folder->path, to);
    if (!run_folder_ledger_is_elsewhere(folder))
        ledger_renamed(folder->ledger_file);
    memcpy(folder->was, folder->path, sizeof folder->was);
    memcpy(folder->path, to, strlen(to) + 1);
    folder->of_all[0] = '\0'; /* those of other ranks may not be renamed */
    return true;
}

/* The folder that contains the mapped ledger. */
static bool find_by_ledger(const struct run_folder *folder, char path[PATH_MAX])
{
    return ledger_find(path) == LEDGER_THERE &&
           filesystems_find(&folder->identity, dirname(path)) == 0;
}

/* No file in it is mapped, so only the most frequent case is found: `mv run run-1`. */
static bool find_beside(const struct run_folder *folder, char path[PATH_MAX])
{
    char above[PATH_MAX], copy[2 * PATH_MAX];
    memcpy(above, folder->path, sizeof above);
    DIR *entries = opendir(dirname(above));
    bool found = false;
    for (struct dirent *entry; entries && !found && (entry = readdir(entries));)
        found =
            entry->d_ino == folder->identity.inode &&
            snprintf(path, PATH_MAX, "%s/%s", above, entry->d_name) < PATH_MAX &&
            snprintf(copy, sizeof copy, "%s%s", path, folder->ledger + strlen(folder->path)) > 0 &&
            ledger_copy_is_at(copy);
    if (entries)
        closedir(entries);
    return found;
}

static bool has_another_root(const struct run_folder *folder)
{
    return filesystems_find(&folder->root, "/") != 0;
}

int run_folder_find(struct run_folder *folder)
{
    char path[PATH_MAX];
    int error = filesystems_find(&folder->identity, folder->path);
    if (error != FILESYSTEMS_MOVED && error != FILESYSTEMS_REPLACED)
        return error;
    bool found = run_folder_ledger_is_elsewhere(folder) ? find_beside(folder, path)
                                                        : find_by_ledger(folder, path);
    return found && move_paths(folder, path) ? 0
           : has_another_root(folder)        ? FILESYSTEMS_OTHER_ROOT
                                             : error;
}

bool run_folder_is_hidden(const struct run_folder *folder, int reason)
{
    return reason == EACCES || reason == EPERM || reason == EMFILE || reason == ENFILE ||
           (reason && has_another_root(folder));
}

int run_folder_snapshot(struct run_folder *folder, unsigned number, char ledger[PATH_MAX])
{
    char subfolder[PATH_MAX];
    int error = run_folder_find(folder);
    if (error)
        return error;
    const char *name = strrchr(folder->ledger, '/');
    if (!name_snapshot(subfolder, folder->path, number) ||
        snprintf(ledger, PATH_MAX, "%s%s", subfolder, name) >= PATH_MAX)
        return ENAMETOOLONG;
    return filesystems_make_folders(subfolder);
}

/* A ledger on the node */

bool run_folder_ledger_is_elsewhere(const struct run_folder *folder)
{
    return strcmp(folder->ledger, folder->ledger_file) != 0;
}

static int try_ledger_in(struct run_folder *folder, const char *place, int world_rank,
                         size_t limit_bytes)
{
    char private[PATH_MAX], run[32], process[ALIVE_NAME_BYTES];
    int error = filesystems_are_safe(place)
                    ? filesystems_private_folder(place, private, sizeof private)
                    : FILESYSTEMS_UNSAFE;
    if (error)
        return error;
    name_of_run(folder->path, run);
    int length = snprintf(folder->ledger_file, PATH_MAX, "%s/%s%d-%llx.ledger", private, run,
                          world_rank, (unsigned long long)clock_unix_ns());
    if (length >= PATH_MAX)
        return ENAMETOOLONG;
    alive_name_self(process);
    ledger_copy_announce(
        folder->ledger, process,
        folder->ledger_file); /* if it fails, so does the first copy, which says so */
    error = ledger_open(folder->ledger_file, limit_bytes);
    if (error)
        ledger_copy_remove(folder->ledger);
    return error;
}

/* Retry: a rank that ends may remove our private folder before this rank has created its file
 * there. */
static int open_ledger_in(struct run_folder *folder, const char *place, int world_rank,
                          size_t limit_bytes)
{
    int error;
    unsigned attempts = 1000;
    do
        error = try_ledger_in(folder, place, world_rank, limit_bytes);
    while (error == ENOENT && --attempts > 0);
    return error;
}

static int open_ledger_where_the_user_wants_it(struct run_folder *folder, int world_rank,
                                               size_t limit_bytes)
{
    char place[PATH_MAX];
    memcpy(folder->ledger_file, settings.ledger, sizeof settings.ledger);
    if (!expand(place, sizeof place, settings.ledger, world_rank))
        return ENAMETOOLONG;
    int error = filesystems_make_folders(place);
    if (!error)
        error = make_absolute(place);
    return error ? error : open_ledger_in(folder, place, world_rank, limit_bytes);
}

static int open_ledger_on_the_node(struct run_folder *folder, int world_rank, size_t limit_bytes)
{
    int error = open_ledger_in(folder, "/dev/shm", world_rank, limit_bytes);
    for (unsigned i = 0; error && filesystems_temporary(i); i++)
        error = open_ledger_in(folder, filesystems_temporary(i), world_rank, limit_bytes);
    return error;
}

static int open_ledger_at_first(struct run_folder *folder, int world_rank, size_t limit_bytes,
                                bool is_safe)
{
    if (*settings.ledger)
        return open_ledger_where_the_user_wants_it(folder, world_rank, limit_bytes);
    return is_safe ? ledger_open(folder->ledger_file, limit_bytes) : FILESYSTEMS_UNSAFE;
}

/* An unsafe run folder alone causes no message: most are on network file systems. */
static int open_ledger(struct run_folder *folder, int world_rank, size_t limit_bytes,
                       void (*complain)(const char *line))
{
    char line[3 * PATH_MAX + 512];
    bool is_safe = filesystems_are_safe(folder->path);
    int error = open_ledger_at_first(folder, world_rank, limit_bytes, is_safe);
    if (!error)
        return 0;
    int used = snprintf(line, sizeof line, "cannot keep the ledger in %s: %s; ",
                        folder->ledger_file, filesystems_reason(error));
    bool is_news = *settings.ledger || is_safe;
    if (open_ledger_on_the_node(folder, world_rank, limit_bytes) != 0) {
        memcpy(folder->ledger_file, folder->ledger, sizeof folder->ledger);
        error = ledger_open(folder->ledger_file, limit_bytes);
        if (error)
            return error;
        is_news = true;
    }
    used += snprintf(line + used, sizeof line - (size_t)used, "it is %s%s", folder->ledger_file,
                     is_safe || run_folder_ledger_is_elsewhere(folder)
                         ? ""
                         : ", and a failure of that file system would end the job");
    if (*filesystems_in_the_way() && error != FILESYSTEMS_SQUATTED)
        snprintf(line + used, sizeof line - (size_t)used, "; %s", filesystems_in_the_way());
    if (is_news || *filesystems_in_the_way())
        complain(line);
    return 0;
}

int run_folder_open_ledger(struct run_folder *folder, int world_rank, size_t limit_bytes,
                           void (*complain)(const char *line))
{
    char line[256];
    int error = open_ledger(folder, world_rank, limit_bytes, complain);
    if (error)
        return error;
    the_ledger.complain = complain;
    snprintf(line, sizeof line,
             "no address space for a ledger of %zu kB; it has %zu kB, beyond which the rarest "
             "message sizes fold",
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
        ledger_copy_remove(folder->ledger);
    rmdir(dirname(folder->ledger_file)); /* the ledger's private folder; fails while other ledgers
                                            are in it */
}
