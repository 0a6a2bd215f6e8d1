/* The job id must be equal on all ranks without communication, and different for two runs as far as
 * possible. PMIx (Open MPI, Slurm's pmix) gives every launch a namespace. Hydra (MPICH, Intel MPI)
 * sets no environment variable, but starts all its proxies with the same --control-port HOST:PORT,
 * so the id is taken from the nearest ancestor process with that option. */
#include "provenance.h"

#include "base/cgroup.h"
#include "base/host.h"
#include "base/settings.h"
#include "build_ids.h"
#include "environment.h"
#include "ledger/ledger.h"
#include "secrets.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* The arguments of a process, each terminated by a zero byte; returns how many bytes there are. */
static size_t read_arguments(pid_t pid, char *buffer, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got;
    while (file >= 0 && used + 1 < bytes && (got = read(file, buffer + used, bytes - 1 - used)) > 0)
        used += (size_t)got;
    if (file >= 0)
        close(file);
    buffer[used] = '\0';
    return used;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* For an interpreter: the script without its extension, or the module after -m. */
static bool script_of(const char *arguments, size_t bytes, char *name, size_t name_bytes)
{
    for (const char *word = arguments + strlen(arguments) + 1; word < arguments + bytes;
         word += strlen(word) + 1) {
        const char *next = word + strlen(word) + 1;
        if (strcmp(word, "-m") == 0 && next < arguments + bytes)
            return snprintf(name, name_bytes, "%.100s", next) > 0;
        if (strcmp(word, "-c") == 0 || strcmp(word, "-e") == 0 || strpbrk(word, "\"'(;"))
            return false; /* the program itself, which may contain anything */
        if (strcmp(word, "-X") == 0 || strcmp(word, "-W") == 0)
            word = next; /* these take an argument */
        else if (word[0] != '-') {
            snprintf(name, name_bytes, "%.100s", base_name(word));
            char *ending = strrchr(name, '.');
            if (ending && ending != name)
                *ending = '\0';
            return true;
        }
    }
    return false;
}

static bool is_interpreter(const char *name)
{
    return strncmp(name, "python", 6) == 0 || strncmp(name, "pypy", 4) == 0 ||
           strcmp(name, "julia") == 0;
}

static void make_safe(char *name)
{
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("._-+", *name))
            *name = '-';
}

const char *provenance_program(void)
{
    static char program[128];
    static char arguments[8192];
    if (program[0])
        return program;
    size_t bytes = read_arguments(getpid(), arguments, sizeof arguments);
    const char *name = base_name(arguments);
    if (!is_interpreter(name) || !script_of(arguments, bytes, program, sizeof program))
        snprintf(program, sizeof program, "%.100s", *name ? name : "program");
    make_safe(program);
    return program;
}

static const char *first_set(const char *const names[])
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value && *value)
            return value;
    }
    return NULL;
}

static const char *value_after(const char *option, const char *arguments, size_t bytes)
{
    for (const char *word = arguments; word < arguments + bytes; word += strlen(word) + 1)
        if (strcmp(word, option) == 0)
            return word + strlen(word) + 1;
    return NULL;
}

/* "host-port", plus the process group's number if it was spawned. */
static bool hydra_launch(char *id, size_t bytes)
{
    char arguments[8192];
    pid_t pid = getpid();
    for (int depth = 0; depth < 16 && pid > 1; depth++, pid = host_parent_of(pid)) {
        size_t length = read_arguments(pid, arguments, sizeof arguments);
        const char *port = value_after("--control-port", arguments, length);
        const char *group = value_after("--pgid", arguments, length);
        if (!port)
            continue;
        if (group && strcmp(group, "0") != 0)
            snprintf(id, bytes, "%s-%s", port, group);
        else
            snprintf(id, bytes, "%s", port);
        return true;
    }
    return false;
}

/* Not by getpwuid: it loads libraries of the name service into the job, and asks a server for each
 * rank. */
const char *provenance_user(void)
{
    static const char *const NAMES[] = {"USER", "LOGNAME", NULL};
    static char user[64];
    const char *name = first_set(NAMES);
    if (user[0])
        return user;
    if (name && *name != '.' && strlen(name) < sizeof user)
        snprintf(user, sizeof user, "%s", name);
    else
        snprintf(user, sizeof user, "%u", (unsigned)getuid());
    make_safe(user);
    return user;
}

/* Slurm gives all ranks the start of the job. Elsewhere they return from MPI_Init at nearly the
 * same time. */
const char *provenance_date(void)
{
    static char day[16];
    const char *start = getenv("SLURM_JOB_START_TIME");
    time_t began = start ? strtol(start, NULL, 10) : 0;
    struct tm date;
    if (day[0])
        return day;
    if (began <= 0)
        began = time(NULL);
    localtime_r(&began, &date);
    strftime(day, sizeof day, "%Y-%m-%d", &date);
    return day;
}

static bool is_own_launch;

static void own_launch(char *id, size_t bytes)
{
    time_t now = time(NULL);
    struct tm date;
    localtime_r(&now, &date);
    size_t used = strftime(id, bytes, "%Y%m%d-%H%M%S", &date);
    snprintf(id + used, bytes - used, "-%d", (int)getpid());
    is_own_launch = true;
}

/* The scheduler's id of this job. The elements of an array have ids of their own but for LSF and
 * Grid Engine, where a job that is no array has the index 0 or "undefined". */
static void scheduler_id(char *id, size_t bytes)
{
    static const struct {
        const char *job, *element;
    } SCHEDULERS[] = {{"SLURM_JOB_ID", NULL}, {"PBS_JOBID", NULL},    {"LSB_JOBID", "LSB_JOBINDEX"},
                      {"FLUX_JOB_ID", NULL},  {"COBALT_JOBID", NULL}, {"JOB_ID", "SGE_TASK_ID"}};
    for (size_t i = 0; i < sizeof SCHEDULERS / sizeof *SCHEDULERS; i++) {
        const char *job = getenv(SCHEDULERS[i].job);
        const char *element = SCHEDULERS[i].element ? getenv(SCHEDULERS[i].element) : NULL;
        if (!job || !*job)
            continue;
        if (element && strtol(element, NULL, 10) > 0)
            snprintf(id, bytes, "%.50s-%.20s", job, element);
        else
            snprintf(id, bytes, "%.50s", job);
        return;
    }
}

const char *provenance_job_id(void)
{
    static const char *const LAUNCHES[] = {"PMIX_NAMESPACE", "SLURM_STEP_ID", "PALS_APID",
                                           "ALPS_APP_ID",    "PMI_JOBID",     NULL};
    static char id[256];
    if (id[0])
        return id;
    char launch[180] = "", scheduler[72] = "";
    scheduler_id(scheduler, sizeof scheduler);
    const char *given = first_set(LAUNCHES);
    if (given)
        snprintf(launch, sizeof launch, "%s", given);
    else if (!hydra_launch(launch, sizeof launch) && !*scheduler)
        own_launch(launch, sizeof launch);
    snprintf(id, sizeof id, "%s%s%s", scheduler, *scheduler && *launch ? "-" : "", launch);
    make_safe(id);
    return id;
}

bool provenance_is_launched(void)
{
    provenance_job_id();
    return !is_own_launch;
}

/* Facts */

static void record_settings(void)
{
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        char key[64];
        snprintf(key, sizeof key, "settings.%s", SETTINGS_TABLE[i].variable);
        ledger_fact(key, settings_value(i));
    }
}

static void record_unless_empty(const char *key, const char *value)
{
    if (*value)
        ledger_fact(key, value);
}

static void record_namespace(const char *key, const char *link)
{
    char name[256];
    host_link(link, name, sizeof name);
    record_unless_empty(key, name);
}

/* Facts by which a reader on this host can check whether this process still runs, and which
 * processes share its monotonic clock (each time namespace has its own). */
static void record_process(void)
{
    char boot_id[64], start[24];
    host_boot_id(boot_id, sizeof boot_id);
    record_unless_empty("boot_id", boot_id);
    record_namespace("pid_namespace", "/proc/self/ns/pid");
    record_namespace("time_namespace", "/proc/self/ns/time");
    if (host_start_of(getpid(), start))
        ledger_fact("process_start", start);
}

/* The machine, and what the system allows this job of it. */
static void record_host(void)
{
    char text[1024];
    struct utsname system;
    struct cgroup_quota quota;
    host_cpu_model("", text, sizeof text);
    if (*text)
        environment_fact("cpu_model", text);
    if (uname(&system) == 0) {
        snprintf(text, sizeof text, "%s %s %s %s", system.sysname, system.release, system.version,
                 system.machine);
        environment_fact("kernel", text);
    }
    snprintf(text, sizeof text, "%u", (unsigned)getuid());
    environment_fact("user_id", text);
    if (cgroup_cpu_quota("", &quota)) {
        snprintf(text, sizeof text, "%.3f", quota.cores);
        ledger_fact("cpu_quota_cores", text);
        ledger_fact("cpu_quota_cgroup", quota.path);
    }
}

/* Only the program's name if arguments must not be recorded. */
static void record_command_line(void)
{
    char arguments[8192];
    static char masked[2 * sizeof arguments];
    size_t bytes = read_arguments(getpid(), arguments, sizeof arguments);
    if (!settings.arguments)
        bytes = strlen(arguments);
    secrets_mask_arguments(arguments, bytes && !arguments[bytes - 1] ? bytes - 1 : bytes, masked,
                           sizeof masked);
    environment_fact("command_line", masked);
}

void provenance_record(void)
{
    char directory[PATH_MAX];
    ledger_fact("run_id", provenance_job_id());
    ledger_fact("host", host_name());
    ledger_fact("program", provenance_program());
    record_process();
    record_host();
    record_command_line();
    if (getcwd(directory, sizeof directory))
        environment_fact("working_directory", directory);
    ledger_fact("commprof_version", COMMPROF_VERSION);
    record_settings();
    environment_record();
    build_ids_record();
}
