"""Ranks by steps: how long the main thread of each rank was outside MPI in each step. A straggler is a stripe, a noisy host a band."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from ..late.late_ranks import Late
from ..late.timelines import OUTSIDE
from .boundaries import AlignedNs, Steps
from .step_costs import StepRow

MOST_COLUMNS, MOST_ROWS = 300, 256


class RankSteps(NamedTuple):
    """Each column is a step or a group of neighbours, each row a rank or a group of neighbours."""

    steps: list[int]  # the first of each column
    ranks: list[int]  # the first of each row
    outside_ns: list[list[float | None]]  # by row and column, means; None: these ranks have no such step


def rank_steps(steps: Steps, rows: Sequence[StepRow], aligned_ns: AlignedNs, late: Late) -> RankSteps | None:
    """Of the complete steps after the warm-up; None where there are not two of them and two ranks."""
    complete = {row.step for row in rows if row.is_complete and not row.is_warm_up}
    times = steps.aligned(aligned_ns, complete)
    ranks = sorted({rank for of_step in times.values() for rank in of_step})
    if len(times) < 2 or len(ranks) < 2:
        return None
    outside = {step: {rank: late.timelines[rank].between(*own)[OUTSIDE] for rank, own in of_step.items()} for step, of_step in times.items()}
    columns, groups = _grouped(sorted(times), MOST_COLUMNS), _grouped(ranks, MOST_ROWS)
    means = [
        [_mean([outside[step][rank] for step in column for rank in group if rank in outside[step]]) for column in columns] for group in groups
    ]
    return RankSteps([column[0] for column in columns], [group[0] for group in groups], means)


def _grouped(members: Sequence[int], most: int) -> list[Sequence[int]]:
    size = -(-len(members) // most) or 1
    return [members[at : at + size] for at in range(0, len(members), size)]


def _mean(values: Sequence[int]) -> float | None:
    return fmean(values) if values else None
