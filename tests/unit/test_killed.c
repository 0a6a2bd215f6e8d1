/* If a process is killed after any instruction of the profiler, its ledger counts every call that
 * had returned exactly once.
 *
 * The child accounts calls as a job would, and reports before and after each how much it has done.
 * The parent reads the ledger after each instruction of the child. */
#include "base/settings.h"
#include "fake_mpi.h"
#include "ledger_reader.h"
#include "record/account.h"
#include "record/call.h"
#include "record/recording.h"
#include "small_room.h"
#include "stepping.h"

enum { DURATION_NS = 1000, CELLS = 26 };

/* Sums that were accounted: cells, messages to peers, entries of the ledger. */
struct amounts {
    struct ledger_totals cells;
    struct reader_peers peers;
    uint64_t communicators, fact_bytes;
};

/* Amounts that the child has begun to account, and those that it has accounted. */
struct truth {
    struct amounts begun, done;
    bool resetting;
};

static struct truth *truth;
static struct amounts before;

static void begin(void)
{
    truth = unit_shared(sizeof *truth);
    fake_mpi_speak("mpich");
    CHECK_EQUAL(ledger_open("ledger", 1), 0);
    fake_world(4, 1);
}

/* The child */

static void add_message(struct amounts *amounts, uint64_t bytes)
{
    amounts->cells.count++;
    amounts->cells.total_ns += DURATION_NS;
    amounts->cells.volume_bytes += bytes;
    amounts->cells.count_up_to[reader_class(bytes)]++;
    amounts->peers.count++;
    amounts->peers.bytes += bytes;
    amounts->peers.time_ns += DURATION_NS;
}

/* A message on a communicator, accounted as a wrapper does it. */
static void message(uint64_t bytes, struct communicator *communicator, int32_t peer)
{
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Send, SITE_JOB);
    call_end(&call, MPI_SUCCESS);
    add_message(&truth->begun, bytes);
    account_count(call.thread, bytes,
                  cell_key(call.id, communicators_slot(communicator), LEDGER_CALL), DURATION_NS,
                  bytes);
    account_peer(call.thread, peer, call.id, LEDGER_SENT, bytes, DURATION_NS);
    add_message(&truth->done, bytes);
}

static void fact(const char *key, const char *value)
{
    truth->begun.fact_bytes += strlen(key) + strlen(value);
    ledger_fact(key, value);
    truth->done.fact_bytes = truth->begun.fact_bytes;
}

/* A reset clears all counters at once. */
static void reset(void)
{
    truth->resetting = true;
    truth->done.cells = (struct ledger_totals){0};
    truth->done.peers = (struct reader_peers){0};
    recording_reset();
    truth->begun.cells = truth->done.cells;
    truth->begun.peers = truth->done.peers;
    truth->resetting = false;
}

static struct communicator *world(void)
{
    return communicators_find(mpi_abi.comm_world);
}

static void first_calls(void)
{
    settings.start = true; /* else the fact unseen.off comes first */
    recording_begin();
    message(8, world(), 2);
    message(8, world(), 2);
    message(9, world(), 3);
    fact("host", "here");
}

static void new_communicators(void)
{
    first_calls();
    for (int i = 0; i < 3; i++) {
        mpi_handle handle = fake_comm((int[]){1, 2}, 2);
        message(8, communicators_created(handle, CALL_Comm_split, mpi_abi.comm_world, true, 0), 2);
        communicators_freed(communicators_freeing(handle));
    }
}

static void sizes_until_it_grows(void)
{
    first_calls();
    small_room(CELLS);
    for (uint64_t bytes = 10; bytes < 10 + 2 * CELLS; bytes++)
        message(bytes, world(), (int32_t)bytes);
}

/* With one chunk of cells: when it is full, half of them fold; later, half of the others fold into
 * cells that are already folded. */
static void sizes_until_it_folds_twice(void)
{
    first_calls();
    while (the_ledger.header->chunk_count < 8)
        ledger_chunk(LEDGER_FACTS, 1, 0);
    small_room(CELLS);
    for (uint64_t bytes = 10; bytes < 10 + 2 * CELLS; bytes++)
        message(3 * bytes, world(), 2);
}

static void calls_before_and_after_a_reset(void)
{
    first_calls();
    reset();
    message(8, world(), 2);
    message(10, world(), 2);
}

/* Checks after each instruction */

static bool lies_between(uint64_t least, uint64_t there, uint64_t most)
{
    return least <= there && there <= most;
}

static void check_cells(const struct ledger_totals *done, const struct ledger_totals *now,
                        const struct ledger_totals *begun)
{
    CHECK(lies_between(done->count, now->count, begun->count));
    CHECK(lies_between(done->total_ns, now->total_ns, begun->total_ns));
    CHECK(lies_between(done->volume_bytes, now->volume_bytes, begun->volume_bytes));
    for (unsigned i = 0; i < sizeof now->count_up_to / sizeof *now->count_up_to; i++)
        CHECK(lies_between(done->count_up_to[i], now->count_up_to[i], begun->count_up_to[i]));
    CHECK_EQUAL(now->unsound_cells, 0);
}

static void check_peers(const struct reader_peers *done, const struct reader_peers *now,
                        const struct reader_peers *begun)
{
    CHECK(lies_between(done->count, now->count, begun->count));
    CHECK(lies_between(done->bytes, now->bytes, begun->bytes));
    CHECK(lies_between(done->time_ns, now->time_ns, begun->time_ns));
}

/* An entry must be complete once it is in use. */
static void take_entry(struct amounts *amounts, const struct ledger_chunk *chunk, uint32_t *at)
{
    const struct ledger_communicator *communicator = reader_entry(chunk, *at);
    const struct ledger_fact *fact = reader_entry(chunk, *at);
    if (chunk->kind == LEDGER_COMMUNICATORS) {
        CHECK(communicator->identity && communicator->communicator && communicator->size > 0 &&
              *communicator->members);
        amounts->communicators++;
    } else if (chunk->kind == LEDGER_FACTS) {
        CHECK(fact->key_bytes > 0 && fact->value_bytes > 0);
        amounts->fact_bytes += fact->key_bytes + fact->value_bytes;
        *at += (uint32_t)(sizeof *fact + fact->key_bytes + fact->value_bytes + 7) / 8 * 8 - 1;
    }
}

static struct amounts amounts_now(void)
{
    struct amounts now = {reader_totals(the_ledger.header, 0), reader_peers(the_ledger.header, 0),
                          0, 0};
    for (uint32_t i = 0; i < the_ledger.header->chunk_count; i++) {
        const struct ledger_chunk *chunk = reader_chunk(the_ledger.header, i);
        for (uint32_t k = 0; k < chunk->used; k++)
            take_entry(&now, chunk, &k);
    }
    return now;
}

static void nothing_is_lost_or_doubled(pid_t child)
{
    (void)child;
    struct amounts now = amounts_now();
    check_cells(&truth->done.cells, &now.cells, &truth->begun.cells);
    check_peers(&truth->done.peers, &now.peers, &truth->begun.peers);
    CHECK(lies_between(truth->done.fact_bytes, now.fact_bytes, truth->begun.fact_bytes));
    CHECK(now.communicators >= before.communicators);
    if (truth->resetting)
        CHECK(now.cells.count == truth->begun.cells.count || now.cells.count == 0);
    else
        CHECK(now.cells.count >= before.cells.count);
    before = now;
}

TEST(a_kill_in_a_thread_s_first_calls_loses_and_doubles_nothing)
{
    begin();
    CHECK(stepping(PTRACE_SINGLESTEP, first_calls, nothing_is_lost_or_doubled) > 1000);
    CHECK_EQUAL(before.cells.count, 3);
}

TEST(a_kill_while_communicators_come_and_go_loses_and_doubles_nothing)
{
    begin();
    stepping(PTRACE_SINGLESTEP, new_communicators, nothing_is_lost_or_doubled);
    CHECK_EQUAL(before.communicators, 4);
}

SLOW(a_kill_while_the_tables_grow_loses_and_doubles_nothing)
{
    begin();
    stepping(PTRACE_SINGLESTEP, sizes_until_it_grows, nothing_is_lost_or_doubled);
    CHECK_EQUAL(before.cells.exact_cells, 2 + 2 * CELLS);
}

SLOW(a_kill_while_it_folds_loses_and_doubles_nothing)
{
    begin();
    stepping(PTRACE_SINGLESTEP, sizes_until_it_folds_twice, nothing_is_lost_or_doubled);
    CHECK(the_ledger.header->folded_cells > CELLS / 2);
    CHECK(before.cells.folded_cells > 0);
}

TEST(a_kill_in_a_reset_leaves_all_or_nothing)
{
    begin();
    stepping(PTRACE_SINGLESTEP, calls_before_and_after_a_reset, nothing_is_lost_or_doubled);
    CHECK_EQUAL(before.cells.count, 2);
    CHECK_EQUAL(before.peers.count, 2);
}
