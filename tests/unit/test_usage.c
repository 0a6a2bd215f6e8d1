#include "run/usage.h"

#include "base/clock.h"
#include "unit.h"

#include <pthread.h>
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

static void *read_there(void *unused)
{
    usage_read(&usage, 0);
    return unused;
}

/* The periodic reading is taken by a thread of ours, whose own place nobody asks for. */
TEST(another_thread_reads_the_main_thread_s_cores_but_no_core_or_numa_node)
{
    pthread_t thread;
    usage_read(&usage, 0);
    int cores = cores_in(&usage);
    CHECK_EQUAL(pthread_create(&thread, NULL, read_there, NULL), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_EQUAL(cores_in(&usage), cores);
    CHECK_EQUAL(usage.core, -1);
    CHECK_EQUAL(usage.numa_node, -1);
}

TEST(a_reading_at_the_very_start_is_there)
{
    usage_read(&usage, clock_monotonic_ns() + 1000000000);
    CHECK_EQUAL(usage.since_start_ns, 1);
}
