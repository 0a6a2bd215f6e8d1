"""Which rank is last at a point of each step, by the test of late/marks.py: for steps whose MPI
calls do not show it.

Marked steps are compared at their marks; visits to a region that the user chose at their begins or
at their ends, whichever are farther apart in the median.
"""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from ..base.columns import Groups, Ints, grouped
from ..late.late_ranks import Late
from ..late.marks import Times, distances, last_ranks
from ..run.alignment import Alignment
from .boundaries import Boundaries, Steps


class Arrivals(NamedTuple):
    point: str  # 'begin', 'end': of a step
    times: Times  # there, of the steps after the warm-up on several ranks
    # by step: the last rank, and its distance from the mean of the others, if both are sure and
    # notable
    last: dict[int, tuple[int, float]]


def point_text(by: str, point: str) -> str:
    return "the mark" if by == "marks" else f"the {point} of the region"


def arrivals(steps: Steps, alignment: Alignment, late: Late | None) -> Arrivals | None:
    """None: steps that the program does not count, or clocks of several hosts without a known
    error."""
    if not steps.detection.is_counted or late is None or not late.has_common_clock:
        return None
    rows = steps.rows.take(~steps.rows.is_warm_up)
    order, groups = grouped(rows.step)
    rows = rows.take(order[groups.spread(groups.counts > 1)])
    begins, ends = (_by_step(rows, alignment, times) for times in (rows.begin_ns, rows.end_ns))
    is_end = steps.detection.by == "region" and _apart(ends) > _apart(begins)
    times = ends if is_end else begins
    groups = Groups(rows.step)
    lengths_ns = dict(zip(begins, (groups.sum(rows.step_ns) / groups.counts).tolist()))
    return Arrivals(
        "end" if is_end else "begin", times,
        last_ranks(distances(times), lengths_ns, late.run.error_ns),
    )


def _by_step(rows: Boundaries, alignment: Alignment, own_ns: Ints) -> Times:
    found: Times = {}
    aligned_ns = alignment.aligned(rows.world_rank, own_ns).tolist()
    for step, rank, time_ns in zip(rows.step.tolist(), rows.world_rank.tolist(), aligned_ns):
        found.setdefault(step, {})[rank] = time_ns
    return found


def _apart(times: Times) -> float:
    return median([max(of_step.values()) for of_step in distances(times).values()] or [0])
