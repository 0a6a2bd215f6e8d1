#include "wrappers/cost.h"

#include "fake_mpi.h"
#include "ledger/ledger.h"
#include "record/call.h"
#include "record/recording.h"

static int no_group(mpi_handle comm, void *group)
{
    (void)comm, (void)group;
    return 16;
}

static void recording_under(const char *stub)
{
    fake_mpi_speak(stub);
    CHECK_EQUAL(ledger_open("ledger", 64 << 20), 0);
    recording_begin();
    recording_switch(true);
}

TEST(the_cost_of_a_call_is_measured)
{
    recording_under("mpich");
    fake_world(4, 1);
    CHECK(cost_per_call_ps() > 0);
}

TEST(a_missing_world_group_does_not_hang_it)
{
    recording_under("mpich");
    fake_describe_world(4, 1);
    mpi_query.Comm_group = no_group;
    CHECK(cost_per_call_ps() > 0);
}

TEST(an_unknown_abi_does_not_hang_it)
{
    recording_under("unknown");
    CHECK(cost_per_call_ps() > 0);
}

TEST(a_world_that_the_job_has_not_used_stays_out_of_the_ledger)
{
    recording_under("mpich");
    fake_world(4, 1);
    cost_per_call_ps();
    CHECK_EQUAL(communicators_find(mpi_abi.comm_world)->slot, 0);
    for (uint32_t i = 0; i < the_ledger.header->chunk_count; i++)
        CHECK(ledger_chunk_at(the_ledger.header, i)->kind != LEDGER_COMMUNICATORS);
}

TEST(no_collective_is_counted_on_a_world_in_use)
{
    recording_under("mpich");
    fake_world(4, 1);
    struct communicator *world = communicators_find(mpi_abi.comm_world);
    unsigned slot = communicators_slot(world);
    struct ledger_communicator *entry = world->entry;
    cost_per_call_ps();
    CHECK_EQUAL(world->slot, slot);
    CHECK(world->entry == entry);
    CHECK_EQUAL(entry->collectives, 0);
}

TEST(its_samples_stay_out_of_the_log)
{
    recording_under("mpich");
    samples_begin(1 << 20);
    fake_world(4, 1);
    CHECK(cost_per_call_ps() > 0);
    for (uint32_t i = 0; i < the_ledger.header->chunk_count; i++)
        CHECK(ledger_chunk_at(the_ledger.header, i)->kind != LEDGER_SAMPLES);
}
