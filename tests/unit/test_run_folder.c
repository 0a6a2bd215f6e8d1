#include "run/run_folder.h"

#include "base/filesystems.h"
#include "base/host.h"
#include "base/settings.h"
#include "ledger/copy.h"
#include "ledger/ledger.h"
#include "output/archive.h"
#include "run/alive.h"
#include "run/presence.h"
#include "files.h"
#include "stepping.h"

#include <fcntl.h>
#include <sys/resource.h>

static struct run_folder folder;
static char said[3 * PATH_MAX];

static void hear(const char *line)
{
    snprintf(said, sizeof said, "%s", line);
}

static int open_with(const char *output, int world_rank)
{
    said[0] = '\0';
    setenv("SLURM_JOB_ID", "4711", 1);
    unsetenv("SLURM_STEP_ID");
    setenv("PMIX_NAMESPACE", "step", 1);
    snprintf(settings.output, sizeof settings.output, "%s", output);
    return run_folder_open(
        &folder, &(struct run_folder_rank){world_rank, 10000, false, world_rank == 0}, hear);
}

static int open_spawned(int world_rank, int world_size)
{
    return run_folder_open(
        &folder, &(struct run_folder_rank){world_rank, world_size, true, world_rank == 0}, hear);
}

/* Begins a job of one rank with its own name. */
static int open_alone(const char *output)
{
    snprintf(settings.output, sizeof settings.output, "%s", output);
    return run_folder_open(&folder, &(struct run_folder_rank){0, 1, false, true}, hear);
}

static int open_as_job(const char *job, int world_rank)
{
    setenv("SLURM_JOB_ID", job, 1);
    unsetenv("PMIX_NAMESPACE");
    strcpy(settings.output, "run");
    return run_folder_open(
        &folder, &(struct run_folder_rank){world_rank, 10000, false, world_rank == 0}, hear);
}

static int open_ledger(int world_rank)
{
    said[0] = '\0';
    return run_folder_open_ledger(&folder, world_rank, 1 << 20, hear);
}

static void open_both(const char *output, int world_rank)
{
    CHECK_EQUAL(open_with(output, world_rank), 0);
    CHECK_EQUAL(open_ledger(world_rank), 0);
}

static void open_both_as_job(const char *job, int world_rank)
{
    CHECK_EQUAL(open_as_job(job, world_rank), 0);
    CHECK_EQUAL(open_ledger(world_rank), 0);
}

/* The absolute path of a file below the working directory: a job may change its directory. */
static const char *here(const char *path)
{
    static char absolute[2 * PATH_MAX], directory[PATH_MAX];
    CHECK(getcwd(directory, sizeof directory) != NULL);
    snprintf(absolute, sizeof absolute, "%s/%s", directory, path);
    return absolute;
}

static void check_job_in(const char *job, int world_rank, const char *path)
{
    CHECK_EQUAL(open_as_job(job, world_rank), 0);
    CHECK_TEXT(folder.path, here(path));
}

TEST(the_setting_names_the_folder_and_ranks_name_the_files)
{
    char of_host[512];
    snprintf(of_host, sizeof of_host, "%s/unit/7/4711-step/%%/100%%", host_name());
    const char *const ROWS[][2] = {{"deep/er/run", "deep/er/run"},
                                   {"", "commprof-unit-4711-step"},
                                   {"%h/%p/%r/%j/%%/100%", of_host},
                                   {"%u/%d", "ada/2026-11-23"}};
    setenv("USER", "ada", 1);
    setenv("SLURM_JOB_START_TIME", "1795392000", 1);
    setenv("TZ", "UTC", 1);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        unit_context = ROWS[i][0];
        CHECK_EQUAL(open_with(ROWS[i][0], 7), 0);
        CHECK_TEXT(folder.path, here(ROWS[i][1]));
        CHECK(is_there(folder.path));
    }
    CHECK_TEXT(folder.database, here("ada/2026-11-23/rank-7.db"));
    CHECK_TEXT(folder.ledger, here("ada/2026-11-23/rank-7.ledger"));
    CHECK_TEXT(folder.ledger_file, folder.ledger);
    CHECK(!is_there(folder.database));
}

TEST(the_folders_of_all_ranks_are_known_where_they_differ)
{
    CHECK_EQUAL(open_with("%p-%j/%h-%r/x", 7), 0);
    CHECK_TEXT(folder.of_all, here("\3-4711-step/\2-\1/x"));
    CHECK_EQUAL(open_with("%u-%j", 7), 0);
    CHECK_TEXT(folder.of_all, "");
}

static void check_spawned(int world_rank, int world_size, const char *path)
{
    CHECK_EQUAL(open_spawned(world_rank, world_size), 0);
    CHECK_TEXT(folder.path, here(path));
    write_file(world_rank % 2 ? folder.ledger : folder.database,
               "of this world"); /* some ranks have ended already */
}

/* Under Hydra they have the same job id. */
TEST(worlds_that_are_spawned_one_after_the_other_have_a_folder_each)
{
    open_with("run", 0);
    for (int rank = 0; rank < 3; rank++)
        check_spawned(rank, 3, "run/spawned-4711-step-of-3");
    for (int rank = 0; rank < 5; rank++)
        check_spawned(rank, 5, "run/spawned-4711-step-of-5");
    for (int rank = 2; rank >= 0; rank--)
        check_spawned(rank, 3, "run/spawned-4711-step-of-3-2");
    check_spawned(1, 3, "run/spawned-4711-step-of-3-3");
}

/* A process is identified by its start time. */
static void skip_if_emulated(void)
{
    if (unit_is_emulated())
        unit_skip("the emulator makes up when a process began");
}

/* Jobs that overlap */

static void become_nobody(void)
{
    CHECK(chmod(".", 0777) == 0);
    if (geteuid() == 0)
        CHECK(setegid(65534) == 0 && setresuid(65534, 65534, 0) == 0);
}

static void check_alone_in(const char *start)
{
    CHECK_EQUAL(open_alone("run"), 0);
    CHECK(strncmp(folder.path, here(start), strlen(here(start))) == 0);
    CHECK(is_there(folder.path));
    CHECK(!is_there(folder.ledger) && !is_there(folder.database));
}

static void open_beside_the_parent(void)
{
    check_alone_in("run/job-");
    CHECK(strstr(folder.moved, here("run is left alone: process ")) &&
          strstr(folder.moved, " writes to it; this run is in "));
    CHECK(strstr(folder.moved, folder.path));
}

static void end_without_a_file(int world_rank)
{
    open_both_as_job("4711", world_rank);
    run_folder_remove_ledger(&folder, true);
    claims_give_back(&folder.claim);
    claims_remove_empty(&folder.claim, folder.path);
}

TEST(a_run_that_leaves_no_file_leaves_no_folder)
{
    end_without_a_file(0);
    CHECK(!is_there("run"));
    CHECK_EQUAL(open_as_job("4711", 0), 0);
    CHECK_EQUAL(folder.claim.run, 1);
}

TEST(the_folder_stays_while_another_rank_uses_it)
{
    CHECK_EQUAL(open_as_job("4711", 1), 0);
    write_file("run/rank-1.ledger", "of another rank");
    end_without_a_file(0);
    CHECK(is_there("run/.jobs/run-1"));
    CHECK_EQUAL(unlink("run/rank-1.ledger"), 0);
    end_without_a_file(0);
    CHECK(is_there("run/.jobs")); /* rank 1 has not ended */
}

TEST(a_job_that_has_no_ledger_yet_has_the_folder)
{
    skip_if_emulated();
    CHECK_EQUAL(open_alone("run"), 0);
    unit_elsewhere(open_beside_the_parent);
}

static void open_beside_a_ledger(void)
{
    check_alone_in("run/job-");
    CHECK(
        strstr(folder.moved,
               "run is left alone: the writer of rank-2.ledger there still runs; this run is in "));
}

/* Ranks that are slower than the one that claimed the folder. */
TEST(a_ledger_that_is_mapped_still_keeps_its_folder)
{
    open_both_as_job("1", 2);
    claims_give_back(&folder.claim);
    write_file("run/rank-0.db", "of a rank that has ended");
    write_file("run/rank-1.db", "of a rank that has ended");
    unit_elsewhere(open_beside_a_ledger);
    CHECK_TEXT(content_of("run/rank-0.db"), "of a rank that has ended");
}

static void move_its_files_aside(void)
{
    check_job_in("2", 2, "run");
    CHECK_TEXT(folder.moved, "");
    CHECK(is_there("run/earlier-1/rank-2.ledger"));
}

static void move_files_of_ranks_that_are_not_chosen(void)
{
    strcpy(settings.ranks, "2-9999:4");
    CHECK_EQUAL(open_as_job("2", 2), 0);
    CHECK(is_there("run/earlier-1/rank-2.db") && is_there("run/earlier-1/rank-3.db") &&
          is_there("run/earlier-1/rank-10003.db"));
    CHECK(!is_there("run/rank-3.db") && is_there("run/rank-1.db") && is_there("run/rank-6.db"));
    CHECK_EQUAL(open_as_job("2", 9998), 0);
    CHECK(is_there("run/earlier-1/rank-0.db") && is_there("run/earlier-1/rank-1.db"));
    CHECK(is_there("run/rank-6.db"));
}

TEST(files_of_ranks_that_are_not_chosen_this_time_are_moved_by_the_one_before)
{
    static const int EARLIER[] = {0, 1, 2, 3, 6, 10003};
    char path[64];
    CHECK(mkdir("run", 0700) == 0);
    for (size_t i = 0; i < sizeof EARLIER / sizeof *EARLIER; i++) {
        snprintf(path, sizeof path, "run/rank-%d.db", EARLIER[i]);
        write_file(path, "of the earlier run");
    }
    unit_elsewhere(move_files_of_ranks_that_are_not_chosen);
}

static void write_and_die(void)
{
    open_both_as_job("1", 2);
    _exit(EXIT_SUCCESS);
}

TEST(a_job_that_was_killed_is_an_earlier_run)
{
    unit_elsewhere(write_and_die);
    unit_elsewhere(move_its_files_aside);
}

/* A job of the same name, as under an unknown launcher, or one whose ledger was not read. */
TEST(a_rank_whose_ledger_is_in_use_goes_elsewhere_alone)
{
    open_both_as_job("1", 2);
    check_job_in("1", 3, "run");
    check_job_in("1", 2, "run/job-1");
    CHECK(folder.moves_alone);
    write_file(folder.ledger, "of this rank");
    check_job_in("1", 2, "run/job-1-2");
}

static void make_a_run_of_its_own(void)
{
    CHECK_EQUAL(open_alone("run"), 0);
    CHECK_TEXT(folder.moved, "");
    write_file("run/rank-0.db", "a database");
    claims_give_back(&folder.claim);
}

TEST(where_no_claim_can_be_made_each_job_has_a_folder_of_its_own)
{
    CHECK(mkdir("run", 0777) == 0 && chmod("run", 0777) == 0 && mkdir("run/.jobs", 0700) == 0);
    if (geteuid() != 0)
        unit_skip("needs root");
    become_nobody();
    check_alone_in("run/job-");
    CHECK(strstr(folder.moved, "no links can be made in its folder .jobs: Permission denied"));
}

TEST(runs_one_after_the_other_leave_nothing_but_earlier_ones)
{
    for (int i = 0; i < 20; i++)
        unit_elsewhere(make_a_run_of_its_own);
    CHECK(is_there("run/rank-0.db") && is_there("run/earlier-1/rank-0.db") &&
          is_there("run/earlier-19/rank-0.db"));
    CHECK(!is_there("run/earlier-20"));
}

static void open_and_leave_a_file(void)
{
    CHECK_EQUAL(open_alone("run"), 0);
    CHECK_EQUAL(open_ledger(0), 0);
    CHECK_TEXT(said, "");
    CHECK(!is_there(folder.database));
    write_file(folder.database, "a database");
    ledger_remove();
    claims_give_back(&folder.claim);
}

static int count_databases(void)
{
    FILE *found = popen("find run -name rank-0.db | wc -l", "r");
    int count = -1;
    CHECK(fscanf(found, "%d", &count) == 1);
    pclose(found);
    return count;
}

TEST(jobs_that_start_at_the_same_time_have_a_folder_each)
{
    enum { JOBS = 100 };
    skip_if_emulated();
    unit_at_once(JOBS, open_and_leave_a_file);
    CHECK_EQUAL(count_databases(), JOBS);
}

/* Ranks may find the folder in different states; the first one's decision holds. */
static void open_among_many(void)
{
    CHECK_EQUAL(open_as_job("1", getpid()), 0);
    write_file(strcmp(folder.path, here("run")) == 0 ? "is-there" : "is-elsewhere", "");
}

TEST(all_ranks_of_a_job_decide_alike)
{
    enum { RANKS = 200 };
    int status, before[2];
    CHECK(pipe(before) == 0);
    if (fork() == 0) { /* a job that ends at the same time */
        CHECK_EQUAL(open_alone("run"), 0);
        CHECK(write(before[1], "", 1) == 1);
        claims_give_back(&folder.claim);
        _exit(EXIT_SUCCESS);
    }
    CHECK(read(before[0], &status, 1) == 1);
    for (int i = 0; i < RANKS; i++)
        if (fork() == 0) {
            open_among_many();
            _exit(EXIT_SUCCESS);
        }
    for (int i = 0; i <= RANKS; i++) {
        CHECK(wait(&status) > 0);
        CHECK_EQUAL(status, 0);
    }
    CHECK(is_there("is-there") != is_there("is-elsewhere"));
}

/* Unusable folders */

static bool lies_in(const char *path, const char *place)
{
    char private[2 * PATH_MAX + 32];
    snprintf(private, sizeof private, "%s/commprof-%u/", place, (unsigned)geteuid());
    return strncmp(path, private, strlen(private)) == 0;
}

static const char *temporary(void)
{
    mkdir("temporary", 0700);
    setenv("TMPDIR", here("temporary"), 1);
    return here("temporary");
}

static void check_replaced(const char *output, const char *reason)
{
    char expected[PATH_MAX], line[3 * PATH_MAX];
    snprintf(expected, sizeof expected, "%.1000s/commprof-%u/commprof-unit-4711-step", temporary(),
             (unsigned)geteuid());
    CHECK_EQUAL(open_with(output, 3), 0);
    CHECK_TEXT(folder.path, expected);
    CHECK(strncmp(folder.database, expected, strlen(expected)) == 0);
    CHECK(is_there(expected));
    snprintf(line, sizeof line, ": %s; on %s it is %s", reason, host_name(), expected);
    CHECK(strncmp(said, "cannot use the run folder ", 26) == 0);
    CHECK(strstr(said, line));
}

TEST(a_name_that_does_not_fit_is_replaced)
{
    static char long_name[PATH_MAX];
    memset(long_name, 'x', sizeof long_name - 1);
    check_replaced(long_name, "File name too long");
    memset(long_name + PATH_MAX - 3, 0,
           3); /* the folder's path fits, but those of its files do not */
    for (int i = 200; i < PATH_MAX - 4; i += 200)
        long_name[i] = '/';
    check_replaced(long_name, "File name too long");
}

TEST(a_file_in_the_way_is_said)
{
    write_file("run", "not a folder");
    check_replaced("run", "Not a directory");
    check_replaced("run/below", "Not a directory");
    CHECK_TEXT(content_of("run"), "not a folder");
}

TEST(a_file_system_that_is_read_only_is_said)
{
    mount_here("disk", "tmpfs", NULL);
    CHECK(mkdir("disk/there", 0700) == 0);
    CHECK(mount(NULL, "disk", NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    check_replaced("disk/run", "Read-only file system");
    check_replaced("disk/there", "Read-only file system");
}

TEST(somebody_elses_folder_among_everybody_s_is_not_used)
{
    CHECK(mkdir("shared", 0700) == 0 && chmod("shared", 01777) == 0);
    CHECK(mkdir("shared/run", 0700) == 0 && chmod("shared/run", 0777) == 0);
    CHECK(mkdir("target", 0700) == 0 && symlink("../target", "shared/link") == 0);
    if (chown("shared/run", 65533, 65533) != 0 || lchown("shared/link", 65533, 65533) != 0)
        unit_skip("needs root");
    check_replaced("shared/run", "a part of the path belongs to another user and is in a folder "
                                 "where anybody may create files");
    check_replaced("shared/link", "a part of the path belongs to another user and is in a folder "
                                  "where anybody may create files");
    check_replaced("shared/link/sub/run", "a part of the path belongs to another user and is in a "
                                          "folder where anybody may create files");
    CHECK(!is_there("target/sub"));
    CHECK_EQUAL(open_with("target", 0), 0);
    CHECK_TEXT(said, "");
}

TEST(files_are_not_moved_aside_into_somebody_elses_folder)
{
    CHECK(mkdir("shared", 0700) == 0 && chmod("shared", 01777) == 0);
    write_file("shared/rank-3.db", "of an earlier run");
    CHECK(mkdir("target", 0700) == 0 && symlink("../target", "shared/earlier-1") == 0);
    if (lchown("shared/earlier-1", 65533, 65533) != 0)
        unit_skip("needs root");
    check_replaced("shared", "a part of the path belongs to another user and is in a folder where "
                             "anybody may create files");
    CHECK(!is_there("target/rank-3.db"));
    CHECK(is_there("shared/rank-3.db"));
}

static unsigned mode_of(const char *path)
{
    struct stat about;
    CHECK(stat(path, &about) == 0);
    return about.st_mode & 0777;
}

TEST(nobody_else_reads_a_run_unless_the_user_wants_it)
{
    static const struct {
        const char *run, *wanted;
        unsigned umask, of_folder, of_file;
    } ROWS[] = {{"run-1", NULL, 022, 0700, 0600},
                {"run-2", "027", 022, 0750, 0640},
                {"run-3", "022", 077, 0700, 0600}};
    char path[64];
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        unit_context = ROWS[i].run;
        umask(ROWS[i].umask);
        if (ROWS[i].wanted)
            setenv("COMMPROF_UMASK", ROWS[i].wanted, 1);
        settings_read(NULL);
        CHECK_EQUAL(open_with(ROWS[i].run, 0), 0);
        CHECK_EQUAL(open_ledger(0), 0);
        CHECK_EQUAL(mode_of(ROWS[i].run), ROWS[i].of_folder);
        snprintf(path, sizeof path, "%s/rank-0.ledger", ROWS[i].run);
        CHECK_EQUAL(mode_of(path), ROWS[i].of_file);
    }
    CHECK(mkdir("there", 0700) == 0 && chmod("there", 0775) == 0);
    CHECK_EQUAL(open_with("there", 0), 0);
    CHECK_EQUAL(mode_of("there"), 0775);
}

static void make_the_folder(void)
{
    open_both("deep/er/run", getpid());
}

TEST(many_make_the_folder_at_the_same_time)
{
    enum { RANKS = 1000 };
    unit_at_once(RANKS, make_the_folder);
}

TEST(little_address_space_is_said)
{
    if (UNIT_SANITIZED)
        unit_skip("the sanitizer itself needs more address space");
    struct rlimit limit = {256 << 20, 256 << 20};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK_EQUAL(open_with("run", 0), 0);
    CHECK_EQUAL(run_folder_open_ledger(&folder, 0, (size_t)1 << 40, hear), 0);
    CHECK(strncmp(said, "no address space for a ledger of 1073741824 kB; it has ", 55) == 0);
}

/* Files of an earlier run */

static void leave_an_earlier_run(const char *database, const char *ledger)
{
    CHECK_EQUAL(open_with("run", 0), 0);
    write_file(folder.database, database);
    write_file(folder.ledger, ledger);
}

TEST(an_earlier_runs_snapshots_go_with_it)
{
    leave_an_earlier_run("database 1", "ledger 1");
    CHECK(mkdir("run/snapshot-1", 0700) == 0 && mkdir("run/snapshot-2", 0700) == 0);
    write_file("run/snapshot-1/rank-0.db", "snapshot 1");
    write_file("run/snapshot-2/rank-0.ledger", "snapshot 2");
    write_file("run/snapshot-2/rank-1.db", "another rank's");
    CHECK_EQUAL(open_with("run", 0), 0);
    CHECK_TEXT(content_of("run/earlier-1/snapshot-1/rank-0.db"), "snapshot 1");
    CHECK_TEXT(content_of("run/earlier-1/snapshot-2/rank-0.ledger"), "snapshot 2");
    CHECK(!is_there("run/snapshot-1/rank-0.db"));
    CHECK_TEXT(content_of("run/snapshot-2/rank-1.db"), "another rank's");
}

TEST(each_earlier_run_has_its_own_place)
{
    leave_an_earlier_run("database 1", "ledger 1");
    leave_an_earlier_run("database 2", "ledger 2");
    CHECK_EQUAL(open_with("run", 0), 0);
    CHECK_TEXT(content_of("run/earlier-1/rank-0.db"), "database 1");
    CHECK_TEXT(content_of("run/earlier-2/rank-0.db"), "database 2");
    CHECK_TEXT(content_of("run/earlier-2/rank-0.ledger"), "ledger 2");
}

/* Archives of nodes */

static void put_into_archive(int world_rank)
{
    write_file("database", "of a rank");
    int file = open("database", O_RDONLY);
    CHECK_EQUAL(archive_append(folder.archive, world_rank, file), 0);
    close(file);
}

static void end_in_an_archive(void)
{
    settings.output_per = OUTPUT_PER_NODE;
    CHECK_EQUAL(open_as_job("1", 2), 0);
    CHECK(strncmp(folder.archive, here("run/node-1-"), strlen(here("run/node-1-"))) == 0);
    put_into_archive(2);
    claims_give_back(&folder.claim);
}

TEST(the_first_rank_moves_the_archives_of_all_nodes_of_earlier_runs)
{
    unit_elsewhere(end_in_an_archive);
    write_file("run/node-1-of-another-name-00000000.tar", "of a node without ranks of this run");
    write_file("run/node-2-of-this-run-00000000.tar", "of a rank that was faster");
    write_file("run/node-1-mine.txt", "the user's");
    CHECK_EQUAL(open_as_job("2", 3), 0);
    CHECK(!is_there("run/earlier-1"));
    CHECK_EQUAL(open_as_job("2", 0), 0);
    CHECK_EQUAL(
        system("ls run/earlier-1/node-1-*.tar | grep --count . | grep --quiet --line-regexp 2"), 0);
    CHECK_EQUAL(system("ls run/node-*"
                       " | tr '\\n' ' ' | grep --quiet --line-regexp 'run/node-1-mine.txt "
                       "run/node-2-of-this-run-00000000.tar '"),
                0);
}

TEST(a_rank_that_is_in_the_archive_is_of_an_earlier_job_of_the_same_name)
{
    unit_elsewhere(end_in_an_archive);
    settings.output_per = OUTPUT_PER_NODE;
    CHECK_EQUAL(open_as_job("1", 3), 0);
    CHECK(archive_has(folder.archive, 2));
    CHECK_EQUAL(open_as_job("1", 2), 0);
    CHECK(!is_there(folder.archive));
    CHECK_EQUAL(system("ls run/earlier-1/node-1-*.tar > listed"), 0);
}

static void open_beside_the_ledger_of_rank_3(void)
{
    check_alone_in("run/job-");
    CHECK(
        strstr(folder.moved,
               "run is left alone: the writer of rank-3.ledger there still runs; this run is in "));
}

TEST(a_rank_that_still_runs_keeps_its_folder_though_those_before_it_are_in_an_archive)
{
    unit_elsewhere(end_in_an_archive);
    open_both_as_job("1", 3);
    claims_give_back(&folder.claim);
    unit_elsewhere(open_beside_the_ledger_of_rank_3);
}

/* A ledger outside the run folder */

/* ramfs is not a safe file system, and cannot reserve space. */
static void open_on_an_unsafe_file_system(void)
{
    mount_here("network", "ramfs", NULL);
    CHECK_EQUAL(open_with("network/run", 2), 0);
}

TEST(a_folder_of_temporary_files_that_is_not_there_is_passed_over)
{
    open_on_an_unsafe_file_system();
    mount_here("/dev/shm", "ramfs", NULL);
    setenv("TMPDIR", here("missing"), 1);
    CHECK_EQUAL(open_ledger(2), 0);
    CHECK(lies_in(folder.ledger_file, "/tmp"));
    run_folder_remove_ledger(&folder, true);
}

TEST(no_place_at_all_is_said)
{
    mount_here("/tmp", "ramfs", NULL);
    mount_here("/dev/shm", "ramfs", NULL);
    unsetenv("TMPDIR");
    CHECK_EQUAL(chdir("/tmp"), 0);
    CHECK_EQUAL(open_with("run", 2), 0);
    CHECK_EQUAL(open_ledger(2), EOPNOTSUPP);
    CHECK_TEXT(folder.ledger_file, "/tmp/run/rank-2.ledger");
    CHECK(!is_there("run/rank-2.ledger"));
}

TEST(somebody_elses_folder_among_temporary_files_is_not_used)
{
    char foreign[PATH_MAX];
    open_on_an_unsafe_file_system();
    mount_here("/dev/shm", "tmpfs", "mode=1777");
    snprintf(foreign, sizeof foreign, "/dev/shm/commprof-%u", (unsigned)geteuid());
    CHECK(mkdir(foreign, 0700) == 0);
    if (chown(foreign, 65534, 65534) != 0)
        unit_skip("needs root");
    CHECK_EQUAL(open_ledger(2), 0);
    CHECK(!lies_in(folder.ledger_file, "/dev/shm"));
    CHECK(strstr(said, foreign) &&
          strstr(said, " is in the way: a folder of user 65534, mode 700"));
    run_folder_remove_ledger(&folder, true);
}

TEST(a_link_in_place_of_our_folder_is_not_followed)
{
    char link[PATH_MAX];
    strcpy(settings.ledger, "fast");
    snprintf(link, sizeof link, "fast/commprof-%u", (unsigned)geteuid());
    mkdir("fast", 0700);
    mkdir("target", 0700);
    CHECK(symlink(here("target"), link) == 0);
    open_both("run", 2);
    CHECK(!lies_in(folder.ledger_file, here("fast")));
    CHECK(strstr(said, link) && strstr(said, " is in the way: a link of user ") &&
          strstr(said, folder.ledger_file));
    run_folder_remove_ledger(&folder, true);
}

TEST(nobody_else_can_read_a_ledger_elsewhere)
{
    struct stat private;
    char path[PATH_MAX];
    strcpy(settings.ledger, "fast");
    snprintf(path, sizeof path, "fast/commprof-%u", (unsigned)geteuid());
    open_both("run", 2);
    CHECK(stat(path, &private) == 0);
    CHECK_EQUAL(private.st_mode & 0777, 0700);
}

static void open_with_a_copy(void)
{
    strcpy(settings.ledger, "fast");
    open_both("run", 2);
    CHECK(run_folder_ledger_is_elsewhere(&folder));
    CHECK_EQUAL(ledger_copy(folder.ledger), 0);
}

TEST(a_copy_that_is_not_ours_stays)
{
    open_with_a_copy();
    CHECK(unlink(folder.ledger) == 0);
    write_file(folder.ledger, "another job's");
    CHECK_EQUAL(ledger_copy(folder.ledger), EEXIST);
    run_folder_remove_ledger(&folder, true);
    CHECK_TEXT(content_of("run/rank-2.ledger"), "another job's");
}

TEST(a_ledger_folder_that_cannot_be_made_is_said_and_another_taken)
{
    write_file("occupied", "a file");
    snprintf(settings.ledger, sizeof settings.ledger, "occupied/fast");
    open_both("run", 0);
    CHECK(lies_in(folder.ledger_file, "/dev/shm"));
    CHECK(strstr(said, "occupied/fast: Not a directory; it is /dev/shm/"));
    run_folder_remove_ledger(&folder, true);
}

TEST(a_full_disk_has_its_ledgers_on_the_node)
{
    mount_here("full", "tmpfs", "size=64k");
    open_both("full/run", 0);
    CHECK(lies_in(folder.ledger_file, "/dev/shm"));
    CHECK(strstr(said, "full/run/rank-0.ledger: No space left on device; it is /dev/shm/"));
    run_folder_remove_ledger(&folder, true);
}

static void end_at_once(void)
{
    strcpy(settings.ledger, "fast");
    open_both("run", getpid());
    CHECK_TEXT(said, "");
    CHECK(lies_in(folder.ledger_file, here("fast")));
    run_folder_remove_ledger(&folder, true);
}

/* A rank that ends removes the folder that another rank has just found. */
TEST(ranks_that_begin_and_end_at_the_same_time_do_not_interfere)
{
    enum { RANKS = 300 };
    unit_at_once(RANKS, end_at_once);
}

/* Kills */

static void begin_on_the_node(void)
{
    CHECK_EQUAL(mkdir("node", 0700), 0);
    snprintf(settings.ledger, sizeof settings.ledger, "%s", here("node"));
    CHECK_EQUAL(open_with("run", 2), 0);
}

static void open_copy_and_remove(void)
{
    CHECK_EQUAL(open_ledger(2), 0);
    CHECK_EQUAL(ledger_copy(folder.ledger), 0);
    CHECK_EQUAL(ledger_copy(folder.ledger), 0);
    run_folder_remove_ledger(&folder, true);
}

/* The path of the ledger on the node; "" if there is none. */
static const char *on_the_node(void)
{
    static char path[PATH_MAX];
    char private[PATH_MAX];
    snprintf(private, sizeof private, "%.4000s/commprof-%u", here("node"), (unsigned)geteuid());
    DIR *entries = opendir(private);
    path[0] = '\0';
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (strstr(entry->d_name, ".ledger"))
            snprintf(path, sizeof path, "%.3000s/%.255s", private, entry->d_name);
    if (entries)
        closedir(entries);
    return path;
}

static bool starts_as(const char *path, const char *start)
{
    return is_there(path) && strncmp(content_of(path), start, strlen(start)) == 0;
}

static bool names(const char *stub, const char *ledger)
{
    char text[4096] = "", last[PATH_MAX] = "";
    FILE *file = fopen(stub, "r");
    CHECK(file && fgets(text, sizeof text, file));
    fclose(file);
    CHECK_EQUAL(sscanf(text, LEDGER_STUB "%*s %*s %*s %*d %*s %4095[^\n]", last), 1);
    return strcmp(last, ledger) == 0;
}

static struct {
    unsigned alone, with_stub, with_copy;
} seen;

static void a_file_leads_to_the_ledger(pid_t child)
{
    (void)child;
    const char *ledger = on_the_node();
    if (!*ledger)
        seen.alone++;
    else if (starts_as("run/rank-2.ledger", LEDGER_STUB)) {
        CHECK(names("run/rank-2.ledger", ledger));
        seen.with_stub++;
    } else {
        CHECK(starts_as("run/rank-2.ledger", LEDGER_MAGIC));
        seen.with_copy++;
    }
}

TEST(a_kill_at_any_time_leaves_a_file_that_leads_to_the_ledger_on_the_node)
{
    begin_on_the_node();
    stepping(PTRACE_SYSCALL, open_copy_and_remove, a_file_leads_to_the_ledger);
    CHECK(seen.alone > 10 && seen.with_stub > 10 && seen.with_copy > 10);
    CHECK(!*on_the_node() && !is_there("run/rank-2.ledger") && !is_there("run/rank-2.ledger.tmp"));
}

TEST(a_ledger_that_cannot_be_created_leaves_no_stub)
{
    begin_on_the_node();
    CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096}), 0);
    CHECK(open_ledger(2) != 0);
    CHECK(!is_there("run/rank-2.ledger") && !is_there("run/rank-2.ledger.tmp"));
}

TEST(a_file_of_that_name_is_not_replaced_by_a_stub)
{
    write_file("stub", "the user's");
    CHECK_EQUAL(ledger_copy_announce("stub", "host boot ns 1 2", "/dev/shm/x.ledger"), EEXIST);
    CHECK_TEXT(content_of("stub"), "the user's");
    ledger_copy_remove("stub");
    CHECK_TEXT(content_of("stub"), "the user's");
}

static void die_before_the_first_copy(void)
{
    begin_on_the_node();
    CHECK_EQUAL(open_ledger(2), 0);
    CHECK_EQUAL(alive_ledger("run/rank-2.ledger"), ALIVE_YES);
}

TEST(a_stub_says_whether_its_process_runs)
{
    skip_if_emulated();
    unit_elsewhere(die_before_the_first_copy);
    CHECK_EQUAL(alive_ledger("run/rank-2.ledger"), ALIVE_NO);
    unlink("run/rank-2.ledger");
    CHECK_EQUAL(ledger_copy_announce(here("run/rank-2.ledger"),
                                     "node17 another-boot pid:[1] 4711 99", "/dev/shm/x.ledger"),
                0);
    CHECK_EQUAL(alive_ledger("run/rank-2.ledger"),
                ALIVE_NO); /* this file system is local: that boot is over */
}

/* The folder at the end */

static void open_run(void)
{
    open_both("run", 2);
}

static void check_found_in(const char *path)
{
    char file[2 * PATH_MAX];
    CHECK_EQUAL(run_folder_find(&folder), 0);
    CHECK_TEXT(folder.path, path);
    snprintf(file, sizeof file, "%s/rank-2.db", path);
    CHECK_TEXT(folder.database, file);
    snprintf(file, sizeof file, "%s/rank-2.ledger", path);
    CHECK_TEXT(folder.ledger, file);
    snprintf(file, sizeof file, "%s/.jobs/job-4711-step", path);
    CHECK_TEXT(folder.claim.held, file);
    CHECK(run_folder_ledger_is_elsewhere(&folder) || strcmp(the_ledger.path, folder.ledger) == 0);
}

TEST(a_folder_that_was_renamed_is_found)
{
    open_run();
    CHECK(mkdir("far", 0700) == 0 && rename("run", "far/away") == 0);
    check_found_in(here("far/away"));
    CHECK_TEXT(folder.was, here("run"));
    check_found_in(here("far/away"));
    CHECK_TEXT(folder.was, here("run"));
    run_folder_remove_ledger(&folder, true);
    CHECK(!is_there("far/away/rank-2.ledger"));
}

TEST(a_folder_with_the_ledger_on_the_node_is_found_beside_its_old_path)
{
    begin_on_the_node();
    CHECK_EQUAL(open_ledger(2), 0);
    CHECK(mkdir("run-0", 0700) == 0 && rename("run", "run-1") == 0);
    check_found_in(here("run-1"));
    CHECK(run_folder_ledger_is_elsewhere(&folder));
    CHECK_EQUAL(ledger_copy(folder.ledger), 0);
    write_file("run-1/rank-2.ledger.tmp", "a copy that was being written");
    run_folder_remove_ledger(&folder, true);
    CHECK(!is_there("run-1/rank-2.ledger") && !is_there("run-1/rank-2.ledger.tmp"));
}

TEST(a_folder_that_took_its_place_is_not_written_to)
{
    begin_on_the_node();
    CHECK_EQUAL(open_ledger(2), 0);
    CHECK(mkdir("far", 0700) == 0 && rename("run", "far/away") == 0 && mkdir("run", 0700) == 0);
    CHECK_EQUAL(run_folder_find(&folder), FILESYSTEMS_REPLACED);
    CHECK(!run_folder_is_hidden(&folder, FILESYSTEMS_REPLACED));
    CHECK_TEXT(folder.path, here("run"));
}

TEST(a_folder_that_was_removed_is_said_and_not_made_again)
{
    char ledger[PATH_MAX];
    open_run();
    CHECK_EQUAL(system("rm -r run"), 0);
    CHECK_EQUAL(run_folder_find(&folder), FILESYSTEMS_MOVED);
    CHECK_EQUAL(run_folder_snapshot(&folder, 1, ledger), FILESYSTEMS_MOVED);
    CHECK(!is_there("run"));
}

/* Claims a folder whose path has this many bytes. */
static int claim_path_of(size_t path_bytes, struct claim *claim)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.150s", here(""));
    for (size_t at = strlen(path); at < path_bytes; at++)
        path[at] = at % 200 == 0 && at < path_bytes - 1 ? '/' : 'x';
    path[path_bytes] = '\0';
    CHECK_EQUAL(filesystems_make_folders(path), 0);
    return claims_take(claim, path, "1", 0);
}

TEST(a_folder_can_be_claimed_if_there_is_room_for_its_links)
{
    struct claim claim;
    CHECK_EQUAL(claim_path_of(3801, &claim), ENAMETOOLONG);
    CHECK_EQUAL(claim_path_of(3800, &claim), 0);
    CHECK(claim.is_ours);
    CHECK(is_there(claim.held));
}

/* The ranks that have a file */

static bool all_are_expected(int rank)
{
    (void)rank;
    return true;
}

static void check_presence(const char *folders, int world_size, bool (*is_expected)(int rank),
                           enum presence presence, const char *words)
{
    struct presence_text text;
    int error = 0;
    CHECK_EQUAL(presence_find(folders, world_size, is_expected, &text, &error), presence);
    CHECK_EQUAL(error, 0);
    if (presence != PRESENCE_ALL)
        CHECK_TEXT(text.ranks, words);
}

TEST(so_many_missing_ranks_are_not_all_named)
{
    struct presence_text text;
    char path[64];
    int error = 0;
    CHECK_EQUAL(mkdir("run", 0700), 0);
    for (int rank = 0; rank < 2000; rank += 2) {
        snprintf(path, sizeof path, "run/rank-%d.db", rank);
        write_file(path, "");
    }
    CHECK_EQUAL(presence_find("run", 2000, all_are_expected, &text, &error), PRESENCE_SOME);
    CHECK(strncmp(text.ranks, "1000 of 2000 ranks (there is no file of ranks 1, 3, 5, ", 55) == 0 &&
          strstr(text.ranks, " ...)"));
}

static bool odd_ones_from_913_are_expected(int rank)
{
    return rank >= 913 && rank % 2 == 1;
}

/* End of the description of so many ranks. */
static const char *end_of_presence(int world_size)
{
    static struct presence_text text;
    int error = 0;
    presence_find("run", world_size, odd_ones_from_913_are_expected, &text, &error);
    CHECK(strrchr(text.ranks, ',') != NULL);
    return strrchr(text.ranks, ',');
}

/* Up to 1001, the names take 224 bytes: there is room for one more. */
TEST(dots_stand_for_at_least_one_rank)
{
    CHECK_EQUAL(mkdir("run", 0700), 0);
    CHECK_TEXT(end_of_presence(1002), ", 1001");
    CHECK_TEXT(end_of_presence(1004), ", 1003");
    CHECK_TEXT(end_of_presence(1006), ", 1003 ...");
    CHECK_TEXT(end_of_presence(2000), ", 1003 ...");
}

TEST(ranks_in_archives_and_in_several_folders_are_there)
{
    const char pattern[] = {'r', '[', 'u', 'n', '-', ANY_RANK, '\0'};
    unit_elsewhere(end_in_an_archive);
    check_presence("run", 3, all_are_expected, PRESENCE_SOME,
                   "1 of 3 ranks (there is no file of ranks 0-1)");
    CHECK(mkdir("r[un-a", 0700) == 0 && mkdir("r[un-b", 0700) == 0);
    write_file("r[un-a/rank-0.db", "");
    write_file("r[un-b/rank-1.ledger", "");
    check_presence(pattern, 2, all_are_expected, PRESENCE_ALL, "");
    check_presence(pattern, 3, all_are_expected, PRESENCE_SOME,
                   "2 of 3 ranks (there is no file of rank 2)");
}

TEST(a_folder_that_cannot_be_listed_is_said)
{
    struct presence_text text;
    int error = 0;
    CHECK_EQUAL(presence_find("missing", 2, all_are_expected, &text, &error), PRESENCE_NONE);
    CHECK_EQUAL(error, ENOENT);
}

TEST(a_folder_is_hidden_from_a_process_that_has_lost_its_rights)
{
    CHECK_EQUAL(open_with("closed/run", 2), 0);
    CHECK(chmod("closed", 0) == 0);
    become_nobody();
    CHECK_EQUAL(run_folder_find(&folder), EACCES);
    CHECK(run_folder_is_hidden(&folder, EACCES));
    CHECK(run_folder_is_hidden(&folder, EMFILE)); /* or its last descriptor */
}
