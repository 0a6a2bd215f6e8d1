#include "record/account.h"
#include "record/memory_kind.h"
#include "record/recording.h"

#include "fake_mpi.h"
#include "ledger/ledger.h"
#include "record/announce.h"
#include "record/traffic.h"

/* A driver that derives an address's memory kind from its upper bits, unless the test sets another;
 * it does not know host memory. */
enum { PAGE = 4096, CHECKED = 64 };
static char *const HOST = (char *)0x1000000000, *const DEVICE = (char *)0x2000000000,
                   *const MANAGED = (char *)0x3000000000, *const PINNED = (char *)0x4000000000;
static int all_is = -1; /* enum ledger_memory_kind; -1: by the address */
static uint64_t asked;

static int double_memory_kind(const void *address)
{
    static const int KINDS[] = {-1, -1, LEDGER_DEVICE, LEDGER_MANAGED, LEDGER_PINNED};
    __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
    return all_is >= 0 ? all_is : KINDS[(uintptr_t)address >> 36];
}

static void begin(void)
{
    fake_mpi_speak("open_mpi");
    clock_begin(CLOCK_GETTIME); /* a tick is a nanosecond */
    CHECK_EQUAL(ledger_open("ledger", 4 << 20), 0);
    fake_world(4, 1);
    memory_kind_ask = double_memory_kind;
}

/* Enough time to check every answer again. */
static void let_answers_get_old(void)
{
    the_clock.scale =
        UINT64_MAX >> 1; /* from now on a tick is half a second, so all answers are old */
}

static void find_times(const void *address, int times, unsigned kind)
{
    for (int i = 0; i < times; i++)
        CHECK_EQUAL(memory_kind_find(address), kind);
}

TEST(one_hit_in_sixty_four_is_checked)
{
    begin();
    find_times(DEVICE, 1 + 10 * CHECKED, LEDGER_DEVICE);
    CHECK_EQUAL(asked, 1 + 10);
    CHECK_EQUAL(the_ledger.header->gpu_memory_kind_queries, 1 + 10);
    CHECK_EQUAL(the_ledger.header->gpu_memory_kind_changes, 0);
}

TEST(memory_that_has_become_another_kind_is_seen_at_the_next_check)
{
    begin();
    find_times(DEVICE, 1, LEDGER_DEVICE);
    find_times(DEVICE + PAGE, 1, LEDGER_DEVICE);
    all_is = LEDGER_MANAGED;
    find_times(DEVICE, CHECKED - 2, LEDGER_DEVICE); /* not yet */
    find_times(DEVICE, 1, LEDGER_MANAGED);
    CHECK_EQUAL(the_ledger.header->gpu_memory_kind_changes, 1);
    find_times(DEVICE + PAGE, 1, LEDGER_MANAGED); /* the old region is gone */
    all_is = LEDGER_DEVICE;
    let_answers_get_old();
    find_times(DEVICE, 1, LEDGER_DEVICE);
    find_times(DEVICE + 2 * PAGE, 1, LEDGER_DEVICE);
    CHECK_EQUAL(the_ledger.header->gpu_memory_kind_changes, 2);
}

/* The buffers of a call that are looked up. */

enum {
    ROOT_HERE = 1,
    ROOT_ELSEWHERE = 2,
    DEVICE_TO_PINNED = LEDGER_DEVICE | LEDGER_PINNED << 4,
    GARBAGE = 5
};
#define BOTH(KIND) ((KIND) | (KIND) << 4)

static struct traffic moved(uint64_t bytes, mpi_handle comm)
{
    struct traffic traffic = traffic_on(communicators_find(comm));
    traffic.bytes = bytes;
    return traffic;
}

static struct traffic in_world(uint64_t bytes)
{
    return moved(bytes, mpi_abi.comm_world);
}

TEST(a_call_that_moves_nothing_asks_nothing)
{
    begin();
    CHECK_EQUAL(traffic_at(DEVICE, in_world(0)).memory_kind, LEDGER_HOST);
    CHECK_EQUAL(traffic_between(DEVICE, DEVICE, in_world(0)).memory_kind, LEDGER_HOST);
    CHECK_EQUAL(traffic_scattered(DEVICE, DEVICE, ROOT_HERE, in_world(0)).memory_kind, LEDGER_HOST);
    CHECK_EQUAL(traffic_gathered(DEVICE, DEVICE, ROOT_ELSEWHERE, in_world(0)).memory_kind,
                LEDGER_HOST);
    CHECK_EQUAL(traffic_exchanged(DEVICE, DEVICE, traffic_nowhere()).memory_kind, LEDGER_HOST);
    CHECK_EQUAL(asked, 0);
}

TEST(both_buffers_are_distinguished)
{
    begin();
    CHECK_EQUAL(traffic_between(DEVICE, PINNED, in_world(8)).memory_kind, DEVICE_TO_PINNED);
    CHECK_EQUAL(traffic_exchanged(DEVICE, PINNED, in_world(8)).memory_kind, DEVICE_TO_PINNED);
    CHECK_EQUAL(traffic_between(HOST, DEVICE, in_world(8)).memory_kind,
                LEDGER_HOST | LEDGER_DEVICE << 4);
}

TEST(what_is_scattered_is_sent_by_the_root_alone)
{
    begin();
    CHECK_EQUAL(traffic_scattered(DEVICE, PINNED, ROOT_HERE, in_world(8)).memory_kind,
                DEVICE_TO_PINNED);
    CHECK_EQUAL(traffic_scattered(DEVICE, mpi_abi.in_place, ROOT_HERE, in_world(8)).memory_kind,
                BOTH(LEDGER_DEVICE));
    CHECK_EQUAL(traffic_scattered((void *)GARBAGE, PINNED, ROOT_ELSEWHERE, in_world(8)).memory_kind,
                BOTH(LEDGER_PINNED));
    CHECK_EQUAL(asked, 2);
}

TEST(the_root_of_an_inter_communicator_has_one_buffer)
{
    static const int US[] = {0, 1}, THEM[] = {2, 3};
    begin();
    mpi_handle inter = fake_inter(US, 2, THEM, 2);
    CHECK_EQUAL(
        traffic_gathered((void *)GARBAGE, PINNED, mpi_abi.root, moved(8, inter)).memory_kind,
        BOTH(LEDGER_PINNED));
    CHECK_EQUAL(
        traffic_gathered((void *)GARBAGE, PINNED, mpi_abi.root, moved(0, inter)).memory_kind,
        BOTH(LEDGER_PINNED)); /* Gatherv */
    CHECK_EQUAL(traffic_gathered(DEVICE, (void *)GARBAGE, 0, moved(8, inter)).memory_kind,
                BOTH(LEDGER_DEVICE));
    CHECK_EQUAL(
        traffic_scattered(DEVICE, (void *)GARBAGE, mpi_abi.root, moved(8, inter)).memory_kind,
        BOTH(LEDGER_DEVICE));
    CHECK_EQUAL(traffic_scattered((void *)GARBAGE, PINNED, 0, moved(8, inter)).memory_kind,
                BOTH(LEDGER_PINNED));
    CHECK_EQUAL(asked, 2);
    CHECK_EQUAL(traffic_gathered(DEVICE, PINNED, mpi_abi.proc_null, moved(0, inter)).memory_kind,
                LEDGER_HOST);
    CHECK_EQUAL(asked, 2);
}

/* From the call to its cell. */

enum { REQUEST = 0x2000 };
static const uintptr_t request = REQUEST;

static void begin_counting(void)
{
    begin();
    CHECK(requests_begin(false));
    recording_begin();
    recording_switch(true);
}

static struct call called(enum call_id id)
{
    struct call call UNTIL_RETURN;
    call_begin(&call, id, SITE_JOB);
    call_end(&call, MPI_SUCCESS);
    return call;
}

static uint64_t counted(enum call_id id, enum ledger_measure measure, unsigned kind)
{
    unsigned slot = communicators_slot(communicators_find(mpi_abi.comm_world));
    uint64_t key = cell_key(id, slot, measure) | cell_key_memory_kind((uint8_t)kind);
    for (uint32_t i = 0; i < this_thread->cells.count; i++)
        if (this_thread->cells.all[i]->live && cell_key_of(this_thread->cells.all[i]) == key) {
            CHECK_EQUAL(this_thread->cells.all[i]->memory_kind, kind);
            return cell_count(this_thread->cells.all[i]);
        }
    return 0;
}

TEST(each_completion_of_a_persistent_request_has_its_memory_kind)
{
    begin_counting();
    struct call init = called(CALL_Send_init);
    struct traffic prepared = traffic_at(MANAGED, in_world(8));
    account_prepared(&init, &prepared, &request, 0);
    for (int i = 0; i < 3; i++) {
        struct call start = called(CALL_Start);
        account_restart(&start, REQUEST);
        struct call wait = called(CALL_Wait);
        account_completed(&wait, REQUEST, NULL, 0);
    }
    CHECK_EQUAL(counted(CALL_Send_init, LEDGER_CALL, BOTH(LEDGER_MANAGED)), 1);
    CHECK_EQUAL(counted(CALL_Send_init, LEDGER_COMPLETION, BOTH(LEDGER_MANAGED)), 3);
    CHECK_EQUAL(asked, 1);
}
