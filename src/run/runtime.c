#include "runtime.h"

#include "base/filesystems.h"
#include "base/quiet.h"
#include "base/rank_list.h"
#include "base/say.h"
#include "base/settings.h"
#include "build_ids.h"
#include "closing_line.h"
#include "cpu_time.h"
#include "environment.h"
#include "gpu/gpu.h"
#include "ledger/copy.h"
#include "ledger_copier.h"
#include "mpi/control_variables.h"
#include "mpi/launcher.h"
#include "output/store.h"
#include "provenance.h"
#include "record/account.h"
#include "record/negotiation.h"
#include "record/recording.h"
#include "record/regions.h"
#include "record/signatures.h"
#include "run_folder.h"
#include "unseen.h"
#include "usage.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum state { NOTHING, PREPARED, RECORDING, STOPPED, ENDED };

static enum state state;
static pid_t owner; /* the process that initialized MPI; its forked children are not ranks */
static int world_rank = -1, world_size = -1;
static bool has_mpi; /* the job has initialized it */
static struct run_folder folder;
/* a launcher that the MPI library does not support; NULL: none */
static const struct launcher *misunderstood;
static int launched_processes;

static void stop(const char *what, const char *path, int error)
{
    state = STOPPED;
    if (launcher_speaks_for_the_node())
        say_line("cannot %s %s: %s%s%s; rank %d is not recorded", what, path,
                 filesystems_reason(error), *filesystems_in_the_way() ? "; " : "",
                 filesystems_in_the_way(), world_rank);
}

static void complain_for_the_node(const char *line)
{
    if (launcher_speaks_for_the_node())
        say_text(line);
}

/* Why nothing is recorded in this process; NULL: it is recorded. */
static const char *refusal(void)
{
    static char why[SETTING_TEXT_BYTES + 64];
    if (access(settings.off_file, F_OK) == 0)
        snprintf(why, sizeof why, "%s exists", settings.off_file);
    else if (*settings.skip && settings_list_has(settings.skip, provenance_program()))
        snprintf(why, sizeof why, "COMMPROF_SKIP names %s", provenance_program());
    else if (settings.profile == PROFILE_SITE && !*settings.output)
        snprintf(why, sizeof why, "profile=site needs an output folder");
    else
        return settings.profile == PROFILE_OFF ? "profile=off" : NULL;
    return why;
}

/* A profiler that a site preloads into all jobs has nothing to say to users who did not ask for
 * it. */
static bool is_to_be_silent(void)
{
    return settings.profile == PROFILE_SITE && settings.quiet;
}

bool runtime_prepare(void)
{
    if (state != NOTHING)
        return false;
    settings_read(NULL);
    if (!is_to_be_silent())
        say_begin();
    const char *why = refusal();
    if (why) {
        state = STOPPED;
        if (!settings.quiet && settings.profile != PROFILE_OFF && launcher_rank(0) == 0)
            say_line("nothing is recorded: %s", why);
        return false;
    }
    clock_begin((enum clock_kind)settings.clock);
    state = PREPARED;
    owner = getpid();
    return true;
}

static void find_rank_in_world(void)
{
    if (!mpi_abi.known || mpi_query.Comm_rank(mpi_abi.comm_world, &world_rank) != MPI_SUCCESS)
        world_rank = launcher_rank(0);
    if (!mpi_abi.known || mpi_query.Comm_size(mpi_abi.comm_world, &world_size) != MPI_SUCCESS)
        world_size = launcher_size(1);
}

/* MPI_COMM_WORLD does not exist for a job of sessions: the process set mpi://WORLD takes its
 * place. */
static mpi_handle find_rank_in_session(const void *session)
{
    uintptr_t memory = 0;
    world_rank = launcher_rank(0);
    world_size = launcher_size(1);
    if (!mpi_abi.known || !mpi_query.Group_from_session_pset ||
        mpi_query.Group_from_session_pset(mpi_handle_load(session, 0), "mpi://WORLD", &memory) !=
            MPI_SUCCESS)
        return 0;
    mpi_handle group = mpi_handle_load(&memory, 0);
    mpi_query.Group_rank(group, &world_rank);
    mpi_query.Group_size(group, &world_size);
    return group;
}

static bool was_spawned(void)
{
    uintptr_t parent = 0;
    return mpi_abi.known && mpi_query.Comm_get_parent &&
           mpi_query.Comm_get_parent(&parent) == MPI_SUCCESS &&
           mpi_handle_load(&parent, 0) != mpi_abi.comm_null;
}

/* The launcher started n processes but the world has size 1: each process is a separate job,
 * certainly by mistake. */
static void record_misunderstood_launcher(bool spawned)
{
    char number[16];
    const struct launcher *launcher =
        world_size == 1 && !spawned ? launcher_find(&launched_processes) : NULL;
    if (!launcher || launched_processes <= 1 || launcher_is_within_a_rank())
        return;
    misunderstood = launcher;
    snprintf(number, sizeof number, "%d", launched_processes);
    ledger_fact("launcher", launcher->name);
    ledger_fact("launcher_size", number);
}

static void record_library(void)
{
    static char version[16384];
    int length = 0;
    ledger_fact("mpi_library", provider_path());
    ledger_fact("mpi_abi", mpi_abi.name);
    if (mpi_query.Get_library_version &&
        mpi_query.Get_library_version(version, &length) == MPI_SUCCESS)
        ledger_fact("mpi_version", version);
}

static void record_control_variable(const char *name, const char *value)
{
    char key[256];
    size_t length = strnlen(name, 200);
    snprintf(key, sizeof key, "cvar.%.*s", (int)length, name);
    if (launcher_speaks_for_the_node())
        environment_fact(key, environment_masked(name, length, value));
}

/* All ranks read them, though only one per node records them: a rank that alone read them would be
 * late at the first collective. */
static void record_control_variables(int thread_level)
{
    char text[64];
    struct control_variables found =
        control_variables_read(thread_level < 0 ? 0 : thread_level, record_control_variable);
    snprintf(text, sizeof text, "%d of %d", found.read, found.all);
    if (launcher_speaks_for_the_node())
        ledger_fact("cvars", text);
}

/* MPI_Init began before the clock was calibrated; its ticks are valid and are converted only
 * now. */
static void record_start(const struct call *call, int thread_level)
{
    struct ledger_header *header = the_ledger.header;
    header->world_rank = world_rank;
    header->thread_level = thread_level;
    header->clock_ticks = the_clock.base_ticks;
    header->clock_ns = the_clock.base_ns;
    header->clock_scale = the_clock.scale;
    header->start_ns = clock_ns(call->start);
    header->start_unix_ns = header->start_ns + clock_unix_shift_ns();
    usage_read(&header->usage_begin, header->start_ns);
    __atomic_store_n(&header->world_size, world_size,
                     __ATOMIC_RELEASE); /* last: readers ignore the ledger until it is set */
}

/* Count a call that was timed without a thread's state: MPI_Init and MPI_Finalize. */
static void count_clocked(const struct call *clocked)
{
    struct call call = *clocked;
    struct quiet before = quiet_begin();
    call.thread = this_thread != &thread_nobody ? this_thread : thread_adopt();
    if (call.thread)
        account_simple(&call);
    quiet_end(&before);
}

/* COMMPROF_RANKS. The ranks that are not chosen never begin to record. */
static bool is_chosen(int rank)
{
    if (strcmp(settings.ranks, SETTING_ONE_PER_NODE) == 0)
        return launcher_speaks_for_the_node();
    return !*settings.ranks || rank_list_has(settings.ranks, rank);
}

/* The chosen rank that prints what concerns all. Rank 0 is the first on its node. */
static bool speaks_for_the_run(void)
{
    return world_rank <= 0 || (isdigit((unsigned char)*settings.ranks) &&
                               rank_list_count(settings.ranks, world_rank) == 0);
}

static bool open_ledger(bool spawned)
{
    struct run_folder_rank rank = {world_rank, world_size, spawned, speaks_for_the_run()};
    int error = run_folder_open(&folder, &rank, complain_for_the_node);
    if (error) {
        stop("use the run folder", folder.path, error);
        return false;
    }
    if (*folder.moved && (speaks_for_the_run() || folder.moves_alone))
        say_line("%s", folder.moved);
    error =
        run_folder_open_ledger(&folder, world_rank, settings.memory_bytes, complain_for_the_node);
    if (error) {
        stop("create", folder.ledger_file, error);
        claims_give_back(&folder.claim);
        return false;
    }
    return true;
}

static void complain_if_nobody_is_chosen(void)
{
    if (isdigit((unsigned char)*settings.ranks) && rank_list_count(settings.ranks, world_size) == 0)
        say_line(
            "COMMPROF_RANKS=%.200s names none of the job's ranks, 0 to %d: nothing is recorded",
            settings.ranks, world_size - 1);
}

/* Each rank counts from the return of its own MPI_Init, which is nearly at the same time on all:
 * readers take what is common to all ranks. */
static void plan_record(const struct call *first)
{
    int64_t begun_ns = clock_ns(first->end ? first->end : first->start);
    int64_t begin_ns = begun_ns + (int64_t)settings.record.begin_ns;
    if (settings.record.length_ns)
        samples_record(begin_ns, begin_ns + (int64_t)settings.record.length_ns,
                       the_ledger.limit_bytes / 2);
}

static bool begin_ledger(const struct call *first, int thread_level, bool spawned)
{
    if (world_rank <= 0) {
        settings_read(say_text);
        complain_if_nobody_is_chosen();
    }
    if (!is_chosen(world_rank)) {
        state = STOPPED;
        return false;
    }
    if (!open_ledger(spawned))
        return false;
    call_table_record();
    ledger_fact("clock", clock_name());
    provenance_record();
    unseen_record_at_begin();
    if (run_folder_ledger_is_elsewhere(&folder))
        ledger_fact("ledger_file", folder.ledger_file);
    record_start(first, thread_level);
    size_t samples_most = ledger_spare_bytes() / 4;
    samples_begin(settings.samples_bytes < samples_most ? settings.samples_bytes : samples_most);
    plan_record(first);
    return true;
}

static void begin_with_mpi(int thread_level, mpi_handle world_group, bool initialized)
{
    has_mpi = true;
    message_numbers_begin(thread_level == 3, the_ledger.header->world_size);
    if (!requests_begin(thread_level == 3))
        say_line("no memory to follow requests; their completion is not recorded");
    record_library();
    if (settings.cvars)
        record_control_variables(thread_level);
    communicators_begin(world_group, initialized);
    mpi_abi_learn_types();
    signatures_begin(the_ledger.limit_bytes, settings.record.length_ns != 0);
    negotiation_begin();
}

static void begin_recording(int64_t began_ns)
{
    state = RECORDING;
    recording_begin();
    ledger_copier_begin(run_folder_ledger_is_elsewhere(&folder) ? folder.ledger : NULL, world_rank,
                        complain_for_the_node);
    cpu_time_begin();
    gpu_begin(complain_for_the_node);
    the_ledger.header->cost_init_ns = (uint64_t)(clock_monotonic_ns() - began_ns);
    if (settings.verbose > 1 || (settings.verbose == 1 && speaks_for_the_run()))
        say_line("rank %d of %d: %s ABI of %s, clock: %s, ledger %s", world_rank, world_size,
                 mpi_abi.name, provider_path(), clock_name(), folder.ledger_file);
}

void runtime_begin(const struct call *call, int thread_level, const void *session)
{
    int64_t began_ns = clock_monotonic_ns();
    clock_calibrate();
    mpi_handle world_group = session ? find_rank_in_session(session) : 0;
    if (!session)
        find_rank_in_world();
    bool spawned = !session && was_spawned();
    if (!begin_ledger(call, thread_level, spawned))
        return;
    begin_with_mpi(thread_level, world_group, !session);
    record_misunderstood_launcher(spawned);
    begin_recording(began_ns);
    count_clocked(call);
}

void runtime_begin_without_mpi(int rank, int nranks)
{
    if (state != NOTHING)
        return;
    settings_read(NULL);
    if (!settings.nccl || !runtime_prepare())
        return;
    int64_t began_ns = clock_monotonic_ns();
    struct call first = {.start = clock_ticks()};
    clock_calibrate();
    world_rank = launcher_rank(rank);
    world_size = launcher_size(nranks);
    if (begin_ledger(&first, -1, false))
        begin_recording(began_ns);
}

void runtime_add_world(int thread_level)
{
    if (state != RECORDING || owner != getpid())
        return;
    if (has_mpi)
        communicators_add_world();
    else {
        the_ledger.header->thread_level = thread_level;
        begin_with_mpi(thread_level, 0, true);
    }
}

void runtime_end_begin(uint64_t (*cost_per_call_ps)(void))
{
    if (state != RECORDING || owner != getpid())
        return;
    int64_t began_ns = clock_monotonic_ns();
    gpu_end();
    the_ledger.header->cost_per_call_ps = cost_per_call_ps();
    communicators_end();
    the_ledger.header->cost_finalize_ns += (uint64_t)(clock_monotonic_ns() - began_ns);
}

static void stamp_end(enum ledger_ended ended)
{
    struct ledger_header *header = the_ledger.header;
    header->clock_error_ppb = clock_error_ppb();
    header->clock_scale = clock_scale_so_far();
    header->end_ns = clock_monotonic_ns();
    header->end_unix_ns = header->end_ns + clock_unix_shift_ns();
    __atomic_store_n(&header->ended, ended, __ATOMIC_RELEASE);
}

static void record_end(enum ledger_ended ended)
{
    unseen_record_at_end();
    usage_read(&the_ledger.header->usage_last, the_ledger.header->start_ns);
    stamp_end(ended);
}

/* Each process is rank 0 of its own job; only the launcher's rank 0 prints the message. */
static void say_misunderstood_launcher(void)
{
    if (misunderstood && launcher_rank(0) == 0)
        say_line(
            "%s started %d processes, but each is a job of 1 rank: the program's MPI is %s, %s; %s",
            misunderstood->name, launched_processes, mpi_abi.name, provider_path(),
            misunderstood->advice);
}

/* Whether this rank should have left a file. One per node: which others are recorded is not known.
 * Without MPI others may begin later. */
static bool is_expected(int rank)
{
    if (!has_mpi)
        return rank == world_rank;
    return strcmp(settings.ranks, SETTING_ONE_PER_NODE) == 0 ? rank == world_rank : is_chosen(rank);
}

static void say_closing_line(void)
{
    static bool is_said; /* at exit, before a late MPI_Finalize */
    char ranks[64];
    if (settings.quiet || is_said ||
        !(speaks_for_the_run() ||
          (has_mpi && !*settings.ranks && closing_line_is_ours(&folder, world_rank))))
        return;
    is_said = true;
    say_misunderstood_launcher();
    if (strcmp(settings.ranks, SETTING_ONE_PER_NODE) == 0 && world_size > 1)
        snprintf(ranks, sizeof ranks, "one rank per node, of %d,", world_size);
    else if (isdigit((unsigned char)*settings.ranks))
        snprintf(ranks, sizeof ranks, "%ld of %d ranks",
                 rank_list_count(settings.ranks, world_size), world_size);
    else
        snprintf(ranks, sizeof ranks, "%d rank%s", world_size, world_size == 1 ? "" : "s");
    closing_line_say(&folder, world_size, ranks, is_expected);
}

/* Ranks decide without a message, so the time begins when MPI_Init returns, which is nearly the
 * same on all of them. */
static bool is_too_short(void)
{
    const struct ledger_header *header = the_ledger.header;
    return (double)(header->end_ns - header->start_ns - header->usage_begin.since_start_ns) <
           (double)settings.shortest_s * 1e9;
}

static void discard(void)
{
    bool is_found = run_folder_find(&folder) == 0;
    run_folder_remove_ledger(&folder, true);
    claims_give_back(&folder.claim);
    if (is_found)
        claims_remove_empty(&folder.claim, folder.path);
    if (is_found && !settings.quiet && speaks_for_the_run())
        say_line("nothing is kept of a run shorter than COMMPROF_SHORTEST_S=%llu",
                 (unsigned long long)settings.shortest_s);
}

static bool store_in_archive(int64_t began_ns)
{
    char why[512], line[PATH_MAX + 640];
    if (!*folder.archive || store_write(the_ledger.header, folder.ledger_file, folder.archive,
                                        began_ns, why, sizeof why))
        return *folder.archive;
    snprintf(line, sizeof line, "cannot append to %s: %s; a rank that cannot has a file of its own",
             folder.archive, why);
    complain_for_the_node(line);
    return false;
}

/* The last copy of a ledger on the node may be in a folder that is no longer at its path. */
static void say_what_is_left(const char *why, bool has_folder)
{
    char ledger[PATH_MAX + 128], rest[64] = "";
    bool is_elsewhere = run_folder_ledger_is_elsewhere(&folder),
         stays = ledger_describe(ledger, sizeof ledger);
    bool is_copied = has_folder && (is_elsewhere || !stays) && ledger_copy(folder.ledger) == 0;
    if (!stays && is_copied)
        snprintf(ledger, sizeof ledger, "the ledger %s stays and can be read as well",
                 folder.ledger);
    else if (!stays)
        snprintf(rest, sizeof rest,
                 is_elsewhere ? ": at most an earlier copy of rank %d is left"
                              : ": nothing of rank %d is left",
                 world_rank);
    say_line("cannot write %s: %s; %s%s", folder.database, why, ledger, rest);
}

static void store(int64_t began_ns)
{
    char why[512];
    int error = run_folder_find(&folder);
    snprintf(why, sizeof why, "%s", error ? filesystems_reason(error) : "");
    if (!error && (store_in_archive(began_ns) || store_write(the_ledger.header, folder.database,
                                                             NULL, began_ns, why, sizeof why)))
        run_folder_remove_ledger(&folder, true);
    else
        say_what_is_left(why, error == 0);
}

void runtime_end(const struct call *call)
{
    if (state != RECORDING || owner != getpid())
        return;
    int64_t began_ns = clock_monotonic_ns();
    count_clocked(call);
    regions_end_all(this_thread);
    recording_end();
    state = ENDED;
    build_ids_record();
    cpu_time_end();
    ledger_copier_end(false); /* before record_end: a copy marked as ended must be the last one */
    record_end(LEDGER_FINALIZED);
    if (is_too_short()) {
        discard();
        return;
    }
    store(began_ns);
    claims_give_back(&folder.claim);
    say_closing_line();
}

/* A copy of the ledger, not a database: SQLite allocates, and the caller may be a signal handler
 * that has interrupted malloc. Only the search for a folder that was moved while the ledger is on
 * the node allocates. */
void runtime_snapshot(void)
{
    static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
    static unsigned taken;
    char ledger[PATH_MAX];
    if (state != RECORDING || owner != getpid())
        return;
    struct quiet before = quiet_lock(&writing);
    the_ledger.header->clock_scale = clock_scale_so_far();
    usage_read(&the_ledger.header->usage_last, the_ledger.header->start_ns);
    int error = run_folder_snapshot(&folder, ++taken, ledger);
    if (!error)
        error = ledger_snapshot(ledger);
    if (error)
        say_line("cannot write snapshot %u of rank %d: %s", taken, world_rank,
                 error == EAGAIN ? "the table of message sizes is full and was rearranged each time"
                                 : filesystems_reason(error));
    quiet_unlock(&writing, &before);
}

void runtime_aborted(int error_code)
{
    if (state != RECORDING || owner != getpid())
        return;
    gpu_exit();
    the_ledger.header->abort_code = error_code;
    record_end(LEDGER_ABORTED);
    ledger_copier_end(true);
    claims_give_back(&folder.claim);
}

bool runtime_leaves(void)
{
    if (state != RECORDING || owner != getpid() || the_ledger.header->ended != LEDGER_RUNNING)
        return false;
    stamp_end(LEDGER_EXITED);
    return true;
}

void runtime_stays(void)
{
    __atomic_store_n(&the_ledger.header->ended, LEDGER_RUNNING, __ATOMIC_RELEASE);
}

/* a forked child has the libraries of its parent, and inherits what they are in */
static pid_t loaded_in;
static struct stat stderr_then; /* when the library was loaded: the job may have given the number to
                                   a file of its own since */

static bool is_stderr_as_it_was(void)
{
    struct stat now;
    return fstat(STDERR_FILENO, &now) == 0 && now.st_dev == stderr_then.st_dev &&
           now.st_ino == stderr_then.st_ino;
}

/* The exit of a process that has made no call of which we know. */
static void say_if_altogether_unseen(void)
{
    const char *why = loaded_in == getpid() ? unseen_altogether() : NULL;
    if (!why)
        return;
    settings_read(NULL);
    if (settings.quiet || refusal() || launcher_rank(0) > 0 || !is_stderr_as_it_was())
        return;
    say_begin();
    say_line("nothing is recorded: %s", why);
}

static void end_at_exit(void)
{
    if (state == NOTHING)
        say_if_altogether_unseen();
    if (state != RECORDING || owner != getpid() || the_ledger.header->ended != LEDGER_RUNNING)
        return;
    gpu_exit();
    cpu_time_end();
    record_end(LEDGER_EXITED);
    if (is_too_short()) {
        recording_end();
        state = ENDED;
        ledger_copier_end(false);
        discard();
        return;
    }
    if (ledger_copier_end(true))
        run_folder_remove_ledger(&folder, false);
    claims_give_back(&folder.claim);
    say_closing_line();
}

/* exit() without MPI_Finalize: no database is written, since other threads may still be in MPI; the
 * ledger is retained. A ledger on the node is replaced by a final copy in the run folder. */
static void at_exit(int status, void *unused)
{
    (void)status, (void)unused;
    end_at_exit();
}

/* MPI may be finalized by any exit handler or library destructor, so ours must be the last. Exit
 * handlers run in the reverse order of their registration, and destructors run in one that the C
 * library registers before main but after the constructors. on_exit, unlike atexit, does not tie
 * the handler to our own library's destructors.
 *
 * A library that a running program opens registers too late for that. So at_exit leaves recording
 * on, and an MPI_Finalize after it still stores a database. */
__attribute__((constructor)) static void register_at_exit(void)
{
    loaded_in = getpid();
    fstat(STDERR_FILENO, &stderr_then);
    on_exit(at_exit, NULL);
    at_quick_exit(end_at_exit);
}
