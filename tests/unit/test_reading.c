/* A reader of a ledger whose process counts, folds or is reset at the same time gets each call
 * once, or notices that it must read again.
 *
 *     writer    folds_begun += 1, then for each cell: folding = a,b,c; live marks; folding = 0; at
 *               last folds_ended += 1 epoch += 1, then for each thread: live marks; its epoch
 *     reader    epoch, folds_begun, folds_ended; for each thread: its epoch, folding; for each
 *               cell: live, counts; again the first three
 *     kill      at any time: test_killed.c
 *
 * The reader accepts what it has read if folds_begun and folds_ended were equal and all three words
 * are unchanged.
 *
 * The writer's states are those of a real thread after each of its instructions. The reader reads
 * word by word, each in any state not before that of the previous word. This covers all
 * interleavings of the two. Interleavings with the same result so far are merged. */
#include "fake_mpi.h"
#include "ledger_reader.h"
#include "record/account.h"
#include "record/call.h"
#include "record/recording.h"
#include "small_room.h"
#include "stepping.h"

enum { CELLS = 26, EPOCHS = 3, MOST_STATES = 4096, MOST_FOLDINGS = 64, WAYS = 1 << 26 };

/* For one epoch: how many calls the writer has begun to account, and how many it has accounted. */
struct truth {
    uint16_t begun, done;
};

static struct truth *truth;

struct cell_state {
    bool live;
    uint16_t count;
};

/* Counts that a reader can see in one state, and the true counts then. */
struct state {
    uint32_t epoch, thread_epoch;
    uint64_t folds_begun, folds_ended;
    unsigned folding; /* index in `foldings` */
    struct cell_state cells[CELLS];
    struct truth truth[EPOCHS];
};

static struct state states[MOST_STATES];
static unsigned state_count;
static uint64_t foldings[MOST_FOLDINGS];
static unsigned folding_count;

/* The writer */

static void call_of(uint64_t bytes)
{
    struct call call UNTIL_RETURN;
    unsigned epoch = thread_epoch;
    call_begin(&call, CALL_Send, SITE_JOB);
    call_end(&call, MPI_SUCCESS);
    truth[epoch].begun++;
    account_count(call.thread, bytes, cell_key(CALL_Send, LEDGER_COMMUNICATOR_NONE, LEDGER_CALL),
                  1000, 0);
    truth[epoch].done++;
}

/* One chunk is left for cells. It has room for one more cell, and for one that is reserved for
 * folding. */
static void fill_the_ledger(void)
{
    recording_begin();
    recording_switch(true);
    call_of(1);
    while (the_ledger.header->chunk_count < 8)
        ledger_chunk(LEDGER_FACTS, 1, 0);
    small_room(CELLS - 2);
    for (uint64_t bytes = 2; bytes < CELLS - 1; bytes++)
        for (uint64_t times = 0; times < 1 + bytes % 2; times++)
            call_of(bytes);
}

static void count_and_fold(void)
{
    recording_begin(); /* the fork has ended the recording */
    call_of(1);
    call_of(100);
    call_of(101);
    call_of(100);
}

static void count_and_reset(void)
{
    recording_begin();
    call_of(1);
    recording_reset();
    call_of(1);
    call_of(2);
}

static unsigned number_of(uint64_t folding)
{
    unsigned number = 0;
    while (number < folding_count && foldings[number] != folding)
        number++;
    CHECK(number < MOST_FOLDINGS);
    foldings[number] = folding;
    folding_count += number == folding_count;
    return number;
}

static void take_state(pid_t child)
{
    (void)child;
    const struct ledger_header *header = the_ledger.header;
    const struct ledger_thread *thread = reader_thread(header, 0);
    struct state now;
    memset(&now, 0, sizeof now);
    now.epoch = header->epoch;
    now.thread_epoch = thread->epoch;
    now.folds_begun = header->folds_begun;
    now.folds_ended = header->folds_ended;
    now.folding = number_of(thread->folding);
    memcpy(now.truth, truth, sizeof now.truth);
    for (uint32_t i = 0, k = 0; i < header->chunk_count; i++)
        for (const struct ledger_chunk *chunk = reader_chunk(header, i);
             chunk->kind == LEDGER_CELLS && k < CELLS; k++) {
            const struct ledger_cell *cell = reader_entry(chunk, k);
            now.cells[k] = (struct cell_state){cell->live, (uint16_t)reader_count(cell)};
        }
    CHECK(state_count < MOST_STATES);
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the padding is zero, too */
    if (state_count == 0 || memcmp(&now, &states[state_count - 1], sizeof now) != 0)
        states[state_count++] = now;
}

static void watch(void (*writer)(void))
{
    truth = unit_shared(EPOCHS * sizeof *truth);
    fake_mpi_speak("mpich");
    CHECK_EQUAL(ledger_open("ledger", 1), 0);
    fake_world(4, 1);
    fill_the_ledger();
    stepping(PTRACE_SINGLESTEP, writer, take_state);
}

/* The reader */

/* State of the reader so far: small, so that interleavings can be compared as numbers. */
union way {
    struct {
        uint32_t epoch : 2, folds : 2, thread_counts : 1, cell_counts : 1, folding : 6, sum : 7,
            least : 7;
    };
    uint32_t number;
};

enum {
    READ_EPOCH,
    READ_FOLDS_BEGUN,
    READ_FOLDS_ENDED,
    READ_THREAD_EPOCH,
    READ_FOLDING,
    READ_CELLS,
    READ_AGAIN = READ_CELLS + 2 * CELLS,
    READS
};

struct ways {
    uint32_t *numbers;
    size_t count;
    uint8_t *known; /* one bit per number */
};

static void add_way(struct ways *ways, union way way)
{
    if (ways->known[way.number / 8] >> way.number % 8 & 1)
        return;
    ways->known[way.number / 8] |= (uint8_t)(1 << way.number % 8);
    ways->numbers[ways->count++] = way.number;
}

static void forget_ways(struct ways *ways)
{
    for (size_t i = 0; i < ways->count; i++)
        ways->known[ways->numbers[i] / 8] = 0;
    ways->count = 0;
}

static bool cell_counts(unsigned folding, bool live, uint64_t number)
{
    struct ledger_cell cell = {.live = live};
    return reader_counts(&cell, foldings[folding], number);
}

/* Reads one more word. False: the reader notices that it must read again. */
static bool read_word(union way *way, unsigned read, const struct state *state, bool with_check)
{
    unsigned cell = (read - READ_CELLS) / 2;
    if (read == READ_EPOCH) {
        way->epoch = state->epoch;
        way->least = state->truth[state->epoch].done;
    } else if (read == READ_FOLDS_BEGUN)
        way->folds = (uint32_t)state->folds_begun;
    else if (read == READ_FOLDS_ENDED)
        return !with_check || way->folds == state->folds_ended;
    else if (read == READ_THREAD_EPOCH)
        way->thread_counts = way->epoch == state->thread_epoch;
    else if (read == READ_FOLDING)
        way->folding = state->folding;
    else if (read == READ_AGAIN)
        return !with_check || (way->epoch == state->epoch && way->folds == state->folds_begun &&
                               way->folds == state->folds_ended);
    else if ((read - READ_CELLS) % 2 == 0)
        way->cell_counts =
            way->thread_counts && cell_counts(way->folding, state->cells[cell].live, cell + 1);
    else
        way->sum += way->cell_counts ? state->cells[cell].count : 0;
    return true;
}

static struct ways new_ways(void)
{
    struct ways ways = {malloc(WAYS / 16 * sizeof *ways.numbers), 0, calloc(WAYS / 8, 1)};
    CHECK(ways.numbers && ways.known);
    return ways;
}

/* Whether every accepted read has a count between the true counts at its beginning and its end. */
static bool every_believed_read_is_right(bool with_check)
{
    static struct ways at[MOST_STATES]; /* for each state, after the reads so far */
    struct ways so_far = new_ways(), next = new_ways();
    bool right = true;
    size_t believed = 0;
    for (unsigned i = 0; i < state_count; i++)
        at[i].count = 0;
    at[0] = (struct ways){calloc(1, sizeof(uint32_t)), 1, NULL};
    for (unsigned read = 0; read < READS; read++, forget_ways(&so_far))
        for (unsigned i = 0; i < state_count; i++) {
            for (size_t k = 0; k < at[i].count; k++)
                add_way(&so_far, (union way){.number = at[i].numbers[k]});
            for (size_t k = 0; k < so_far.count; k++) {
                union way way = {.number = so_far.numbers[k]};
                if (read_word(&way, read, &states[i], with_check))
                    add_way(&next, way);
            }
            at[i].numbers = realloc(at[i].numbers, (next.count + 1) * sizeof *next.numbers);
            memcpy(at[i].numbers, next.numbers, next.count * sizeof *next.numbers);
            at[i].count = next.count;
            forget_ways(&next);
        }
    for (unsigned i = 0; i < state_count; i++)
        for (size_t k = 0; k < at[i].count; k++, believed++) {
            union way way = {.number = at[i].numbers[k]};
            right &= way.least <= way.sum && way.sum <= states[i].truth[way.epoch].begun;
        }
    CHECK(believed > 0);
    return right;
}

TEST(a_read_beside_a_fold_is_right_or_done_again)
{
    watch(count_and_fold);
    CHECK_EQUAL(states[state_count - 1].folds_ended, 1);
    CHECK(folding_count > CELLS / 3); /* the critical states are covered */
    CHECK(every_believed_read_is_right(true));
}

TEST(without_looking_at_the_folds_it_would_be_wrong)
{
    watch(count_and_fold);
    CHECK(!every_believed_read_is_right(false));
}

TEST(a_read_beside_a_reset_is_right_or_done_again)
{
    watch(count_and_reset);
    CHECK_EQUAL(states[state_count - 1].epoch, 2);
    CHECK(every_believed_read_is_right(true));
}

TEST(without_looking_at_the_epoch_again_it_would_be_wrong)
{
    watch(count_and_reset);
    CHECK(!every_believed_read_is_right(false));
}
