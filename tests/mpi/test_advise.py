"""Advice of `hvprof-report advise` on real ranks that send in good and bad shape
(programs/message_shapes.calls): each fault is found, its twin that follows the advice has none, and
the program's own clock says what that saved."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from . import reporter
from .harness import Run

pytestmark = pytest.mark.slow

RANKS, STEPS = 2, "40"
TWIN_STEPS = "400"  # so many that some step is not disturbed by other processes


class Took(NamedTuple):
    """Times that a rank read from its clock."""

    all_ns: int
    fastest_ns: int  # of its steps
    slept_ns: int


def took(run: Run) -> dict[int, Took]:
    lines = [line.split() for line in run.outcome.stdout.splitlines() if line.startswith("took ")]
    return {int(rank): Took(*map(int, times)) for _, rank, *times in lines}


def saved_ns(run: Run, twin: Run) -> int:
    """Saving of all ranks, if each step of the twin takes as long as its fastest: other processes
    on the machine slow both."""
    return sum(of.all_ns for of in took(run).values()) - int(STEPS) * sum(
        of.fastest_ns for of in took(twin).values()
    )


def calmly_saved_ns(run: Run, twin: Run) -> int:
    """The same if each step of the run takes as long as its fastest, too: what nothing but the
    messages cost."""
    fastest = [sum(of.fastest_ns for of in took(each).values()) for each in (run, twin)]
    return int(STEPS) * (fastest[0] - fastest[1])


def advice(run: Run) -> list[dict]:
    return reporter.rows_of_ended("advise", run.folder)


def found(run: Run) -> dict[str, dict]:
    return {row["rule"]: row for row in reversed(advice(run)) if row["found"]}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mode", "better", "rule", "size"),
    [
        ("many_small", "fused", "small_messages", 72),
        ("tiny", "together", "tiny_messages", 4),
        ("barriers", "large", "barriers", None),
    ],
)
def test_what_is_promised_is_what_the_twin_saves(profile, mode, better, rule, size):
    """Waiting is no part of the promise, nor are interruptions, but both vanish with the calls:
    less may be promised than comes."""
    run, twin = (
        profile("message_shapes", RANKS, mode, STEPS),
        profile("message_shapes", RANKS, better, TWIN_STEPS),
    )
    # other work may make a rank late
    first = next(row for row in advice(run) if row["rule"] not in ("imbalance", "slowest_rank"))
    assert (first["rule"], first["bytes"]) == (rule, size)
    assert 0.2 * calmly_saved_ns(run, twin) <= first["saving_ns"] <= 1.1 * saved_ns(run, twin)
    assert rule not in found(twin)


@pytest.mark.nightly
def test_a_late_rank_costs_what_it_sleeps_and_no_more_than_the_run(profile):
    run = profile("message_shapes", RANKS, "late", STEPS)
    row = found(run)["imbalance"]
    assert row["title"].startswith("rank 1 is waited for")  # ranks may wait for cores, too
    assert (
        0.5 * took(run)[1].slept_ns
        <= row["saving_ns"] / RANKS
        <= max(of_rank.all_ns for of_rank in took(run).values())
    )
