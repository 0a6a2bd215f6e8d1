#include "base/rank_list.h"

#include "unit.h"

TEST(a_list_has_ranks_spans_and_spans_with_steps)
{
    static const char LIST[] = "0,4-6,16-31:8";
    CHECK(rank_list_is_valid(LIST));
    for (int rank = 0; rank < 64; rank++)
        CHECK_EQUAL(rank_list_has(LIST, rank),
                    rank == 0 || (rank >= 4 && rank <= 6) || rank == 16 || rank == 24);
    CHECK_EQUAL(rank_list_count(LIST, 64), 6);
}

TEST(the_largest_numbers_do_not_overflow)
{
    CHECK(rank_list_is_valid("0-2147483647:2147483647"));
    CHECK(rank_list_has("0-2147483647:2147483647", 2147483647));
    CHECK(!rank_list_is_valid("2147483648"));
    CHECK(!rank_list_is_valid("99999999999999999999999"));
}

TEST(what_is_no_list_is_refused)
{
    static const char *const LISTS[] = {"",    ",",   "1,",   ",1",    "1,,2", "-1",
                                        "3-1", "1-",  "1-4:", "1-4:0", "1:2",  "1-4:-1",
                                        "x",   "1 2", " 1",   "1;2"};
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++) {
        unit_context = LISTS[i];
        CHECK(!rank_list_is_valid(LISTS[i]));
    }
}
