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

TEST(durations_below_16_ns_fall_into_the_first_bucket)
{
    CHECK_EQUAL(histogram_bucket(0), 0);
    CHECK_EQUAL(histogram_bucket(15), 0);
    CHECK_EQUAL(histogram_bucket(16), 1);
}

TEST(durations_beyond_the_range_fall_into_the_last_bucket)
{
    CHECK_EQUAL(histogram_low_ns(LAST), 1ull << 47);
    CHECK_EQUAL(histogram_bucket((1ull << 47) - 1), LAST - 1);
    CHECK_EQUAL(histogram_bucket(1ull << 47), LAST);
    CHECK_EQUAL(histogram_bucket(UINT64_MAX), LAST);
}

TEST(an_octave_has_eight_equal_buckets)
{
    for (unsigned octave = HISTOGRAM_FIRST_OCTAVE; octave <= HISTOGRAM_LAST_OCTAVE; octave++)
        for (unsigned part = 0; part < 8; part++)
            CHECK_EQUAL(histogram_low_ns(1 + (octave - HISTOGRAM_FIRST_OCTAVE) * 8 + part),
                        (1ull << octave) + part * ((1ull << octave) / 8));
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

TEST(a_longer_call_is_never_in_an_earlier_bucket)
{
    for (uint64_t ns = 1; ns < 1 << 20; ns++)
        CHECK(histogram_bucket(ns) >= histogram_bucket(ns - 1));
}
