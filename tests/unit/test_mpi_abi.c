#include "mpi/mpi_abi.h"

#include "fake_mpi.h"
#include "unit.h"

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

/* Statuses */

struct open_mpi_status {
    int source, tag, error, cancelled;
    size_t bytes;
};

struct mpich_status {
    int count_lo, count_hi_and_cancelled, source, tag, error;
};

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

static void speak_standard(void)
{
    fake_mpi_speak("standard");
    mpi_query.Get_elements_x = answer_elements;
    mpi_query.Test_cancelled = answer_cancelled;
}

/* A cancelled receive brought nothing; half an element is no negative size. */
TEST(a_status_has_bytes_and_source_in_each_abi)
{
    static const struct open_mpi_status OPEN_MPI[] = {
        {3, 99, 7, 0, 4096}, {3, 99, 7, 0, 1ull << 40}, {3, 99, 7, 1, 4096}};
    static const struct mpich_status MPICH[] = {
        {4096, 0, 3, 99, 7}, {(int)0x80000005, 3 << 1, 3, 99, 7}, {4096, 1, 3, 99, 7}};
    static const int STANDARD[][8] = {
        {3, 99, 0, 0, 0, 4096, 0}, {3, 99, 0, 0, 0, MPI_UNDEFINED, 0}, {3, 99, 0, 0, 0, 4096, 1}};
    const struct {
        const char *abi;
        const void *status;
        uint64_t bytes;
        bool is_cancelled;
    } ROWS[] = {{"open_mpi", &OPEN_MPI[0], 4096, false},
                {"open_mpi", &OPEN_MPI[1], 1ull << 40, false},
                {"open_mpi", &OPEN_MPI[2], 0, true},
                {"mpich", &MPICH[0], 4096, false},
                {"mpich", &MPICH[1], (3ull << 32) + 0x80000005, false},
                {"mpich", &MPICH[2], 0, true},
                {"standard", STANDARD[0], 4096, false},
                {"standard", STANDARD[1], 0, false},
                {"standard", STANDARD[2], 0, true}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        unit_context = ROWS[i].abi;
        speak_standard();
        if (strcmp(ROWS[i].abi, "standard") != 0)
            fake_mpi_speak(ROWS[i].abi);
        struct mpi_arrival arrival = mpi_arrival_read(ROWS[i].status);
        CHECK_EQUAL(arrival.bytes, ROWS[i].bytes);
        CHECK_EQUAL(arrival.source, 3);
        CHECK_EQUAL(arrival.cancelled, ROWS[i].is_cancelled);
    }
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
    speak_standard();
    mpi_query.Test_cancelled = must_not_be_asked;
    struct mpi_arrival arrival = mpi_arrival_read_uncancelled(status);
    CHECK_EQUAL(arrival.bytes, 4096);
    CHECK_EQUAL(arrival.source, 3);
    CHECK(!arrival.cancelled);
}
