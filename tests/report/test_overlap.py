"""Union arithmetic against brute force: every nanosecond looked at by itself."""

from __future__ import annotations

import random

import numpy as np
import pytest
from commprof_report.base import Columns
from commprof_report.gpu.overlap import KINDS, STATES, time_by_states

LAST = 60


def some_intervals(chance: random.Random, most: int) -> list[tuple[int, int, int]]:
    """Empty ones among them."""
    ends = [sorted(chance.choices(range(LAST), k=2)) for _ in range(chance.randrange(most))]
    return [(begin, end, chance.choice(KINDS)) for begin, end in ends]


def active(intervals) -> Columns:
    start_ns, end_ns, state = np.array(intervals, np.int64).reshape(-1, 3).T
    return Columns(start_ns=start_ns, end_ns=end_ns, state=state)


def state_at(at: int, intervals) -> int:
    """State in the nanosecond that begins here."""
    return sum(
        bit
        for bit in KINDS
        if any(begin <= at < end for begin, end, state in intervals if state == bit)
    )


@pytest.mark.parametrize("seed", range(200))
def test_each_span_has_the_time_in_each_combination_of_states(seed):
    chance = random.Random(seed)
    intervals = some_intervals(chance, 14)
    cuts = sorted(chance.sample(range(-5, LAST + 5), 2 * chance.randrange(1, 6)))
    spans = list(zip(cuts[::2], cuts[1::2]))
    expected = []
    for begin, end in spans:
        found = [state_at(at, intervals) for at in range(begin, end)]
        expected.append([found.count(state) for state in range(STATES)])
    assert time_by_states(active(intervals), spans).tolist() == expected
