"""Which rank is last at a point of each step, by the test of late/marks.py: for steps whose MPI
calls do not show it.

Marked steps are compared at their marks; visits to a region that the user chose at their begins or
at their ends, whichever are farther apart in the median.
"""

from __future__ import annotations

from statistics import fmean, median
from typing import NamedTuple

from ..late.late_ranks import Late
from ..late.marks import AlignedNs, Times, distances, last_ranks
from .boundaries import RankStep, Steps


class Arrivals(NamedTuple):
    point: str  # 'begin', 'end': of a step
    times: Times  # there, of the steps after the warm-up on several ranks
    # by step: the last rank, and its distance from the mean of the others, if both are sure and
    # notable
    last: dict[int, tuple[int, float]]


def point_text(by: str, point: str) -> str:
    return "the mark" if by == "marks" else f"the {point} of the region"


def arrivals(steps: Steps, aligned_ns: AlignedNs, late: Late | None) -> Arrivals | None:
    """None: steps that the program does not count, or clocks of several hosts without a known
    error."""
    if not steps.detection.is_counted or late is None or not late.has_common_clock:
        return None
    by_step: dict[int, list[RankStep]] = {}
    for own in (own for of_rank in steps.by_rank().values() for own in of_rank):
        by_step.setdefault(own.step, []).append(own)
    compared = {
        step: ranks for step, ranks in sorted(by_step.items())
        if len(ranks) > 1 and not ranks[0].is_warm_up
    }
    begins = {
        step: {own.world_rank: aligned_ns(own.world_rank, own.begin_ns) for own in ranks}
        for step, ranks in compared.items()
    }
    ends = {
        step: {own.world_rank: aligned_ns(own.world_rank, own.end_ns) for own in ranks}
        for step, ranks in compared.items()
    }
    is_end = steps.detection.by == "region" and _apart(ends) > _apart(begins)
    times = ends if is_end else begins
    lengths_ns = {
        step: fmean(own.end_ns - own.begin_ns for own in ranks) for step, ranks in compared.items()
    }
    return Arrivals(
        "end" if is_end else "begin", times,
        last_ranks(distances(times), lengths_ns, late.run.error_ns),
    )


def _apart(times: Times) -> float:
    return median([max(of_step.values()) for of_step in distances(times).values()] or [0])
