/* The table holds the readings of every period-th tick. When it is full, the period doubles;
 * entries of other ticks are free then.
 *
 * The vendor's library may hold a lock of its own while it is read, which a child forked meanwhile
 * would find locked for good. So a fork waits, a bounded time, until the reading is over:
 *
 *     the GPU thread    is_reading = 1; reads if forks = 0; is_reading = 0
 *     a thread forking  forks + 1; waits while is_reading; forks; forks - 1
 *
 * Each stores its own word before it reads the other's, so at least one of them sees the other's
 * store. */
#include "readings.h"

#include "activity.h"
#include "base/clock.h"
#include "base/service_thread.h"
#include "base/settings.h"
#include "ledger/ledger.h"

#include <pthread.h>
#include <string.h>

#define MS_NS INT64_C(1000000)
enum { FORK_WAITS_MS = 1000 };

static struct {
    const struct gpu_backend *backend;
    void *sensors[ACTIVITY_MOST_DEVICES + 1]; /* by slot; NULL: none */
    unsigned devices;                         /* whose sensors were looked for */
    int64_t due_ns;
    uint32_t tick, period; /* now; and of how many ticks one is read */
    struct ledger_reading *entries[READINGS_MOST];
    unsigned count, most, next; /* entries in the ledger; where a free one is looked for */
} readings;

static uint32_t is_reading, forks;

static void before_fork(void)
{
    int64_t until_ns = clock_monotonic_ns() + FORK_WAITS_MS * MS_NS;
    __atomic_add_fetch(&forks, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&is_reading, __ATOMIC_SEQ_CST) && clock_monotonic_ns() < until_ns)
        service_thread_wait_while(&is_reading, 1, until_ns);
}

static void after_fork(void)
{
    __atomic_sub_fetch(&forks, 1, __ATOMIC_SEQ_CST);
}

void readings_begin(const struct gpu_backend *backend)
{
    static bool waits_with_forks;
    memset(&readings, 0, sizeof readings);
    readings.backend = backend;
    readings.period = 1;
    readings.most = READINGS_MOST;
    if (backend->read_sensors && !waits_with_forks)
        waits_with_forks = pthread_atfork(before_fork, after_fork, NULL) == 0;
}

/* Room for readings */

static bool take_chunk(void)
{
    uint32_t capacity = ledger_chunk_capacity(sizeof(struct ledger_reading));
    bool fits = readings.count + capacity <= readings.most;
    struct ledger_chunk *chunk =
        fits ? ledger_chunk(LEDGER_READINGS, sizeof(struct ledger_reading), 0) : NULL;
    if (!chunk) {
        readings.most = readings.count;
        return false;
    }
    for (uint32_t i = 0; i < capacity; i++)
        readings.entries[readings.count++] = ledger_entry(chunk, i);
    __atomic_store_n(&chunk->used, capacity, __ATOMIC_RELEASE);
    return true;
}

static void thin(void)
{
    readings.period *= 2;
    readings.next = 0;
    for (unsigned i = 0; i < readings.count; i++)
        if (readings.entries[i]->tick % readings.period)
            __atomic_store_n(&readings.entries[i]->live, 0, __ATOMIC_RELEASE);
}

/* NULL: the table is full. */
static struct ledger_reading *find_free(void)
{
    for (; readings.next < readings.count || take_chunk(); readings.next++)
        if (!readings.entries[readings.next]->live)
            return readings.entries[readings.next++];
    return NULL;
}

/* Reading */

static void keep(struct ledger_device *device, const struct gpu_reading *reading, int64_t at_ns)
{
    struct ledger_reading *entry = find_free();
    if (!entry)
        thin();
    if (!entry && !(entry = find_free()))
        return;
    if (reading->memory_bytes)
        device->memory_bytes = reading->memory_bytes;
    memset(entry, 0, sizeof *entry);
    entry->at_ns = at_ns;
    entry->nvlink_sent_bytes = reading->nvlink_sent_bytes;
    entry->nvlink_received_bytes = reading->nvlink_received_bytes;
    entry->pcie_sent_bytes = reading->pcie_sent_bytes;
    entry->pcie_received_bytes = reading->pcie_received_bytes;
    entry->memory_used_bytes = reading->memory_used_bytes;
    entry->device = device->device;
    entry->clock_mhz = reading->clock_mhz;
    entry->tick = readings.tick;
    entry->limits = (uint16_t)reading->limits;
    __atomic_store_n(&entry->live, 1, __ATOMIC_RELEASE);
}

static bool says_something(const struct gpu_reading *reading)
{
    static const struct gpu_reading NOTHING = GPU_READING_NONE;
    return memcmp(reading, &NOTHING, sizeof NOTHING) != 0;
}

static void find_sensors(void)
{
    for (struct ledger_device *device; (device = activity_device(readings.devices + 1));
         readings.devices++)
        readings.sensors[device->device] = readings.backend->find_sensors(device->uuid);
}

static void read_all(bool (*is_abandoned)(void))
{
    find_sensors();
    for (unsigned slot = 1; slot <= readings.devices; slot++) {
        struct gpu_reading reading = GPU_READING_NONE;
        if (readings.sensors[slot])
            readings.backend->read_sensors(readings.sensors[slot], &reading);
        if (!is_abandoned() && says_something(&reading))
            keep(activity_device(slot), &reading, clock_monotonic_ns());
    }
}

void readings_take(int64_t now_ns, bool (*is_abandoned)(void))
{
    if (!readings.backend->read_sensors || now_ns < readings.due_ns || !activity_device(1))
        return;
    readings.due_ns = now_ns + (int64_t)settings.gpu_collect_ms * MS_NS;
    if (++readings.tick % readings.period)
        return;
    __atomic_store_n(&is_reading, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&forks, __ATOMIC_SEQ_CST))
        read_all(is_abandoned);
    service_thread_wake(&is_reading, 0);
}
