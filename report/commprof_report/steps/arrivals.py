"""Which rank is last at a point of each step, on the common time axis: for steps of threads that make no MPI call.

Frameworks such as Horovod make all MPI calls on a background thread, which joins every collective in time whatever the main thread does. So
waiting in MPI does not show which rank is slow. A mark does, where the main thread has handed its gradients over and begins to wait: the slow
rank reaches it last. Marked steps are compared at their marks; visits to a region at their begins or at their ends, whichever are farther
apart in the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import NamedTuple

from ..late.late_ranks import Late
from .boundaries import AlignedNs, RankStep, Steps

NOTABLE_LEAD = 0.02  # share of the step by which the last rank must be behind the mean of the others
SURE_LEAD = 2  # errors of the clocks
STEADY_LEAD = 2  # median absolute deviations of a rank's distance from the mean of the others


class Arrivals(NamedTuple):
    aligned_ns: AlignedNs
    point: str  # 'begin', 'end': of a step
    error_ns: float  # of the time between two ranks' arrivals
    behind: frozenset[int]  # ranks behind the mean of the others beyond the scatter of the steps

    def slowest(self, ranks: Sequence[RankStep]) -> tuple[int | None, float | None]:
        """The last rank at this point of a step, if it is one of those behind, and its distance from the mean of the others, if notable."""
        if len(ranks) < 2:
            return None, None
        lead_ns, last = max((distance_ns, rank) for rank, distance_ns in _distances(ranks, self.aligned_ns, self.point).items())
        least_ns = max(NOTABLE_LEAD * fmean(own.end_ns - own.begin_ns for own in ranks), SURE_LEAD * self.error_ns)
        return (last, lead_ns) if last in self.behind and lead_ns > least_ns else (None, None)


def arrivals(steps: Steps, aligned_ns: AlignedNs, late: Late | None) -> Arrivals | None:
    """None: steps that the program does not count, or clocks of several hosts without a known error."""
    if not steps.detection.is_counted or late is None or (late.run.clocks > 1 and not late.run.error_ns):
        return None
    by_step: dict[int, list[RankStep]] = {}
    for own in (own for of_rank in steps.by_rank().values() for own in of_rank):
        by_step.setdefault(own.step, []).append(own)
    compared = [ranks for ranks in by_step.values() if len(ranks) > 1 and not ranks[0].is_warm_up]
    distances = {point: [_distances(ranks, aligned_ns, point) for ranks in compared] for point in ("begin", "end")}
    apart = {point: median([max(of_step.values()) for of_step in found] or [0]) for point, found in distances.items()}
    point = "end" if steps.detection.by == "region" and apart["end"] > apart["begin"] else "begin"
    return Arrivals(aligned_ns, point, late.run.error_ns, _behind(distances[point]))


def _distances(ranks: Sequence[RankStep], aligned_ns: AlignedNs, point: str) -> dict[int, float]:
    """By rank, its arrival less the mean of the others'."""
    times = {own.world_rank: aligned_ns(own.world_rank, own.begin_ns if point == "begin" else own.end_ns) for own in ranks}
    total = sum(times.values())
    return {rank: time - (total - time) / (len(times) - 1) for rank, time in times.items()}


def _behind(steps: Sequence[dict[int, float]]) -> frozenset[int]:
    by_rank: dict[int, list[float]] = {}
    for rank, distance_ns in (item for of_step in steps for item in of_step.items()):
        by_rank.setdefault(rank, []).append(distance_ns)
    middles = {rank: median(own) for rank, own in by_rank.items()}
    scatter = {rank: median(abs(distance_ns - middles[rank]) for distance_ns in own) for rank, own in by_rank.items()}
    return frozenset(rank for rank, middle in middles.items() if middle > STEADY_LEAD * scatter[rank])
