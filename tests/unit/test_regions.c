#include "record/account.h"
#include "record/recording.h"
#include "record/regions.h"

#include "fake_mpi.h"
#include "ledger/ledger.h"
#include "record/announce.h"
#include "ledger_reader.h"
#include "unit.h"

#include <pthread.h>

/* include/commprof.h is not included: it defines inline functions with these names. */
void commprof_step(void);
void commprof_region_begin(const char *name);
void commprof_region_end(void);
int commprof_is_recording(void);

static void begin_with(size_t ledger_bytes)
{
    fake_mpi_speak("open_mpi");
    clock_begin(CLOCK_AUTO);
    clock_calibrate();
    CHECK_EQUAL(ledger_open("ledger", ledger_bytes), 0);
    fake_world(8, 3);
    CHECK(requests_begin(false));
    recording_begin();
    recording_switch(true);
}

static void begin(void)
{
    begin_with(4 << 20);
}

/* An MPI_Barrier, accounted as its wrapper does. */
static void call_mpi(void)
{
    struct call call UNTIL_RETURN;
    call_begin(&call, CALL_Barrier, SITE_JOB);
    call_end(&call, MPI_SUCCESS);
    account_simple(&call);
}

static const struct ledger_region *entry_of(unsigned region)
{
    const struct ledger_region *entry;
    READER_EACH(entry, the_ledger.header, LEDGER_REGIONS)
        if (entry->region == region)
            return entry;
    return NULL;
}

/* The path of the region that this thread is in. */
static const char *here(void)
{
    const struct ledger_region *entry =
        entry_of((unsigned)(this_thread->region >> CELL_KEY_REGION_BIT));
    return entry ? entry->name : "";
}

TEST(a_path_at_once_is_the_same_as_step_by_step)
{
    begin();
    commprof_region_begin("epoch/forward");
    commprof_region_end();
    commprof_region_begin("epoch");
    commprof_region_begin("forward");
    CHECK_EQUAL(this_thread->region >> CELL_KEY_REGION_BIT, 1);
}

TEST(a_region_whose_name_is_too_long_is_counted_in_its_parent)
{
    begin();
    char name[REGION_NAME_BYTES + 1];
    memset(name, 'x', sizeof name);
    name[REGION_NAME_BYTES - 1] = '\0'; /* the maximum length */
    commprof_region_begin(name);
    CHECK_TEXT(here(), name);
    commprof_region_begin("y"); /* the path is too long */
    CHECK_TEXT(here(), name);
    commprof_region_end();
    commprof_region_end();
    name[REGION_NAME_BYTES - 1] = 'x';
    name[REGION_NAME_BYTES] = '\0';
    commprof_region_begin(name);
    CHECK_TEXT(here(), "");
}

TEST(calls_are_not_lost_when_regions_fill_the_ledger)
{
    begin_with(1 << 20); /* room for some 2,000 cells */
    for (int i = 0; i < 4000; i++) {
        char name[16];
        snprintf(name, sizeof name, "step %d", i);
        commprof_region_begin(name);
        call_mpi();
        commprof_region_end();
    }
    uint64_t count = 0;
    for (uint32_t i = 0; i < this_thread->cells.count; i++)
        count += this_thread->cells.all[i]->live ? cell_count(this_thread->cells.all[i]) : 0;
    CHECK(the_ledger.header->folded_cells > 0);
    CHECK_EQUAL(the_ledger.header->dropped_calls, 0);
    CHECK_EQUAL(count, 4000);
}

TEST(regions_that_lie_too_deep_count_as_open)
{
    begin();
    call_mpi();
    for (int i = 0; i < REGIONS_DEEP + 2; i++)
        CHECK_EQUAL(regions_begin(this_thread, "r", REGIONS_OF_PROGRAM), i);
    for (int i = REGIONS_DEEP + 2; i-- > 0;)
        CHECK_EQUAL(regions_end(this_thread, REGIONS_OF_PROGRAM), i);
    CHECK_EQUAL(regions_end(this_thread, REGIONS_OF_PROGRAM), -1);
}

static void *in_a_thread(void *expected)
{
    call_mpi();
    CHECK_TEXT(here(), "");
    commprof_region_begin("worker");
    CHECK_TEXT(here(), expected);
    return NULL; /* without leaving it */
}

TEST(each_thread_has_its_own)
{
    begin();
    commprof_region_begin("main");
    for (int i = 0; i < 3; i++) { /* the second reuses the first one's state */
        pthread_t thread;
        CHECK_EQUAL(pthread_create(&thread, NULL, in_a_thread, "worker"), 0);
        CHECK_EQUAL(pthread_join(thread, NULL), 0);
    }
    CHECK_TEXT(here(), "main");
}

TEST(nothing_happens_before_and_after_the_recording)
{
    CHECK_EQUAL(commprof_is_recording(), 0);
    commprof_step();
    commprof_region_begin("early");
    commprof_region_end();
    begin();
    CHECK_EQUAL(commprof_is_recording(), 1);
    recording_end();
    commprof_step();
    commprof_region_begin("late");
    commprof_region_end();
    CHECK_EQUAL(commprof_is_recording(), 0);
    CHECK_EQUAL(the_ledger.header->steps, 0);
    CHECK(entry_of(1) == NULL);
}

static void in_the_child(void)
{
    commprof_step();
    commprof_region_end();
    commprof_region_begin("child");
    CHECK_EQUAL(commprof_is_recording(), 0);
}

TEST(a_forked_child_changes_nothing)
{
    begin();
    commprof_region_begin("parent");
    unit_elsewhere(in_the_child);
    CHECK_EQUAL(the_ledger.header->steps, 0);
    CHECK(entry_of(2) == NULL);
    CHECK_TEXT(here(), "parent");
}

TEST(steps_are_counted)
{
    begin();
    for (int i = 0; i < 7; i++)
        commprof_step();
    CHECK_EQUAL(the_ledger.header->steps, 7);
}
