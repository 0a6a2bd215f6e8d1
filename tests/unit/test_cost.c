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
