"""Ranks by steps: of each rank in each step, the time of its main thread outside MPI, its waiting
for other ranks, and the waiting that it causes. A straggler is a stripe, a noisy host a band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..base.arrays import np
from ..base.columns import Flags
from ..late.late_ranks import Late
from ..late.timelines import OUTSIDE, WAITING
from ..run.alignment import Alignment
from .boundaries import Steps
from .slowest import costs_in, is_split
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
    own = steps.rows.take(np.isin(steps.rows.step, [*complete]))
    numbers, ranks = np.unique(own.step), np.unique(own.world_rank)
    if len(numbers) < 2 or len(ranks) < 2:
        return None
    begins, ends = (
        alignment.aligned(own.world_rank, times) for times in (own.begin_ns, own.end_ns)
    )
    spent_ns = late.timelines.spent_between(own.world_rank, begins, ends)
    split = {step for step, row in complete.items() if is_split(row, True, late)}
    _, caused = costs_in(steps.aligned(alignment, split), late)
    caused_ns = [
        caused[step][rank] if step in split else 0
        for step, rank in zip(own.step.tolist(), own.world_rank.tolist())
    ]
    is_in_split = np.isin(own.step, [*split])
    width, height = -(-len(numbers) // MOST_COLUMNS), -(-len(ranks) // MOST_ROWS)
    column = np.searchsorted(numbers, own.step) // width
    row = np.searchsorted(ranks, own.world_rank) // height
    shape = (row.max() + 1, column.max() + 1)

    def field(values: np.ndarray, among: Flags) -> Field:
        place = np.ravel_multi_index((row[among], column[among]), shape)
        count = np.bincount(place, minlength=shape[0] * shape[1])
        means = np.bincount(place, values[among], len(count)) / np.maximum(count, 1)
        known = [mean if number else None for mean, number in zip(means.tolist(), count.tolist())]
        return [known[first : first + shape[1]] for first in range(0, len(known), shape[1])]

    return RankSteps(
        numbers[::width].tolist(), ranks[::height].tolist(),
        field(spent_ns[:, OUTSIDE], np.ones(len(own), bool)),
        field(spent_ns[:, WAITING], is_in_split), field(np.array(caused_ns), is_in_split),
    )
