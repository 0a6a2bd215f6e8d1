#include "run/cpu_time.h"

#include "base/clock.h"
#include "base/settings.h"
#include "ledger/ledger.h"
#include "ledger_reader.h"
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

static struct ledger_thread *record;

static struct ledger_thread *add_thread(uint32_t number, int64_t tid)
{
    struct ledger_thread entry = {.thread = number, .tid = tid};
    return ledger_append(LEDGER_THREADS, &entry, sizeof entry);
}

static void begin(const char *setting)
{
    setenv("COMMPROF_CPU_TIME", setting, 1);
    settings_read(NULL);
    clock_begin(CLOCK_GETTIME);
    CHECK_EQUAL(ledger_open("ledger", 1 << 20), 0);
    record = add_thread(0, (int64_t)syscall(SYS_gettid));
}

/* The newest reading of a thread; all zeros: there is none yet. */
static struct ledger_cpu_time newest(uint32_t thread)
{
    struct ledger_cpu_time last = {0};
    const struct ledger_cpu_time *entry;
    READER_EACH(entry, the_ledger.header, LEDGER_CPU_TIMES)
        if (__atomic_load_n(&entry->live, __ATOMIC_ACQUIRE) && entry->thread == thread &&
            entry->at_ns >= last.at_ns)
            last = *entry;
    return last;
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

TEST(what_a_thread_does_is_told_by_where_it_is)
{
    begin("on");
    cpu_time_begin();
    while (newest(0).outside_ready < 2)
        continue;
    struct ledger_cpu_time busy = newest(0);
    CHECK(busy.core_ns > 0);
    CHECK_EQUAL(busy.inside_ready + busy.inside_asleep, 0);
    while (newest(0).outside_asleep == busy.outside_asleep)
        sleep_ms(200);
    __atomic_store_n(&record->doing, LEDGER_DOING_INSIDE, __ATOMIC_RELEASE);
    while (newest(0).inside_ready == 0)
        continue;
    while (newest(0).inside_asleep == 0)
        sleep_ms(200);
    cpu_time_end();
    struct ledger_cpu_time last = newest(0);
    CHECK(last.core_ns > busy.core_ns);
    CHECK(last.core_ns + last.waiting_ns <= (uint64_t)clock_monotonic_ns());
}

static unsigned descriptors(void)
{
    unsigned count = 0;
    for (int i = 0; i < 64; i++) {
        struct stat about;
        count += fstat(i, &about) == 0;
    }
    return count;
}

/* The write end of a pipe that the job closes is closed: its reader sees the end. */
TEST(the_job_s_descriptors_are_its_own)
{
    int ends[2];
    char byte;
    begin("on");
    CHECK_EQUAL(pipe(ends), 0);
    unsigned before = descriptors();
    cpu_time_begin();
    while (!newest(0).at_ns)
        sched_yield();
    CHECK_EQUAL(descriptors(), before);
    close(ends[1]);
    CHECK_EQUAL(read(ends[0], &byte, 1), 0);
    cpu_time_end();
}

static void *spin_until(void *stop)
{
    struct ledger_thread *own = record;
    __atomic_store_n(&own->tid, (int64_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    while (!__atomic_load_n((uint32_t *)stop, __ATOMIC_ACQUIRE))
        continue;
    return NULL;
}

/* Sums go on where a thread's state serves another thread of the system; one that has ended has no
 * more readings. */
TEST(sums_outlive_a_thread)
{
    begin("on");
    record = add_thread(1, 0);
    uint64_t core_ns = 0;
    cpu_time_begin();
    for (int i = 0; i < 2; i++) {
        uint32_t stop = 0;
        pthread_t thread;
        CHECK_EQUAL(pthread_create(&thread, NULL, spin_until, &stop), 0);
        while (newest(1).core_ns <= core_ns)
            sched_yield();
        core_ns = newest(1).core_ns;
        __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
        pthread_join(thread, NULL);
    }
    while (newest(0).tick <= newest(1).tick) /* /proc may have the thread for a moment longer */
        sched_yield();
    cpu_time_end();
    CHECK(newest(1).core_ns >= core_ns);
}

/* The last one would else share the sums of the first. */
TEST(so_many_threads_are_followed_and_no_more)
{
    begin("on");
    for (uint32_t number = 1; number <= CPU_TIME_THREADS; number++)
        add_thread(number, record->tid);
    cpu_time_begin();
    cpu_time_end();
    while (!newest(CPU_TIME_THREADS - 1).at_ns) /* it has not waited for long */
        sched_yield();
    CHECK_EQUAL(newest(CPU_TIME_THREADS).at_ns, 0);
}
