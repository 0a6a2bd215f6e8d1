#include "ledger/histogram.h"

#include "unit.h"

enum { LAST = HISTOGRAM_BUCKETS - 1 };

TEST(each_bucket_begins_where_the_one_before_it_ends)
{
    for (unsigned bucket = 1; bucket <= LAST; bucket++) {
        CHECK_EQUAL(histogram_bucket(histogram_low_ns(bucket)), bucket);
        CHECK_EQUAL(histogram_bucket(histogram_low_ns(bucket) - 1), bucket - 1);
    }
}

TEST(durations_beyond_the_range_fall_into_the_last_bucket)
{
    CHECK_EQUAL(histogram_low_ns(LAST), 1ull << 47);
    CHECK_EQUAL(histogram_bucket((1ull << 47) - 1), LAST - 1);
    CHECK_EQUAL(histogram_bucket(1ull << 47), LAST);
    CHECK_EQUAL(histogram_bucket(UINT64_MAX), LAST);
}

/* If |middle - value| <= value / 16 holds for a bucket's first and last value, it holds for all
 * between. */
TEST(a_buckets_middle_is_within_a_sixteenth_of_what_is_in_it)
{
    for (unsigned bucket = 1; bucket < LAST; bucket++) {
        uint64_t low = histogram_low_ns(bucket), last = histogram_low_ns(bucket + 1) - 1;
        uint64_t middle = low + (last - low) / 2;
        CHECK(16 * (middle - low) <= low);
        CHECK(16 * (last - middle) <= last);
    }
}
