/* This host and its processes, as /proc shows them. */
#ifndef COMMPROF_HOST_H
#define COMMPROF_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

const char *host_name(void);

/* The id of this boot of the host; "" if it cannot be read. */
void host_boot_id(char *id, size_t bytes);

/* The parent of any process of this host; 0 if it cannot be read. */
pid_t host_parent_of(pid_t pid);

/* When a process of this host started, in the kernel's ticks since boot, as text; "ended" for a
 * zombie. False if it cannot be read. */
bool host_start_of(pid_t pid, char start[24]);

/* The target of a link of /proc; "" if it cannot be read. */
void host_link(const char *link, char *name, size_t bytes);

/* The beginning of a file of /proc, terminated; false where it is empty or cannot be read. */
bool host_text(const char *path, char *text, size_t bytes);

/* The processor's name as /proc/cpuinfo of `root` has it; "" where it cannot be read. */
void host_cpu_model(const char *root, char *model, size_t bytes);

#endif
