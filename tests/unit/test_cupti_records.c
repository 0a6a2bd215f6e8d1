#include "cupti/records.h"

#include "unit.h"

enum { CUDA_10 = 12, CUDA_11 = 13 };

static uint32_t blocks_of(int32_t x, int32_t y, int32_t z)
{
    struct gpu_event event;
    struct cupti_kernel kernel = {.kind = CUPTI_CONCURRENT_KERNEL, .grid = {x, y, z}};
    CHECK(records_read(&kernel, CUDA_11, &event));
    return event.blocks;
}

TEST(a_kernel_has_the_blocks_of_its_grid)
{
    CHECK_EQUAL(blocks_of(2, 3, 4), 24);
    CHECK_EQUAL(blocks_of(INT32_MAX, 2, 1), UINT32_MAX - 1);
    CHECK_EQUAL(blocks_of(INT32_MAX, 3, 1), 0); /* no number of ours */
    CHECK_EQUAL(blocks_of(16, 0, 1), 0);
    CHECK_EQUAL(blocks_of(16, -1, -1), 0);
}

TEST(activities_that_a_graph_has_launched_are_marked)
{
    struct gpu_event event;
    struct cupti_kernel kernel = {.kind = CUPTI_CONCURRENT_KERNEL, .graph_node = 5};
    struct cupti_copy copy = {.kind = CUPTI_MEMCPY, .graph_node = 5};
    struct cupti_peer_copy peer_copy = {.kind = CUPTI_MEMCPY2, .graph_node = 5};
    struct cupti_set set = {.kind = CUPTI_MEMSET, .graph_node = 5};
    const void *const RECORDS[] = {&kernel, &copy, &peer_copy, &set};
    for (unsigned i = 0; i < 4; i++) {
        CHECK(records_read(RECORDS[i], CUDA_11, &event));
        CHECK_EQUAL(event.flags, LEDGER_ACTIVITY_GRAPH);
    }
}

TEST(records_before_cuda_11_are_not_read_beyond_their_end)
{
    struct gpu_event event;
    struct cupti_kernel kernel = {.kind = CUPTI_CONCURRENT_KERNEL, .graph_node = 0xdead};
    CHECK(records_read(&kernel, CUDA_10, &event));
    CHECK_EQUAL(event.flags, 0);
}

static uint8_t copy_of(uint8_t kind)
{
    struct gpu_event event;
    struct cupti_copy copy = {.kind = CUPTI_MEMCPY, .copy_kind = kind, .bytes = 4096};
    CHECK(records_read(&copy, CUDA_11, &event));
    CHECK_EQUAL(event.kind, LEDGER_ACTIVITY_COPY);
    CHECK_EQUAL(event.bytes, 4096);
    return event.copy;
}

TEST(copies_have_a_direction_and_arrays_are_on_the_device)
{
    CHECK_EQUAL(copy_of(1), LEDGER_COPY_TO_DEVICE);
    CHECK_EQUAL(copy_of(2), LEDGER_COPY_TO_HOST);
    CHECK_EQUAL(copy_of(3), LEDGER_COPY_TO_DEVICE);
    CHECK_EQUAL(copy_of(4), LEDGER_COPY_TO_HOST);
    CHECK_EQUAL(copy_of(6), LEDGER_COPY_ON_DEVICE);
    CHECK_EQUAL(copy_of(8), LEDGER_COPY_ON_DEVICE);
    CHECK_EQUAL(copy_of(9), LEDGER_COPY_ON_HOST);
    CHECK_EQUAL(copy_of(10), LEDGER_COPY_TO_PEER);
    CHECK_EQUAL(copy_of(0), LEDGER_COPY_OTHER);
    CHECK_EQUAL(copy_of(200), LEDGER_COPY_OTHER);
}

static uint8_t flags_of(uint8_t source_kind, uint8_t destination_kind)
{
    struct gpu_event event;
    struct cupti_copy copy = {
        .kind = CUPTI_MEMCPY, .source_kind = source_kind, .destination_kind = destination_kind};
    CHECK(records_read(&copy, CUDA_11, &event));
    return event.flags;
}

TEST(either_side_of_a_copy_may_be_pageable_or_managed)
{
    enum { UNKNOWN = 0, PAGEABLE = 1, PINNED = 2, DEVICE = 3, MANAGED = 5, MANAGED_STATIC = 7 };
    CHECK_EQUAL(flags_of(PINNED, DEVICE), 0);
    CHECK_EQUAL(flags_of(PAGEABLE, DEVICE), LEDGER_ACTIVITY_PAGEABLE);
    CHECK_EQUAL(flags_of(DEVICE, PAGEABLE), LEDGER_ACTIVITY_PAGEABLE);
    CHECK_EQUAL(flags_of(MANAGED, DEVICE), LEDGER_ACTIVITY_MANAGED);
    CHECK_EQUAL(flags_of(MANAGED_STATIC, PAGEABLE),
                LEDGER_ACTIVITY_MANAGED | LEDGER_ACTIVITY_PAGEABLE);
    CHECK_EQUAL(flags_of(UNKNOWN, 255), 0);
}
