"""Which rank is last at a point of each step, by the test of late/marks.py: for steps whose MPI
calls do not show it.

Marked steps are compared at their marks; visits to a region that the user chose at their begins or
at their ends, whichever are farther apart in the median.
"""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from ..base.columns import grouped
from ..late.late_ranks import Late
from ..late.marks import Last, Times, distances, judge
from ..run.alignment import Alignment
from .boundaries import Steps


class Arrivals(NamedTuple):
    point: str  # 'begin', 'end': of a step
    judged: Last  # there, of the steps after the warm-up on several ranks


def point_text(by: str, point: str) -> str:
    return "the mark" if by == "marks" else f"the {point} of the region"


def arrivals(steps: Steps, alignment: Alignment, late: Late | None) -> Arrivals | None:
    """None: steps that the program does not count, or clocks of several hosts without a known
    error."""
    if not steps.detection.is_counted or late is None or not late.has_common_clock:
        return None
    rows = steps.rows.take(~steps.rows.is_warm_up)
    order, groups = grouped(rows.step)
    means_ns = groups.sum(rows.step_ns[order]) / groups.counts
    numbers = rows.step[order[groups.first]]
    times = steps.aligned(alignment, {*numbers[groups.counts > 1].tolist()})
    begins, ends = (
        {
            step: {rank: own[edge] for rank, own in times[step].items()} for step in sorted(times)
        }
        for edge in (0, 1)
    )
    is_end = steps.detection.by == "region" and _apart(ends) > _apart(begins)
    compared = ends if is_end else begins
    lengths_ns = dict(zip(numbers.tolist(), means_ns.tolist()))
    return Arrivals(
        "end" if is_end else "begin", judge("", compared, lengths_ns, late.run.error_ns),
    )


def _apart(times: Times) -> float:
    return median([max(of_step.values()) for of_step in distances(times).values()] or [0])
