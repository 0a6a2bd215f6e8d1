/* The vendor's library may hold a lock of its own while it is read, which a child forked meanwhile
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
#include "ledger/thinned.h"

#include <pthread.h>
#include <string.h>

#define MS_NS INT64_C(1000000)
enum { FORK_WAITS_MS = 1000 };

static struct {
    const struct gpu_backend *backend;
    void *sensors[ACTIVITY_MOST_DEVICES + 1]; /* by slot; NULL: none */
    unsigned devices;                         /* whose sensors were looked for */
    int64_t due_ns;
    uint32_t tick;
    struct thinned log;
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
    thinned_begin(&readings.log, LEDGER_READINGS, READINGS_MOST);
    if (backend->read_sensors && !waits_with_forks)
        waits_with_forks = pthread_atfork(before_fork, after_fork, NULL) == 0;
}

/* Reading */

static void keep(struct ledger_device *device, const struct gpu_reading *reading, int64_t at_ns)
{
    if (reading->memory_bytes)
        device->memory_bytes = reading->memory_bytes;
    struct ledger_reading entry = {
        .at_ns = at_ns,
        .nvlink_sent_bytes = reading->nvlink_sent_bytes,
        .nvlink_received_bytes = reading->nvlink_received_bytes,
        .pcie_sent_bytes = reading->pcie_sent_bytes,
        .pcie_received_bytes = reading->pcie_received_bytes,
        .memory_used_bytes = reading->memory_used_bytes,
        .device = device->device,
        .clock_mhz = reading->clock_mhz,
        .tick = readings.tick,
        .limits = (uint16_t)reading->limits,
    };
    thinned_add(&readings.log, &entry);
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
    if (!thinned_wants(&readings.log, ++readings.tick))
        return;
    __atomic_store_n(&is_reading, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&forks, __ATOMIC_SEQ_CST))
        read_all(is_abandoned);
    service_thread_wake(&is_reading, 0);
}
