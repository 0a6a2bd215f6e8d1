#include "mpi/request_memory.h"

#include "base/memory.h"
#include "fake_mpi.h"
#include "unit.h"

TEST(memory_goes_when_its_request_completes)
{
    fake_mpi_speak("open_mpi");
    request_memory_add(0x1000, memory_take(10));
    CHECK_EQUAL(request_memory_count, 1);
    request_memory_release(0x1000);
    CHECK_EQUAL(request_memory_count, 0);
    CHECK_EQUAL(memory_in_use(), 0);
}

TEST(memory_stays_when_another_request_completes)
{
    fake_mpi_speak("open_mpi");
    request_memory_add(0x1000, memory_take(10));
    request_memory_release(0x2000);
    CHECK_EQUAL(request_memory_count, 1);
    request_memory_release(0x1000);
    CHECK_EQUAL(request_memory_count, 0);
}
