/* The CPU quota of this process's cgroup, of version 1 or 2: containers and batch systems limit
 * jobs by it. Reading it takes no lock. */
#ifndef COMMPROF_CGROUP_H
#define COMMPROF_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

struct cgroup_quota {
    double cores;   /* of CPU time per time; 1.5: one and a half */
    char path[512]; /* the cgroup whose quota it is, below the mount point; processes with equal
                       paths share it */
    uint64_t throttled_ns; /* how long its processes have not run so far because it was used up;
                              UINT64_MAX: not counted */
};

/* The smallest quota of the process's cgroup and those above it; false: there is none. `root` is in
 * front of /proc and /sys; "" but in tests. */
bool cgroup_cpu_quota(const char *root, struct cgroup_quota *quota);

#endif
