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
