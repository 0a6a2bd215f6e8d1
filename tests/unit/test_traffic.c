#include "record/traffic.h"

#include "fake_mpi.h"
#include "ledger/ledger.h"
#include "unit.h"

/* Four ranks, this one is rank 1. An inter-communicator connects ranks 0 and 1 with three others;
 * this process is its rank 1 as well. */
enum { HERE = 1, ELSEWHERE = 2, BYTES_4 = FAKE_TYPE_4, BYTES_8 = FAKE_TYPE_8, GARBAGE = 0xbad000 };

static const int US[] = {0, 1}, THEM[] = {2, 3, -1};
static const struct call CALLED = {.succeeded = true};
static char buffer[8];
static const char *abi = "open_mpi";
static mpi_handle world, inter;

static void begin(void)
{
    char ledger[32];
    snprintf(ledger, sizeof ledger, "%s.ledger", abi);
    fake_mpi_speak(abi);
    CHECK_EQUAL(ledger_open(ledger, 1 << 20), 0);
    fake_world(4, 1);
    world = mpi_abi.comm_world;
    inter = fake_inter(US, 2, THEM, 3);
}

/* ABIs differ in their special values and in the width of a handle in memory. */
static void under_each_abi(void (*run)(void))
{
    static const char *const ABIS[] = {"open_mpi", "mpich", "standard"};
    for (int i = 0; i < 3; i++) {
        static char context[32];
        abi = ABIS[i];
        snprintf(context, sizeof context, "under %s: ", abi);
        unit_context = context;
        unit_elsewhere(run);
    }
}

#define TEST_UNDER_EACH_ABI(NAME)    \
    static void NAME##_here(void);   \
    TEST(NAME)                       \
    {                                \
        under_each_abi(NAME##_here); \
    }                                \
    static void NAME##_here(void)

static struct counts ints(const int *at)
{
    return (struct counts){at, false};
}

static struct counts wides(const mpi_count *at)
{
    return (struct counts){at, true};
}

static const struct counts NONE = {NULL, false}; /* not significant: must not be read */

#define CHECK_TRAFFIC(TRAFFIC, BYTES, VOLUME)       \
    do {                                            \
        struct traffic traffic_ = TRAFFIC;          \
        CHECK_EQUAL(traffic_.bytes, BYTES);         \
        CHECK_EQUAL(traffic_.volume_bytes, VOLUME); \
        CHECK_EQUAL(traffic_.peer, PEER_NONE);      \
    } while (0)

#define COUNTS(CALL, ARGUMENTS, BYTES, VOLUME) \
    CHECK_TRAFFIC(traffic_##CALL(&CALLED, UNPACKED ARGUMENTS), BYTES, VOLUME)
#define UNPACKED(...) __VA_ARGS__
#define IN_PLACE mpi_abi.in_place
#define ROOT mpi_abi.root
#define NOBODY mpi_abi.proc_null

/* Sizes */

TEST(bytes_are_count_times_size)
{
    begin();
    CHECK_EQUAL(traffic_bytes(10, BYTES_8), 80);
    CHECK_EQUAL(traffic_bytes(1, BYTES_4), 4);
    CHECK_EQUAL(traffic_bytes(0, BYTES_4), 0);
    CHECK_EQUAL(traffic_bytes(-1, BYTES_4), 0);
}

TEST(bytes_do_not_overflow_an_int)
{
    begin();
    CHECK_EQUAL(traffic_bytes(300000000, BYTES_8), 2400000000);
    CHECK_EQUAL(traffic_bytes(1ll << 40, BYTES_8), 8ll << 40);
    CHECK_EQUAL(traffic_bytes(2, FAKE_TYPE_HUGE), 6ll << 30);
}

TEST_UNDER_EACH_ABI(the_null_type_has_no_size)
{
    begin();
    unsigned asked = fake_questions;
    CHECK_EQUAL(traffic_bytes(0, GARBAGE), 0);
    CHECK_EQUAL(traffic_bytes(5, mpi_abi.datatype_null), 0);
    CHECK_EQUAL(fake_questions, asked);
}

TEST(mpichs_predefined_types_bear_their_size_and_are_not_asked)
{
    abi = "mpich";
    begin();
    unsigned asked = fake_questions;
    CHECK_EQUAL(traffic_bytes(3, 0x4c00010d), 3);  /* MPI_BYTE */
    CHECK_EQUAL(traffic_bytes(3, 0x4c00080b), 24); /* MPI_DOUBLE */
    CHECK_EQUAL(traffic_bytes(3, 0x4c001022), 48); /* MPI_C_DOUBLE_COMPLEX is 16 bytes wide */
    CHECK_EQUAL(traffic_bytes(3, (mpi_handle)0xdeadbeef00000000 | 0x4c000405), 12);
    CHECK_EQUAL(fake_questions, asked);
}

static int byte_has_one(mpi_handle type, int *bytes)
{
    *bytes = type == mpi_abi.byte ? 1 : 4;
    fake_questions++;
    return MPI_SUCCESS;
}

TEST_UNDER_EACH_ABI(predefined_types_are_asked_once_under_each_abi)
{
    begin();
    mpi_query.Type_size = byte_has_one;
    mpi_abi_learn_types();
    unsigned asked = fake_questions;
    CHECK_EQUAL(traffic_bytes(17, mpi_abi.byte), 17);
    CHECK_EQUAL(fake_questions, asked);
}

TEST(numbers_of_the_standard_abi_are_asked_once_too)
{
    abi = "standard";
    begin();
    mpi_query.Type_size = byte_has_one;
    mpi_abi_learn_types();
    unsigned asked = fake_questions;
    uint64_t bytes;
    CHECK_EQUAL(traffic_bytes(3, 0x209), 12);  /* MPI_INT */
    CHECK_EQUAL(traffic_bytes(3, 0x214), 12);  /* MPI_DOUBLE */
    CHECK(traffic_known_size(0x258, &bytes));  /* MPI_INT64_T */
    CHECK(!traffic_known_size(0x219, &bytes)); /* MPI_INTEGER: perhaps without Fortran */
    CHECK_EQUAL(fake_questions, asked);
}

/* Open MPI's types are 512 bytes apart in its library, at other addresses in programs that use
 * them, and differ between processes. */
TEST(each_predefined_type_is_known_wherever_it_lies)
{
    struct mpi_type_size types[MPI_TYPES_MOST];
    uint64_t chance = 1, bytes;
    for (int process = 0; process < 100; process++) {
        for (size_t i = 0; i < MPI_TYPES_MOST; i++) {
            chance = chance * 6364136223846793005 + 1;
            types[i] = (struct mpi_type_size){0x7f0000000000 + (chance >> 36 << 5), i};
        }
        CHECK(mpi_abi_place_types(types, MPI_TYPES_MOST));
        for (size_t i = 0; i < MPI_TYPES_MOST; i++)
            CHECK(traffic_known_size(types[i].type, &bytes) && bytes == i);
    }
}

/* Calls that are not counted */

TEST(an_unknown_abi_is_asked_nothing)
{
    fake_mpi_speak("unknown");
    COUNTS(bcast, (10, GARBAGE, HERE, GARBAGE), 0, 0);
    COUNTS(scatterv, (NONE, GARBAGE, 10, GARBAGE, HERE, GARBAGE), 0, 0);
    CHECK_EQUAL(fake_questions, 0);
}

/* Messages */

TEST(a_message_goes_to_the_peers_world_rank)
{
    begin();
    struct traffic traffic = traffic_message(&CALLED, 10, BYTES_8, 3, 7, world);
    CHECK_EQUAL(traffic.bytes, 80);
    CHECK_EQUAL(traffic.volume_bytes, 80);
    CHECK_EQUAL(traffic.peer, 3);
    CHECK_EQUAL(traffic_message(&CALLED, 10, BYTES_8, 1, 7, inter).peer, 3);
    CHECK_EQUAL(traffic_message(&CALLED, 10, BYTES_8, 2, 7, inter).peer, LEDGER_PEER_OUTSIDE);
}

TEST_UNDER_EACH_ABI(a_message_to_nobody_moves_nothing)
{
    begin();
    COUNTS(message, (10, BYTES_8, NOBODY, 7, world), 0, 0);
}

TEST(an_arrival_has_the_size_that_arrived)
{
    begin();
    struct communicator *communicator = communicators_find(world);
    struct traffic traffic =
        traffic_received((struct mpi_arrival){.bytes = 5ll << 30, .source = 2}, 7, communicator);
    CHECK_EQUAL(traffic.bytes, 5ll << 30);
    CHECK_EQUAL(traffic.volume_bytes, 0);
    CHECK_EQUAL(traffic.peer, 2);
    CHECK(!(traffic.flags & TRAFFIC_IS_POSTED));
}

/* Bcast, Reduce, Allreduce, Scan */

TEST_UNDER_EACH_ABI(a_bcast_has_its_size_on_every_rank_and_its_volume_at_the_root)
{
    begin();
    COUNTS(bcast, (10, BYTES_8, HERE, world), 80, 80);
    COUNTS(bcast, (10, BYTES_8, ELSEWHERE, world), 80, 0);
    COUNTS(bcast, (10, BYTES_8, ROOT, inter), 80, 80);
    COUNTS(bcast, (10, GARBAGE, NOBODY, inter), 0, 0);
    COUNTS(bcast, (10, BYTES_8, HERE, inter), 80, 0); /* rank 1 of the other group */
}

TEST_UNDER_EACH_ABI(a_reduce_has_its_size_on_every_rank_and_no_volume_at_a_root_of_the_other_group)
{
    begin();
    COUNTS(reduce, (10, BYTES_8, HERE, world), 80, 80);
    COUNTS(reduce, (10, BYTES_8, ELSEWHERE, world), 80, 80);
    COUNTS(reduce, (10, BYTES_8, ROOT, inter), 80, 0);
    COUNTS(reduce, (10, GARBAGE, NOBODY, inter), 0, 0);
    COUNTS(reduce, (10, BYTES_8, HERE, inter), 80, 80);
    COUNTS(allreduce, (300000000, BYTES_8, world), 2400000000, 2400000000);
    COUNTS(allreduce, (10, BYTES_8, inter), 80, 80);
}

TEST(a_reduce_scatter_counts_the_whole_send_buffer)
{
    begin();
    COUNTS(reduce_scatter, (ints((int[]){1, 2, 3, 4}), BYTES_8, world), 80, 80);
    COUNTS(reduce_scatter, (ints((int[]){1, 2}), BYTES_8, inter), 24, 24);
    CHECK_TRAFFIC(
        traffic_reduce_scatter(&CALLED, wides((mpi_count[]){1ll << 33, 0, 0, 1}), BYTES_8, world),
        (8ll << 33) + 8, (8ll << 33) + 8);
    COUNTS(reduce_scatter_block, (10, BYTES_8, world), 320, 320);
    COUNTS(reduce_scatter_block, (10, BYTES_8, inter), 160, 160);
}

TEST(counts_that_sum_above_an_int_are_summed_in_full)
{
    begin();
    int counts[] = {2000000000, 2000000000, 2000000000, 2000000000};
    COUNTS(reduce_scatter, (ints(counts), BYTES_8, world), 64000000000, 64000000000);
    COUNTS(reduce_scatter_block, (2000000000, BYTES_8, world), 64000000000, 64000000000);
}

/* Gather, Scatter, Allgather, Alltoall: one process's block */

TEST_UNDER_EACH_ABI(a_gather_counts_one_block_and_reads_only_what_is_significant)
{
    begin();
    COUNTS(gather, (buffer, 10, BYTES_8, 20, BYTES_4, HERE, world), 80, 80);
    COUNTS(gather, (IN_PLACE, 99, GARBAGE, 20, BYTES_4, HERE, world), 80, 80);
    COUNTS(gather, (buffer, 10, BYTES_8, 99, GARBAGE, ELSEWHERE, world), 80, 80);
    COUNTS(gather, (buffer, 99, GARBAGE, 20, BYTES_4, ROOT, inter), 80, 0);
    COUNTS(gather, (buffer, 99, GARBAGE, 99, GARBAGE, NOBODY, inter), 0, 0);
    COUNTS(gather, (buffer, 10, BYTES_8, 99, GARBAGE, HERE, inter), 80, 80);
}

TEST_UNDER_EACH_ABI(a_scatter_counts_one_block_and_all_of_them_as_the_roots_volume)
{
    begin();
    COUNTS(scatter, (10, BYTES_8, 99, GARBAGE, HERE, world), 80, 320);
    COUNTS(scatter, (99, GARBAGE, 20, BYTES_4, ELSEWHERE, world), 80, 0);
    COUNTS(scatter, (10, BYTES_8, 99, GARBAGE, ROOT, inter), 80, 240);
    COUNTS(scatter, (99, GARBAGE, 99, GARBAGE, NOBODY, inter), 0, 0);
    COUNTS(scatter, (99, GARBAGE, 20, BYTES_4, HERE, inter), 80, 0);
}

TEST_UNDER_EACH_ABI(an_allgather_counts_its_block_and_an_alltoall_one_for_each_process_as_volume)
{
    begin();
    COUNTS(allgather, (buffer, 10, BYTES_8, 99, GARBAGE, world), 80, 80);
    COUNTS(allgather, (IN_PLACE, 99, GARBAGE, 20, BYTES_4, world), 80, 80);
    COUNTS(allgather, (buffer, 10, BYTES_8, 99, GARBAGE, inter), 80, 80);
    COUNTS(alltoall, (buffer, 10, BYTES_8, 99, GARBAGE, world), 80, 320);
    COUNTS(alltoall, (IN_PLACE, 99, GARBAGE, 20, BYTES_4, world), 80, 320);
    COUNTS(alltoall, (buffer, 10, BYTES_8, 99, GARBAGE, inter), 80, 240);
}

/* v- and w-variants: what this rank sends */

TEST_UNDER_EACH_ABI(a_gatherv_counts_what_this_rank_sends)
{
    begin();
    const struct counts counts = ints((int[]){1, 20, 3, 4});
    COUNTS(gatherv, (buffer, 10, BYTES_8, counts, BYTES_4, HERE, world), 80, 80);
    COUNTS(gatherv, (IN_PLACE, 99, GARBAGE, counts, BYTES_4, HERE, world), 80, 80);
    COUNTS(gatherv, (buffer, 10, BYTES_8, NONE, GARBAGE, ELSEWHERE, world), 80, 80);
    COUNTS(gatherv, (buffer, 99, GARBAGE, counts, BYTES_4, ROOT, inter), 0, 0);
    COUNTS(gatherv, (buffer, 99, GARBAGE, NONE, GARBAGE, NOBODY, inter), 0, 0);
    COUNTS(gatherv, (buffer, 10, BYTES_8, NONE, GARBAGE, HERE, inter), 80, 80);
}

TEST_UNDER_EACH_ABI(a_scatterv_counts_all_at_the_root_and_what_is_received_elsewhere)
{
    begin();
    COUNTS(scatterv, (ints((int[]){1, 2, 3, 4}), BYTES_8, 99, GARBAGE, HERE, world), 80, 80);
    COUNTS(scatterv, (NONE, GARBAGE, 20, BYTES_4, ELSEWHERE, world), 80, 0);
    COUNTS(scatterv, (ints((int[]){1, 2, 3}), BYTES_8, 99, GARBAGE, ROOT, inter), 48, 48);
    COUNTS(scatterv, (NONE, GARBAGE, 99, GARBAGE, NOBODY, inter), 0, 0);
    COUNTS(scatterv, (NONE, GARBAGE, 20, BYTES_4, HERE, inter), 80, 0);
}

TEST_UNDER_EACH_ABI(an_allgatherv_and_an_alltoallv_count_what_this_rank_sends)
{
    begin();
    const struct counts counts = ints((int[]){1, 20, 3, 4}),
                        wide = wides((mpi_count[]){1, 1ll << 33, 3, 4});
    COUNTS(allgatherv, (buffer, 10, BYTES_8, NONE, GARBAGE, world), 80, 80);
    COUNTS(allgatherv, (IN_PLACE, 99, GARBAGE, counts, BYTES_4, world), 80, 80);
    CHECK_TRAFFIC(traffic_allgatherv(&CALLED, IN_PLACE, 99, GARBAGE, wide, BYTES_4, world),
                  4ll << 33, 4ll << 33);
    COUNTS(alltoallv, (buffer, counts, BYTES_8, NONE, GARBAGE, world), 224, 224);
    COUNTS(alltoallv, (IN_PLACE, NONE, GARBAGE, counts, BYTES_4, world), 112, 112);
    COUNTS(alltoallv, (buffer, counts, BYTES_8, NONE, GARBAGE, inter), 192, 192); /* three others */
    CHECK_TRAFFIC(traffic_alltoallv(&CALLED, buffer, wide, BYTES_8, NONE, GARBAGE, world),
                  (8ll << 33) + 64, (8ll << 33) + 64);
}

/* Handles in an array, in the ABI's layout. */
static const void *types(mpi_handle a, mpi_handle b, mpi_handle c, mpi_handle d)
{
    static uint64_t memory[4];
    const mpi_handle handles[] = {a, b, c, d};
    for (size_t i = 0; i < 4; i++)
        mpi_handle_store((char *)memory + i * mpi_abi.handle_bytes, handles[i]);
    return memory;
}

TEST_UNDER_EACH_ABI(an_alltoallw_counts_each_block_by_its_type_and_reads_no_type_of_an_empty_one)
{
    begin();
    const struct counts counts = ints((int[]){1, 0, 3, 4});
    COUNTS(alltoallw,
           (buffer, counts, types(BYTES_8, GARBAGE, BYTES_4, BYTES_8), NONE, NULL, world), 52, 52);
    COUNTS(alltoallw,
           (IN_PLACE, NONE, NULL, counts, types(BYTES_4, BYTES_4, BYTES_4, BYTES_4), world), 32,
           32);
    COUNTS(alltoallw,
           (buffer, counts, types(BYTES_8, GARBAGE, BYTES_4, GARBAGE), NONE, NULL, inter), 20, 20);
}

/* Neighborhoods */

static mpi_handle with_topology(int topology)
{
    static const int ALL[] = {0, 1, 2, 3};
    fake_topology = topology;
    return fake_comm(ALL, 4);
}

TEST_UNDER_EACH_ABI(a_neighborhood_is_who_this_rank_sends_to_in_the_topology)
{
    begin();
    const struct counts counts = ints((int[]){1, 2, 3, 4});
    mpi_handle grid = with_topology(mpi_abi.cart);
    COUNTS(neighbor_allgather, (5, BYTES_8, grid), 40, 40);
    COUNTS(neighbor_alltoall, (5, BYTES_8, grid), 40, 160);
    COUNTS(neighbor_alltoallv, (counts, BYTES_4, grid), 40, 40);
    COUNTS(neighbor_alltoallw, (counts, types(BYTES_4, BYTES_8, BYTES_4, BYTES_8), grid), 64, 64);
    mpi_handle graph = with_topology(mpi_abi.graph);
    COUNTS(neighbor_alltoall, (1, BYTES_4, graph), 4, 12);
    COUNTS(neighbor_alltoallv, (counts, BYTES_4, graph), 24, 24);
    mpi_handle dist_graph = with_topology(mpi_abi.dist_graph);
    COUNTS(neighbor_alltoall, (1, BYTES_4, dist_graph), 4, 8);
    COUNTS(neighbor_alltoallv, (counts, BYTES_4, dist_graph), 12, 12);
}

TEST(a_topology_is_asked_about_once)
{
    begin();
    mpi_handle grid = with_topology(mpi_abi.cart);
    traffic_neighbor_alltoall(&CALLED, 1, BYTES_4, grid);
    fake_topology = mpi_abi.graph; /* as if the topology had changed */
    COUNTS(neighbor_alltoall, (1, BYTES_4, grid), 4, 16);
}

TEST(who_sends_to_nobody_may_pass_anything_as_type)
{
    begin();
    mpi_handle none = with_topology(MPI_UNDEFINED);
    COUNTS(neighbor_allgather, (5, GARBAGE, none), 0, 0);
    COUNTS(neighbor_alltoall, (5, GARBAGE, none), 0, 0);
    COUNTS(neighbor_alltoallv, (NONE, GARBAGE, none), 0, 0);
}

/* Windows and files */

enum { WINDOW = 0x700040, FILE_HANDLE = 0x700080 };

TEST_UNDER_EACH_ABI(a_window_s_traffic_is_with_world_ranks_of_its_communicator)
{
    begin();
    mpi_handle odd = fake_comm((int[]){1, 3}, 2);
    communicators_attach(communicators_key_of_window(WINDOW), odd);
    struct traffic put = traffic_put(&CALLED, 3, BYTES_8, 1, WINDOW);
    CHECK_EQUAL(put.bytes, 24);
    CHECK_EQUAL(put.volume_bytes, 24);
    CHECK_EQUAL(put.peer, 3);
    CHECK_EQUAL(put.direction, LEDGER_SENT);
    CHECK(put.communicator->created_on == communicators_find(odd));
    struct traffic get = traffic_get(&CALLED, 3, BYTES_8, 1, WINDOW);
    CHECK_EQUAL(get.bytes, 24);
    CHECK_EQUAL(get.volume_bytes, 0);
    CHECK_EQUAL(get.peer, 3);
    CHECK_EQUAL(get.direction, LEDGER_RECEIVED);
    COUNTS(put, (3, GARBAGE, NOBODY, WINDOW), 0, 0);
    CHECK(traffic_window(&CALLED, WINDOW).communicator->created_on == communicators_find(odd));
}

TEST(an_object_that_is_not_known_has_bytes_and_no_communicator)
{
    begin();
    unsigned asked_before = fake_questions;
    CHECK(traffic_window(&CALLED, WINDOW).communicator == NULL);
    CHECK_EQUAL(fake_questions, asked_before);
    COUNTS(put, (3, BYTES_8, 1, WINDOW), 24, 24);
    COUNTS(file, (3, BYTES_8, FILE_HANDLE), 24, 0);
}

static void files(void)
{
    begin();
    communicators_attach(communicators_key_of_file(FILE_HANDLE), world);
    COUNTS(file, (3, BYTES_8, FILE_HANDLE), 24, 0);
    COUNTS(written, (3, BYTES_8, FILE_HANDLE), 24, 24);
    COUNTS(read, ((struct mpi_arrival){.bytes = 9}, FILE_HANDLE), 9, 0);
    COUNTS(file, (0, GARBAGE, FILE_HANDLE), 0, 0);
    CHECK(traffic_file(&CALLED, 0, 0, FILE_HANDLE).communicator->created_on ==
          communicators_find(world));
}

TEST(a_file_counts_what_is_written_as_volume_and_what_is_read_as_bytes)
{
    under_each_abi(files);
}

TEST(a_file_s_handle_is_a_pointer_where_others_are_integers)
{
    abi = "mpich";
    begin();
    communicators_attach(communicators_key_of_file(0x5555000000001000), world);
    CHECK(traffic_file(&CALLED, 0, 0, 0x5555000000001000).communicator != NULL);
    CHECK(traffic_file(&CALLED, 0, 0, 0x5556000000001000).communicator == NULL);
}
