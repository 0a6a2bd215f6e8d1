/* If a process is killed at any system call from MPI_Init to the end of MPI_Finalize, its ledger or
 * database has every call that it had counted. So have the files that remain after a crash of the
 * node, which has only what was synced.
 *
 * The child does what a rank does; the parent reads the run folder before and after each of its
 * system calls. */
#include "fake_mpi.h"
#include "ledger_reader.h"
#include "output/sqlite.h"
#include "record/account.h"
#include "run/runtime.h"
#include "stepping.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/syscall.h>

enum { CALLS = 100 };

/* How many calls the child has begun to account, and how many it has accounted. */
struct truth {
    uint64_t begun, done;
};

static struct truth *truth;

static void rank_begins(void)
{
    struct call init UNTIL_RETURN;
    setenv("COMMPROF_OUTPUT", "run", 1);
    setenv("COMMPROF_QUIET", "on", 1);
    fake_mpi_speak("mpich");
    fake_describe_world(1, 0);
    CHECK(runtime_prepare());
    call_begin(&init, CALL_Init, SITE_JOB);
    call_end(&init, MPI_SUCCESS);
    truth->begun++;
    runtime_begin(&init, 0, NULL);
    truth->done++;
}

static void rank_from_init_to_finalize(void)
{
    struct call call, finalize;
    rank_begins();
    for (int i = 0; i < CALLS; i++) {
        call_begin(&call, CALL_Barrier, SITE_JOB);
        call_end(&call, MPI_SUCCESS);
        truth->begun++;
        account_simple(&call);
        call_return(&call);
        truth->done++;
    }
    call_begin(&finalize, CALL_Finalize, SITE_JOB);
    call_end(&finalize, MPI_SUCCESS);
    truth->begun++;
    runtime_end(&finalize);
    truth->done++;
}

/* With one file per node, the database in it, which is the first: a member counts from its header
 * on. */
static void unpack(const char *archive)
{
    char header[512] = "";
    int file = open(archive, O_RDONLY),
        unpacked = open("unpacked.db", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && unpacked >= 0 && read(file, header, sizeof header) >= 0);
    for (ssize_t bytes;
         strcmp(header, "rank-0.db") == 0 && (bytes = read(file, header, sizeof header)) > 0;
         strcpy(header, "rank-0.db"))
        CHECK(write(unpacked, header, (size_t)bytes) == bytes);
    close(file);
    close(unpacked);
}

static const char *database_path(void)
{
    glob_t found;
    struct stat about;
    if (glob("run/node-*.tar", 0, NULL, &found) != 0)
        return "run/rank-0.db";
    unpack(found.gl_pathv[0]);
    globfree(&found);
    return stat("unpacked.db", &about) == 0 && about.st_size ? "unpacked.db" : "run/rank-0.db";
}

/* The number of calls in a file; -1: the file does not exist, or MPI_Init has not got that far. */

static void *map_ledger(size_t *bytes)
{
    struct stat about;
    int file = open("run/rank-0.ledger", O_RDONLY);
    if (file < 0)
        return NULL;
    CHECK(fstat(file, &about) == 0);
    *bytes = (size_t)about.st_size;
    void *ledger = *bytes ? mmap(NULL, *bytes, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    return ledger == MAP_FAILED ? NULL : ledger;
}

static int64_t count_in_ledger(void)
{
    size_t bytes;
    struct ledger_header *ledger = map_ledger(&bytes);
    if (!ledger)
        return -1;
    int64_t count = ledger->world_size > 0 ? (int64_t)reader_totals(ledger, 0).count : -1;
    munmap(ledger, bytes);
    return count;
}

static int take_number(void *number, int columns, char **values, char **names)
{
    (void)columns, (void)names;
    *(int64_t *)number = values[0] ? strtoll(values[0], NULL, 10) : 0;
    return 0;
}

static int64_t count_in_database(void)
{
    sqlite3 *database;
    int64_t count = -1;
    const char *path = database_path();
    if (access(path, F_OK) != 0)
        return -1;
    CHECK(sqlite_load());
    CHECK(sqlite.open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
    CHECK(sqlite.exec(database, "SELECT SUM(count) FROM cell", take_number, &count, NULL) ==
          SQLITE_OK);
    sqlite.close(database);
    return count;
}

static void every_call_is_in_one_file(pid_t child)
{
    (void)child;
    int64_t in_database = count_in_database(), in_ledger = count_in_ledger();
    int64_t found =
        in_database >= 0 ? in_database : in_ledger; /* the reporter's order of preference */
    if (found < 0)
        CHECK_EQUAL(truth->done, 0);
    else
        CHECK((int64_t)truth->done <= found && found <= (int64_t)truth->begun);
}

TEST(a_kill_at_any_system_call_leaves_every_call_in_one_file)
{
    truth = unit_shared(sizeof *truth);
    CHECK(stepping(PTRACE_SYSCALL, rank_from_init_to_finalize, every_call_is_in_one_file) > 100);
    CHECK_EQUAL(count_in_database(), CALLS + 2);
    CHECK_EQUAL(count_in_ledger(), -1);
}

TEST(a_kill_at_any_system_call_leaves_every_call_in_the_archive_or_the_ledger)
{
    setenv("COMMPROF_OUTPUT_PER", "node", 1);
    a_kill_at_any_system_call_leaves_every_call_in_one_file();
    CHECK(access("run/rank-0.db", F_OK) != 0);
}

/* A ledger without its run's id would count as one of another run, and the other ranks' files would
 * be left out. */

struct names {
    bool of_rank, of_run;
};

static const struct ledger_header *ledger;

static struct names names_in_ledger(void)
{
    struct names names = {false, false};
    if (!ledger)
        ledger = map_ledger(&(size_t){0});
    for (uint32_t i = 0; ledger && !names.of_run && i < ledger->chunk_count; i++) {
        const struct ledger_chunk *chunk = reader_chunk(ledger, i);
        names.of_run =
            chunk->kind == LEDGER_FACTS && memmem(reader_entry(chunk, 0), chunk->used, "run_id", 6);
    }
    names.of_rank = ledger && ledger->world_size > 0;
    return names;
}

/* How often it reads the clock, and with signals blocked, depends on how busy the machine is. */
static bool is_counted_stop(pid_t child)
{
    struct __ptrace_syscall_info about;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof about, &about) <= 0 ||
        about.op != PTRACE_SYSCALL_INFO_ENTRY)
        return false;
    return about.entry.nr != SYS_clock_gettime && about.entry.nr != SYS_rt_sigprocmask;
}

/* The child's system calls: those before the ledger has its rank or its run, and all so far. */
static uint64_t calls_before_names, calls;

static void count_calls_before_names(pid_t child)
{
    struct names names = names_in_ledger();
    calls_before_names += !names.of_rank && !names.of_run && is_counted_stop(child);
}

static void a_ledger_that_names_its_rank_names_its_run(pid_t child)
{
    struct names names = names_in_ledger();
    CHECK(names.of_run || !names.of_rank);
    if (stepping_by == PTRACE_SINGLESTEP)
        stepping_by = names.of_rank ? PTRACE_CONT : PTRACE_SINGLESTEP;
    else if (is_counted_stop(child) && ++calls == calls_before_names) {
        CHECK(!names.of_run);
        stepping_by = PTRACE_SINGLESTEP;
    }
}

SLOW(a_kill_in_the_beginning_leaves_no_rank_without_its_run)
{
    truth = unit_shared(sizeof *truth);
    stepping(PTRACE_SYSCALL, rank_begins, count_calls_before_names);
    unit_remove("run");
    ledger = NULL;
    CHECK(stepping(PTRACE_SYSCALL, rank_begins, a_ledger_that_names_its_rank_names_its_run) > 1000);
    CHECK(names_in_ledger().of_rank);
}

/* After a crash of the node, files have their contents at their last fsync, and the folder its
 * names at its last fsync. */

static bool is_unsynced, is_named, is_name_synced, ledger_is_removed;

static bool is_file(pid_t child, uint64_t descriptor, const char *name)
{
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)child, (int)descriptor);
    return readlink(link, path, sizeof path - 1) > 0 && strlen(path) >= strlen(name) &&
           strcmp(path + strlen(path) - strlen(name), name) == 0;
}

static void the_ledger_goes_after_the_database_is_on_the_disk(pid_t child)
{
    struct __ptrace_syscall_info about;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof about, &about) <= 0 ||
        about.op != PTRACE_SYSCALL_INFO_ENTRY)
        return;
    uint64_t number = about.entry.nr, first = about.entry.args[0];
    if ((number == SYS_pwrite64 || number == SYS_write) &&
        (is_file(child, first, ".db.tmp") || is_file(child, first, ".db")))
        is_unsynced = true;
    else if ((number == SYS_fsync || number == SYS_fdatasync) && is_file(child, first, "/run"))
        is_name_synced = is_named;
    else if ((number == SYS_fsync || number == SYS_fdatasync) && is_file(child, first, ".db.tmp"))
        is_unsynced = false;
    else if (number == SYS_renameat || number == SYS_renameat2 ||
             number == 82 /* SYS_rename, where it exists */) {
        CHECK(!is_unsynced);
        is_named = true;
    } else if ((number == SYS_unlinkat || number == 87 /* unlink */) && is_named) {
        CHECK(is_name_synced);
        ledger_is_removed = true;
    }
}

TEST(a_crash_of_the_node_leaves_the_ledger_or_a_database_that_is_whole)
{
    truth = unit_shared(sizeof *truth);
    stepping(PTRACE_SYSCALL, rank_from_init_to_finalize,
             the_ledger_goes_after_the_database_is_on_the_disk);
    CHECK(is_named && ledger_is_removed);
}

static void the_ledger_goes_after_the_archive_is_on_the_disk(pid_t child)
{
    struct __ptrace_syscall_info about;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof about, &about) <= 0 ||
        about.op != PTRACE_SYSCALL_INFO_ENTRY)
        return;
    uint64_t number = about.entry.nr, first = about.entry.args[0];
    if (number == SYS_pwrite64 && is_file(child, first, ".tar")) {
        CHECK(is_name_synced);
        is_named = is_unsynced = true;
    } else if (number == SYS_fsync && is_file(child, first, "/run"))
        is_name_synced = !system("ls run/node-*.tar > listed 2>&1");
    else if (number == SYS_fsync && is_file(child, first, ".tar"))
        is_unsynced = false;
    else if ((number == SYS_unlinkat || number == 87 /* unlink */) && is_named) {
        CHECK(!is_unsynced);
        ledger_is_removed = true;
    }
}

TEST(a_crash_of_the_node_leaves_the_ledger_or_an_archive_with_the_database)
{
    setenv("COMMPROF_OUTPUT_PER", "node", 1);
    truth = unit_shared(sizeof *truth);
    stepping(PTRACE_SYSCALL, rank_from_init_to_finalize,
             the_ledger_goes_after_the_archive_is_on_the_disk);
    CHECK(is_named && ledger_is_removed);
}
