#include "record/communicators.h"

#include "base/memory.h"
#include "fake_mpi.h"
#include "ledger/ledger.h"
#include "unit.h"

#include <pthread.h>

enum { DUP = 11, SPLIT = 12, CREATE_GROUP = 13, INTERCOMM = 14, IDUP = 15 };

static void begin(const char *stub, int size, int rank)
{
    char ledger[32];
    snprintf(ledger, sizeof ledger, "%d.ledger", (int)getpid());
    fake_mpi_speak(stub);
    CHECK_EQUAL(ledger_open(ledger, 8 << 20), 0);
    fake_world(size, rank);
}

static void freed(mpi_handle handle)
{
    struct communicator *going = communicators_freeing(handle);
    if (going)
        communicators_freed(going);
}

/* A constructor called by the job has created this. */
static mpi_handle created(unsigned constructor, const int *ranks, int size)
{
    mpi_handle handle = fake_comm(ranks, size);
    communicators_created(handle, constructor, mpi_abi.comm_world, true, 0);
    return handle;
}

/* The same, under this handle. */
static mpi_handle made(mpi_handle handle, unsigned constructor, const int *ranks, int size)
{
    fake_describe(handle, ranks, size, NULL, FAKE_NO_REMOTE);
    communicators_created(handle, constructor, mpi_abi.comm_world, true, 0);
    return handle;
}

static const struct ledger_communicator *entry_of(mpi_handle handle)
{
    struct communicator *communicator = communicators_find(handle);
    CHECK(communicator != NULL);
    communicators_slot(communicator);
    return communicator->entry;
}

static uint64_t identity_of(mpi_handle handle)
{
    struct communicator *communicator = communicators_find(handle);
    CHECK(communicator != NULL);
    return communicator->identity;
}

static const char *members_of(const int *ranks, int size)
{
    static char text[336];
    snprintf(text, sizeof text, "%s", entry_of(created(SPLIT, ranks, size))->members);
    return text;
}

/* Description */

TEST(peers_across_an_inter_communicator_are_the_remote_ones)
{
    begin("open_mpi", 8, 1);
    mpi_handle handle = fake_inter((int[]){0, 1}, 2, (int[]){6, 7, 4}, 3);
    communicators_created(handle, INTERCOMM, mpi_abi.comm_self, true, 1);
    struct communicator *inter = communicators_find(handle);
    CHECK(inter->is_inter);
    CHECK_EQUAL(inter->remote_size, 3);
    CHECK_EQUAL(communicators_world_rank(inter, 0), 6);
    CHECK_EQUAL(communicators_world_rank(inter, 2), 4);
    CHECK_EQUAL(communicators_world_rank(inter, 3), PEER_NONE);
    CHECK_TEXT(entry_of(handle)->members, "0-1");
    CHECK_EQUAL(entry_of(handle)->flags, LEDGER_COMMUNICATOR_INTER);
    CHECK_EQUAL(entry_of(handle)->remote_size, 3);
}

/* Members as text */

#define MEMBERS_OF(...) \
    members_of((int[]){__VA_ARGS__}, (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)))

TEST(members_are_runs_strides_and_single_ranks_in_their_order)
{
    enum { OUTSIDE = LEDGER_PEER_OUTSIDE };
    begin("open_mpi", 64, 0);
    CHECK_TEXT(MEMBERS_OF(0, 1, 2, 3), "0-3");
    CHECK_TEXT(MEMBERS_OF(0, 1), "0-1");
    CHECK_TEXT(MEMBERS_OF(0), "0");
    CHECK_TEXT(MEMBERS_OF(5), "5");
    CHECK_TEXT(MEMBERS_OF(16, 18, 20, 22, 24, 26, 28, 30), "16-30:2");
    CHECK_TEXT(MEMBERS_OF(0, 8), "0,8");
    CHECK_TEXT(MEMBERS_OF(0, 8, 16), "0-16:8");
    CHECK_TEXT(MEMBERS_OF(0, 1, 2, 3, 8, 16, 18, 20, 22, 24, 26, 28, 30), "0-3,8,16-30:2");
    CHECK_TEXT(MEMBERS_OF(3, 2, 1, 0), "3,2,1,0");
    CHECK_TEXT(MEMBERS_OF(4, 5, 0, 1), "4-5,0-1");
    CHECK_TEXT(MEMBERS_OF(0, 1, 2, OUTSIDE, OUTSIDE), "0-2,-1,-1");
    CHECK_TEXT(MEMBERS_OF(OUTSIDE, OUTSIDE, 0, 1), "-1,-1,0-1");
    CHECK_TEXT(MEMBERS_OF(OUTSIDE, OUTSIDE, OUTSIDE), "-1,-1,-1");
    CHECK_TEXT(entry_of(mpi_abi.comm_world)->members, "0-63");
    CHECK_TEXT(entry_of(mpi_abi.comm_self)->members, "0");
}

/* The length of a text with this many ranks of three digits, then ranks of two. */
static size_t cut_after(int threes)
{
    int ranks[150];
    for (int i = 0; i < 150; i++)
        ranks[i] = i < threes ? 200 - i : 99 - (i - threes);
    const char *text = members_of(ranks, 150);
    CHECK_TEXT(text + strlen(text) - 4, ",...");
    return strlen(text);
}

TEST(the_dots_have_room_after_the_last_rank_that_is_written)
{
    enum { MOST = sizeof((struct ledger_communicator *)0)->members - 1 };
    begin("open_mpi", 300, 200);
    CHECK_EQUAL(cut_after(77), MOST - 1);
    CHECK_EQUAL(cut_after(78), MOST); /* one byte more, and the last rank has to go, too */
    CHECK_EQUAL(cut_after(79), MOST - 2);
    CHECK_EQUAL(cut_after(80), MOST - 1);
}

/* Identity. Two processes act as ranks and write their results to shared memory. */

static uint64_t (*seen)[8]; /* [rank][k] */

static void note(int rank, int k, mpi_handle handle)
{
    seen[rank][k] = identity_of(handle);
}

static int EVEN[] = {0, 2}, LOW[] = {0, 1}, ALL[] = {0, 1, 2, 3};

static void rank_0_splits_then_duplicates(void)
{
    begin("open_mpi", 4, 0);
    note(0, 0, created(SPLIT, EVEN, 2));
    note(0, 1, created(DUP, ALL, 4));
    note(0, 2, created(SPLIT, EVEN, 2));
}

static void rank_2_has_other_communicators_between(void)
{
    begin("mpich", 4, 2);
    created(SPLIT, (int[]){2, 3}, 2);
    note(2, 1, created(DUP, ALL, 4));
    created(SPLIT, (int[]){1, 2}, 2);
    note(2, 0, created(SPLIT, EVEN, 2));
    communicators_find(fake_comm((int[]){1, 2, 3}, 3));
    note(2, 2, created(SPLIT, EVEN, 2));
}

TEST(ranks_agree_on_identities_whatever_else_they_created_in_whatever_order)
{
    seen = unit_shared(8 * sizeof *seen);
    unit_elsewhere(rank_0_splits_then_duplicates);
    unit_elsewhere(rank_2_has_other_communicators_between);
    CHECK(seen[0][0] != 0);
    CHECK_EQUAL(seen[0][0], seen[2][0]);
    CHECK_EQUAL(seen[0][1], seen[2][1]);
    CHECK_EQUAL(seen[0][2], seen[2][2]);
}

/* Only members call MPI_Comm_create_group: two ranks may create two communicators in different
 * order, distinguished by tag. */

TEST(a_string_tag_is_never_none)
{
    CHECK(communicators_tag("") != 0);
    CHECK(communicators_tag("a") != communicators_tag("b"));
    CHECK(communicators_tag("ab") != communicators_tag("ba"));
}

static void the_low_side(void)
{
    begin("open_mpi", 4, 0);
    mpi_handle inter = fake_inter(LOW, 2, (int[]){2, 3}, 2);
    communicators_created(inter, INTERCOMM, created(SPLIT, LOW, 2), true, 5);
    note(0, 0, inter);
}

static void the_high_side(void)
{
    begin("open_mpi", 4, 3);
    mpi_handle inter = fake_inter((int[]){2, 3}, 2, LOW, 2);
    communicators_created(inter, INTERCOMM, created(SPLIT, (int[]){2, 3}, 2), true, 5);
    note(3, 0, inter);
}

TEST(both_sides_of_an_inter_communicator_agree)
{
    seen = unit_shared(8 * sizeof *seen);
    unit_elsewhere(the_low_side);
    unit_elsewhere(the_high_side);
    CHECK(seen[0][0] != 0);
    CHECK_EQUAL(seen[0][0], seen[3][0]);
}

TEST(a_nonblocking_duplicate_is_like_its_parent_and_is_not_asked)
{
    begin("open_mpi", 8, 5);
    mpi_handle parent = created(SPLIT, (int[]){5, 3, 7}, 3);
    unsigned asked = fake_questions;
    communicators_duplicated(0x999000, IDUP, parent);
    communicators_duplicated(0x999040, IDUP, parent);
    struct communicator *first = communicators_find(0x999000),
                        *second = communicators_find(0x999040);
    CHECK_EQUAL(fake_questions, asked);
    CHECK_EQUAL(first->size, 3);
    CHECK_EQUAL(communicators_world_rank(first, 2), 7);
    CHECK_EQUAL(first->parent_identity, identity_of(parent));
    CHECK(first->identity != second->identity);
    CHECK(first->identity != identity_of(parent));
}

/* Names, numbers and the ledger */

TEST(a_name_reaches_the_ledger_before_and_after_the_first_call)
{
    begin("open_mpi", 4, 0);
    mpi_handle early = created(DUP, ALL, 4), late = created(DUP, ALL, 4);
    communicators_named(early, "gradients");
    CHECK_TEXT(entry_of(early)->name, "gradients");
    CHECK_TEXT(entry_of(late)->name, "");
    communicators_named(late, "control");
    CHECK_TEXT(entry_of(late)->name, "control");
}

TEST(a_long_name_is_cut)
{
    char name[300];
    memset(name, 'n', sizeof name);
    name[299] = '\0';
    begin("open_mpi", 4, 0);
    communicators_named(mpi_abi.comm_world, name);
    CHECK_EQUAL(strlen(entry_of(mpi_abi.comm_world)->name), 127);
}

TEST(beyond_the_registrys_numbers_communicators_share_one_and_are_counted)
{
    enum { COUNT = 4200 };
    static int members[COUNT][2];
    begin("open_mpi", 4, 0);
    unsigned shared = 0;
    for (int i = 0; i < COUNT; i++) {
        members[i][1] = 1;
        fake_comm_count = 2; /* the fake may forget the others */
        mpi_handle handle = made(0x200000 + 64 * (mpi_handle)i, DUP, members[i], 2);
        shared += communicators_slot(communicators_find(handle)) == LEDGER_COMMUNICATOR_OTHER;
    }
    CHECK_EQUAL(shared, COUNT - (COMMUNICATORS_MAX - 2));
    CHECK_EQUAL(the_ledger.header->folded_communicators, shared);
}

/* A communicator that lies at this place of the index, or, if that is taken (the predefined handles
 * are addresses), at the next free one in this direction. */
static mpi_handle created_at(uint64_t place, int direction)
{
    mpi_handle handle = 0x200000;
    while (communicator_index->slots[place].handle)
        place += (uint64_t)direction;
    while ((communicators_hash(handle) & communicator_index->mask) != place)
        handle += 64;
    made(handle, SPLIT, LOW, 2);
    CHECK(communicator_index->slots[place].handle == handle);
    return handle;
}

TEST(a_call_that_is_not_recorded_costs_the_count_of_all_but_those_of_one_process)
{
    begin("open_mpi", 8, 1);
    mpi_handle first = created_at(0, 1), last = created_at(communicator_index->mask, -1);
    CHECK(entry_of(first) && entry_of(last) && entry_of(mpi_abi.comm_world) &&
          entry_of(mpi_abi.comm_self));
    communicators_lose_count();
    CHECK(!entry_of(first));
    CHECK(!entry_of(last));
    CHECK(!entry_of(mpi_abi.comm_world));
    CHECK(entry_of(mpi_abi.comm_self));
}

/* Freeing */

TEST(a_communicator_that_mpi_refused_to_free_is_there_as_before)
{
    begin("open_mpi", 8, 0);
    mpi_handle handle = created(SPLIT, LOW, 2);
    struct communicator *communicator = communicators_find(handle);
    const struct ledger_communicator *entry = entry_of(handle);
    CHECK(communicators_freeing(handle) == communicator);
    communicators_restore(communicator);
    CHECK(communicators_find(handle) == communicator);
    CHECK_EQUAL(entry->flags, 0);
}

/* The slot of a removed handle is reused by another handle whose probe passes it. */
TEST(handles_that_come_and_go_leave_the_others_where_they_are)
{
    begin("open_mpi", 4, 0);
    static mpi_handle kept[200];
    for (int i = 0; i < 200; i++)
        kept[i] = created(DUP, ALL, 4);
    for (int i = 0; i < 20000; i++) {
        mpi_handle handle = made(0x7000000 + 64 * (mpi_handle)(i % 1000), SPLIT, LOW, 2);
        CHECK_EQUAL(communicators_find(handle)->size, 2);
        freed(handle);
    }
    for (int i = 0; i < 200; i++)
        CHECK_EQUAL(communicators_find(kept[i])->ordinal, i);
}

/* MPI_Init after a session: the registry started without MPI_COMM_WORLD. */
TEST(a_world_that_comes_later_is_known_by_its_name)
{
    mpi_handle group = 0;
    fake_mpi_speak("open_mpi");
    CHECK_EQUAL(ledger_open("ledger", 1 << 20), 0);
    fake_describe_world(4, 2);
    fake_Comm_group(mpi_abi.comm_world, &group);
    CHECK(communicators_begin(group, false));
    communicators_add_world();
    CHECK_TEXT(communicators_find(mpi_abi.comm_world)->name, "MPI_COMM_WORLD");
    CHECK_EQUAL(communicators_find(mpi_abi.comm_world)->comm_rank, 2);
}

TEST(a_handle_that_is_handed_out_again_without_a_free_we_saw_is_another_too)
{
    begin("open_mpi", 8, 0);
    mpi_handle handle = made(0x500000, SPLIT, LOW, 2);
    const struct ledger_communicator *gone = entry_of(handle);
    made(handle, SPLIT, ALL, 4);
    CHECK_EQUAL(communicators_find(handle)->size, 4);
    CHECK_EQUAL(gone->flags, LEDGER_COMMUNICATOR_FREED);
}

TEST(groups_taken_from_mpi_are_given_back)
{
    begin("open_mpi", 8, 0);
    created(SPLIT, (int[]){0, 5}, 2);
    entry_of(fake_inter(LOW, 2, (int[]){6, 7}, 2));
    communicators_end();
    CHECK_EQUAL(fake_groups_open, 0);
}

TEST(after_the_end_mpi_is_not_asked_any_more)
{
    begin("open_mpi", 8, 0);
    communicators_end();
    unsigned asked = fake_questions;
    CHECK(communicators_find(fake_comm(LOW, 2)) == NULL);
    communicators_created(fake_comm(LOW, 2), DUP, mpi_abi.comm_world, true, 0);
    CHECK_EQUAL(fake_questions, asked);
}

/* A job of sessions that creates no communicator: MPICH ends the job if it is asked about
 * MPI_COMM_WORLD. */
TEST(a_world_that_does_not_exist_is_not_asked_about)
{
    mpi_handle group = 0;
    fake_mpi_speak("mpich");
    fake_describe_world(4, 2);
    fake_Comm_group(mpi_abi.comm_world, &group);
    CHECK(communicators_begin(group, false));
    unsigned asked = fake_questions;
    CHECK(communicators_find(mpi_abi.comm_world) == NULL);
    CHECK(communicators_find(mpi_abi.comm_self) == NULL);
    CHECK_EQUAL(fake_questions, asked);
}

/* Memory */

static void make_and_free(int count, int handles)
{
    for (int i = 0; i < count; i++) {
        mpi_handle handle = 0x500000 + 64 * (mpi_handle)(i % handles);
        fake_comm_count = 2;
        made(handle, DUP, LOW, 2);
        freed(handle);
    }
}

enum { MANY = UNIT_SANITIZED ? 20000 : 100000 }; /* a byte kept of each exceeds the bound */

TEST(many_communicators_under_one_handle_or_any_number_leave_no_memory_behind)
{
    static const int HANDLES[] = {1, 500, MANY};
    begin("open_mpi", 4, 0);
    for (unsigned i = 0; i < 3; i++) {
        make_and_free(1000, HANDLES[i] < 1000 ? HANDLES[i] : 1000);
        uint64_t before = memory_in_use();
        make_and_free(MANY, HANDLES[i]);
        CHECK(memory_in_use() < before + 65536);
    }
}

static void make_unrelated_and_free(int count)
{
    for (int i = 0; i < count; i++) {
        fake_comm_count = 2;
        fake_describe(0x500000, LOW, 2, NULL, FAKE_NO_REMOTE);
        communicators_created(0x500000, CREATE_GROUP, mpi_abi.comm_world, true, (uint64_t)i + 1);
        freed(0x500000);
    }
}

TEST(unrelated_communicators_without_end_leave_a_bounded_memory_and_two_duplicates_differ)
{
    begin("open_mpi", 4, 0);
    created(DUP, ALL, 4);
    make_unrelated_and_free(MANY); /* of more kinds than are counted */
    uint64_t before = memory_in_use();
    CHECK(before < 16 << 20);
    make_unrelated_and_free(MANY);
    CHECK(UNIT_SANITIZED || memory_in_use() < before + 65536);
    fake_comm_count = 2;
    CHECK(identity_of(created(DUP, ALL, 4)) != identity_of(created(DUP, ALL, 4)));
}

enum { KINDS_BEYOND = 70000 };

static void note_one_made_by_its_group(int rank)
{
    fake_comm_count = 2;
    mpi_handle handle = fake_comm(LOW, 2);
    communicators_created(handle, CREATE_GROUP, mpi_abi.comm_world, true, KINDS_BEYOND + 1);
    note(rank, 0, handle);
}

static void rank_0_creates_one_only(void)
{
    begin("open_mpi", 4, 0);
    note_one_made_by_its_group(0);
}

static void rank_1_has_created_more_kinds_than_are_counted(void)
{
    begin("open_mpi", 4, 1);
    make_unrelated_and_free(KINDS_BEYOND);
    note_one_made_by_its_group(1);
}

TEST(beyond_the_limit_on_kinds_ranks_agree_on_those_that_were_created_once)
{
    seen = unit_shared(8 * sizeof *seen);
    unit_elsewhere(rank_0_creates_one_only);
    unit_elsewhere(rank_1_has_created_more_kinds_than_are_counted);
    CHECK(seen[0][0] != 0);
    CHECK_EQUAL(seen[0][0], seen[1][0]);
}

TEST(many_are_found_while_they_live)
{
    begin("open_mpi", 4, 0);
    static mpi_handle handles[3000];
    for (int i = 0; i < 3000; i++)
        handles[i] = created(DUP, ALL, 4);
    for (int i = 0; i < 3000; i++)
        CHECK_EQUAL(communicators_find(handles[i])->ordinal, i);
}

/* Threads */

static pthread_barrier_t line;
static struct communicator *at_stake;

static void *complete_the_receive(void *unused)
{
    for (int i = 0; i < 20000; i++) {
        pthread_barrier_wait(&line);
        communicators_release(at_stake);
        pthread_barrier_wait(&line);
    }
    return unused;
}

/* One thread's receive completes while another frees the communicator: it must be destroyed once,
 * by the last of them. */
TEST(a_communicator_that_is_freed_while_its_last_receive_completes_goes_once)
{
    begin("open_mpi", 4, 0);
    pthread_t receiver;
    pthread_barrier_init(&line, NULL, 2);
    pthread_create(&receiver, NULL, complete_the_receive, NULL);
    for (int i = 0; i < 20000; i++) {
        fake_comm_count = 2;
        made(0x500000, DUP, LOW, 2);
        at_stake = communicators_find(0x500000);
        communicators_hold(at_stake);
        pthread_barrier_wait(&line);
        freed(0x500000);
        pthread_barrier_wait(&line);
    }
    pthread_join(receiver, NULL);
}

/* Windows and files */

TEST(an_object_is_found_until_it_is_gone)
{
    begin("open_mpi", 4, 0);
    struct communicator *world = communicators_find(mpi_abi.comm_world);
    mpi_handle key = communicators_key_of_window(0x700040);
    CHECK(communicators_under(key) == NULL);
    communicators_attach(key, mpi_abi.comm_world);
    struct communicator *object = communicators_under(key);
    CHECK(object->created_on == world && object->slot == world->slot);
    CHECK(communicators_detach(key) == object);
    CHECK(communicators_under(key) == NULL);
    communicators_detached(key, object, true);
    CHECK_EQUAL(world->references, 1);
}

TEST(an_object_that_mpi_did_not_free_is_found_again)
{
    begin("open_mpi", 4, 0);
    mpi_handle key = communicators_key_of_window(0x700040);
    communicators_attach(key, mpi_abi.comm_world);
    struct communicator *object = communicators_detach(key);
    communicators_detached(key, object, false);
    CHECK(communicators_under(key) == object);
}

TEST(an_object_whose_end_was_not_intercepted_yields_to_the_next_with_its_handle)
{
    begin("open_mpi", 4, 0);
    mpi_handle key = communicators_key_of_window(0x700040);
    communicators_attach(key, mpi_abi.comm_world);
    communicators_attach(key, mpi_abi.comm_self);
    CHECK(communicators_under(key)->created_on == communicators_find(mpi_abi.comm_self));
    CHECK_EQUAL(communicators_find(mpi_abi.comm_world)->references, 1);
}

/* The number beyond the last one is said of all others. */
TEST(objects_have_numbers_up_to_the_last_that_a_sample_has_room_for)
{
    enum { MOST = COMMUNICATORS_OBJECTS_MAX };
    begin("open_mpi", 4, 0);
    for (unsigned i = 1; i < MOST; i++)
        communicators_attach(0, mpi_abi.comm_world);
    for (unsigned i = 0; i < 3; i++) {
        mpi_handle key = communicators_key_of_window(0x700040 + 0x40 * i);
        communicators_attach(key, mpi_abi.comm_world);
        CHECK_EQUAL(communicators_under(key)->object, MOST + (i ? 1 : 0));
    }
}

/* Kinds beyond the last place are not counted: each of theirs is the first. */
TEST(communicators_of_65536_kinds_are_counted)
{
    enum { MOST = 1 << 16 };
    for (uint64_t kind = 0; kind <= MOST; kind++)
        CHECK_EQUAL(communicators_ordinal(NULL, kind << 32), 0);
    CHECK_EQUAL(communicators_ordinal(NULL, 0), 1);
    CHECK_EQUAL(communicators_ordinal(NULL, (uint64_t)(MOST - 1) << 32), 1);
    CHECK_EQUAL(communicators_ordinal(NULL, (uint64_t)MOST << 32), 0);
}

TEST(the_null_communicator_is_none)
{
    begin("mpich", 8, 3);
    CHECK(communicators_find(mpi_abi.comm_null) == NULL);
    CHECK_EQUAL(communicators_slot(NULL), LEDGER_COMMUNICATOR_NONE);
}
