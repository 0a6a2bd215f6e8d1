"""Union arithmetic against brute force: every nanosecond looked at by itself."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from commprof_report.gpu.overlap import (
    COMMUNICATING, COMPUTING, COPYING, IN_MPI, STATES, added, common, joined, pieces,
    time_by_states,
)

BITS = (COMPUTING, COMMUNICATING, COPYING, IN_MPI)
LAST = 60


def some_intervals(chance: random.Random, most: int) -> list[tuple[int, int, int]]:
    """Empty ones among them."""
    ends = [sorted(chance.choices(range(LAST), k=2)) for _ in range(chance.randrange(most))]
    return [(begin, end, chance.choice(BITS)) for begin, end in ends]


def state_at(at: int, intervals) -> int:
    """State in the nanosecond that begins here."""
    return sum(
        bit for bit in BITS
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
    assert list(time_by_states(intervals, spans)) == expected


@pytest.mark.parametrize("seed", range(100))
def test_pieces_follow_each_other_and_say_all_that_runs(seed):
    intervals = some_intervals(random.Random(seed), 10)
    found = list(pieces(intervals))
    assert all(before[1] <= after[0] for before, after in zip(found, found[1:]))
    by_ns = {at: states for begin, end, states in found for at in range(begin, end)}
    assert {at: by_ns.get(at, 0) for at in range(LAST)} == {
        at: state_at(at, intervals) for at in range(LAST)
    }


@pytest.mark.parametrize("seed", range(100))
def test_what_two_have_in_common(seed):
    chance = random.Random(seed)
    left, right = ([interval[:2] for interval in some_intervals(chance, 8)] for _ in range(2))
    for spans in (left, right):
        whole = joined(spans)
        assert inside(whole) == inside(spans)
        assert all(one[1] < other[0] for one, other in combinations(whole, 2))
    assert inside(common(joined(left), joined(right))) == inside(left) & inside(right)


def inside(spans) -> set[int]:
    return {at for begin, end in spans for at in range(begin, end)}


def test_sums_of_nothing_are_nothing():
    assert added([]) == [0] * STATES
    assert added([[1] * STATES, [2] * STATES]) == [3] * STATES
    assert list(time_by_states([], [(3, 10)])) == [[7] + [0] * 15]
