#include "clients.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Variables that a tool sets in the processes it starts. */
static const struct {
    const char *variable, *tool;
} VARIABLES[] = {
    {"NSYS_PROFILING_SESSION_ID", "Nsight Systems"},
    {"NV_NSIGHT_INJECTION_PORT_BASE", "Nsight Compute"},
    {"NV_NSIGHT_INJECTION_TRANSPORT_TYPE", "Nsight Compute"},
    {"NVPROF_ID", "nvprof"},
};

/* Prefixes of the names of libraries that a tool loads into the process. */
static const struct {
    const char *file, *tool;
} LIBRARIES[] = {
    {"libToolsInjection", "Nsight Systems"},
    {"libcuda-injection", "Nsight Compute"},
    {"libInterceptorInjectionTarget", "Nsight Compute"},
    {"libTreeLauncherTargetInjection", "Nsight Compute or compute-sanitizer"},
    {"libsanitizer-collection", "compute-sanitizer"},
    {"libcuinj64", "nvprof"},
};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The CUDA driver loads the library that this variable names; it may be ours, and scripts write
 * "none" to turn a site's tool off. */
static const char *foreign_injection(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    bool is_named = path && *path && strcmp(path, "none") != 0;
    return is_named && strncmp(file_name(path), "libcommprof", 11) != 0 ? path : NULL;
}

struct found {
    const char *tool;
    char path[1024];
};

static int look_at_object(struct dl_phdr_info *object, size_t bytes, void *data)
{
    (void)bytes;
    struct found *found = data;
    const char *file = file_name(object->dlpi_name ? object->dlpi_name : "");
    for (size_t i = 0; i < sizeof LIBRARIES / sizeof *LIBRARIES && !found->tool; i++)
        if (strncmp(file, LIBRARIES[i].file, strlen(LIBRARIES[i].file)) == 0) {
            found->tool = LIBRARIES[i].tool;
            snprintf(found->path, sizeof found->path, "%s", object->dlpi_name);
        }
    return found->tool != NULL;
}

bool clients_are_seen(char *reason, size_t reason_bytes)
{
    struct found found = {.tool = NULL};
    for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES; i++)
        if (getenv(VARIABLES[i].variable)) {
            snprintf(reason, reason_bytes, "%s traces this process (%s is set)", VARIABLES[i].tool,
                     VARIABLES[i].variable);
            return true;
        }
    const char *injection = foreign_injection();
    if (injection) {
        snprintf(reason, reason_bytes,
                 "another tool traces this process (CUDA_INJECTION64_PATH=%s)", injection);
        return true;
    }
    if (!dl_iterate_phdr(look_at_object, &found))
        return false;
    snprintf(reason, reason_bytes, "%s traces this process (%s is loaded)", found.tool, found.path);
    return true;
}

static void never_called(void)
{
}

/* Does not begin with cuptiSubscribe_v2: from CUDA 13.2 on, a client that has called it may not use
 * the older functions. If the subscription is taken anyway, cuptiSubscribe_v2 names the holder. */
bool clients_hold_cupti(const struct cupti *cupti, char *reason, size_t reason_bytes)
{
    void *subscriber = NULL;
    char holder[128] = "another tool";
    int result = cupti->cuptiSubscribe(&subscriber, never_called, NULL);
    if (result == CUPTI_SUCCESS)
        cupti->cuptiUnsubscribe(subscriber);
    if (result != CUPTI_HAS_SUBSCRIBER)
        return false; /* other failures will recur in the calls that we need */
    struct cupti_subscriber ours = {sizeof ours, "commprof", holder, sizeof holder};
    if (cupti->cuptiSubscribe_v2 &&
        cupti->cuptiSubscribe_v2(&subscriber, never_called, NULL, &ours) == CUPTI_SUCCESS)
        cupti->cuptiUnsubscribe(subscriber); /* the holder has just released it */
    holder[sizeof holder - 1] = '\0';
    snprintf(reason, reason_bytes, "CUPTI is in use: %s", *holder ? holder : "by another tool");
    return true;
}
