#include "mpi/mpi_abi.h"

#include "fake_mpi.h"
#include "unit.h"

/* Detection of the ABI. tests/abi compares the constants with each installed mpi.h. */

TEST(each_abi_is_known_by_what_its_library_defines)
{
    fake_mpi_speak("open_mpi");
    CHECK_EQUAL(mpi_abi.kind, MPI_ABI_OPEN_MPI);
    CHECK(mpi_abi.known);
    fake_mpi_speak("mpich");
    CHECK_EQUAL(mpi_abi.kind, MPI_ABI_MPICH);
    CHECK(mpi_abi.known);
}

/* With Open MPI 6's libmpi_abi, ompi_mpi_comm_world is visible as well. */
TEST(the_standard_abi_is_not_taken_for_the_library_below_it)
{
    fake_mpi_speak("standard");
    CHECK_EQUAL(mpi_abi.kind, MPI_ABI_STANDARD);
    CHECK_EQUAL(mpi_abi.comm_world, 0x101);
}

TEST(a_library_of_another_abi_is_unknown)
{
    fake_mpi_speak("unknown");
    CHECK_EQUAL(mpi_abi.kind, MPI_ABI_UNKNOWN);
    CHECK(!mpi_abi.known);
}

TEST(a_function_that_the_library_lacks_is_not_asked)
{
    char path[4096];
    snprintf(path, sizeof path, UNIT_BUILD "/stub_mpich.so");
    mpi_abi_detect(dlopen(path, RTLD_NOW), path);
    CHECK(mpi_query.Get_elements_x == NULL);
    CHECK(mpi_query.Comm_get_parent == NULL);
}

TEST(open_mpis_handles_are_the_addresses_of_its_objects)
{
    char path[4096];
    snprintf(path, sizeof path, UNIT_BUILD "/stub_open_mpi.so");
    void *stub = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    mpi_abi_detect(stub, path);
    CHECK_EQUAL(mpi_abi.comm_world, (mpi_handle)dlsym(stub, "ompi_mpi_comm_world"));
    CHECK_EQUAL(mpi_abi.request_null, (mpi_handle)dlsym(stub, "ompi_request_null"));
}

/* Handles in memory */

TEST(narrow_handles_lie_four_bytes_apart)
{
    uint32_t handles[8] = {0x2c000001, 0xac000002, 0x2c000003};
    fake_mpi_speak("mpich");
    CHECK_EQUAL(mpi_handle_load(handles, 0), 0x2c000001);
    CHECK_EQUAL(mpi_handle_load(handles, 1), 0xac000002);
    mpi_handle_store(&handles[1], (mpi_handle)0xdeadbeef00000000 | 0x2c000007);
    CHECK_EQUAL(handles[0], 0x2c000001);
    CHECK_EQUAL(handles[1], 0x2c000007);
    CHECK_EQUAL(handles[2], 0x2c000003);
}

TEST(wide_handles_lie_eight_bytes_apart)
{
    uint64_t handles[4] = {0x7f0011111111, 0x7f0022222222, 0x7f0033333333};
    fake_mpi_speak("open_mpi");
    CHECK_EQUAL(mpi_handle_load(handles, 1), 0x7f0022222222);
    mpi_handle_store(&handles[1], 0x7f0044444444);
    CHECK_EQUAL(handles[0], 0x7f0011111111);
    CHECK_EQUAL(handles[1], 0x7f0044444444);
    CHECK_EQUAL(handles[2], 0x7f0033333333);
}

TEST(what_stands_above_a_narrow_handle_in_a_register_does_not_matter)
{
    fake_mpi_speak("mpich");
    CHECK_EQUAL(mpi_handle_bits((mpi_handle)0xdeadbeef00000000 | 0x44000000), 0x44000000);
    fake_mpi_speak("open_mpi");
    CHECK_EQUAL(mpi_handle_bits(0x7f0044444444), 0x7f0044444444);
}

/* Statuses */

struct open_mpi_status {
    int source, tag, error, cancelled;
    size_t bytes;
};

struct mpich_status {
    int count_lo, count_hi_and_cancelled, source, tag, error;
};

TEST(open_mpis_status_has_bytes_and_source)
{
    struct open_mpi_status status = {.source = 3, .tag = 99, .error = 7, .bytes = 4096};
    fake_mpi_speak("open_mpi");
    struct mpi_arrival arrival = mpi_arrival_read(&status);
    CHECK_EQUAL(arrival.bytes, 4096);
    CHECK_EQUAL(arrival.source, 3);
    CHECK(!arrival.cancelled);
}

TEST(open_mpis_status_holds_more_bytes_than_an_int)
{
    struct open_mpi_status status = {.bytes = 1ull << 40};
    fake_mpi_speak("open_mpi");
    CHECK_EQUAL(mpi_arrival_read(&status).bytes, 1ull << 40);
}

TEST(open_mpis_cancelled_receive_brought_nothing)
{
    struct open_mpi_status status = {.source = 3, .cancelled = 1, .bytes = 4096};
    fake_mpi_speak("open_mpi");
    CHECK(mpi_arrival_read(&status).cancelled);
    CHECK_EQUAL(mpi_arrival_read(&status).bytes, 0);
}

TEST(mpichs_status_has_bytes_and_source)
{
    struct mpich_status status = {.count_lo = 4096, .source = 3, .tag = 99, .error = 7};
    fake_mpi_speak("mpich");
    struct mpi_arrival arrival = mpi_arrival_read(&status);
    CHECK_EQUAL(arrival.bytes, 4096);
    CHECK_EQUAL(arrival.source, 3);
    CHECK(!arrival.cancelled);
}

TEST(mpichs_status_holds_more_bytes_than_an_int)
{
    struct mpich_status status = {.count_lo = (int)0x80000005, .count_hi_and_cancelled = 3 << 1};
    fake_mpi_speak("mpich");
    CHECK_EQUAL(mpi_arrival_read(&status).bytes, (3ull << 32) + 0x80000005);
}

TEST(mpichs_cancelled_receive_brought_nothing)
{
    struct mpich_status status = {.count_lo = 4096, .count_hi_and_cancelled = 1};
    fake_mpi_speak("mpich");
    CHECK(mpi_arrival_read(&status).cancelled);
    CHECK_EQUAL(mpi_arrival_read(&status).bytes, 0);
}

/* The standard ABI does not define where a status holds the count: MPI is asked. */

static int answer_elements(const void *status, mpi_handle type, mpi_count *elements)
{
    CHECK_EQUAL(type, 0x247); /* MPI_BYTE */
    *elements = ((const int *)status)[5];
    return MPI_SUCCESS;
}

static int answer_cancelled(const void *status, int *cancelled)
{
    *cancelled = ((const int *)status)[6];
    return MPI_SUCCESS;
}

TEST(a_standard_status_is_asked_for_its_bytes)
{
    int status[8] = {3, 99, 0, 0, 0, 4096, 0, 0};
    fake_mpi_speak("standard");
    mpi_query.Get_elements_x = answer_elements;
    mpi_query.Test_cancelled = answer_cancelled;
    CHECK_EQUAL(mpi_arrival_read(status).bytes, 4096);
    CHECK_EQUAL(mpi_arrival_read(status).source, 3);
    CHECK(!mpi_arrival_read(status).cancelled);
}

TEST(a_standard_status_of_a_cancelled_receive_brought_nothing)
{
    int status[8] = {3, 99, 0, 0, 0, 4096, 1, 0};
    fake_mpi_speak("standard");
    mpi_query.Get_elements_x = answer_elements;
    mpi_query.Test_cancelled = answer_cancelled;
    CHECK(mpi_arrival_read(status).cancelled);
    CHECK_EQUAL(mpi_arrival_read(status).bytes, 0);
}

static int must_not_be_asked(const void *status, int *cancelled)
{
    (void)status, (void)cancelled;
    unit_check(false, "MPI_Test_cancelled is not asked", __FILE__, __LINE__);
    return MPI_SUCCESS;
}

TEST(a_status_that_cannot_be_cancelled_is_not_asked_whether_it_is)
{
    int status[8] = {3, 99, 0, 0, 0, 4096, 1, 0};
    fake_mpi_speak("standard");
    mpi_query.Get_elements_x = answer_elements;
    mpi_query.Test_cancelled = must_not_be_asked;
    struct mpi_arrival arrival = mpi_arrival_read_uncancelled(status);
    CHECK_EQUAL(arrival.bytes, 4096);
    CHECK_EQUAL(arrival.source, 3);
    CHECK(!arrival.cancelled);
}

TEST(a_status_of_half_an_element_has_no_negative_size)
{
    int status[8] = {3, 99, 0, 0, 0, MPI_UNDEFINED, 0, 0};
    fake_mpi_speak("standard");
    mpi_query.Get_elements_x = answer_elements;
    CHECK_EQUAL(mpi_arrival_read(status).bytes, 0);
}

TEST(statuses_of_an_array_lie_as_far_apart_as_the_abi_has_them)
{
    char statuses[256];
    fake_mpi_speak("open_mpi");
    CHECK_EQUAL((char *)mpi_status_at(statuses, 2) - statuses, 48);
    fake_mpi_speak("mpich");
    CHECK_EQUAL((char *)mpi_status_at(statuses, 2) - statuses, 40);
    fake_mpi_speak("standard");
    CHECK_EQUAL((char *)mpi_status_at(statuses, 2) - statuses, 64);
}
