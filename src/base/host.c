#include "host.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *host_name(void)
{
    static char host[256];
    if (!host[0] && gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "unknown");
    return host;
}

bool host_text(const char *path, char *text, size_t bytes)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    for (ssize_t more = 1; file >= 0 && more > 0 && used < bytes - 1; used += (size_t)more) {
        more = read(file, text + used, bytes - 1 - used);
        more = more > 0 ? more : 0;
    }
    if (file >= 0)
        close(file);
    text[used] = '\0';
    return used > 0;
}

/* /proc/<pid>/stat from the process's state on: the name before it may contain any character. "" if
 * it cannot be read. */
static const char *read_stat(pid_t pid, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *end_of_name = host_text(path, text, bytes) ? strrchr(text, ')') : NULL;
    return end_of_name ? end_of_name + 1 : "";
}

pid_t host_parent_of(pid_t pid)
{
    char text[1024];
    int parent = 0;
    return sscanf(read_stat(pid, text, sizeof text), " %*c %d", &parent) == 1 ? parent : 0;
}

bool host_start_of(pid_t pid, char start[24])
{
    char text[1024], process_state;
    if (sscanf(read_stat(pid, text, sizeof text),
               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %23s",
               &process_state, start) != 2)
        start[0] = '\0';
    else if (process_state == 'Z' || process_state == 'X')
        snprintf(start, 24, "ended");
    return start[0] != '\0';
}

void host_boot_id(char *id, size_t bytes)
{
    host_text("/proc/sys/kernel/random/boot_id", id, bytes);
    id[strcspn(id, "\n")] = '\0';
}

void host_link(const char *link, char *name, size_t bytes)
{
    ssize_t length = readlink(link, name, bytes - 1);
    name[length < 0 ? 0 : length] = '\0';
}

/* The value after `name` and a colon at the beginning of a line of /proc/cpuinfo. */
static void find_value(const char *text, const char *name, char *value, size_t bytes)
{
    value[0] = '\0';
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t length = strlen(name);
        if (strncmp(line, name, length) != 0)
            continue;
        const char *start = line + length + strspn(line + length, "\t :");
        snprintf(value, bytes, "%.*s", (int)strcspn(start, "\n"), start);
        return;
    }
}

void host_cpu_model(const char *root, char *model, size_t bytes)
{
    char path[256], text[4096], implementer[32], part[32];
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    host_text(path, text, sizeof text);
    find_value(text, "model name", model, bytes);
    find_value(text, "CPU implementer", implementer, sizeof implementer);
    find_value(text, "CPU part", part, sizeof part);
    if (!*model && *part) /* Arm has no name there */
        snprintf(model, bytes, "Arm implementer %s part %s", implementer, part);
}
