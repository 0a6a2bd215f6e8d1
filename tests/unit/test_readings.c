/* readings.c with a fake back end, whose sensors say what the test sets. */
#include "gpu/readings.h"

#include "base/clock.h"
#include "base/settings.h"
#include "gpu/activity.h"
#include "ledger/ledger.h"
#include "ledger_reader.h"
#include "unit.h"

#include <pthread.h>
#include <sched.h>

#define MS_NS INT64_C(1000000)

static struct {
    bool has_sensors, is_reading, holds;
    unsigned searches, reads;
    struct gpu_reading says;
} fake = {.has_sensors = true};

static void device_facts(uint32_t device, struct gpu_device_facts *facts)
{
    snprintf(facts->uuid, sizeof facts->uuid, "GPU-%u", device);
}

static void *find_sensors(const char *uuid)
{
    fake.searches++;
    CHECK_TEXT(uuid, fake.searches == 1 ? "GPU-3" : "GPU-5");
    return fake.has_sensors ? &fake : NULL;
}

static void read_sensors(void *sensors, struct gpu_reading *reading)
{
    (void)sensors;
    __atomic_store_n(&fake.is_reading, true, __ATOMIC_RELEASE);
    while (__atomic_load_n(&fake.holds, __ATOMIC_ACQUIRE))
        sched_yield();
    fake.reads++;
    *reading = fake.says;
    __atomic_store_n(&fake.is_reading, false, __ATOMIC_RELEASE);
}

static const struct gpu_backend FAKE = {
    .device_facts = device_facts, .find_sensors = find_sensors, .read_sensors = read_sensors};

static const struct gpu_reading NOTHING = GPU_READING_NONE;
static int64_t now_ns;
static bool abandoned;

static bool is_abandoned(void)
{
    return abandoned;
}

static void use(uint32_t device)
{
    activity_take(&(struct gpu_event){
        .start_ns = 1, .end_ns = 2, .device = device, .kind = LEDGER_ACTIVITY_SET});
}

static void begin_with(size_t ledger_bytes)
{
    clock_begin(CLOCK_GETTIME);
    settings.gpu_collect_ms = 1000;
    CHECK_EQUAL(ledger_open("ledger", ledger_bytes), 0);
    fake.says = NOTHING;
    fake.says.clock_mhz = 1980;
    fake.says.memory_bytes = 80;
    activity_begin(&FAKE);
    readings_begin(&FAKE);
    now_ns = 1000 * MS_NS;
}

static void begin(void)
{
    begin_with(64 << 20);
    use(3);
}

/* Time passes until the next reading is due. */
static void take(unsigned readings)
{
    for (; readings > 0; readings--, now_ns += 1000 * MS_NS)
        readings_take(now_ns, is_abandoned);
}

struct found {
    unsigned live, least_tick, most_tick;
    struct ledger_reading last;
};

static struct found found(void)
{
    struct found all = {.least_tick = UINT32_MAX};
    const struct ledger_reading *entry;
    READER_EACH(entry, the_ledger.header, LEDGER_READINGS) {
        if (!entry->live)
            continue;
        all.live++;
        all.least_tick = entry->tick < all.least_tick ? entry->tick : all.least_tick;
        if (entry->tick >= all.most_tick) {
            all.most_tick = entry->tick;
            all.last = *entry;
        }
    }
    return all;
}

TEST(sensors_are_read_once_a_period_of_devices_in_use)
{
    begin_with(64 << 20);
    readings_take(now_ns, is_abandoned);
    CHECK_EQUAL(fake.searches, 0);
    use(3);
    readings_take(now_ns, is_abandoned);
    readings_take(now_ns + 999 * MS_NS, is_abandoned);
    CHECK_EQUAL(fake.reads, 1);
    use(5);
    readings_take(now_ns + 1000 * MS_NS, is_abandoned);
    CHECK_EQUAL(fake.reads, 3);
    CHECK_EQUAL(fake.searches, 2);
    CHECK_EQUAL(found().live, 3);
}

TEST(where_there_is_nothing_to_read_nothing_is_kept)
{
    begin();
    fake.says = NOTHING;
    take(3);
    CHECK_EQUAL(fake.reads, 3);
    fake.has_sensors = false;
    use(5);
    take(3);
    CHECK_EQUAL(fake.reads, 6);
    CHECK_EQUAL(fake.searches, 2);
    CHECK_EQUAL(found().live, 0);
}

/* A full table keeps every second tick, then every fourth: the first and the last stay near, and
 * rates are over longer spans. */
TEST(a_full_table_leaves_out_every_second_reading)
{
    begin();
    take(READINGS_MOST);
    CHECK_EQUAL(found().live, READINGS_MOST);
    take(1);
    CHECK_EQUAL(found().live, READINGS_MOST / 2 + 1);
    take(READINGS_MOST - 2);
    CHECK_EQUAL(found().live, READINGS_MOST - 1 + 1);
    take(10 * READINGS_MOST);
    struct found all = found();
    CHECK(all.live > READINGS_MOST / 2 && all.live <= READINGS_MOST);
    CHECK(all.least_tick <= 16 && all.most_tick > 11 * READINGS_MOST - 16);
    CHECK_EQUAL(the_ledger.header->chunk_count,
                2 + 4 + 1); /* device, stream, activities; readings */
}

TEST(a_ledger_without_room_has_no_readings)
{
    begin();
    while (ledger_chunk(LEDGER_KERNELS, 1, 0))
        continue;
    take(3);
    CHECK(fake.reads > 0);
    CHECK_EQUAL(found().live, 0);
}

TEST(nothing_is_written_after_the_thread_was_abandoned)
{
    begin();
    take(1);
    abandoned = true;
    take(1);
    CHECK_EQUAL(fake.reads, 2);
    CHECK_EQUAL(found().live, 1);
}

/* Forking */

static void *read_once(void *unused)
{
    readings_take(now_ns, is_abandoned);
    return unused;
}

static void *let_go_on(void *unused)
{
    for (int i = 0; i < 20; i++) /* the fork may or may not have begun to wait, for 1 s at most */
        sched_yield();
    __atomic_store_n(&fake.holds, false, __ATOMIC_RELEASE);
    return unused;
}

TEST(a_fork_waits_until_a_reading_is_over)
{
    pthread_t reader, other;
    begin();
    fake.holds = true;
    pthread_create(&reader, NULL, read_once, NULL);
    while (!__atomic_load_n(&fake.is_reading, __ATOMIC_ACQUIRE))
        sched_yield();
    pthread_create(&other, NULL, let_go_on, NULL);
    pid_t child = fork();
    if (child == 0)
        kill(getpid(), fake.is_reading
                           ? SIGABRT
                           : SIGKILL); /* a sanitizer would miss the threads at an exit */
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    pthread_join(reader, NULL);
    pthread_join(other, NULL);
    now_ns += 1000 * MS_NS;
    take(1);
    CHECK_EQUAL(fake.reads, 2); /* after the fork sensors are read again */
}
