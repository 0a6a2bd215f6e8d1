/* Most findings are read from files. Only the program's loader knows which libraries it will load,
 * so the loader is asked (as ldd does), with our library preloaded. The findings follow the rules
 * of src/mpi/provider.c: which MPI library a call reaches, and that Fortran calls the C functions
 * by name. */
#include "doctor.h"

#include "ask.h"
#include "base/settings.h"
#include "elf_file.h"
#include "mpi/launcher.h"
#include "program.h"
#include "tools/preload.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { LOADED_MAX = 512, SCRIPTS_MAX = 5 };

struct loaded {
    const char *name; /* the soname by which it was requested */
    const char *path;
    struct elf_file file;
};

static struct patient {
    const char *library; /* libcommprof.so */
    char path[PATH_MAX];
    enum program_kind kind;
    bool is_script;
    struct elf_file file;
    struct loaded loaded[LOADED_MAX];
    unsigned loaded_count;
    const struct loaded *mpi;
    unsigned problems;
} patient;

/* Findings */

static void __attribute__((format(printf, 2, 0)))
finding(const char *kind, const char *format, va_list values)
{
    printf("%-9s", kind);
    vprintf(format, values);
    printf("\n");
}

#define FINDING(NAME, KIND)                                                       \
    static void __attribute__((format(printf, 1, 2))) NAME(const char *text, ...) \
    {                                                                             \
        va_list values;                                                           \
        va_start(values, text);                                                   \
        finding(KIND, text, values);                                              \
        va_end(values);                                                           \
    }
FINDING(fine, "ok")
FINDING(note, "note")
FINDING(print_problem, "PROBLEM")
#define PROBLEM(...) (patient.problems++, print_problem(__VA_ARGS__))

/* Settings, the program's or the site's */

static void report_setting_fault(const char *line)
{
    note("settings: %s", line);
}

static void examine_profile(void)
{
    const char *asked = getenv("COMMPROF_PROFILE");
    bool is_asked_for = asked && *asked,
         lacks_output = settings.profile == PROFILE_SITE && !*settings.output;
    if (access(settings.off_file, F_OK) == 0)
        PROBLEM("settings: %s exists, so nothing is recorded on this node", settings.off_file);
    if (settings.profile != PROFILE_FULL && !is_asked_for)
        note("settings: this holds for programs that are preloaded without commprof-run%s; with "
             "it, COMMPROF_PROFILE=full",
             lacks_output
                 ? " (nothing is recorded of them, since profile=site needs COMMPROF_OUTPUT)"
                 : "");
    else if (lacks_output)
        PROBLEM("settings: profile=site needs COMMPROF_OUTPUT: nothing is recorded");
    else if (settings.profile == PROFILE_OFF)
        PROBLEM("settings: COMMPROF_PROFILE=off: nothing is recorded");
}

static void examine_settings(void)
{
    settings_read(report_setting_fault);
    for (size_t i = 0; i < SETTINGS_COUNT; i++)
        if (settings_source(i))
            fine("settings: %s=%s, from %s", SETTINGS_TABLE[i].variable, settings_value(i),
                 strcmp(settings_source(i), SETTINGS_TABLE[i].variable) == 0
                     ? "the environment or an option"
                     : settings_source(i));
    examine_profile();
    if (!settings.dlsym)
        note("settings: COMMPROF_DLSYM=off: calls through functions that are looked up by dlsym "
             "(ctypes, cffi, Julia) are not seen; "
             "add --dlsym");
}

/* The program */

static bool find_program(const char *typed)
{
    patient.kind = program_kind(typed);
    if (patient.kind == PROGRAM_LAUNCHER) {
        PROBLEM("program: %s is a launcher; put commprof-run after it: %s -n 4 commprof-run "
                "--doctor PROGRAM",
                typed, program_name(typed));
        return false;
    }
    if (program_find(typed, patient.path, sizeof patient.path))
        return true;
    PROBLEM("program: %s: %s", typed, errno == EACCES ? "is not executable" : strerror(errno));
    return false;
}

static const char *script_of(char *const command[])
{
    return program_kind(command[0]) == PROGRAM_PYTHON ? program_python_script(command + 1) : NULL;
}

static bool finds_script(char *const command[])
{
    const char *script = script_of(command);
    if (!script || access(script, R_OK) == 0)
        return true;
    PROBLEM("script: %s: %s", script, strerror(errno));
    return false;
}

/* Whether a script among the words of the command has this text in it. Larger files are data, and
 * others (pipes) are not opened. */
static bool script_mentions(char *const command[], const char *text)
{
    enum { LARGEST_SCRIPT = 1 << 20 };
    bool is = false;
    for (; *command && !is; command++) {
        struct elf_file file;
        struct stat found;
        if (stat(*command, &found) != 0 || !S_ISREG(found.st_mode) ||
            found.st_size > LARGEST_SCRIPT || !elf_open(&file, *command))
            continue;
        is = !elf_is_elf(&file) && elf_mentions(&file, text);
        elf_close(&file);
    }
    return is;
}

static void examine_backends(char *const command[])
{
    bool is_launched = strcmp(program_name(command[0]), "torchrun") == 0 ||
                       script_mentions(command, "init_process_group");
    if (is_launched && script_mentions(command, "gloo"))
        note("PyTorch: the script names gloo, which is not profiled; calls of MPI and NCCL are");
    else if (is_launched)
        note("PyTorch: NCCL and MPI are profiled; gloo, the backend for CPUs, is not");
}

static void examine_look_ups(char *const command[])
{
    static const char *const BINDINGS[] = {"ctypes", "cffi", "numba_mpi"};
    for (size_t i = 0; settings.dlsym && i < sizeof BINDINGS / sizeof *BINDINGS; i++)
        if (script_mentions(command, BINDINGS[i]))
            fine("script: it names %s; MPI functions that are looked up by dlsym are intercepted "
                 "(--dlsym is the default)",
                 BINDINGS[i]);
}

/* As reports name it: a script without its ending. */
static void examine_skipped_programs(char *const command[])
{
    char name[NAME_MAX + 1];
    const char *script = script_of(command);
    snprintf(name, sizeof name, "%s", program_name(script ? script : command[0]));
    char *ending = script ? strrchr(name, '.') : NULL;
    if (ending && ending != name)
        *ending = '\0';
    if (settings_list_has(settings.skip, name))
        PROBLEM("settings: COMMPROF_SKIP names %s: nothing is recorded", name);
}

/* Opens the file that the kernel will execute: for a script, its interpreter. */
static bool open_program(void)
{
    for (int i = 0; i < SCRIPTS_MAX; i++) {
        char interpreter[PATH_MAX];
        if (!elf_open(&patient.file, patient.path)) {
            PROBLEM("program: %s cannot be read: %s", patient.path, strerror(errno));
            return false;
        }
        if (elf_is_elf(&patient.file) ||
            !program_interpreter(patient.path, interpreter, sizeof interpreter))
            return true;
        elf_close(&patient.file);
        fine("script: %s is run by %s", patient.path, interpreter);
        patient.is_script = true;
        if (!find_program(interpreter))
            return false;
    }
    PROBLEM("program: scripts that run scripts, more than %d deep", SCRIPTS_MAX);
    return false;
}

static bool runs_on_this_machine(void)
{
    struct elf_file ours;
    if (!elf_is_elf(&patient.file)) {
        PROBLEM("program: %s is neither a program nor a script", patient.path);
        return false;
    }
    if (!elf_open(&ours, patient.library) || !elf_is_elf(&ours)) {
        PROBLEM("profiler: %s cannot be read", patient.library);
        return false;
    }
    int bits = elf_bits(&patient.file), machine = elf_machine(&patient.file);
    bool fits = bits == elf_bits(&ours) && machine == elf_machine(&ours);
    if (fits)
        fine("program: %s, %s", patient.path, elf_machine_name(machine));
    else
        PROBLEM("program: %s is for %d-bit %s (%d), the profiler for %d-bit %s", patient.path, bits,
                elf_machine_name(machine), machine, elf_bits(&ours),
                elf_machine_name(elf_machine(&ours)));
    elf_close(&ours);
    return fits;
}

static bool can_be_preloaded_into(void)
{
    const char *loader = elf_interpreter(&patient.file);
    if (!loader)
        PROBLEM("linkage: %s is linked statically%s: nothing can be preloaded into it",
                program_name(patient.path),
                elf_defines(&patient.file, "PMPI_Init", ELF_ALL) ? ", its MPI too" : "");
    else if (access(loader, R_OK) != 0)
        PROBLEM("linkage: its loader %s is not on this machine", loader);
    else if (strstr(program_name(loader), "musl"))
        PROBLEM("C library: musl (%s), while the profiler was built for glibc",
                program_name(loader));
    else
        return true;
    return false;
}

/* The loader ignores LD_PRELOAD in a program with set-id bits or file capabilities. Set-id bits of
 * a script have no effect. */
static void examine_set_id(void)
{
    struct stat found;
    if (stat(patient.path, &found) != 0)
        return;
    bool is_of_user = found.st_mode & S_ISUID;
    bool is_of_group = found.st_mode & S_ISGID && found.st_mode & S_IXGRP;
    bool is_other_user = is_of_user && found.st_uid != getuid();
    if (is_other_user || (is_of_group && found.st_gid != getgid()))
        PROBLEM("rights: %s is %s: the loader ignores LD_PRELOAD there", patient.path,
                is_other_user ? "set-user-ID" : "set-group-ID");
    else if (is_of_user || is_of_group)
        note("rights: %s is set-user-ID or set-group-ID; for users other than you, the loader "
             "ignores LD_PRELOAD",
             patient.path);
}

static void examine_capabilities(void)
{
    char capability[64];
    bool has_capabilities =
        getxattr(patient.path, "security.capability", capability, sizeof capability) > 0;
    if (has_capabilities && getuid() != 0)
        PROBLEM("rights: %s has file capabilities: the loader ignores LD_PRELOAD there",
                patient.path);
    else if (has_capabilities)
        note("rights: %s has file capabilities; for users other than root, the loader ignores "
             "LD_PRELOAD",
             patient.path);
}

/* Libraries that the loader loads */

static bool is_ours(const char *path)
{
    return strncmp(program_name(path), "libcommprof", strlen("libcommprof")) == 0;
}

static void take_in(const char *name, const char *path)
{
    if (patient.loaded_count == LOADED_MAX || is_ours(path))
        return;
    struct loaded *loaded = &patient.loaded[patient.loaded_count];
    *loaded = (struct loaded){.name = name, .path = path};
    patient.loaded_count += elf_open(&loaded->file, path);
}

/* \tlibmpi.so.40 => /usr/lib/libmpi.so.40 (0x7f...) or \t/lib/ld.so (0x7f...) or \tlibx.so => not
 * found */
static bool read_loaded(char *line)
{
    char *name = line + 1, *arrow = strstr(line, " => "), *address = strstr(line, " (0x");
    if (*line != '\t')
        return false;
    if (arrow && strncmp(arrow + 4, "not found", strlen("not found")) == 0) {
        PROBLEM("libraries: %.*s is not found: the program does not start here",
                (int)(arrow - name), name);
        return true;
    }
    if (!address)
        return false;
    *address = '\0';
    char *path = arrow ? arrow + 4 : name;
    if (arrow)
        *arrow = '\0';
    if (*path == '/')
        take_in(program_name(name), path);
    return true;
}

static void read_complaint(const char *line)
{
    static bool is_said;
    bool is_about_us = strstr(line, "libcommprof");
    if (strstr(line, "version `GLIBC_") && is_about_us) {
        if (!is_said)
            PROBLEM("C library: too old for the profiler: %s", line);
        is_said = true;
    } else if (strstr(line, "from LD_PRELOAD cannot be preloaded") && is_about_us)
        PROBLEM("preload: %s", line);
    else if (strstr(line, "cannot be preloaded"))
        note("preload: %s", line);
    else if (strstr(line, "version `") || strstr(line, "error while loading"))
        PROBLEM("libraries: the program does not start here: %s", line);
}

static void ask_the_loader(void)
{
    char *answer = ask_loader(elf_interpreter(&patient.file), patient.path,
                              patient.library); /* never freed: used by patient.loaded */
    for (char *line = answer, *next; line && *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        if (!read_loaded(line))
            read_complaint(line);
    }
    if (patient.loaded_count == 0)
        PROBLEM("libraries: %s does not list the libraries of %s", elf_interpreter(&patient.file),
                patient.path);
}

/* Preloaded libraries */

static bool find_path_to_preload(const char *library)
{
    static char path[PATH_MAX];
    const char *why = preload_path(library, path, sizeof path);
    patient.library = path;
    if (why)
        PROBLEM("preload: %s %s", library, why);
    else if (strcmp(path, library) != 0)
        fine("preload: through the link %s, since the loader would split the path of the library",
             path);
    return !why;
}

static void look_for_mpi(const char *symbol, bool is_defined, void *found)
{
    *(bool *)found |=
        is_defined && (strncmp(symbol, "MPI_", 4) == 0 || strncmp(symbol, "PMPI_", 5) == 0);
}

static bool defines_mpi_functions(const struct elf_file *file)
{
    bool found = false;
    elf_visit(file, look_for_mpi, &found);
    return found;
}

static void examine_one_preload(const char *path, const char *from)
{
    struct elf_file file = {NULL, 0};
    if (strchr(path, '/') && !elf_open(&file, path))
        note("preload: %s in %s: %s", path, from, strerror(errno));
    else if (is_ours(path))
        note("preload: %s is already in %s, and is not preloaded twice", path, from);
    else if (defines_mpi_functions(&file))
        note("preload: %s in %s intercepts MPI as well; both see the calls", path, from);
    else
        note("preload: %s in %s stays preloaded", path, from);
    elf_close(&file);
}

static void examine_preloads_of(const char *list, const char *from)
{
    char path[PATH_MAX];
    for (list += strspn(list, ": \t\n"); *list; list += strspn(list, ": \t\n")) {
        size_t length = strcspn(list, ": \t\n");
        snprintf(path, sizeof path, "%.*s", (int)length, list);
        examine_one_preload(path, from);
        list += length;
    }
}

static void examine_preloads(void)
{
    char system_wide[PATH_MAX] = "";
    const char *of_user = getenv("LD_PRELOAD");
    FILE *file = fopen("/etc/ld.so.preload", "re");
    if (file) {
        system_wide[fread(system_wide, 1, sizeof system_wide - 1, file)] = '\0';
        fclose(file);
    }
    examine_preloads_of(of_user ? of_user : "", "LD_PRELOAD");
    examine_preloads_of(system_wide, "/etc/ld.so.preload");
}

/* An AddressSanitizer of before that option must be preloaded by the user. */
static void examine_sanitizers(void)
{
    const char *preloads = getenv("LD_PRELOAD");
    bool is_first = preloads && preload_is_sanitizer(preloads);
    for (unsigned i = 0; i < patient.loaded_count; i++) {
        const struct loaded *loaded = &patient.loaded[i];
        bool is_strict = preload_is_sanitizer(loaded->name) &&
                         elf_mentions(&loaded->file, "does not come first");
        if (is_strict && elf_mentions(&loaded->file, PRELOAD_ASAN_OPTION))
            fine("sanitizer: %s may come after the profiler (ASAN_OPTIONS=" PRELOAD_ASAN_OPTION
                 "=0, which commprof-run sets)",
                 loaded->path);
        else if (is_strict && !is_first)
            PROBLEM("sanitizer: %s must come first: start commprof-run with LD_PRELOAD=%s",
                    loaded->path, loaded->path);
    }
}

/* The MPI library */

static void say_mpi(const char *path, const struct elf_file *file, const char *version)
{
    const char *soname = elf_soname(file);
    fine("MPI: %s (%s)%s%.*s", path, soname ? soname : "no soname", *version ? ", " : "",
         (int)strcspn(version, "\n"), version);
}

static void say_abi(const char *abi, const char *why)
{
    if (!*abi)
        note("ABI: unknown, because the library cannot be loaded here: %.*s",
             (int)strcspn(why, "\n"), why);
    else if (strcmp(abi, "unknown") == 0)
        note("ABI: none of the known ones; calls and times are counted, bytes are not");
    else
        fine("ABI: %s", abi);
}

/* The launcher: under one that the MPI library does not support, each process is a job of one rank.
 * Nothing can be said about programs of the standard ABI, which may run with either library. An
 * MPICH that is built with PMIx works with Open MPI's launcher. */
static bool is_understood(const struct launcher *launcher, const char *abi,
                          const struct elf_file *mpi)
{
    if (!launcher->mpi_abi || strcmp(launcher->mpi_abi, abi) == 0)
        return true;
    if (strcmp(abi, "MPICH") == 0)
        return elf_asks_for(mpi, "PMIx_Init");
    return strcmp(abi, "Open MPI") != 0;
}

static bool has_variable_of(const char *prefix)
{
    for (char **variable = environ; *variable; variable++)
        if (strncmp(*variable, prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

static void examine_launcher_on_the_path(const char *abi, const struct elf_file *mpi)
{
    char path[PATH_MAX];
    char *answer = program_find("mpirun", path, sizeof path) ? ask_launcher(path) : NULL;
    const struct launcher *launcher = answer ? launcher_of_version(answer) : NULL;
    free(answer);
    if (launcher && !is_understood(launcher, abi, mpi))
        note("launcher: %s is %s, which %s does not support: each process would be a job of 1 "
             "rank; %s",
             path, launcher->name, abi, launcher->advice);
}

static void examine_launcher(const char *abi, const struct elf_file *mpi)
{
    int processes;
    const struct launcher *launcher = launcher_find(&processes);
    if (!launcher)
        examine_launcher_on_the_path(abi, mpi);
    else if (!launcher->mpi_abi && processes > 1 && !has_variable_of("PMI"))
        PROBLEM("launcher: %s offers neither PMIx nor PMI here: each process would be a job of 1 "
                "rank; %s",
                launcher->name, launcher->advice);
    else if (!is_understood(launcher, abi, mpi))
        PROBLEM("launcher: %s has started this process, but the program's MPI is %s: each process "
                "would be a job of 1 rank; %s",
                launcher->name, abi, launcher->advice);
}

static void examine_mpi_library(const char *path, const struct elf_file *file, const char *version)
{
    char *answer = ask_mpi(path);
    char empty[] = "\n";
    char *abi = answer && strchr(answer, '\n') ? answer : empty;
    char *rest = strchr(abi, '\n');
    *rest++ = '\0';
    say_mpi(path, file, *version || !*abi ? version : rest);
    say_abi(abi, rest);
    examine_launcher(abi, file);
    free(answer);
}

static bool is_an_mpi(const struct elf_file *file)
{
    return elf_defines(file, "PMPI_Init", ELF_DYNAMIC);
}

static void find_mpi(void)
{
    for (unsigned i = 0; i < patient.loaded_count; i++) {
        struct loaded *loaded = &patient.loaded[i];
        if (!is_an_mpi(&loaded->file))
            continue;
        if (!patient.mpi)
            patient.mpi = loaded;
        else
            note("MPI: %s is loaded as well; calls to it are passed on but not counted",
                 loaded->path);
    }
}

/* Fortran: its functions are in a separate library that calls the C functions by name, or in the C
 * library itself. */

static bool is_fortran_layer(const struct elf_file *file)
{
    return elf_defines(file, "mpi_init_", ELF_DYNAMIC) ||
           elf_defines(file, "mpi_init", ELF_DYNAMIC) ||
           elf_defines(file, "MPI_INIT", ELF_DYNAMIC) ||
           elf_defines(file, "mpi_init_f08_", ELF_DYNAMIC);
}

struct routes {
    unsigned routed, elsewhere;
    char example[64];
};

static bool layer_asks_for(const char *function, const char *large)
{
    char name[80];
    for (unsigned i = 0; i < patient.loaded_count; i++) {
        const struct loaded *loaded = &patient.loaded[i];
        snprintf(name, sizeof name, "P%s%s", function, large);
        if (loaded != patient.mpi && is_fortran_layer(&loaded->file) &&
            (elf_asks_for(&loaded->file, name) || elf_asks_for(&loaded->file, name + 1)))
            return true;
    }
    return false;
}

static bool layer_defines(const char *name)
{
    for (unsigned i = 0; i < patient.loaded_count; i++)
        if (&patient.loaded[i] != patient.mpi &&
            elf_defines(&patient.loaded[i].file, name, ELF_DYNAMIC))
            return true;
    return false;
}

/* `function` is one that we export. If it is C's (MPI_WAITALL is Fortran's) and the Fortran library
 * has it too, checks whether that calls the C function by name. */
static void follow_route(const char *function, bool is_defined, void *data)
{
    struct routes *routes = data;
    char fortran[64];
    size_t length = strlen(function);
    if (!is_defined || strncmp(function, "MPI_", 4) != 0 || isupper((unsigned char)function[5]) ||
        length + 2 > sizeof fortran || strcmp(function + length - 2, "_c") == 0)
        return;
    for (size_t i = 0; i <= length; i++)
        fortran[i] = (char)tolower((unsigned char)function[i]);
    strcat(fortran, "_");
    if (!layer_defines(fortran))
        return;
    if (layer_asks_for(function, "") || layer_asks_for(function, "_c")) {
        routes->routed++;
        return;
    }
    routes->elsewhere++;
    snprintf(routes->example, sizeof routes->example, "%s", function);
}

static void examine_separate_layer(const struct loaded *layer)
{
    struct routes routes = {0, 0, ""};
    struct elf_file ours;
    if (elf_open(&ours, patient.library))
        elf_visit(&ours, follow_route, &routes);
    elf_close(&ours);
    if (routes.elsewhere == 0)
        fine("Fortran: %s: its %u functions call MPI by names that are intercepted", layer->path,
             routes.routed);
    else
        PROBLEM("Fortran: in %s, %u of %u functions do not call MPI by names that are intercepted, "
                "such as %s",
                layer->path, routes.elsewhere, routes.elsewhere + routes.routed, routes.example);
}

static void examine_inner_layer(void)
{
    const struct elf_file *mpi = &patient.mpi->file;
    bool is_used = elf_asks_for(&patient.file, "mpi_init_") ||
                   elf_asks_for(&patient.file, "mpi_init_thread_") ||
                   elf_asks_for(&patient.file, "mpi_init_f08_");
    bool is_reached = elf_binds_by_name(mpi, "PMPI_Init") || elf_binds_by_name(mpi, "MPI_Init") ||
                      elf_binds_by_name(mpi, "PMPI_Send") || elf_binds_by_name(mpi, "MPI_Send");
    if (is_reached)
        note("Fortran: its functions are part of %s; their calls are distinguished from the "
             "library's own by name",
             patient.mpi->name);
    else if (is_used)
        PROBLEM("Fortran: its functions are part of %s and do not call MPI by names that are "
                "intercepted",
                patient.mpi->name);
    else
        note("Fortran: its functions are part of %s and bypass the profiler; this program does not "
             "initialize MPI from Fortran",
             patient.mpi->name);
}

static void examine_fortran(void)
{
    if (is_fortran_layer(&patient.mpi->file)) {
        examine_inner_layer();
        return;
    }
    for (unsigned i = 0; i < patient.loaded_count; i++)
        if (&patient.loaded[i] != patient.mpi && is_fortran_layer(&patient.loaded[i].file)) {
            examine_separate_layer(&patient.loaded[i]);
            return;
        }
}

/* Programs that are not linked with an MPI library */

/* Whether this file, which Python has loaded, is an MPI library. */
static bool examine_loaded(const char *path, const char *version)
{
    struct elf_file file;
    if (is_ours(path) || !elf_open(&file, path))
        return false;
    bool is_mpi = elf_is_elf(&file) && is_an_mpi(&file);
    if (is_mpi) {
        fine("Python: mpi4py can be imported");
        examine_mpi_library(path, &file, version);
    }
    elf_close(&file);
    return is_mpi;
}

static void examine_python(void)
{
    char *answer = ask_python(patient.path), *rest = answer, *line;
    const char *version = "";
    bool is_found = false;
    while (rest && (line = strsep(&rest, "\n"))) {
        if (strncmp(line, "version ", 8) == 0)
            version = line + 8;
        if (strncmp(line, "error ", 6) == 0)
            note("Python: mpi4py cannot be imported (%s); MPI that is loaded in another way is "
                 "profiled as well",
                 line + 6);
        if (!is_found && strncmp(line, "file ", 5) == 0)
            is_found = examine_loaded(line + 5, version);
    }
    if (!is_found && !(answer && strstr(answer, "error ")))
        note("Python: importing mpi4py did not show which MPI it uses; MPI that is loaded "
             "dynamically is profiled");
    free(answer);
}

static void examine_loading_at_run_time(void)
{
    if (elf_asks_for(&patient.file, "dlmopen"))
        note("MPI: the program calls dlmopen; libraries that it loads by that cannot be profiled");
    if (elf_mentions(&patient.file, "libmpi") || elf_mentions(&patient.file, "libmpich"))
        note("MPI: none is linked, but the program names one, which it may open while it runs; "
             "look-ups by dlsym are intercepted, too");
    else if (elf_mentions(&patient.file, "MPI_Init"))
        PROBLEM("MPI: none is linked, but the program names MPI_Init: MPI seems to be linked into "
                "it statically");
    else
        PROBLEM("MPI: none of the %u libraries of %s is an MPI library", patient.loaded_count,
                program_name(patient.path));
}

static void examine_program_without_mpi(void)
{
    switch (patient.kind) {
    case PROGRAM_PYTHON:
        examine_python();
        break;
    case PROGRAM_STARTER:
        note("MPI: %s runs other programs, which inherit the profiler; check those",
             program_name(patient.path));
        break;
    case PROGRAM_INTERPRETER:
        note("MPI: %s loads it only if a script requests it; MPI that is loaded dynamically is "
             "profiled",
             program_name(patient.path));
        break;
    default:
        examine_loading_at_run_time();
    }
}

static void examine_mpi(void)
{
    if (elf_defines(&patient.file, "PMPI_Init", ELF_ALL)) {
        PROBLEM("MPI: %s defines PMPI_Init itself: MPI is linked into it statically",
                program_name(patient.path));
        return;
    }
    if (elf_defines(&patient.file, "MPI_Send", ELF_ALL) ||
        elf_defines(&patient.file, "MPI_Init", ELF_ALL))
        note("MPI: %s contains an MPI tool; only calls that this tool passes on are profiled",
             program_name(patient.path));
    find_mpi();
    if (!patient.mpi) {
        examine_program_without_mpi();
        return;
    }
    examine_mpi_library(patient.mpi->path, &patient.mpi->file, "");
    examine_fortran();
}

static void examine_reports(void)
{
    char *numpy = ask_reports();
    if (!numpy || !*numpy)
        note("Reports: the python3 here has no numpy, which hvprof-report needs");
    free(numpy);
}

static bool give_verdict(const char *typed)
{
    if (patient.problems == 0)
        printf("verdict: can be profiled: mpirun -n N commprof-run %s\n", typed);
    else
        printf("verdict: cannot be profiled, for the %s above\n",
               patient.problems == 1 ? "problem" : "problems");
    return patient.problems == 0;
}

bool doctor_examine(char *const command[], const char *library)
{
    const char *program = command[0];
    bool is_found = find_path_to_preload(library);
    examine_settings();
    examine_skipped_programs(command);
    if (is_found && find_program(program) && finds_script(command) && open_program() &&
        runs_on_this_machine() && can_be_preloaded_into()) {
        examine_set_id();
        examine_capabilities();
        examine_preloads();
        ask_the_loader();
        examine_sanitizers();
        examine_mpi();
        examine_backends(command);
        examine_look_ups(command);
    }
    examine_reports();
    return give_verdict(program);
}
