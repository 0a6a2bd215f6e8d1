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
