#include "ledger/peers.h"

#include "unit.h"

static struct peers peers;

static void begin(size_t limit_bytes)
{
    CHECK_EQUAL(ledger_open("ledger", limit_bytes), 0);
    CHECK(peers_create(&peers, 3));
}

static void send_to(int32_t peer, uint64_t bytes)
{
    peer_add(peers_find(&peers, peer_key(peer, 1, LEDGER_SENT)), bytes, 2 * bytes);
}

static struct ledger_peer row(int32_t peer, unsigned call, enum ledger_direction direction)
{
    return *peers_find(&peers, peer_key(peer, call, direction));
}

/* A peer whose row lies at this place of the index while that is empty. */
static int32_t peer_at(uint32_t place)
{
    int32_t peer = 0;
    while ((peers_hash(peer_key(peer, 1, LEDGER_SENT)) & peers.index_mask) != place)
        peer++;
    return peer;
}

TEST(a_reset_clears_the_rows_at_both_ends_of_the_index)
{
    begin(1 << 20);
    int32_t first = peer_at(0), last = peer_at(peers.index_mask);
    send_to(first, 100);
    send_to(last, 100);
    peers_clear(&peers);
    CHECK_EQUAL(row(first, 1, LEDGER_SENT).count, 0);
    CHECK_EQUAL(row(last, 1, LEDGER_SENT).count, 0);
    CHECK_EQUAL(row(last, 1, LEDGER_SENT).bytes, 0);
    CHECK_EQUAL(row(last, 1, LEDGER_SENT).time_ns, 0);
    CHECK_EQUAL(peers.count, 2);
}

TEST(the_index_grows_when_more_than_half_of_it_would_be_in_use)
{
    begin(1 << 20);
    for (int32_t peer = 0; peer < 32; peer++)
        send_to(peer, 1);
    CHECK_EQUAL(peers.index_mask, 63);
    send_to(32, 1);
    CHECK_EQUAL(peers.index_mask, 127);
}

TEST(a_full_ledger_has_no_row_for_a_new_peer_and_keeps_the_old)
{
    uint32_t rows = 8 * ledger_chunk_capacity(sizeof(struct ledger_peer));
    begin(1);
    for (uint32_t peer = 0; peer < rows; peer++)
        send_to((int32_t)peer, 1);
    CHECK(peers_find(&peers, peer_key((int32_t)rows, 1, LEDGER_SENT)) == NULL);
    send_to(0, 7);
    CHECK_EQUAL(row(0, 1, LEDGER_SENT).bytes, 8);
    CHECK_EQUAL(row((int32_t)rows - 1, 1, LEDGER_SENT).bytes, 1);
}
