"""A job that meets something new for ever (programs/ever_new.c) takes no more memory than its
setting says."""

import pytest

from . import reporter

pytestmark = pytest.mark.slow

ROUNDS = 50_000
CALLS_A_ROUND = 9
BYTES_A_ROUND = 8  # what nothing that is kept for each round could do with


def grown_and_ledger(outcome):
    return [int(word) for word in outcome.stdout.split()[:2]]


def profiled(profile):
    return profile("ever_new", 1, str(ROUNDS), env={"COMMPROF_MEMORY": "1M"}, exit_status=None)


def test_nothing_of_ours_grows_with_what_is_new(profile, plain):
    grown, _ = grown_and_ledger(profiled(profile).outcome)
    grown_without, ledger = grown_and_ledger(plain("ever_new", 1, str(ROUNDS)))
    assert ledger == 0
    assert grown - grown_without < ROUNDS * BYTES_A_ROUND / 1000


def test_the_ledger_keeps_to_its_bound(profile):
    _, ledger = grown_and_ledger(profiled(profile).outcome)
    assert 900 < ledger <= 1024


def test_each_call_is_counted_or_known_to_be_dropped(profile):
    run = profiled(profile)
    summary = reporter.rows("summary", run.folder)[0]
    made = 1 + ROUNDS * CALLS_A_ROUND
    assert summary["count"] <= made <= summary["count"] + summary["dropped_calls"]
    assert summary["folded_cells"] > 0
