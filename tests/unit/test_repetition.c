#include "gpu/repetition.h"

#include "base/clock.h"
#include "ledger/cells.h"
#include "ledger/ledger.h"
#include "record/call_table.h"
#include "unit.h"

#define S INT64_C(1000000000)

static struct repetition repetition;
static int64_t now_ns = 2000 * S;

/* A look after so many more calls. */
static bool look(uint64_t *calls, uint64_t more)
{
    *calls += more;
    now_ns += REPETITION_LOOK_S * S;
    CHECK(repetition_is_due(&repetition, now_ns));
    bool repeats = repetition_look(&repetition, now_ns, *calls);
    CHECK(!repetition_is_due(&repetition, now_ns + REPETITION_LOOK_S * S - 1));
    return repeats;
}

static void begin(void)
{
    repetition = (struct repetition){.number = 0};
}

TEST(long_steps_repeat_over_longer_spans)
{
    uint64_t calls = 0;
    begin();
    for (unsigned i = 0; i < 8; i++)
        CHECK(
            !look(&calls, i % 2 ? 0 : 50)); /* a step of ten seconds that communicates at its end */
    CHECK(look(&calls, 50));
}

static void count(struct cells *cells, unsigned call, enum ledger_measure measure)
{
    struct ledger_cell *cell = cells_find(cells, 64, cell_key(call, 1, measure));
    CHECK(cell && cells_count(cells, cell, 100, 64, 0));
}

TEST(calls_that_move_data_are_counted_except_those_of_one_to_all)
{
    struct cells cells;
    struct ledger_thread record = {.thread = 0};
    CHECK_EQUAL(ledger_open("ledger", 8 << 20), 0);
    CHECK(cells_create(&cells, &record));
    count(&cells, CALL_Allreduce, LEDGER_CALL);
    count(&cells, CALL_ncclAllReduce, LEDGER_CALL);
    count(&cells, CALL_ncclAllReduce, LEDGER_CALL);
    CHECK_EQUAL(repetition_calls(), 3);
    count(&cells, CALL_Bcast, LEDGER_CALL);
    count(&cells, CALL_ncclBroadcast, LEDGER_CALL);
    count(&cells, CALL_Barrier, LEDGER_CALL);
    count(&cells, CALL_Waitall, LEDGER_CALL);
    count(&cells, CALL_Iallreduce, LEDGER_COMPLETION);
    count(&cells, CALL_ncclAllReduce, LEDGER_DEVICE_TIME);
    CHECK_EQUAL(repetition_calls(), 3);
    cells_destroy(&cells);
}
