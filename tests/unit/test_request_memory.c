#include "mpi/request_memory.h"

#include "fake_mpi.h"
#include "unit.h"

#include <stdlib.h>

/* The variant with the address sanitizer checks that the memory itself is freed, and once. */

static void memory_goes_when_its_request_completes(void)
{
    fake_mpi_speak("open_mpi");
    request_memory_add(0x1000, malloc(10));
    CHECK_EQUAL(request_memory_count, 1);
    request_memory_release(0x1000);
    CHECK_EQUAL(request_memory_count, 0);
}

static void memory_stays_when_another_request_completes(void)
{
    fake_mpi_speak("open_mpi");
    request_memory_add(0x1000, malloc(10));
    request_memory_release(0x2000);
    CHECK_EQUAL(request_memory_count, 1);
    request_memory_release(0x1000);
    CHECK_EQUAL(request_memory_count, 0);
}

static void requests_with_one_handle_free_one_each(void)
{
    fake_mpi_speak("open_mpi");
    request_memory_add(0x1000, malloc(10));
    request_memory_add(0x1000, malloc(20));
    request_memory_release(0x1000);
    CHECK_EQUAL(request_memory_count, 1);
    request_memory_release(0x1000);
    CHECK_EQUAL(request_memory_count, 0);
    request_memory_release(0x1000);
    CHECK_EQUAL(request_memory_count, 0);
}

static void upper_halves_of_narrow_handles_do_not_matter(void)
{
    fake_mpi_speak("mpich");
    request_memory_add(0xdeadbeef2c000001, malloc(10));
    request_memory_release(0x2c000001);
    CHECK_EQUAL(request_memory_count, 0);
}

static const struct unit_test TESTS[] = {
    TEST(memory_goes_when_its_request_completes),
    TEST(memory_stays_when_another_request_completes),
    TEST(requests_with_one_handle_free_one_each),
    TEST(upper_halves_of_narrow_handles_do_not_matter),
};

UNIT_FILE(TESTS)
