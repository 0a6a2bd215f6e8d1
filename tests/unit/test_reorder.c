#include "gpu/reorder.h"

#include "unit.h"

static struct reorder reorder = {.most = 1 << 20};

static bool put(int64_t start_ns)
{
    return reorder_put(&reorder,
                       &(struct reorder_event){.start_ns = start_ns, .end_ns = 2 * start_ns + 1});
}

static void check_take(int64_t start_ns)
{
    CHECK_EQUAL(reorder_first_ns(&reorder), start_ns);
    struct reorder_event event = reorder_take(&reorder);
    CHECK_EQUAL(event.start_ns, start_ns);
    CHECK_EQUAL(event.end_ns, 2 * start_ns + 1);
}

TEST(an_empty_one_has_no_first)
{
    CHECK_EQUAL(reorder_first_ns(&reorder), INT64_MAX);
    CHECK(put(7));
    check_take(7);
    CHECK_EQUAL(reorder_first_ns(&reorder), INT64_MAX);
}

TEST(the_earliest_comes_first)
{
    enum { COUNT = 10007 }; /* a prime: multiples of any number visit all indices once */
    for (int64_t i = 0; i < COUNT; i++)
        CHECK(put(i * 4999 % COUNT));
    for (int64_t i = 0; i < COUNT; i++)
        check_take(i);
}

TEST(it_stays_in_order_while_events_come_and_go)
{
    int64_t settled_ns = 0;
    for (int round = 0; round < 2000; round++) {
        for (uint64_t i = unit_random_below(100); i-- > 0;)
            CHECK(put(settled_ns + (int64_t)unit_random_below(1000)));
        for (int64_t until_ns = settled_ns + (int64_t)unit_random_below(300);
             reorder_first_ns(&reorder) < until_ns;) {
            int64_t first_ns = reorder_first_ns(&reorder);
            CHECK(first_ns >= settled_ns);
            check_take(first_ns);
            settled_ns = first_ns;
        }
    }
}

TEST(a_full_one_takes_no_more_until_there_is_room)
{
    reorder.most = 5000;
    for (int64_t i = 0; i < 5000; i++)
        CHECK(put(i));
    CHECK(!put(77));
    check_take(0);
    CHECK(put(77));
    CHECK(!put(78));
    for (int64_t i = 1; i < 78; i++)
        check_take(i);
    check_take(77);
    check_take(78);
}
