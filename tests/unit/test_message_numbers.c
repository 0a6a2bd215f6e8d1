#include "record/message_numbers.h"

#include "unit.h"

enum { SLOT = LEDGER_COMMUNICATOR_OTHER + 1, OTHER_SLOT, PEER = 3, TAG = 7 };

static const struct ledger_thread FIRST = {.thread = 0}, SECOND = {.thread = 1};

static uint64_t received(int tag)
{
    return message_key(SLOT, LEDGER_RECEIVED, PEER, tag);
}

TEST(envelopes_differ_in_communicator_direction_peer_and_tag)
{
    message_numbers_begin(false, 8);
    message_count(received(TAG), &FIRST);
    CHECK_EQUAL(message_count(received(TAG + 1), &FIRST), 1);
    CHECK_EQUAL(message_count(message_key(SLOT, LEDGER_SENT, PEER, TAG), &FIRST), 1);
    CHECK_EQUAL(message_count(message_key(SLOT, LEDGER_RECEIVED, PEER + 1, TAG), &FIRST), 1);
    CHECK_EQUAL(message_count(message_key(OTHER_SLOT, LEDGER_RECEIVED, PEER, TAG), &FIRST), 1);
    CHECK_EQUAL(message_count(received(TAG), &FIRST), 2);
}

TEST(a_full_table_gives_no_numbers_to_further_envelopes)
{
    enum { MORE = 2 << MESSAGE_ENVELOPES_LOG2 };
    message_numbers_begin(false, 8);
    unsigned unknown = 0;
    for (int tag = 0; tag < MORE; tag++)
        unknown += message_count(received(tag), &FIRST) == 0;
    CHECK(unknown >= MORE / 2);
    CHECK_EQUAL(message_count(received(0), &FIRST), 2);
}

TEST(one_message_in_65536_has_no_number)
{
    message_numbers_begin(false, 8);
    for (int n = 1; n <= UINT16_MAX; n++)
        message_count(received(TAG), &FIRST);
    CHECK_EQUAL(message_next(received(TAG), &FIRST), 0);
    CHECK_EQUAL(message_count(received(TAG), &FIRST), 0);
    CHECK_EQUAL(message_count(received(TAG), &FIRST), 1);
}

TEST(after_the_end_no_number_is_known)
{
    message_numbers_begin(false, 8);
    message_count(received(TAG), &FIRST);
    message_numbers_end();
    CHECK_EQUAL(message_count(received(TAG), &FIRST), 0);
    CHECK_EQUAL(message_count(received(TAG + 1), &FIRST), 0);
    CHECK_EQUAL(message_next(received(TAG), &FIRST), 0);
}

TEST(the_largest_world_has_numbers_for_its_last_rank_and_none_for_those_beyond)
{
    enum { MOST_PEERS = (1 << MESSAGE_PEER_BITS) - 2 };
    message_numbers_begin(false, MOST_PEERS);
    CHECK_EQUAL(message_count(message_key(SLOT, LEDGER_SENT, MOST_PEERS - 1, TAG), &FIRST), 1);
    CHECK_EQUAL(message_count(message_key(SLOT, LEDGER_SENT, MOST_PEERS, TAG), &FIRST), 0);
    message_numbers_begin(false, MOST_PEERS + 1);
    CHECK_EQUAL(message_count(message_key(SLOT, LEDGER_SENT, PEER, TAG), &FIRST), 0);
}

TEST(an_envelope_that_two_threads_use_has_no_numbers_from_there_on)
{
    message_numbers_begin(true, 8);
    CHECK_EQUAL(message_count(received(TAG), &FIRST), 1);
    CHECK_EQUAL(message_count(received(TAG + 1), &SECOND), 1);
    message_claim(received(TAG), &SECOND);
    CHECK_EQUAL(message_count(received(TAG), &FIRST), 0);
    CHECK_EQUAL(message_next(received(TAG), &FIRST), 0);
    CHECK_EQUAL(message_count(received(TAG + 1), &SECOND), 2);
}

TEST(a_wildcard_beside_another_receive_is_uncertain)
{
    message_numbers_begin(false, 8);
    uint16_t place = message_wildcard_begin(SLOT);
    message_wildcards_disturb(SLOT);
    CHECK(!message_wildcard_end(SLOT, place, &FIRST));
    CHECK(message_wildcard_end(SLOT, message_wildcard_begin(SLOT), &FIRST));
}

TEST(wildcards_of_the_only_thread_that_receives_are_certain)
{
    message_numbers_begin(true, 8);
    message_claim_receive(SLOT, true, &FIRST);
    CHECK(message_wildcard_end(SLOT, message_wildcard_begin(SLOT), &FIRST));
    uint16_t place = message_wildcard_begin(SLOT);
    message_claim_receive(SLOT, false, &SECOND);
    CHECK(!message_wildcard_end(SLOT, place, &FIRST));
    CHECK(!message_order_is_certain(SLOT));
    message_claim_receive(OTHER_SLOT, true, &SECOND);
    CHECK(message_wildcard_end(OTHER_SLOT, message_wildcard_begin(OTHER_SLOT), &SECOND));
    CHECK(message_order_is_certain(OTHER_SLOT));
}

TEST(a_wildcard_that_another_thread_completes_is_uncertain)
{
    message_numbers_begin(true, 8);
    message_claim_receive(SLOT, true, &FIRST);
    uint16_t first = message_wildcard_begin(SLOT), second = message_wildcard_begin(SLOT);
    CHECK(!message_wildcard_end(SLOT, first, &SECOND));
    CHECK(!message_wildcard_end(SLOT, second, &FIRST));
    CHECK(!message_order_is_certain(SLOT));
}

TEST(a_probe_has_a_number_unless_another_thread_may_be_receiving)
{
    message_numbers_begin(true, 8);
    CHECK_EQUAL(message_next(received(TAG), &SECOND), 1);
    message_claim_receive(SLOT, true, &FIRST);
    CHECK_EQUAL(message_next(received(TAG), &FIRST), 1);
    CHECK_EQUAL(message_next(received(TAG), &SECOND), 0);
    CHECK_EQUAL(message_count(received(TAG), &FIRST), 1); /* probing is not receiving */
    CHECK_EQUAL(message_next(received(TAG), &FIRST), 2);
    CHECK_EQUAL(message_next(received(TAG), &SECOND), 0);
}

TEST(a_communicator_that_was_first_seen_in_use_has_no_numbers_if_there_are_threads)
{
    message_numbers_begin(true, 8);
    message_numbers_exclude(SLOT);
    CHECK_EQUAL(message_count(received(TAG), &FIRST), 0);
    CHECK(!message_order_is_certain(SLOT));
    CHECK_EQUAL(message_count(message_key(OTHER_SLOT, LEDGER_SENT, PEER, TAG), &FIRST), 1);
}

TEST(peers_and_communicators_that_are_not_exact_have_no_numbers)
{
    message_numbers_begin(false, 8);
    CHECK_EQUAL(
        message_count(message_key(OTHER_SLOT, LEDGER_RECEIVED, LEDGER_PEER_OUTSIDE, TAG), &FIRST),
        0);
    CHECK_EQUAL(
        message_count(message_key(LEDGER_COMMUNICATOR_OTHER, LEDGER_SENT, PEER, TAG), &FIRST), 0);
}
