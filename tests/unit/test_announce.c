#include "record/account.h"
#include "record/announce.h"
#include "record/recording.h"

#include "fake_mpi.h"
#include "ledger/ledger.h"
#include "ledger_reader.h"
#include "unit.h"

/* Eight ranks, this one is rank 3. A communicator of ranks 2, 3 and 5 is counted on from the start,
 * so that MPI need not be asked. */
enum {
    HERE = 3,
    BYTES_4 = 0x4c000405 /* MPICH: MPI_INT */,
    UNKNOWN_TYPE = 0xbad000,
    UNKNOWN_COMM = 0xbad004
};

static const int MEMBERS[] = {2, 3, 5};
static mpi_handle few;
static struct communicator *communicator;

static void begin(void)
{
    fake_mpi_speak("mpich");
    CHECK_EQUAL(ledger_open("ledger", 4 << 20), 0);
    fake_world(8, HERE);
    few = fake_comm(MEMBERS, 3);
    communicator = communicators_find(few);
    CHECK(requests_begin(false));
    recording_begin();
    recording_switch(true);
}

static struct ledger_thread *record(void)
{
    return this_thread->cells.record;
}

static unsigned doing_call(void)
{
    return (uint16_t)record()->doing;
}

static unsigned doing_slot(void)
{
    return (uint16_t)(record()->doing >> LEDGER_DOING_SLOT_BIT);
}

static unsigned wait_array_call(void)
{
    return (unsigned)(record()->doing >> LEDGER_DOING_REQUEST_CALL_BIT);
}

static bool is_inside(void)
{
    return record()->doing & LEDGER_DOING_INSIDE;
}

TEST(a_message_is_announced_with_size_world_rank_and_tag)
{
    struct call call UNTIL_RETURN;
    begin();
    call_enter(&call, CALL_Send, SITE_JOB);
    announce_message(&call, few, announce_bytes(5, BYTES_4), 2, 77);
    call_start(&call);
    CHECK_EQUAL(doing_call(), CALL_Send);
    CHECK_EQUAL(doing_slot(), communicator->slot);
    CHECK(is_inside());
    CHECK_EQUAL(record()->since_ticks, call.start);
    CHECK_EQUAL(record()->bytes, 20);
    CHECK_EQUAL(record()->peer, 5);
    CHECK_EQUAL(record()->tag, 77);
    call_end(&call, MPI_SUCCESS);
    CHECK_EQUAL(doing_call(), CALL_Send);
    CHECK(!is_inside());
    CHECK_EQUAL(record()->since_ticks, call.end);
}

TEST(wildcards_and_missing_peers_are_distinguished)
{
    struct call call UNTIL_RETURN;
    begin();
    call_enter(&call, CALL_Recv, SITE_JOB);
    announce_message(&call, few, 0, mpi_abi.any_source, 0);
    CHECK_EQUAL(record()->peer, LEDGER_PEER_ANY);
    announce_message(&call, few, 0, mpi_abi.proc_null, 0);
    CHECK_EQUAL(record()->peer, LEDGER_NO_RANK);
    announce_message(&call, few, 0, 3, 0); /* no such rank */
    CHECK_EQUAL(record()->peer, LEDGER_NO_RANK);
    call_start(&call);
    call_end(&call, MPI_SUCCESS);
}

TEST(mpi_is_asked_for_nothing)
{
    struct call call UNTIL_RETURN;
    begin();
    unsigned asked = fake_questions;
    call_enter(&call, CALL_Allreduce, SITE_JOB);
    announce_collective(&call, few, announce_bytes(1, UNKNOWN_TYPE));
    CHECK_EQUAL(record()->bytes, LEDGER_BYTES_UNKNOWN);
    call_start(&call);
    call_end(&call, MPI_SUCCESS);
    call_return(&call);
    call_enter(&call, CALL_Allreduce, SITE_JOB);
    announce_collective(&call, UNKNOWN_COMM, announce_bytes(1, BYTES_4));
    call_start(&call);
    CHECK_EQUAL(doing_slot(), 0);
    CHECK_EQUAL(announce_bytes(-1, UNKNOWN_TYPE), 0);
    call_end(&call, 16);
    CHECK_EQUAL(fake_questions, asked);
}

TEST(collectives_on_a_communicator_are_numbered_and_the_last_sixteen_retained)
{
    struct call call UNTIL_RETURN;
    begin();
    for (int i = 1; i <= 20; i++) {
        call_enter(&call, CALL_Bcast, SITE_JOB);
        announce_rooted(&call, few, announce_bytes(i, BYTES_4), i % 3);
        call_start(&call);
        call_end(&call, MPI_SUCCESS);
        call_return(&call);
    }
    const struct ledger_communicator *entry = communicator->entry;
    CHECK_EQUAL(entry->collectives, 20);
    for (unsigned i = 5; i <= 20; i++) {
        const struct ledger_collective *collective =
            &entry->recent[(i - 1) % LEDGER_RECENT_COLLECTIVES];
        CHECK_EQUAL(collective->call, CALL_Bcast);
        CHECK_EQUAL(collective->bytes, 4 * i);
        CHECK_EQUAL(collective->root, (int)(i % 3));
    }
}

TEST(blocks_are_multiplied_by_the_group_s_size)
{
    struct call call UNTIL_RETURN;
    begin();
    call_enter(&call, CALL_Reduce_scatter_block, SITE_JOB);
    announce_blocks(&call, few, 10, BYTES_4);
    CHECK_EQUAL(record()->bytes, 120);
    CHECK_EQUAL(communicator->entry->collectives, 1);
    call_start(&call);
    call_end(&call, MPI_SUCCESS);
}

TEST(a_wait_says_what_it_waits_for)
{
    struct call call UNTIL_RETURN;
    uintptr_t request = 0x1234;
    begin();
    call_enter(&call, CALL_Irecv, SITE_JOB);
    announce_message(&call, few, announce_bytes(7, BYTES_4), 0, 1);
    call_start(&call);
    call_end(&call, MPI_SUCCESS);
    struct traffic posted = traffic_receive(&call, 7, BYTES_4, 0, 1, few);
    account_started(&call, &posted, &request, REQUEST_RECEIVE);

    call_return(&call);
    call_enter(&call, CALL_Wait, SITE_JOB);
    announce_wait(&call, mpi_handle_load(&request, 0));
    call_start(&call);
    CHECK_EQUAL(doing_call(), CALL_Wait);
    CHECK_EQUAL(wait_array_call(), CALL_Irecv);
    CHECK_EQUAL(doing_slot(), communicator->slot);
    CHECK_EQUAL(record()->peer, 2);
    CHECK_EQUAL(record()->bytes, 28);
    CHECK_EQUAL(record()->tag, LEDGER_NO_TAG);
    call_end(&call, MPI_SUCCESS);

    call_return(&call);
    call_enter(&call, CALL_Wait, SITE_JOB);
    announce_wait(&call, 0x9999); /* unknown */
    call_start(&call);
    CHECK_EQUAL(wait_array_call(), 0);
    CHECK_EQUAL(doing_slot(), 0);
    call_end(&call, MPI_SUCCESS);
}

TEST(a_communicator_freed_during_a_call_on_it_is_not_asked_about)
{
    struct call call UNTIL_RETURN;
    begin();
    call_enter(&call, CALL_Recv, SITE_JOB);
    announce_message(&call, few, 4, 0, 0);
    call_start(&call);
    communicators_freed(communicators_freeing(few)); /* another thread's MPI_Comm_free */
    call_end(&call, MPI_SUCCESS);
    unsigned asked = fake_questions;
    CHECK(!traffic_receive(&call, 1, BYTES_4, 0, 0, few).communicator);
    CHECK_EQUAL(fake_questions, asked);
}

TEST(the_time_that_is_counted_in_stops_while_counting_is_switched_off)
{
    begin();
    struct ledger_header *header = the_ledger.header;
    CHECK(header->counting_since_ns > 0);
    recording_switch(false);
    CHECK_EQUAL(header->counting_since_ns, 0);
    CHECK(header->counted_ns > 0);
    int64_t counted_ns = header->counted_ns = 1000000000;
    recording_switch(false);
    CHECK_EQUAL(header->counted_ns, counted_ns);
    recording_switch(true);
    CHECK(header->counting_since_ns > 0);
    CHECK_EQUAL(header->counted_ns, counted_ns);
    recording_switch(false);
    CHECK(header->counted_ns > counted_ns);
    recording_switch(true);
    recording_reset();
    CHECK_EQUAL(header->counted_ns, 0);
    CHECK(header->counting_since_ns > 0);
}
