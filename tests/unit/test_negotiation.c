#include "record/negotiation.h"
#include "record/account.h"
#include "record/announce.h"
#include "record/recording.h"
#include "record/signatures.h"

#include "tensor_lists.h"
#include "fake_mpi.h"
#include "ledger/ledger.h"
#include "ledger_reader.h"
#include "unit.h"

#include <sys/mman.h>

/* Rounds of two ranks, this one is rank 0: what it gives, and what comes back. */
enum {
    BYTES_8 = 0x4c000809 /* MPICH: MPI_LONG_LONG */,
    BAND = 0x58000006,
    STATUS_BITS = 7,
    MOST = 8,
    LONGEST = 2,
};

struct exchange {
    uint64_t given, came; /* tensors, as bits */
};

static const struct row {
    const char *name;
    struct exchange exchanges[MOST];
    unsigned number;
    uint64_t rounds, ahead, idle, disbelieved, agreed, steps;
} ROWS[] = {
    {"agreed at once", {{3, 3}, {0, 0}, {3, 3}, {0, 0}}, 4, 4, 0, 2, 0, 4, 2},
    {"waits for others", {{3, 0}, {3, 1}, {2, 2}, {0, 0}}, 4, 4, 2, 1, 0, 2, 0},
    {"fused in two", {{1, 1}, {2, 2}, {1, 1}, {2, 2}, {0, 0}}, 5, 5, 0, 1, 0, 4, 2},
    {"the next step early", {{3, 1}, {3, 2}, {1, 1}, {2, 2}, {0, 0}}, 5, 5, 2, 1, 0, 4, 2},
    {"a metric between steps", {{3, 3}, {3, 3}, {4, 4}, {3, 3}, {0, 0}}, 5, 5, 0, 1, 0, 7, 3},
    {"taken back", {{3, 0}, {0, 0}, {3, 3}, {0, 0}}, 4, 4, 1, 2, 0, 2, 0},
    {"more came back than was given", {{1, 3}, {1, 1}, {1, 1}, {0, 0}}, 4, 3, 0, 1, 1, 2, 2},
};

static mpi_handle world;

static void begin_as(int rank)
{
    fake_mpi_speak("mpich");
    CHECK_EQUAL(ledger_open("ledger", 8 << 20), 0);
    fake_world(2, rank);
    world = fake_comm((int[]){0, 1}, 2);
    CHECK(communicators_find(world) != NULL);
    CHECK(requests_begin(false));
    signatures_begin(the_ledger.limit_bytes, false);
    recording_begin();
    recording_switch(true);
    CHECK(thread_ready() != NULL);
}

static void begin(void)
{
    begin_as(0);
}

/* With HOROVOD_TIMELINE a second half follows, the first one's complement. */
static void fill(uint64_t *words, uint64_t tensors, unsigned number)
{
    words[0] = tensors << LEDGER_STATUS_PLACES | STATUS_BITS;
    if (number > 1)
        words[1] = ~(tensors << LEDGER_STATUS_PLACES);
}

/* As the wrapper does it. */
static void exchange(mpi_handle comm, struct exchange said, unsigned number)
{
    uint64_t words[LONGEST];
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Allreduce, SITE_JOB);
    announce_collective(&call, comm, announce_counted(&call, comm, number, BYTES_8, BAND, true));
    fill(words, said.given, number);
    struct negotiation *found =
        call.thread ? negotiation_offer(&call, mpi_abi.in_place, words, number) : NULL;
    call_start(&call);
    fill(words, said.came, number);
    call_end(&call, MPI_SUCCESS);
    struct ledger_sample *sample =
        account_call(&call, traffic_allreduce(&call, number, BYTES_8, comm));
    if (found)
        negotiation_agree(found, &call, words, sample);
}

static void exchange_all(const struct row *row, unsigned number)
{
    for (unsigned i = 0; i < row->number; i++)
        exchange(world, row->exchanges[i], number);
}

/* The entry of this place, in the order in which they were made; NULL: there is none. */
static const void *entry(enum ledger_kind kind, unsigned place)
{
    return reader_nth(the_ledger.header, kind, place);
}

static void check(const struct row *row)
{
    const struct ledger_negotiation *found = entry(LEDGER_NEGOTIATIONS, 0);
    CHECK_EQUAL(found->rounds, row->rounds);
    CHECK_EQUAL(found->rounds_ahead, row->ahead);
    CHECK_EQUAL(found->rounds_idle, row->idle);
    CHECK_EQUAL(found->rounds_by_name, 0);
    CHECK_EQUAL(found->disbelieved, row->disbelieved);
    CHECK_EQUAL(found->agreed, row->agreed);
    CHECK_EQUAL(found->steps, row->steps);
    CHECK_EQUAL(found->words_most, 1);
}

TEST(rounds_and_steps_are_counted_by_what_was_given_and_came_back)
{
    begin();
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        exchange_all(&ROWS[i], 1);
        check(&ROWS[i]);
        recording_reset(); /* nothing of one row counts in the next */
    }
}

TEST(words_that_a_timeline_doubles_are_read_once)
{
    begin();
    exchange_all(&ROWS[0], LONGEST);
    check(&ROWS[0]);
    const struct ledger_places *places = entry(LEDGER_PLACES, 0);
    CHECK_EQUAL(places->agreed[LEDGER_STATUS_PLACES], 2);
    CHECK(entry(LEDGER_PLACES, 1) == NULL);
}

TEST(a_pause_of_counting_is_no_time_ahead)
{
    begin();
    exchange(world, (struct exchange){1, 0}, 1);
    recording_switch(false);
    exchange(world, (struct exchange){1, 0}, 1);
    recording_switch(true);
    exchange(world, (struct exchange){1, 0}, 1);
    const struct ledger_negotiation *found = entry(LEDGER_NEGOTIATIONS, 0);
    CHECK_EQUAL(found->rounds, 2);
    CHECK_EQUAL(found->ahead_ns, 0);
    exchange(world, (struct exchange){1, 1}, 1);
    CHECK(found->ahead_ns > 0);
}

/* As after an elastic restart. */
TEST(each_communicator_has_a_negotiation_of_its_own)
{
    begin();
    mpi_handle after = fake_comm((int[]){0, 1}, 2);
    CHECK(communicators_find(after) != NULL);
    exchange(world, (struct exchange){3, 1}, 1);
    exchange(after, (struct exchange){3, 3}, 1);
    const struct ledger_negotiation *first = entry(LEDGER_NEGOTIATIONS, 0),
                                    *second = entry(LEDGER_NEGOTIATIONS, 1);
    CHECK(first->communicator != second->communicator);
    CHECK_EQUAL(first->rounds, 1);
    CHECK_EQUAL(first->rounds_ahead, 1);
    CHECK_EQUAL(second->rounds, 1);
    CHECK_EQUAL(second->rounds_ahead, 0);
}

/* As rank 1 sends its requests, or another program its bytes, from where `list` is. */
static void gather(const char *list, mpi_count length)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Gatherv, SITE_JOB);
    announce_rooted(&call, world, LEDGER_BYTES_UNKNOWN, 0);
    call_start(&call);
    call_end(&call, MPI_SUCCESS);
    negotiation_request(&call, &(struct requests){.own = list, .length = length});
}

TEST(memory_that_the_cpu_cannot_read_is_not_looked_at_for_a_list)
{
    enum { ROOM = 4096, TENSOR = 3 };
    begin_as(1);
    char *bytes = mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(bytes != MAP_FAILED);
    unsigned length = list_requests(bytes, &(int){TENSOR}, 1, false);
    char *end = bytes + ROOM;
    memcpy(end - length, bytes, length);
    CHECK_EQUAL(mprotect(end, ROOM, PROT_NONE), 0);
    gather(end, length);
    gather(end - length, length + 4);
    gather(NULL, length);
    gather(mpi_abi.in_place, length);
    CHECK(entry(LEDGER_NEGOTIATIONS, 0) == NULL);
    gather(end - length, length);
    CHECK(entry(LEDGER_NEGOTIATIONS, 0) != NULL);
}
