#include "base/cgroup.h"

#include "base/host.h"
#include "unit.h"

static struct cgroup_quota quota;

/* A file below the test's folder, which stands for the root. */
static void put(const char *path, const char *text)
{
    char there[512];
    snprintf(there, sizeof there, "./%s", path);
    for (char *slash = strchr(there + 2, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(there, 0700);
        *slash = '/';
    }
    FILE *file = fopen(there, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

TEST(the_smallest_quota_on_the_way_up_counts)
{
    put("proc/self/cgroup", "0::/slice/job/step\n");
    put("sys/fs/cgroup/slice/job/step/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/slice/job/cpu.max", "400000 100000\n");
    put("sys/fs/cgroup/slice/cpu.max", "200000 100000\n");
    CHECK(cgroup_cpu_quota(".", &quota));
    CHECK_EQUAL(quota.cores, 2);
    CHECK_TEXT(quota.path, "/slice");
}

TEST(a_quota_of_version_1_is_read)
{
    put("proc/self/cgroup", "9:cpuset:/x\n4:cpu,cpuacct:/docker/17\n0::/\n");
    put("sys/fs/cgroup/cpu,cpuacct/docker/17/cpu.cfs_quota_us", "50000\n");
    put("sys/fs/cgroup/cpu,cpuacct/docker/17/cpu.cfs_period_us", "100000\n");
    CHECK(cgroup_cpu_quota(".", &quota));
    put("sys/fs/cgroup/cpu,cpuacct/docker/17/cpu.stat", "nr_throttled 3\nthrottled_time 77\n");
    CHECK(cgroup_cpu_quota(".", &quota));
    CHECK_EQUAL(quota.throttled_ns, 77);
    CHECK_EQUAL(quota.cores * 1000, 500);
    CHECK_TEXT(quota.path, "/docker/17");
}

/* /proc names a cgroup of the host; the container sees its own as the root. */
TEST(in_a_container_the_root_s_quota_is_read)
{
    put("proc/self/cgroup", "4:cpu:/docker/17\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    CHECK(cgroup_cpu_quota(".", &quota));
    CHECK_EQUAL(quota.cores, 3);
    CHECK_TEXT(quota.path, "/");
}

TEST(a_processor_of_arm_is_named_by_its_numbers)
{
    char model[64];
    put("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
    host_cpu_model(".", model, sizeof model);
    CHECK_TEXT(model, "Arm implementer 0x41 part 0xd4f");
}

TEST(without_a_quota_there_is_none)
{
    CHECK(!cgroup_cpu_quota(".", &quota));
    put("proc/self/cgroup", "4:cpu:/\n3:cpuset:/a\n0::/a\nnonsense\n");
    CHECK(!cgroup_cpu_quota(".", &quota));
    put("sys/fs/cgroup/a/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/cpuset/a/cpu.max", "100000 100000\n");
    CHECK(!cgroup_cpu_quota(".", &quota));
}
