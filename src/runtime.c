#include "runtime.h"

#include "cost.h"
#include "gpu/gpu.h"
#include "keeper.h"
#include "launcher.h"
#include "ledger/copy.h"
#include "output/places.h"
#include "output/provenance.h"
#include "output/run_folder.h"
#include "output/store.h"
#include "regions.h"
#include "say.h"
#include "settings.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum state { NOTHING, PREPARED, RECORDING, STOPPED, ENDED };

static enum state state;
static pid_t owner; /* the process that initialized MPI; its forked children are not ranks */
static int world_rank = -1, world_size = -1;
static bool has_mpi; /* the job has initialized it */
static struct run_folder folder;
static const struct launcher *misunderstood; /* the launcher that the MPI library does not know; NULL: as it should be */
static int launched_processes;

static int number_from_environment(const char *const names[])
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value && *value)
            return atoi(value);
    }
    return -1;
}

/* What the launcher says, or `otherwise`. torchrun says RANK and WORLD_SIZE. */
static int launched_rank(int otherwise)
{
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",   "PMI_RANK", "MV2_COMM_WORLD_RANK", "RANK",
                                        "SLURM_PROCID",         "PALS_RANKID", NULL};
    int rank = number_from_environment(NAMES);
    return rank < 0 ? otherwise : rank;
}

static int launched_size(int otherwise)
{
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "WORLD_SIZE", "SLURM_NTASKS", NULL};
    int size = number_from_environment(NAMES);
    return size < 1 ? otherwise : size;
}

/* A fault of a whole node is reported once on it, not by each of its ranks. */
static bool speaks_for_the_node(void)
{
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID",
                                        NULL};
    return number_from_environment(NAMES) <= 0;
}

static void stop(const char *what, const char *path, int error)
{
    state = STOPPED;
    if (speaks_for_the_node())
        say_line("cannot %s %s: %s%s%s; rank %d is not recorded", what, path, places_reason(error), *places_in_the_way() ? "; " : "",
                 places_in_the_way(), world_rank);
}

static void complain_for_the_node(const char *line)
{
    if (speaks_for_the_node())
        say_text(line);
}

bool runtime_prepare(void)
{
    if (state != NOTHING)
        return false;
    say_begin();
    settings_read(NULL);
    clock_begin((enum clock_kind)settings.clock);
    state = PREPARED;
    owner = getpid();
    return true;
}

static void find_rank_in_world(void)
{
    if (!mpi_abi.known || mpi_query.Comm_rank(mpi_abi.comm_world, &world_rank) != MPI_SUCCESS)
        world_rank = launched_rank(0);
    if (!mpi_abi.known || mpi_query.Comm_size(mpi_abi.comm_world, &world_size) != MPI_SUCCESS)
        world_size = launched_size(1);
}

/* MPI_COMM_WORLD does not exist for a job of sessions: the process set mpi://WORLD takes its place. */
static mpi_handle find_rank_in_session(const void *session)
{
    uintptr_t memory = 0;
    world_rank = launched_rank(0);
    world_size = launched_size(1);
    if (!mpi_abi.known || !mpi_query.Group_from_session_pset ||
        mpi_query.Group_from_session_pset(mpi_handle_load(session, 0), "mpi://WORLD", &memory) != MPI_SUCCESS)
        return 0;
    mpi_handle group = mpi_handle_load(&memory, 0);
    mpi_query.Group_rank(group, &world_rank);
    mpi_query.Group_size(group, &world_size);
    return group;
}

static bool was_spawned(void)
{
    uintptr_t parent = 0;
    return mpi_abi.known && mpi_query.Comm_get_parent && mpi_query.Comm_get_parent(&parent) == MPI_SUCCESS &&
           mpi_handle_load(&parent, 0) != mpi_abi.comm_null;
}

/* A library of any MPI is in its memory: then it is a rank, and what it starts is a job of its own, whatever the environment says. */
static bool has_an_mpi_library(pid_t pid)
{
    char name[64], line[PATH_MAX + 128];
    snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(name, "re");
    bool has = false;
    while (maps && !has && fgets(line, sizeof line, maps))
        has = strstr(line, "/libmpi");
    if (maps)
        fclose(maps);
    return has;
}

static bool was_started_by_a_rank(void)
{
    pid_t pid = getpid();
    for (int depth = 0; depth < 16 && (pid = provenance_parent_of(pid)) > 1; depth++)
        if (has_an_mpi_library(pid))
            return true;
    return false;
}

/* The launcher started n processes and the world has one: each is a job of its own, which nobody wants. */
static void record_misunderstood_launcher(bool spawned)
{
    char number[16];
    const struct launcher *launcher = world_size == 1 && !spawned ? launcher_find(&launched_processes) : NULL;
    if (!launcher || launched_processes <= 1 || was_started_by_a_rank())
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
    if (mpi_query.Get_library_version && mpi_query.Get_library_version(version, &length) == MPI_SUCCESS)
        ledger_fact("mpi_version", version);
}

#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS) \
    _Static_assert(sizeof("MPI_" #NAME) <= sizeof(((struct ledger_call *)NULL)->name), "MPI_" #NAME " has room for its name");
#include "wrappers/calls.def"
#undef CALL

static void record_calls(void)
{
    for (unsigned i = 1; i < CALL_COUNT; i++) {
        struct ledger_call entry = {.call = i};
        snprintf(entry.name, sizeof entry.name, "%s", CALL_NAMES[i]);
        snprintf(entry.family, sizeof entry.family, "%s", CALL_FAMILIES[i]);
        snprintf(entry.library, sizeof entry.library, "%s", i < CALL_FIRST_OF_NCCL ? "mpi" : "nccl");
        for (char *at = entry.family; *at; at++)
            if (*at == '_')
                *at = '-';
        ledger_append(LEDGER_CALLS, &entry, sizeof entry);
    }
}

/* MPI_Init began before the clock was calibrated, but its ticks are good: they are turned into time only now. */
static void record_start(const struct call *call, int thread_level)
{
    struct ledger_header *header = the_ledger.header;
    header->world_rank = world_rank;
    header->thread_level = thread_level;
    header->clock_ticks = the_clock.base_ticks;
    header->clock_ns = the_clock.base_ns;
    header->clock_scale = the_clock.scale;
    header->start_ns = clock_ns(call->start);
    header->start_unix_ns = clock_unix_ns() - (clock_monotonic_ns() - header->start_ns);
    __atomic_store_n(&header->world_size, world_size, __ATOMIC_RELEASE); /* last: from now on it is a rank's ledger for its readers */
}

/* A call that was clocked without a thread's state: MPI_Init and MPI_Finalize. */
static void count_clocked(const struct call *clocked)
{
    struct call call = *clocked;
    call.thread = this_thread != &call_nobody ? this_thread : call_thread_adopt();
    if (call.thread)
        call_account_simple(&call);
}

static bool open_ledger(bool spawned)
{
    struct run_folder_rank rank = {world_rank, world_size, spawned};
    int error = run_folder_open(&folder, &rank, complain_for_the_node);
    if (error) {
        stop("use the run folder", folder.path, error);
        return false;
    }
    if (*folder.moved && (world_rank <= 0 || folder.moves_alone))
        say_line("%s", folder.moved);
    error = run_folder_open_ledger(&folder, world_rank, settings.memory_bytes, complain_for_the_node);
    if (error) {
        stop("create", folder.ledger_file, error);
        claims_give_back(&folder.claim);
        return false;
    }
    return true;
}

static bool begin_ledger(const struct call *first, int thread_level, bool spawned)
{
    if (world_rank <= 0)
        settings_read(say_text);
    if (!open_ledger(spawned))
        return false;
    record_calls();
    ledger_fact("clock", clock_name());
    provenance_record();
    if (run_folder_ledger_is_elsewhere(&folder))
        ledger_fact("ledger_file", folder.ledger_file);
    record_start(first, thread_level);
    samples_begin(settings.samples_bytes < settings.memory_bytes / 4 ? settings.samples_bytes : settings.memory_bytes / 4);
    return true;
}

static void begin_with_mpi(int thread_level, mpi_handle world_group, bool initialized)
{
    has_mpi = true;
    if (!requests_begin(thread_level == 3))
        say_line("no memory to follow requests; their completion is not recorded");
    record_library();
    communicators_begin(world_group, initialized);
    mpi_abi_learn_types();
}

static void begin_recording(int64_t began_ns)
{
    state = RECORDING;
    call_recording_begin();
    keeper_begin(run_folder_ledger_is_elsewhere(&folder) ? folder.ledger : NULL, world_rank, complain_for_the_node);
    gpu_begin(complain_for_the_node);
    the_ledger.header->cost_init_ns = (uint64_t)(clock_monotonic_ns() - began_ns);
    if (settings.verbose > 1 || (settings.verbose == 1 && world_rank <= 0))
        say_line("rank %d of %d: %s ABI of %s, clock: %s, ledger %s", world_rank, world_size, mpi_abi.name, provider_path(), clock_name(),
                 folder.ledger_file);
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
    world_rank = launched_rank(rank);
    world_size = launched_size(nranks);
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

void runtime_end_begin(void)
{
    if (state != RECORDING || owner != getpid())
        return;
    int64_t began_ns = clock_monotonic_ns();
    gpu_end();
    the_ledger.header->cost_per_call_ps = cost_per_call_ps();
    communicators_end();
    the_ledger.header->cost_finalize_ns += (uint64_t)(clock_monotonic_ns() - began_ns);
}

static void record_end(enum ledger_ended ended)
{
    struct ledger_header *header = the_ledger.header;
    header->clock_error_ppb = clock_error_ppb();
    header->clock_scale = clock_scale_so_far();
    header->end_ns = clock_monotonic_ns();
    header->end_unix_ns = clock_unix_ns();
    __atomic_store_n(&header->ended, ended, __ATOMIC_RELEASE);
}

/* lib/libcommprof.so and bin/hvprof-report lie beside each other, in the build tree as under the prefix. */
static bool reporter_beside_us(char *path, size_t bytes)
{
    Dl_info us;
    char *library = dladdr((void *)reporter_beside_us, &us) && us.dli_fname ? realpath(us.dli_fname, NULL) : NULL;
    if (!library)
        return false;
    int length = snprintf(path, bytes, "%s/bin/hvprof-report", dirname(dirname(library)));
    free(library);
    return length < (int)bytes && access(path, X_OK) == 0;
}

/* How the user can call the reporter. */
static const char *reporter(void)
{
    static char path[PATH_MAX];
    const char *folders = getenv("PATH");
    for (size_t length; folders && *folders; folders += length + (folders[length] == ':')) {
        length = strcspn(folders, ":");
        snprintf(path, sizeof path, "%.*s/hvprof-report", (int)length, folders);
        if (access(path, X_OK) == 0)
            return "hvprof-report";
    }
    return reporter_beside_us(path, sizeof path) ? path : "hvprof-report";
}

/* All its processes are rank 0, of jobs of their own; the first of them speaks for all. */
static void say_misunderstood_launcher(void)
{
    if (misunderstood && launched_rank(0) == 0)
        say_line("%s started %d processes, but each is a job of 1 rank: the program's MPI is %s, %s; %s", misunderstood->name,
                 launched_processes, mpi_abi.name, provider_path(), misunderstood->advice);
}

/* A word as a shell takes it: quoted where it must be, ANY_RANK as a star. */
static void shell_word(char *word, size_t bytes, const char *text)
{
    static const char APART[] = {ANY_RANK, '\'', '\0'}, PLAIN[] = "_-+=:,./%@";
    size_t used = 0;
    while (*text && used + 8 < bytes) {
        size_t length = strcspn(text, APART);
        bool is_plain = true;
        for (size_t i = 0; i < length; i++)
            is_plain = is_plain && (isalnum((unsigned char)text[i]) || text[i] & 0x80 || strchr(PLAIN, text[i]));
        const char *quote = is_plain ? "" : "'";
        used += (size_t)snprintf(word + used, bytes - used, "%s%.*s%s", quote, (int)length, text, quote);
        text += length;
        if (*text && used + 3 < bytes)
            used += (size_t)snprintf(word + used, bytes - used, "%s", *text++ == '\'' ? "\\'" : "*");
    }
    word[used < bytes ? used : bytes - 1] = '\0';
}

static bool is_on_one_host(void)
{
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE", NULL};
    return number_from_environment(NAMES) == world_size;
}

/* The folders of all ranks as one pattern, ANY_RANK where they differ. */
static void folders_of_all(char *folders, size_t bytes)
{
    size_t used = 0;
    folders[0] = '\0';
    for (const char *at = world_size > 1 && *folder.of_all ? folder.of_all : folder.path; *at && used + 1 < bytes; at++) {
        char same[] = {*at == ANY_HOST ? ANY_RANK : *at, '\0'};
        used += (size_t)snprintf(folders + used, bytes - used, "%s", *at == ANY_HOST && is_on_one_host() ? provenance_host() : same);
    }
}

static void say_where(void)
{
    static char folders[PATH_MAX], quoted[2 * PATH_MAX], command[2 * PATH_MAX];
    if (settings.quiet || world_rank > 0)
        return;
    say_misunderstood_launcher();
    folders_of_all(folders, sizeof folders);
    bool is_split = strchr(folders, ANY_RANK);
    shell_word(quoted, sizeof quoted, folders);
    shell_word(command, sizeof command, reporter());
    say_line("profile of %d rank%s in %s; read it with: %s summary %s", world_size, world_size == 1 ? "" : "s", is_split ? quoted : folders,
             command, quoted);
}

static void store(int64_t began_ns)
{
    char why[512];
    if (store_write(the_ledger.header, folder.database, began_ns, why, sizeof why))
        run_folder_remove_ledger(&folder, true);
    else {
        bool is_copied = (run_folder_ledger_is_elsewhere(&folder) || !ledger_is_there()) && ledger_copy(folder.ledger) == 0;
        const char *stays = ledger_is_there() ? folder.ledger_file : is_copied ? folder.ledger : NULL;
        if (stays)
            say_line("cannot write %s: %s; the ledger %s stays and can be read as well", folder.database, why, stays);
        else
            say_line("cannot write %s: %s; the ledger %s is gone, too: rank %d is lost", folder.database, why, folder.ledger_file,
                     world_rank);
    }
}

void runtime_end(const struct call *call)
{
    if (state != RECORDING || owner != getpid())
        return;
    int64_t began_ns = clock_monotonic_ns();
    count_clocked(call);
    regions_end_all(this_thread);
    call_recording_end();
    state = ENDED;
    keeper_end(false); /* first: a copy that says that it has ended is the last one */
    record_end(LEDGER_FINALIZED);
    store(began_ns);
    claims_give_back(&folder.claim);
    say_where();
}

/* Other threads go on counting. What they add while this is written is in it or not, as it comes; but a fold that rearranges cells
 * meanwhile would count them twice or never, and a reset part of them, so then it is written again. */
static bool store_undisturbed(const char *database, char *why, size_t why_bytes)
{
    for (int i = 0; i < LEDGER_LOOKS; i++) {
        struct ledger_look look = ledger_look();
        if (!store_write(the_ledger.header, database, clock_monotonic_ns(), why, why_bytes))
            return false;
        if (!ledger_moved_since(look))
            return true;
        unlink(database); /* ours: no file is replaced */
    }
    snprintf(why, why_bytes, "the table of message sizes is full and was rearranged each time");
    return false;
}

void runtime_snapshot(void)
{
    static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
    static unsigned taken;
    char database[PATH_MAX], why[512];
    if (state != RECORDING || owner != getpid())
        return;
    pthread_mutex_lock(&writing);
    the_ledger.header->clock_scale = clock_scale_so_far();
    int error = run_folder_snapshot(&folder, ++taken, database);
    if (error)
        snprintf(why, sizeof why, "%s", places_reason(error));
    if (error || !store_undisturbed(database, why, sizeof why))
        say_line("cannot write snapshot %u of rank %d: %s", taken, world_rank, why);
    pthread_mutex_unlock(&writing);
}

void runtime_aborted(int error_code)
{
    if (state != RECORDING || owner != getpid())
        return;
    gpu_exit();
    the_ledger.header->abort_code = error_code;
    record_end(LEDGER_ABORTED);
    keeper_end(true);
    claims_give_back(&folder.claim);
}

/* exit() without MPI_Finalize: the ledger stays, for other threads may still be in MPI; a copy with all that is counted takes the place of
 * one on the node, where nobody would look after it. */
__attribute__((destructor)) static void runtime_exit(void)
{
    if (state != RECORDING || owner != getpid() || the_ledger.header->ended != LEDGER_RUNNING)
        return;
    gpu_exit();
    call_recording_end();
    state = ENDED;
    record_end(LEDGER_EXITED);
    if (keeper_end(true))
        run_folder_remove_ledger(&folder, false);
    claims_give_back(&folder.claim);
    say_where();
}
