#include "run/usage.h"

#include "base/clock.h"
#include "unit.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>

static struct ledger_usage usage;

static int cores_in(const struct ledger_usage *reading)
{
    int cores = 0;
    for (int word = 0; word < LEDGER_AFFINITY_WORDS; word++)
        cores += __builtin_popcountll(reading->affinity[word]);
    return cores;
}

static void bind_to(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    CHECK_EQUAL(sched_setaffinity(0, sizeof set, &set), 0);
}

TEST(a_process_bound_to_one_core_is_read_there)
{
    cpu_set_t allowed;
    int core = 0;
    CHECK_EQUAL(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    while (!CPU_ISSET(core, &allowed))
        core++;
    bind_to(core);
    usage_read(&usage, 0);
    CHECK_EQUAL(cores_in(&usage), 1);
    CHECK(usage.affinity[core / 64] >> core % 64 & 1);
    CHECK_EQUAL(usage.core, core);
    CHECK(usage.numa_node >= 0);
}

static uint64_t switches_by_choice(void)
{
    struct rusage used;
    CHECK_EQUAL(getrusage(RUSAGE_SELF, &used), 0);
    return (uint64_t)used.ru_nvcsw;
}

/* Sleeping is what a process does of its own accord: a switch that it chose, unless a busy machine
 * switches it before it sleeps. */
TEST(what_was_used_between_two_readings_is_their_difference)
{
    struct ledger_usage before;
    usage_read(&before, 0);
    for (uint64_t enough = switches_by_choice() + 10; switches_by_choice() < enough;)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    usage_read(&usage, 0);
    CHECK(usage.voluntary_switches >= before.voluntary_switches + 10);
    CHECK(usage.cpu_user_ns + usage.cpu_system_ns >= before.cpu_user_ns + before.cpu_system_ns);
    CHECK(usage.since_start_ns > before.since_start_ns);
}
