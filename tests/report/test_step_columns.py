"""The stages of steps on columns that a test writes down."""

from __future__ import annotations

from commprof_report.base import Texts, table
from commprof_report.run.unseen import Hole
from commprof_report.steps.boundaries import Bounds, judged


def test_steps_that_a_hole_touches_are_not_complete():
    times = [(rank, 100 * place, 100 * place + 100) for rank in (0, 1) for place in range(4)]
    rows = [(place % 4 + 1, *of_rank) for place, of_rank in enumerate(times)]
    holes = {1: [Hole(1, 0, 0, 0), Hole(1, 0, 150, 200), Hole(1, 0, 310, 1 << 62)]}
    found = judged(table(Bounds, rows, Texts()), holes)
    assert found.is_complete.tolist() == [True] * 4 + [True, False, True, False]
