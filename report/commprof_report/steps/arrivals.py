"""Which rank is last at a point of each step, on the common time axis: for steps of threads that make no MPI call.

Frameworks such as Horovod make all MPI calls on a background thread, which joins every collective in time whatever the main thread does. So
waiting in MPI does not show which rank is slow. A mark does, where the main thread has handed its gradients over and begins to wait: the slow
rank reaches it last. Marked steps are compared at their marks; visits to a region at their begins or at their ends, whichever are farther
apart in the median.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import NamedTuple

from ..late.late_ranks import Late
from .boundaries import AlignedNs, RankStep, Steps

NOTABLE_LEAD = 0.02  # share of the step by which the last rank must be behind the mean of the others
SURE_LEAD = 2  # errors of the clocks
STEADY_LEAD = 2  # median absolute deviations of a rank's distance from the mean of the others


class Arrivals(NamedTuple):
    point: str  # 'begin', 'end': of a step
    last: dict[int, tuple[int, float]]  # by step: the last rank, and its distance from the mean of the others, if both are sure and notable


def point_text(by: str, point: str) -> str:
    return "the mark" if by == "marks" else f"the {point} of the region"


def arrivals(steps: Steps, aligned_ns: AlignedNs, late: Late | None) -> Arrivals | None:
    """None: steps that the program does not count, or clocks of several hosts without a known error."""
    if not steps.detection.is_counted or late is None or (late.run.clocks > 1 and not late.run.error_ns):
        return None
    by_step: dict[int, list[RankStep]] = {}
    for own in (own for of_rank in steps.by_rank().values() for own in of_rank):
        by_step.setdefault(own.step, []).append(own)
    compared = {step: ranks for step, ranks in by_step.items() if len(ranks) > 1 and not ranks[0].is_warm_up}
    distances = {point: {step: _distances(ranks, aligned_ns, point) for step, ranks in compared.items()} for point in ("begin", "end")}
    apart = {point: median([max(of_step.values()) for of_step in found.values()] or [0]) for point, found in distances.items()}
    point = "end" if steps.detection.by == "region" and apart["end"] > apart["begin"] else "begin"
    behind = _behind(distances[point].values())
    last = {}
    for step, ranks in compared.items():
        lead_ns, rank = max((distance_ns, rank) for rank, distance_ns in distances[point][step].items())
        least_ns = max(NOTABLE_LEAD * fmean(own.end_ns - own.begin_ns for own in ranks), SURE_LEAD * late.run.error_ns)
        if rank in behind and lead_ns > least_ns:
            last[step] = rank, lead_ns
    return Arrivals(point, last)


def _distances(ranks: Sequence[RankStep], aligned_ns: AlignedNs, point: str) -> dict[int, float]:
    """By rank, its arrival less the mean of the others'."""
    times = {own.world_rank: aligned_ns(own.world_rank, own.begin_ns if point == "begin" else own.end_ns) for own in ranks}
    total = sum(times.values())
    return {rank: time - (total - time) / (len(times) - 1) for rank, time in times.items()}


def _behind(steps: Iterable[dict[int, float]]) -> frozenset[int]:
    """The ranks behind the mean of the others beyond the scatter of the steps."""
    by_rank: dict[int, list[float]] = {}
    for rank, distance_ns in (item for of_step in steps for item in of_step.items()):
        by_rank.setdefault(rank, []).append(distance_ns)
    middles = {rank: median(own) for rank, own in by_rank.items()}
    scatter = {rank: median(abs(distance_ns - middles[rank]) for distance_ns in own) for rank, own in by_rank.items()}
    return frozenset(rank for rank, middle in middles.items() if middle > STEADY_LEAD * scatter[rank])
