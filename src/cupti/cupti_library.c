/* The full order of the search: (1) COMMPROF_CUPTI; (2) a libcupti.so.* that is mapped; (3) if a
 * framework that brings its own is mapped and its libcupti is not: try later; (4) the directory of
 * the mapped libcudart.so.N, and the directories of NVIDIA's packages relative to it, for the same
 * N; (5) names for the driver's version and then older ones, along the dynamic linker's path. An
 * opened copy is never closed: CUPTI may call into it until the end.
 *
 * Because of (3) a copy is never loaded early: PyTorch looks for its libcupti by name, and the
 * dynamic linker returns the copy that is loaded. If that is older, import torch fails with a
 * missing symbol (pytorch#157381). */
#include "cupti_library.h"

#include "base/settings.h"
#include "cuda_driver.h"
#include "records.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Versions with known faults, from NVIDIA's release notes, which also say where they were fixed. */
static const struct trap {
    uint32_t first, last;
    uint32_t flush_s;    /* minimum time between flushes */
    const char *refusal; /* NULL: it is used */
} TRAPS[] = {
    {0, CUPTI_OLDEST - 1, 0, "it is older than CUDA 7.0 and has other records"},
    {130000, 130000, 0,
     "that of CUDA 13.0 before Update 1 crashes and hangs in programs that use NVTX, as NCCL does"},
    {130200, 130299, 5,
     NULL}, /* many calls of its functions slow the program down; fixed in 13.3 */
};

/* Frameworks that bring their own libcupti. */
static const char *const FRAMEWORKS[] = {"libtorch_cpu.so", "libtorch_cuda.so", "xla_extension.so",
                                         "xla_cuda_plugin.so", "libjax_common.so"};

/* The mapped libraries that matter here. */
struct mapped {
    char cupti[1024];
    char runtime_folder[1024];
    char runtime_version[16]; /* "13", "11.0" */
    const char *framework;
};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

static int look_at_object(struct dl_phdr_info *object, size_t bytes, void *data)
{
    (void)bytes;
    struct mapped *mapped = data;
    const char *path = object->dlpi_name ? object->dlpi_name : "";
    const char *file = file_name(path);
    if (begins_with(file, "libcupti.so") && !*mapped->cupti)
        snprintf(mapped->cupti, sizeof mapped->cupti, "%s", path);
    if (begins_with(file, "libcudart.so.") && !*mapped->runtime_version) {
        snprintf(mapped->runtime_folder, sizeof mapped->runtime_folder, "%.*s", (int)(file - path),
                 path);
        snprintf(mapped->runtime_version, sizeof mapped->runtime_version, "%s",
                 file + strlen("libcudart.so."));
    }
    for (size_t i = 0; i < sizeof FRAMEWORKS / sizeof *FRAMEWORKS; i++)
        if (strcmp(file, FRAMEWORKS[i]) == 0)
            mapped->framework = FRAMEWORKS[i];
    return 0;
}

enum { OLDEST_MAJOR = 11 };

/* Names of the library for one major version, the most likely first: CUDA 11 includes minor
 * versions. */
static const char *const *names_of(uint32_t major)
{
    static const char *const OF_13[] = {"libcupti.so.13", NULL}, *const OF_12[] = {"libcupti.so.12",
                                                                                   NULL};
    static const char *const OF_11[] = {"libcupti.so.11.8", "libcupti.so.11.7",
                                        "libcupti.so.11.6", "libcupti.so.11.5",
                                        "libcupti.so.11.4", "libcupti.so.11.3",
                                        "libcupti.so.11.2", "libcupti.so.11.1",
                                        "libcupti.so.11.0", NULL};
    static const char *const NONE[] = {NULL};
    return major == 13 ? OF_13 : major == 12 ? OF_12 : major == 11 ? OF_11 : NONE;
}

static void *open_named(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *open_beside_the_runtime(const struct mapped *mapped)
{
    static const char *const FOLDERS[] = {"", "../../cuda_cupti/lib/", "../extras/CUPTI/lib64/",
                                          "../lib64/"};
    unsigned major = 0;
    if (sscanf(mapped->runtime_version, "%u", &major) != 1)
        return NULL;
    for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++)
        for (const char *const *name = names_of(major); *name; name++) {
            char path[2 * sizeof mapped->runtime_folder];
            snprintf(path, sizeof path, "%s%s%s", mapped->runtime_folder, FOLDERS[i], *name);
            void *library =
                *mapped->runtime_folder && access(path, R_OK) == 0 ? open_named(path) : NULL;
            if (library)
                return library;
        }
    return NULL;
}

/* Drivers are often newer than the CUDA that programs are built with, and a statically linked
 * runtime is not mapped. */
static void *open_of_the_driver_or_older(void)
{
    void *library = NULL;
    for (uint32_t major = (uint32_t)cuda_driver_version() / 1000; major >= OLDEST_MAJOR && !library;
         major--)
        for (const char *const *name = names_of(major); *name && !library; name++)
            library = open_named(*name);
    return library;
}

/* NULL: try later, or never; `armed` says which. */
static void *find(enum gpu_armed *armed, char *reason, size_t reason_bytes)
{
    struct mapped mapped = {.framework = NULL};
    *armed = GPU_ARM_REFUSED;
    if (strcmp(settings.cupti, "off") == 0) {
        snprintf(reason, reason_bytes, "COMMPROF_CUPTI=off");
        return NULL;
    }
    if (strcmp(settings.cupti, "auto") != 0) {
        void *asked_for = open_named(settings.cupti);
        if (!asked_for)
            snprintf(reason, reason_bytes, "COMMPROF_CUPTI=%s cannot be opened: %s", settings.cupti,
                     dlerror());
        return asked_for;
    }
    dl_iterate_phdr(look_at_object, &mapped);
    if (*mapped.cupti)
        return dlopen(mapped.cupti, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (mapped.framework) {
        *armed = GPU_ARM_LATER;
        snprintf(reason, reason_bytes, "%s is loaded, its libcupti is not yet", mapped.framework);
        return NULL;
    }
    void *library = open_beside_the_runtime(&mapped);
    if (!library)
        library = open_of_the_driver_or_older();
    if (!library)
        snprintf(reason, reason_bytes, "no libcupti was found; COMMPROF_CUPTI can name one");
    return library;
}

/* Looks up all functions. Returns the name of the first required one that is missing, or NULL. */
static const char *look_up(struct cupti *cupti, void *library)
{
    const char *missing = NULL;
#define CUPTI_FUNCTION(NAME, ...)                   \
    *(void **)&cupti->NAME = dlsym(library, #NAME); \
    missing = missing || cupti->NAME ? missing : #NAME;
#include "cupti_functions.def"
#undef CUPTI_FUNCTION
    return missing && strcmp(missing, "cuptiSubscribe_v2") == 0 ? NULL : missing;
}

static void note_path(struct cupti *cupti)
{
    Dl_info library;
    bool is_known = dladdr(*(void **)&cupti->cuptiGetVersion, &library) && library.dli_fname;
    snprintf(cupti->path, sizeof cupti->path, "%s", is_known ? library.dli_fname : "libcupti");
}

uint32_t cupti_cuda_major(uint32_t version)
{
    return version >= 100000 ? version / 10000 : version >= 19 ? 12 : version >= 13 ? 11 : 10;
}

static const struct trap *trap_of(uint32_t version)
{
    for (size_t i = 0; i < sizeof TRAPS / sizeof *TRAPS; i++)
        if (TRAPS[i].first <= version && version <= TRAPS[i].last)
            return &TRAPS[i];
    return NULL;
}

const char *cupti_version_trap(uint32_t version)
{
    const struct trap *trap = trap_of(version);
    return trap ? trap->refusal : NULL;
}

const char *cupti_result_name(const struct cupti *cupti, int result)
{
    const char *name = NULL;
    return cupti->cuptiGetResultString(result, &name) == CUPTI_SUCCESS && name
               ? name
               : "a result without a name";
}

/* CUPTI does not support drivers of an older major version of CUDA. */
static bool suits(const struct cupti *cupti, char *reason, size_t reason_bytes)
{
    uint32_t driver_major = (uint32_t)cuda_driver_version() / 1000;
    const char *trap = cupti_version_trap(cupti->version);
    if (trap)
        snprintf(reason, reason_bytes, "%s (version %u) is not used: %s", cupti->path,
                 cupti->version, trap);
    else if (driver_major && cupti_cuda_major(cupti->version) > driver_major)
        snprintf(reason, reason_bytes,
                 "%s (version %u) is newer than the driver, which knows CUDA %u", cupti->path,
                 cupti->version, driver_major);
    else
        return true;
    return false;
}

/* CUDA 13.2's CUPTI recurses without end if it cannot initialize, whichever function is called
 * first (docs/GPU.md), so no call can find out safely. NVIDIA documents that it initializes with
 * any driver of its major version; this has not been tested yet. */
static bool may_crash(void *library, char *reason, size_t reason_bytes, const char *path)
{
    bool is_13_2 = dlsym(library, "cuptiActivityEnable_v2") &&
                   !dlsym(library, "cuptiActivityGetNextRecord_v2");
    int driver = cuda_driver_version();
    if (!is_13_2 || driver >= 13020)
        return false;
    if (driver / 1000 < 13)
        snprintf(reason, reason_bytes,
                 "%s is of CUDA 13.2 and newer than the driver, which knows CUDA %d", path,
                 driver / 1000);
    else
        snprintf(reason, reason_bytes,
                 "%s is of CUDA 13.2 and may crash beside an older driver; "
                 "COMMPROF_CUPTI_ANY_MINOR=1 uses it",
                 path);
    return driver / 1000 < 13 || !settings.cupti_any_minor;
}

enum gpu_armed cupti_open(struct cupti *cupti, char *reason, size_t reason_bytes)
{
    enum gpu_armed armed;
    void *library = find(&armed, reason, reason_bytes);
    if (!library)
        return armed;
    const char *missing = look_up(cupti, library);
    if (missing) {
        snprintf(reason, reason_bytes, "this libcupti has no %s", missing);
        return GPU_ARM_REFUSED;
    }
    note_path(cupti);
    if (may_crash(library, reason, reason_bytes, cupti->path))
        return GPU_ARM_REFUSED;
    int result = cupti->cuptiGetVersion(&cupti->version);
    if (result != CUPTI_SUCCESS) {
        snprintf(reason, reason_bytes, "%s does not work here: it gives error %d for its version",
                 cupti->path, result);
        return GPU_ARM_REFUSED;
    }
    const struct trap *trap = trap_of(cupti->version);
    cupti->least_flush_ns = trap ? trap->flush_s * INT64_C(1000000000) : 0;
    return suits(cupti, reason, reason_bytes) ? GPU_ARMED : GPU_ARM_REFUSED;
}
