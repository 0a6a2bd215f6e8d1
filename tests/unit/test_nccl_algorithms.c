#include "nccl/nccl_algorithms.h"

#include "ledger/ledger.h"
#include "record/call_table.h"
#include "record/recording.h"
#include "ledger_reader.h"
#include "unit.h"

static void begin(void)
{
    CHECK_EQUAL(ledger_open("ledger", 16 << 20), 0);
    recording_begin();
    recording_switch(true);
}

static void launch(uint64_t bytes, const char *protocol)
{
    struct ledger_algorithm launched = {.bytes = bytes,
                                        .call = CALL_ncclAllReduce,
                                        .communicator = 2,
                                        .channels = 16,
                                        .algorithm = "RING"};
    strcpy(launched.protocol, protocol);
    nccl_algorithms_count(&launched);
}

static uint64_t count_of(uint64_t bytes, const char *protocol, bool is_folded)
{
    const struct ledger_algorithm *entry;
    uint64_t count = 0;
    READER_EACH(entry, the_ledger.header, LEDGER_ALGORITHMS)
        if (entry->bytes == bytes && entry->is_folded == is_folded &&
            strcmp(entry->protocol, protocol) == 0 && entry->epoch == the_ledger.header->epoch)
            count += entry->count;
    return count;
}

TEST(sizes_without_end_fold_into_powers_of_two)
{
    begin();
    for (uint64_t bytes = 1; bytes <= 3000; bytes++)
        launch(bytes, "LL");
    launch(64, "LL");
    CHECK_EQUAL(count_of(64, "LL", false), 2);
    CHECK_EQUAL(count_of(2500, "LL", false), 0);
    CHECK_EQUAL(count_of(4096, "LL", true), 3000 - 2048);
}

TEST(a_reset_counts_from_zero)
{
    begin();
    launch(64, "LL");
    recording_reset();
    CHECK_EQUAL(count_of(64, "LL", false), 0);
    launch(64, "LL");
    CHECK_EQUAL(count_of(64, "LL", false), 1);
}
