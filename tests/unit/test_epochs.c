#include "record/epochs.h"

#include "fake_mpi.h"
#include "ledger/ledger.h"
#include "ledger/samples.h"
#include "record/account.h"
#include "record/announce.h"
#include "record/recording.h"
#include "ledger_reader.h"
#include "unit.h"

/* Forty-eight ranks, of which this is rank 3. Groups are those of communicators. */
enum { WORLD = 160, HERE = 3, FIRST_GROUP = 0x8000, WINDOW = 0x700040 };

static struct communicator *window;

static void begin(void)
{
    fake_mpi_speak("mpich");
    CHECK_EQUAL(ledger_open("ledger", 8 << 20), 0);
    fake_world(WORLD, HERE);
    recording_begin();
    samples_begin(4 << 20);
    recording_switch(true);
    CHECK(thread_ready() != NULL);
    communicators_attach(communicators_key_of_window(WINDOW), mpi_abi.comm_world);
    window = communicators_under(communicators_key_of_window(WINDOW));
}

static mpi_handle group_of(const int *ranks, int size)
{
    fake_comm(ranks, size);
    return FIRST_GROUP + 2 * (mpi_handle)(fake_comm_count - 1);
}

/* As the wrappers do it. */
static void call_on_window(enum call_id id, enum epochs_side side, mpi_handle group)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, id, SITE_JOB);
    announce_on_object(&call, communicators_key_of_window(WINDOW));
    call_start(&call);
    call_end(&call, MPI_SUCCESS);
    struct traffic traffic = traffic_window(&call, WINDOW);
    const struct ledger_sample *sample = account_call(&call, traffic);
    CHECK(sample != NULL);
    if (group)
        epochs_open(&call, sample, traffic.communicator, side, group);
    else
        epochs_close(&call, sample, traffic.communicator, side);
}

static void start(mpi_handle group)
{
    call_on_window(CALL_Win_start, EPOCHS_ACCESS, group);
}

/* The samples of partners of these calls: "rank.epoch/partners ...". */
static const char *partners(enum call_id id)
{
    static char text[4096];
    const struct ledger_page *page;
    size_t used = 0;
    text[0] = '\0';
    READER_EACH(page, the_ledger.header, LEDGER_SAMPLES)
        for (int at = 0; at < LEDGER_PAGE_SAMPLES; at++) {
            const struct ledger_sample *sample = &page->samples[at];
            if (!sample->end_ticks || sample->flags != LEDGER_SAMPLE_EPOCH || sample->call != id)
                continue;
            CHECK_EQUAL(sample->sequence, 1); /* the first window of its communicator */
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d.%d/%u", used ? " " : "",
                                     sample->peer, sample->epoch, sample->partners);
        }
    return text;
}

TEST(a_group_of_the_same_members_is_not_translated_again)
{
    begin();
    mpi_handle same = group_of((int[]){2, 7}, 2);
    start(same);
    unsigned before = fake_questions;
    start(same);
    unsigned questions = fake_questions - before;
    start(group_of((int[]){7, 2}, 2));
    before = fake_questions;
    start(same);
    CHECK(questions < fake_questions - before);
}

/* Its sample says how many there are; numbers of later epochs would be wrong. */
TEST(partners_are_not_known_once_there_were_too_many)
{
    begin();
    int ranks[EPOCHS_PARTNERS_MAX + 1];
    for (int i = 0; i <= EPOCHS_PARTNERS_MAX; i++)
        ranks[i] = i;
    mpi_handle most = group_of(ranks, EPOCHS_PARTNERS_MAX),
               more = group_of(ranks, EPOCHS_PARTNERS_MAX + 1), one = group_of(ranks, 1);
    start(one);
    start(more);
    call_on_window(CALL_Win_complete, EPOCHS_ACCESS, 0);
    start(one);
    call_on_window(CALL_Win_post, EPOCHS_EXPOSURE, most);
    CHECK_TEXT(partners(CALL_Win_complete), "-2147483648.0/129");
    CHECK_TEXT(partners(CALL_Win_start), "0.1/1 -2147483648.0/129 -2147483648.0/1");
    CHECK(strncmp(partners(CALL_Win_post), "0.1/128 1.1/128 ", 16) == 0);
}

/* As many as there is room for, in a table that grows. */
TEST(every_partner_has_its_own_count)
{
    begin();
    mpi_handle groups[WORLD];
    for (int i = 0; i < WORLD; i++)
        groups[i] = group_of(memcpy(malloc(sizeof i), &i, sizeof i), 1);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < WORLD; i++) {
            struct call call = {.id = CALL_Win_start, .thread = this_thread};
            epochs_open(&call, NULL, window, EPOCHS_ACCESS, groups[i]);
        }
    for (int i = 0; i < WORLD; i++)
        start(groups[i]);
    char expected[4096];
    size_t used = 0;
    for (int i = 0; i < WORLD; i++)
        used += (size_t)snprintf(expected + used, sizeof expected - used, "%s%d.4/1",
                                 used ? " " : "", i);
    CHECK_TEXT(partners(CALL_Win_start), expected);
}
