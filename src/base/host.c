#include "host.h"

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

static bool read_text(const char *path, char *text, size_t bytes)
{
    FILE *file = fopen(path, "re");
    size_t used = file ? fread(text, 1, bytes - 1, file) : 0;
    if (file)
        fclose(file);
    text[used] = '\0';
    return used > 0;
}

/* /proc/<pid>/stat from the process's state on: the name before it may contain any character. "" if it cannot be read. */
static const char *read_stat(pid_t pid, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *end_of_name = read_text(path, text, bytes) ? strrchr(text, ')') : NULL;
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
    if (sscanf(read_stat(pid, text, sizeof text), " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %23s",
               &process_state, start) != 2)
        start[0] = '\0';
    else if (process_state == 'Z' || process_state == 'X')
        snprintf(start, 24, "ended");
    return start[0] != '\0';
}

void host_boot_id(char *id, size_t bytes)
{
    read_text("/proc/sys/kernel/random/boot_id", id, bytes);
    id[strcspn(id, "\n")] = '\0';
}

void host_link(const char *link, char *name, size_t bytes)
{
    ssize_t length = readlink(link, name, bytes - 1);
    name[length < 0 ? 0 : length] = '\0';
}
