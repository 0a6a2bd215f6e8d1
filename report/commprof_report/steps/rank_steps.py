"""Ranks by steps: of each rank in each step, the time of its main thread outside MPI, its waiting
for other ranks, and the waiting that it causes. A straggler is a stripe, a noisy host a band."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

from ..late.late_ranks import Late
from ..late.timelines import OUTSIDE, WAITING
from ..run.alignment import Alignment
from .boundaries import Steps
from .slowest import causes_in, is_split, spans_of
from .step_costs import StepRow

MOST_COLUMNS, MOST_ROWS = 300, 256

# by row and column, means; None: these ranks have no such step, or too little of it was split
Field = list[list["float | None"]]


class RankSteps(NamedTuple):
    """Each column is a step or a group of neighbours, each row a rank or a group of neighbours."""

    steps: list[int]  # the first of each column
    ranks: list[int]  # the first of each row
    outside_ns: Field
    wait_ns: Field
    caused_ns: Field  # of all other ranks together


def rank_steps(
    steps: Steps, rows: Sequence[StepRow], alignment: Alignment, late: Late
) -> RankSteps | None:
    """Times of ranks in the complete steps after the warm-up; None where there are not two of them
    and two ranks."""
    complete = {row.step: row for row in rows if row.is_complete and not row.is_warm_up}
    times = steps.aligned(alignment, complete)
    ranks = sorted({rank for of_step in times.values() for rank in of_step})
    if len(times) < 2 or len(ranks) < 2:
        return None
    spent = {
        (step, rank): late.timelines[rank].between(*own) for step, of_step in times.items()
        for rank, own in of_step.items()
    }
    split = {step for step, row in complete.items() if is_split(row, True, late)}
    caused = causes_in(
        spans_of({step: times[step] for step in times if step in split}), late, ranks
    )[1]
    columns, groups = _grouped(sorted(times), MOST_COLUMNS), _grouped(ranks, MOST_ROWS)

    def field(
        value: Callable[[int, int], float], among: set[int] | dict[int, StepRow] = complete
    ) -> Field:
        def mean(group: Sequence[int], column: Sequence[int]) -> float | None:
            values = [
                value(step, rank) for step in column if step in among for rank in group
                if (step, rank) in spent
            ]
            return fmean(values) if values else None

        return [[mean(group, column) for column in columns] for group in groups]

    return RankSteps(
        [column[0] for column in columns],
        [group[0] for group in groups],
        field(lambda step, rank: spent[step, rank][OUTSIDE]),
        field(lambda step, rank: spent[step, rank][WAITING], split),
        field(lambda step, rank: caused[step][rank], split),
    )


def _grouped(members: Sequence[int], most: int) -> list[Sequence[int]]:
    size = -(-len(members) // most) or 1
    return [members[at : at + size] for at in range(0, len(members), size)]
