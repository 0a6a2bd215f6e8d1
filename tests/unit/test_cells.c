#include "ledger/cells.h"

#include "ledger_reader.h"
#include "unit.h"

/* The smallest ledger has eight chunks. The thread's entry takes one; the other seven have 1,023
 * times 64 bytes each, of which a fold's cell and blocks are reserved, and a cell with one block
 * takes five. */
enum {
    SMALLEST_CELLS = (7 * 1023 - 4 - HISTOGRAM_BLOCKS) / 5,
    RARE = (SMALLEST_CELLS + 1) / 2,
    NEW = 5000,
    CALL_A = 1,
    CALL_B = 2
};

static struct cells cells;

static void begin(size_t limit_bytes)
{
    CHECK_EQUAL(ledger_open("ledger", limit_bytes), 0);
    struct ledger_thread entry = {.thread = 0, .epoch = 1};
    CHECK(cells_create(&cells, ledger_append(LEDGER_THREADS, &entry, sizeof entry)));
}

static void add(struct ledger_cell *cell, uint64_t duration_ns, uint64_t volume_bytes)
{
    CHECK(cells_count(&cells, cell, duration_ns, volume_bytes, 0));
}

static bool call_of(uint64_t bytes, unsigned call, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        struct ledger_cell *cell = cells_find(&cells, bytes, cell_key(call, 2, LEDGER_CALL));
        if (!cell || !cells_count(&cells, cell, 1000 + bytes, bytes, 0))
            return false;
    }
    return true;
}

static struct ledger_cell *cell_of(uint64_t bytes, unsigned call)
{
    return cells_find(&cells, bytes, cell_key(call, 2, LEDGER_CALL));
}

static struct ledger_totals totals(void)
{
    return reader_totals(the_ledger.header, 0);
}

/* The live cell of this exact or folded size; NULL if there is none. */
static const struct ledger_cell *in_ledger(uint64_t bytes, unsigned call, bool folded)
{
    for (uint32_t i = 0; i < cells.count; i++)
        if (cells.all[i]->live && cells.all[i]->bytes == bytes && cells.all[i]->call == call &&
            cells.all[i]->flags == folded)
            return cells.all[i];
    return NULL;
}

static uint64_t count_in_ledger(uint64_t bytes, unsigned call, bool folded)
{
    const struct ledger_cell *cell = in_ledger(bytes, call, folded);
    return cell ? cell_count(cell) : 0;
}

/* Counting */

/* As many cells as a number in the ledger has bits for: CELLS_MAX. */
TEST(a_chunk_is_taken_only_if_all_of_its_cells_can_be_numbered)
{
    enum { MOST = (1 << 21) - 1 };
    begin(64 << 20);
    uint32_t chunks = the_ledger.header->chunk_count;
    cells.count_before = MOST + 1 - ledger_chunk_capacity(sizeof(struct ledger_cell));
    CHECK(!cell_of(NEW, CALL_A));
    CHECK_EQUAL(the_ledger.header->chunk_count, chunks);
    cells.count_before--;
    CHECK(cell_of(NEW, CALL_A));
    CHECK_EQUAL(the_ledger.header->chunk_count, chunks + 1);
}

TEST(a_call_is_counted_with_its_time_and_bytes)
{
    begin(1 << 20);
    struct ledger_cell *cell = cell_of(4096, CALL_A);
    add(cell, 100, 4096);
    add(cell, 300, 4096);
    add(cell, 200, 4096);
    CHECK_EQUAL(cell_count(cell), 3);
    CHECK_EQUAL(cell->total_ns, 600);
    CHECK_EQUAL(cell->min_ns, 100);
    CHECK_EQUAL(cell->max_ns, 300);
    CHECK_EQUAL(cell->volume_bytes, 3 * 4096);
    uint64_t buckets[HISTOGRAM_BUCKETS];
    CHECK_EQUAL(cell_buckets(cell, buckets), 3);
    CHECK_EQUAL(buckets[histogram_bucket(100)], 1);
    CHECK_EQUAL(buckets[histogram_bucket(200)], 1);
    CHECK_EQUAL(buckets[histogram_bucket(300)], 1);
}

TEST(whatever_differs_is_counted_apart)
{
    begin(1 << 20);
    add(cells_find(&cells, 8, cell_key(1, 2, LEDGER_CALL)), 1, 0);
    add(cells_find(&cells, 9, cell_key(1, 2, LEDGER_CALL)), 1, 0);
    add(cells_find(&cells, 8, cell_key(2, 2, LEDGER_CALL)), 1, 0);
    add(cells_find(&cells, 8, cell_key(1, 3, LEDGER_CALL)), 1, 0);
    add(cells_find(&cells, 8, cell_key(1, 2, LEDGER_COMPLETION)), 1, 0);
    add(cells_find(&cells, 8, cell_key(1, 2, LEDGER_POLL)), 1, 0);
    add(cells_find(&cells, 8, cell_key(1, 2, LEDGER_CALL) | cell_key_memory_kind(LEDGER_DEVICE)), 1,
        0);
    CHECK_EQUAL(totals().exact_cells, 7);
    CHECK_EQUAL(totals().count, 7);
}

/* Folding */

/* Sizes 1 to SMALLEST_CELLS fill the smallest ledger: those up to RARE were seen once, the others
 * three times. */
static void fill_the_smallest_ledger(void)
{
    begin(1);
    for (uint64_t bytes = 1; bytes <= SMALLEST_CELLS; bytes++)
        CHECK(call_of(bytes, CALL_A, bytes <= RARE ? 1 : 3));
    CHECK_EQUAL(the_ledger.header->folded_cells, 0);
}

TEST(a_full_table_folds_the_rarest_sizes_and_says_so)
{
    fill_the_smallest_ledger();
    CHECK(call_of(NEW, CALL_A, 1));
    CHECK_EQUAL(the_ledger.header->folded_cells, RARE);
    CHECK(in_ledger(RARE, CALL_A, false) == NULL);
    CHECK(in_ledger(RARE + 1, CALL_A, false) != NULL);
    CHECK_EQUAL(count_in_ledger(SMALLEST_CELLS, CALL_A, false), 3);
    CHECK_EQUAL(count_in_ledger(NEW, CALL_A, false), 1);
}

TEST(a_folded_cell_holds_the_sizes_up_to_its_power_of_two)
{
    fill_the_smallest_ledger();
    call_of(NEW, CALL_A, 1);
    const struct ledger_cell *folded = in_ledger(64, CALL_A, true); /* 33 to 64 */
    CHECK(folded != NULL);
    CHECK_EQUAL(cell_count(folded), 32);
    CHECK_EQUAL(folded->volume_bytes, 32 * (33 + 64) / 2);
    CHECK_EQUAL(folded->total_ns, 32 * 1000 + 32 * (33 + 64) / 2);
    CHECK_EQUAL(folded->min_ns, 1033);
    CHECK_EQUAL(folded->max_ns, 1064);
}

TEST(folding_loses_nothing_and_doubles_nothing)
{
    fill_the_smallest_ledger();
    struct ledger_totals before = totals();
    cells_insert(&cells, NEW, cell_key(CALL_A, 2, LEDGER_CALL));
    struct ledger_totals after = totals();
    CHECK_EQUAL(after.count, before.count);
    CHECK_EQUAL(after.total_ns, before.total_ns);
    CHECK_EQUAL(after.volume_bytes, before.volume_bytes);
    CHECK(memcmp(after.count_up_to, before.count_up_to, sizeof after.count_up_to) == 0);
}

TEST(calls_are_not_folded_into_each_other)
{
    begin(1);
    for (uint64_t bytes = 1; bytes <= 1000; bytes++)
        call_of(bytes, CALL_A, 1);
    for (uint64_t bytes = 1; bytes <= 3000; bytes++)
        call_of(bytes, CALL_B, 2);
    CHECK(totals().folded_cells > 2);
    uint64_t count_a = 0, count_b = 0;
    for (uint32_t i = 0; i < cells.count; i++) {
        count_a +=
            cells.all[i]->live && cells.all[i]->call == CALL_A ? cell_count(cells.all[i]) : 0;
        count_b +=
            cells.all[i]->live && cells.all[i]->call == CALL_B ? cell_count(cells.all[i]) : 0;
    }
    CHECK_EQUAL(count_a, 1000);
    CHECK_EQUAL(count_b, 6000);
}

/* Every cell has another call, so no two can fold. */
TEST(a_table_that_cannot_fold_refuses_new_keys_and_keeps_the_old)
{
    begin(1);
    for (unsigned call = 1; call <= SMALLEST_CELLS; call++)
        CHECK(call_of(64, call, 1));
    unsigned refused = 0;
    for (unsigned call = 2000; call < 2010; call++)
        refused += !call_of(64, call, 1);
    CHECK_EQUAL(totals().count + refused, SMALLEST_CELLS + 10);
    CHECK(refused > 0);
}

TEST(communicators_fold_when_all_sizes_have)
{
    begin(1);
    for (unsigned i = 0; i < 3 * SMALLEST_CELLS; i++)
        CHECK(cells_count(&cells,
                          cells_find(&cells, 64 << i % 5, cell_key(CALL_A, 2 + i / 5, LEDGER_CALL)),
                          1000, 1, 0));
    CHECK_EQUAL(totals().count, 3 * SMALLEST_CELLS);
}

/* Half of the sizes, those that came last. */
TEST(the_rarest_are_folded_though_others_came_first)
{
    begin(1);
    for (int i = 0; i < SMALLEST_CELLS % 2 * 5; i++)
        add(cell_of(1, CALL_A), 1ull << (20 + 4 * i),
            0); /* in place of one size: their number is even */
    const uint64_t sizes = SMALLEST_CELLS / 2 * 2;
    for (uint64_t bytes = 1; bytes <= sizes; bytes++)
        CHECK(call_of(bytes, CALL_A, bytes <= sizes / 2 ? 3 : 1));
    CHECK_EQUAL(the_ledger.header->folded_cells, 0);
    CHECK(call_of(NEW, CALL_A, 1));
    CHECK_EQUAL(the_ledger.header->folded_cells, sizes / 2);
    CHECK(in_ledger(1, CALL_A, false) != NULL);
    CHECK(in_ledger(sizes / 2, CALL_A, false) != NULL);
    CHECK(in_ledger(sizes / 2 + 1, CALL_A, false) == NULL);
}
