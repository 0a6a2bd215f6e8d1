/* The kernel counts in /proc/self/task/TID/schedstat how long a thread was on a core and how long
 * it waited for one, in nanoseconds; .../stat shows whether it is ready, asleep or waiting for a
 * disk. Where the counters are missing, the thread's CPU clock says how long it was on a core.
 *
 * The files stay open. So that the job sees no descriptor that is not its own, and none of its own
 * is kept open by us, the service thread has a table of descriptors for itself:
 *
 *     the job                      the service thread
 *     cpu_time_begin ------------> table of its own; read, sleep, read, sleep ...
 *     cpu_time_end: order = GO --> one more round; gone = 1, exits
 *            waits for gone <-----------
 *
 * The readings shall find what the job does at moments that do not depend on what it does, so the
 * pauses between them vary: a step may take as long as a pause. */
#include "cpu_time.h"

#include "base/clock.h"
#include "base/service_thread.h"
#include "base/settings.h"
#include "ledger/ledger.h"
#include "ledger/thinned.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS_NS INT64_C(1000000)
#define UNKNOWN LEDGER_BYTES_UNKNOWN

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
enum { UNSHARE_TABLE = 2 /* CLOSE_RANGE_UNSHARE */ };

enum { STAY, GO }; /* values of `order` */
enum { PATIENCE_MS = 1000, MOST_CHUNKS = CPU_TIME_THREADS / 511 + 1 };

/* A thread of the ledger. The operating system's thread behind it may become another one. */
struct followed {
    int64_t tid;                                /* 0: not followed yet */
    int counters, state;                        /* descriptors of its files; -1: none */
    uint64_t core_ns, waiting_ns;               /* what the kernel has said last, */
    uint64_t core_before_ns, waiting_before_ns; /* and what to add to it */
    struct ledger_cpu_time sums;
};

static struct {
    bool has_thread, has_table;
    uint32_t order, gone;
    struct thinned log;
    const struct ledger_chunk *chunks[MOST_CHUNKS]; /* of struct ledger_thread */
    uint32_t chunk_count, chunks_seen;
    struct followed threads[CPU_TIME_THREADS];
    uint32_t next, tick;
    uint64_t random;
} cpu;

/* Without privileges, if the kernel or a container does not refuse it. */
static bool make_own_table(void)
{
    if (syscall(SYS_close_range, 0, UINT_MAX, UNSHARE_TABLE) == 0)
        return true;
    DIR *open_ones = unshare(CLONE_FILES) == 0 ? opendir("/proc/thread-self/fd") : NULL;
    if (!open_ones)
        return false;
    for (struct dirent *each; (each = readdir(open_ones));)
        if (each->d_name[0] != '.' && atoi(each->d_name) != dirfd(open_ones))
            close(atoi(each->d_name));
    closedir(open_ones);
    return true;
}

/* The threads of the ledger */

static void find_chunks(void)
{
    uint32_t count = __atomic_load_n(&the_ledger.header->chunk_count, __ATOMIC_ACQUIRE);
    for (; cpu.chunks_seen < count && cpu.chunk_count < MOST_CHUNKS; cpu.chunks_seen++) {
        const struct ledger_chunk *chunk = ledger_chunk_at(the_ledger.header, cpu.chunks_seen);
        if (chunk->kind == LEDGER_THREADS)
            cpu.chunks[cpu.chunk_count++] = chunk;
    }
}

/* NULL: there are fewer threads. */
static const struct ledger_thread *find_thread(uint32_t number)
{
    for (uint32_t i = 0; i < cpu.chunk_count && number < CPU_TIME_THREADS; i++) {
        uint32_t used = __atomic_load_n(&cpu.chunks[i]->used, __ATOMIC_ACQUIRE);
        if (number < used)
            return (const struct ledger_thread *)((const char *)cpu.chunks[i] +
                                                  LEDGER_CHUNK_HEADER_BYTES) +
                   number;
        number -= used;
    }
    return NULL;
}

/* Reading */

static int open_file(int64_t tid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%lld/%s", (long long)tid, name);
    return cpu.has_table ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

static bool read_file(int file, char *text, size_t bytes)
{
    ssize_t length = file >= 0 ? pread(file, text, bytes - 1, 0) : -1;
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* The clock of a thread of this process, by its number (clock_getcpuclockid(3), man 7 time). */
static bool read_clock(int64_t tid, uint64_t *core_ns)
{
    enum { PER_THREAD = 4, SCHEDULED = 2 };
    struct timespec now;
    if (syscall(SYS_clock_gettime, (clockid_t)(~tid << 3 | PER_THREAD | SCHEDULED), &now) != 0)
        return false;
    *core_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    return true;
}

/* False: the thread has ended. */
static bool read_counters(struct followed *thread)
{
    char text[80];
    unsigned long long core_ns, waiting_ns;
    if (thread->counters < 0) {
        thread->waiting_ns = UNKNOWN;
        return read_clock(thread->tid, &thread->core_ns);
    }
    if (!read_file(thread->counters, text, sizeof text) ||
        sscanf(text, "%llu %llu", &core_ns, &waiting_ns) != 2)
        return false;
    thread->core_ns = core_ns;
    thread->waiting_ns = waiting_ns;
    return true;
}

/* The letter behind the name, which may contain anything; 'R' where it is not known. */
static char read_state(const struct followed *thread)
{
    char text[128];
    const char *end = read_file(thread->state, text, sizeof text) ? strrchr(text, ')') : NULL;
    return end && end[1] == ' ' ? end[2] : 'R';
}

/* Time that the kernel has counted of the thread before now is not added. False: it has ended. */
static bool follow(struct followed *thread, int64_t tid)
{
    if (thread->tid) {
        close(thread->counters);
        close(thread->state);
    }
    thread->tid = tid;
    thread->counters = open_file(tid, "schedstat");
    thread->state = open_file(tid, "stat");
    if (!read_counters(thread))
        return false;
    thread->core_before_ns = thread->sums.core_ns - thread->core_ns;
    thread->waiting_before_ns = thread->sums.waiting_ns - thread->waiting_ns;
    return true;
}

static void count_state(struct ledger_cpu_time *sums, char state, bool is_inside)
{
    if (state == 'R')
        ++*(is_inside ? &sums->inside_ready : &sums->outside_ready);
    else if (state == 'D')
        ++*(is_inside ? &sums->inside_disk : &sums->outside_disk);
    else
        ++*(is_inside ? &sums->inside_asleep : &sums->outside_asleep);
}

static void read_thread(const struct ledger_thread *record, bool is_last)
{
    struct followed *thread = &cpu.threads[record->thread % CPU_TIME_THREADS];
    int64_t tid = __atomic_load_n(&record->tid, __ATOMIC_ACQUIRE);
    bool is_inside = __atomic_load_n(&record->doing, __ATOMIC_RELAXED) & LEDGER_DOING_INSIDE;
    if (!(thread->tid == tid ? read_counters(thread) : follow(thread, tid)))
        return;
    char state = read_state(thread);
    struct ledger_cpu_time *sums = &thread->sums;
    sums->at_ns = clock_monotonic_ns();
    sums->core_ns = thread->core_before_ns + thread->core_ns;
    if (thread->waiting_ns == UNKNOWN || sums->waiting_ns == UNKNOWN)
        sums->waiting_ns = UNKNOWN; /* and stays so */
    else
        sums->waiting_ns = thread->waiting_before_ns + thread->waiting_ns;
    count_state(sums, state, is_inside);
    sums->thread = (uint16_t)record->thread;
    sums->tick = cpu.tick;
    if (is_last || thinned_wants(&cpu.log, cpu.tick))
        thinned_add(&cpu.log, sums);
}

/* One thread after another; a tick is a round. */
static void read_next(void)
{
    find_chunks();
    const struct ledger_thread *record = find_thread(cpu.next++);
    if (!record) {
        cpu.next = 1;
        cpu.tick++;
        record = find_thread(0);
    }
    if (record)
        read_thread(record, false);
}

static void read_all(void)
{
    find_chunks();
    cpu.tick++;
    const struct ledger_thread *record;
    for (uint32_t number = 0; (record = find_thread(number)); number++)
        read_thread(record, true);
}

/* From a half of the period to one and a half (Knuth's linear congruential generator). */
static int64_t pause_ns(void)
{
    cpu.random = cpu.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return CPU_TIME_PERIOD_MS * MS_NS / 2 +
           (int64_t)((cpu.random >> 33) % (CPU_TIME_PERIOD_MS * MS_NS));
}

static void *keep(void *unused)
{
    prctl(PR_SET_NAME, "commprof-cpu");
    cpu.has_table = make_own_table();
    while (__atomic_load_n(&cpu.order, __ATOMIC_ACQUIRE) == STAY) {
        read_next();
        service_thread_wait_while(&cpu.order, STAY, clock_monotonic_ns() + pause_ns());
    }
    read_all();
    service_thread_wake(&cpu.gone, 1);
    return unused;
}

void cpu_time_begin(void)
{
    if (!settings.cpu_time)
        return;
    thinned_begin(&cpu.log, LEDGER_CPU_TIMES, CPU_TIME_MOST);
    cpu.random = (uint64_t)getpid();
    cpu.has_thread = service_thread_start(keep, NULL) == 0;
}

void cpu_time_end(void)
{
    if (!cpu.has_thread)
        return;
    service_thread_wake(&cpu.order, GO);
    service_thread_await(&cpu.gone, 0, clock_monotonic_ns() + PATIENCE_MS * MS_NS);
    cpu.has_thread = false;
}
