/* A line of /proc/self/cgroup is NUMBER:CONTROLLERS:PATH; version 2 has number 0 and no
 * controllers. In a container the path may be one of the host's, which is not visible there: only
 * the levels that are there count. */
#include "cgroup.h"

#include "host.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_numbers(const char *folder, const char *file, const char *format, double *first,
                         double *second)
{
    char path[2 * PATH_MAX], text[64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return host_text(path, text, sizeof text) &&
           sscanf(text, format, first, second) == (second ? 2 : 1);
}

/* cpu.max is "max 100000" where there is no quota, cpu.cfs_quota_us -1. */
static double quota_of(const char *folder)
{
    double quota, period;
    bool is_there = read_numbers(folder, "cpu.max", "%lf %lf", &quota, &period) ||
                    (read_numbers(folder, "cpu.cfs_quota_us", "%lf", &quota, NULL) &&
                     read_numbers(folder, "cpu.cfs_period_us", "%lf", &period, NULL));
    return is_there && quota > 0 && period > 0 ? quota / period : 0;
}

/* The number behind a word of cpu.stat; microseconds in version 2, nanoseconds in version 1. */
static uint64_t throttled_in(const char *folder)
{
    static const struct {
        const char *word;
        unsigned ns;
    } FORMS[] = {{"throttled_usec ", 1000}, {"throttled_time ", 1}};
    char path[2 * PATH_MAX], text[1024];
    snprintf(path, sizeof path, "%s/cpu.stat", folder);
    if (!host_text(path, text, sizeof text))
        return UINT64_MAX;
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        const char *found = strstr(text, FORMS[i].word);
        if (found)
            return strtoull(found + strlen(FORMS[i].word), NULL, 10) * FORMS[i].ns;
    }
    return UINT64_MAX;
}

/* From the process's own cgroup up to the root. */
static void look_upwards(const char *mount, const char *path, struct cgroup_quota *least)
{
    char level[sizeof least->path], folder[PATH_MAX + sizeof level];
    snprintf(level, sizeof level, "%s", strcmp(path, "/") == 0 ? "" : path);
    for (;;) {
        snprintf(folder, sizeof folder, "%s%s", mount, level);
        double cores = quota_of(folder);
        if (cores > 0 && (least->cores == 0 || cores < least->cores)) {
            least->cores = cores;
            least->throttled_ns = throttled_in(folder);
            snprintf(least->path, sizeof least->path, "%s", *level ? level : "/");
        }
        char *slash = strrchr(level, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

static bool names_cpu(const char *controllers)
{
    for (const char *word = controllers; *word; word += strcspn(word, ","), word += *word == ',')
        if (strcspn(word, ",") == 3 && strncmp(word, "cpu", 3) == 0)
            return true;
    return false;
}

static void take_line(const char *root, char *line, struct cgroup_quota *least)
{
    char mount[PATH_MAX];
    char *controllers = strchr(line, ':'),
         *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return;
    *path++ = '\0';
    controllers++;
    if (*controllers && !names_cpu(controllers))
        return;
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s%s", root, *controllers ? "/" : "",
             controllers);
    look_upwards(mount, path, least);
}

bool cgroup_cpu_quota(const char *root, struct cgroup_quota *quota)
{
    char path[PATH_MAX], text[4096], *rest;
    *quota = (struct cgroup_quota){0};
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!host_text(path, text, sizeof text))
        return false;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        take_line(root, line, quota);
    return quota->cores > 0;
}
