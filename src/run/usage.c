/* A reading is some twenty system calls, about 50 us. It replaces the one before in place, so that
 * a job of weeks needs no more room than a short one, and the reading of a process that is killed
 * is the last one that was taken. */
#include "usage.h"

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/host.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t nanoseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

static void read_resources(struct ledger_usage *usage)
{
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used) != 0)
        return;
    usage->cpu_user_ns = nanoseconds(used.ru_utime);
    usage->cpu_system_ns = nanoseconds(used.ru_stime);
    usage->voluntary_switches = (uint64_t)used.ru_nvcsw;
    usage->involuntary_switches = (uint64_t)used.ru_nivcsw;
    usage->minor_faults = (uint64_t)used.ru_minflt;
    usage->major_faults = (uint64_t)used.ru_majflt;
}

/* The eighth number of the first line of /proc/stat, "cpu  user nice system idle ...". */
static uint64_t read_stolen(void)
{
    char text[512];
    unsigned long long stolen;
    if (!host_text("/proc/stat", text, sizeof text) ||
        sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &stolen) != 1)
        return LEDGER_BYTES_UNKNOWN;
    return stolen * 1000000000 / (unsigned long long)sysconf(_SC_CLK_TCK);
}

static void read_host(struct ledger_usage *usage)
{
    struct cgroup_quota quota;
    usage->throttled_ns = cgroup_cpu_quota("", &quota) ? quota.throttled_ns : LEDGER_BYTES_UNKNOWN;
    usage->stolen_ns = read_stolen();
}

/* Reads the place of the main thread, whoever asks: threads of OpenMP have masks of their own. */
static void read_place(struct ledger_usage *usage)
{
    unsigned core, node;
    bool is_main =
        getpid() == (pid_t)syscall(SYS_gettid) && syscall(SYS_getcpu, &core, &node, NULL) == 0;
    usage->core = is_main ? (int32_t)core : -1;
    usage->numa_node = is_main ? (int32_t)node : -1;
    if (sched_getaffinity(getpid(), sizeof usage->affinity, (cpu_set_t *)usage->affinity) != 0)
        memset(usage->affinity, 0, sizeof usage->affinity);
}

void usage_read(struct ledger_usage *usage, int64_t start_ns)
{
    struct ledger_usage now = {0};
    read_resources(&now);
    read_host(&now);
    read_place(&now);
    memcpy((char *)usage + sizeof usage->since_start_ns, (char *)&now + sizeof now.since_start_ns,
           sizeof now - sizeof now.since_start_ns);
    int64_t since_start_ns = clock_monotonic_ns() - start_ns;
    __atomic_store_n(&usage->since_start_ns, since_start_ns > 0 ? since_start_ns : 1,
                     __ATOMIC_RELEASE);
}
