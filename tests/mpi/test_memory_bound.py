"""A job that meets something new for ever (programs/ever_new.c) takes no more memory than its
setting says."""

import pytest

pytestmark = pytest.mark.slow

ROUNDS = 50_000
BYTES_A_ROUND = 8  # what nothing that is kept for each round could do with


def test_nothing_of_ours_grows_with_what_is_new_and_the_ledger_keeps_to_its_bound(profile, plain):
    run = profile("ever_new", 1, str(ROUNDS), env={"COMMPROF_MEMORY": "1M"}, exit_status=None)
    (grown, ledger), (grown_without, none) = (
        map(int, outcome.stdout.split()[:2])
        for outcome in (run.outcome, plain("ever_new", 1, str(ROUNDS)))
    )
    assert (none, 900 < ledger <= 1024) == (0, True)
    assert grown - grown_without < ROUNDS * BYTES_A_ROUND / 1000


MADE = (4 * 3_000 + 150 + 2, 4 * 3_000, 2 * 3_000)


# The smallest ledger has one chunk of cells: on a busy machine latencies are in so many octaves
# that it has no room for all of their blocks, even when all cells are merged.
@pytest.mark.parametrize("memory, drops", [("64K", True), ("1M", False), ("4M", False)])
def test_calls_are_counted_in_any_ledger_or_said_to_be_dropped(profile, memory, drops):
    run = profile("many_things", 2, env={"COMMPROF_MEMORY": memory})
    of_rank = """
        SELECT (SELECT sum(count) FROM cell WHERE measure IN ('call', 'poll')) + dropped_calls,
               (SELECT sum(count) FROM peer) + dropped_messages,
               (SELECT sum(count) FROM cell WHERE measure = 'completion') + dropped_completions
        FROM rank"""
    assert [run.query(rank, of_rank) for rank in range(2)] == [[MADE]] * 2
    dropped = "SELECT dropped_calls + dropped_completions > 0 FROM rank"
    assert drops or [run.query(rank, dropped) for rank in range(2)] == [[(0,)]] * 2
