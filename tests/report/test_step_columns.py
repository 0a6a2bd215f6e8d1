"""The stages of steps on columns that a test writes down."""

from __future__ import annotations

import numpy as np
from commprof_report.base import Texts, table
from commprof_report.run.unseen import Hole
from commprof_report.steps.boundaries import Boundaries, Bounds, judged
from commprof_report.steps.step_costs import parts_of


def steps_at(*times: tuple[int, int, int]) -> Boundaries:
    """By rank, begin and end; numbered from 1 on each rank."""
    numbers = {}
    rows = []
    for rank, begin_ns, end_ns in times:
        numbers[rank] = numbers.get(rank, 0) + 1
        rows.append((numbers[rank], rank, begin_ns, end_ns))
    return judged(table(Bounds, rows, Texts()), {})


def test_a_call_is_divided_among_the_steps_that_it_overlaps_and_counted_where_it_begins():
    steps = steps_at((0, 100, 200), (0, 200, 300), (2, 0, 250))
    world_ranks, begins, ends = map(
        np.array, ([0, 0, 0, 1, 2], [90, 150, 300, 100, 240], [100, 260, 310, 200, 400])
    )
    found = parts_of(np.arange(5) + 10, world_ranks, begins, ends, steps)
    assert found.call.tolist() == [11, 11, 14] and found.row.tolist() == [0, 1, 2]
    assert found.spent_ns.tolist() == [50, 60, 10]
    assert found.is_counted.tolist() == [True, False, True]


def test_steps_that_a_hole_touches_are_not_complete():
    times = [(rank, 100 * place, 100 * place + 100) for rank in (0, 1) for place in range(4)]
    rows = [(place % 4 + 1, *of_rank) for place, of_rank in enumerate(times)]
    holes = {1: [Hole(1, 0, 0, 0), Hole(1, 0, 150, 200), Hole(1, 0, 310, 1 << 62)]}
    found = judged(table(Bounds, rows, Texts()), holes)
    assert found.is_complete.tolist() == [True] * 4 + [True, False, True, False]


def test_the_first_step_is_warm_up_and_a_far_longer_one_an_outlier():
    ends = np.cumsum([0, 900, *[100] * 8, 150]).tolist()
    found = steps_at(*((0, begin_ns, end_ns) for begin_ns, end_ns in zip(ends, ends[1:])))
    assert found.step[found.is_warm_up].tolist() == [1]
    assert found.step[found.is_outlier].tolist() == [10]
