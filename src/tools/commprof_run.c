/* commprof-run [options] program ...: run a program with the profiler preloaded.
 *
 * The MPI launcher starts it once for each rank, and it replaces itself by the program (exec), so
 * launchers and shells before it are not preloaded. Its options are the settings of settings.def,
 * which it puts into the program's environment. */
#include "base/settings.h"
#include "tools/canary.h"
#include "tools/doctor/doctor.h"
#include "tools/doctor/program.h"
#include "tools/preload.h"

#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

static void option_name(const struct setting *setting, char *name, size_t bytes)
{
    snprintf(name, bytes, "%s", setting->variable + strlen("COMMPROF_"));
    for (; *name; name++)
        *name = *name == '_' ? '-' : (char)tolower((unsigned char)*name);
}

static void print_wrapped(const char *text, int indent, int width)
{
    int column = indent;
    printf("%*s", indent, "");
    while (*text) {
        int length = (int)strcspn(text, " ");
        bool breaks = column > indent && column + 1 + length > width;
        if (breaks)
            printf("\n%*s", indent, "");
        bool follows = column > indent && !breaks;
        printf("%s%.*s", follows ? " " : "", length, text);
        column = (breaks ? indent : column + follows) + length;
        text += length;
        text += strspn(text, " ");
    }
    printf("\n");
}

static void complain(const char *line)
{
    fprintf(stderr, "commprof-run: %s\n", line);
}

static void print_help(void)
{
    settings_read(complain);
    printf("usage: commprof-run [options] [--] program [argument ...]\n"
           "Run an MPI program with the communication profiler. The launcher starts it:\n\n"
           "    mpirun -n 4 commprof-run ./program\n\n"
           "Each option sets the variable next to it for the program. In brackets: the current "
           "value, and where it comes from unless it "
           "is the default.\n\n");
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        char name[64];
        option_name(&SETTINGS_TABLE[i], name, sizeof name);
        const char *value = settings_value(i), *source = settings_source(i);
        printf("  --%s %s   %s   [%s%s%s]\n", name, SETTINGS_TABLE[i].argument,
               SETTINGS_TABLE[i].variable, *value ? value : "not set", source ? ", from " : "",
               source ? source : "");
        print_wrapped(SETTINGS_TABLE[i].help, 8, 80);
    }
    printf("  --nccl-plugin\n");
    print_wrapped("For programs whose NCCL calls cannot be intercepted (JAX, vLLM, Horovod with "
                  "NCCL inside): NCCL 2.27 and later reports its "
                  "operations to the profiler, unless NCCL_PROFILER_PLUGIN names another plugin.",
                  8, 80);
    printf("  --doctor\n");
    print_wrapped("Do not run the program; print whether it can be profiled, and if not, why.", 8,
                  80);
    printf("  --canary DIR\n");
    print_wrapped("Do not profile: before the program, measure how fast the host is, and write "
                  "that to DIR/HOST. commprof-experiment uses it.",
                  8, 80);
    printf("  --help, --version\n");
}

static void set_variable(const struct setting *setting, const char *value)
{
    if (setenv(setting->variable, value, 1) == 0)
        return;
    fprintf(stderr, "commprof-run: cannot set %s: %s\n", setting->variable, strerror(errno));
    exit(EXIT_CANNOT_RUN);
}

static const struct setting *find_setting(const char *option, size_t length)
{
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        char name[64];
        option_name(&SETTINGS_TABLE[i], name, sizeof name);
        if (strlen(name) == length && strncmp(name, option, length) == 0)
            return &SETTINGS_TABLE[i];
    }
    return NULL;
}

static bool is_switch_word(const char *text)
{
    static const char *const WORDS[] = {"on", "off", NULL};
    for (const char *const *word = WORDS; text && *word; word++)
        if (strcasecmp(text, *word) == 0)
            return true;
    return false;
}

/* Reads --name VALUE or --name=VALUE; for a flag, --name alone means on, --no-name off. Returns how
 * many arguments it consumed. */
static int read_option(char **arguments)
{
    const char *option = arguments[0] + 2;
    size_t length = strcspn(option, "=");
    const struct setting *setting = find_setting(option, length);
    if (!setting && strncmp(option, "no-", 3) == 0 &&
        (setting = find_setting(option + 3, strlen(option + 3))) && setting->is_flag) {
        set_variable(setting, "off");
        return 1;
    }
    if (!setting) {
        fprintf(stderr, "commprof-run: unknown option %s; commprof-run --help lists them\n",
                arguments[0]);
        exit(EXIT_USAGE);
    }
    if (option[length] == '=') {
        set_variable(setting, option + length + 1);
        return 1;
    }
    if (setting->is_flag && !is_switch_word(arguments[1])) {
        set_variable(setting, "on");
        return 1;
    }
    if (!arguments[1]) {
        fprintf(stderr, "commprof-run: %s needs a value (%s)\n", arguments[0], setting->argument);
        exit(EXIT_USAGE);
    }
    set_variable(setting, arguments[1]);
    return 2;
}

/* Options that are not settings. */
static struct wanted {
    bool doctor, nccl_plugin;
    const char *canary;
} wanted;

static bool read_switch(const char *argument)
{
    bool is_doctor = strcmp(argument, "--doctor") == 0;
    bool is_nccl_plugin = strcmp(argument, "--nccl-plugin") == 0;
    wanted.doctor |= is_doctor;
    wanted.nccl_plugin |= is_nccl_plugin;
    return is_doctor || is_nccl_plugin;
}

/* Reads --canary DIR. Returns how many arguments it consumed. */
static int read_canary(char **arguments)
{
    if (strcmp(arguments[0], "--canary") != 0)
        return 0;
    if (!arguments[1]) {
        fprintf(stderr, "commprof-run: --canary needs a value (DIR)\n");
        exit(EXIT_USAGE);
    }
    wanted.canary = arguments[1];
    return 2;
}

static int read_options(int count, char **arguments)
{
    int at = 1;
    while (at < count && arguments[at][0] == '-') {
        if (strcmp(arguments[at], "--") == 0)
            return at + 1;
        if (strcmp(arguments[at], "--help") == 0 || strcmp(arguments[at], "-h") == 0) {
            print_help();
            exit(0);
        }
        if (strcmp(arguments[at], "--version") == 0) {
            printf("commprof %s\n", COMMPROF_VERSION);
            exit(0);
        }
        if (arguments[at][1] != '-') {
            fprintf(stderr, "commprof-run: unknown option %s; commprof-run --help lists them\n",
                    arguments[at]);
            exit(EXIT_USAGE);
        }
        int consumed = read_switch(arguments[at]) ? 1 : read_canary(arguments + at);
        at += consumed ? consumed : read_option(arguments + at);
    }
    return at;
}

/* The library's path, relative to this program: bin/commprof-run and lib/libcommprof.so, both in
 * the build tree and when installed. */
static void find_library(char *path, size_t bytes)
{
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length < 0) {
        perror("commprof-run: /proc/self/exe");
        exit(EXIT_CANNOT_RUN);
    }
    own[length] = '\0';
    char *folder = dirname(dirname(own));
    if (snprintf(path, bytes, "%s/lib/libcommprof.so", folder) >= (int)bytes ||
        access(path, R_OK) != 0) {
        fprintf(stderr, "commprof-run: %s: %s\n", path, strerror(errno));
        exit(EXIT_CANNOT_RUN);
    }
}

/* First in LD_PRELOAD, so that the traffic of other PMPI tools is not taken for the job's. */
static void preload(const char *path)
{
    char *list = preload_first(getenv("LD_PRELOAD"), path);
    if (!list) {
        perror("commprof-run");
        exit(EXIT_CANNOT_RUN);
    }
    setenv("LD_PRELOAD", list, 1);
    free(list);
    preload_before_asan();
}

/* NVTX in the program opens the library that this variable names. If another tool has set it, it is
 * left unchanged. */
static void attach_to_nvtx(const char *path)
{
    if (settings.nvtx)
        setenv("NVTX_INJECTION64_PATH", path, 0);
}

/* Makes NCCL look for its profiler plugin in the process. NCCL uses only one: if the variable is
 * set, it is left unchanged. */
static void attach_to_nccl(void)
{
    const char *other = getenv("NCCL_PROFILER_PLUGIN");
    if (!other)
        setenv("NCCL_PROFILER_PLUGIN", "STATIC_PLUGIN", 1);
    else if (settings.verbose > 0)
        fprintf(stderr,
                "commprof-run: NCCL_PROFILER_PLUGIN is set to %s: NCCL does not report its "
                "operations to commprof\n",
                other);
}

/* Whoever starts commprof-run wants a profile to look at, also where the site's file has less in
 * mind for all jobs. */
static void ask_for_the_full_profile(void)
{
    const char *asked = getenv("COMMPROF_PROFILE");
    if (settings.profile != PROFILE_FULL && !(asked && *asked))
        setenv("COMMPROF_PROFILE", "full", 1);
}

static void refuse_launchers(const char *program)
{
    if (program_kind(program) != PROGRAM_LAUNCHER)
        return;
    fprintf(stderr, "commprof-run: put the launcher first: %s ... commprof-run program ...\n",
            program_name(program));
    exit(EXIT_USAGE);
}

static void attach(void)
{
    char library[PATH_MAX], path[PATH_MAX];
    find_library(library, sizeof library);
    const char *why = preload_path(library, path, sizeof path);
    if (why) {
        fprintf(stderr, "commprof-run: %s %s\n", library, why);
        exit(EXIT_CANNOT_RUN);
    }
    preload(path);
    settings_read(NULL);
    attach_to_nvtx(path);
    ask_for_the_full_profile();
    if (wanted.nccl_plugin || settings.nccl_times)
        attach_to_nccl();
}

static void measure_host(void)
{
    if (!canary_run(wanted.canary))
        fprintf(stderr, "commprof-run: %s: the host cannot be measured: %s\n", wanted.canary,
                strerror(errno));
}

int main(int count, char **arguments)
{
    int program = read_options(count, arguments);
    if (program >= count) {
        fprintf(stderr, "usage: commprof-run [options] [--] program [argument ...]; commprof-run "
                        "--help explains\n");
        return EXIT_USAGE;
    }
    if (wanted.doctor) {
        char library[PATH_MAX];
        find_library(library, sizeof library);
        return doctor_examine(arguments + program, library) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    refuse_launchers(arguments[program]);
    if (wanted.canary)
        measure_host();
    else
        attach();
    execvp(arguments[program], arguments + program);
    int error = errno;
    fprintf(stderr, "commprof-run: cannot run %s: %s\n", arguments[program], strerror(error));
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}
