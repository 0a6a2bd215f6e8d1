"""The answers of a comparison, and the rules by which it was made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..base.thresholds import threshold
from .columns import Compared, RunRow, SizeRow, VerdictRow
from .differences import Difference
from .judge import Judge
from .refusals import Refusal, Work
from .replays import Checked
from .sides import Side

ROWS = "rows"  # the figure in which each row counts alike
OTHER = "other"  # the call of small rows added up
MIXED = "mixed"  # transfer of the rows of which it is known, time of the others


class Rules(NamedTuple):
    """metric: null for the default. level: of all verdicts together. min_effect: ratio - 1.
    skipped: the share of the steps of each run that was left out when it was read; rows, whose sums
    have all steps, are not compared then. is_sequential: the number of blocks was chosen by the
    width of the intervals. checked: how well replays of a kit stand for its job, if that is known.
    """

    metric: str | None = None
    level: float = threshold("compare.level")
    min_effect: float = threshold("compare.min-effect")
    allowed: tuple[str, ...] = ()
    pairs: bool = True
    all_rows: bool = False
    skipped: float = 0.0
    is_sequential: bool = False
    checked: Checked | None = None

    def judge(self, is_paired: bool, verdicts: int) -> Judge:
        """The judge of each of so many verdicts, which hold together at the level."""
        chance = (1 - self.level) * (threshold("compare.until") if self.is_sequential else 1)
        return Judge(is_paired, 1 - chance / verdicts, math.log1p(self.min_effect))

    def divide(self, found: Sequence[Refusal]) -> tuple[list[Refusal], list[Refusal]]:
        """Reasons against a verdict, and those that are allowed."""
        return (
            [refusal for refusal in found if refusal.kind not in self.allowed],
            [refusal for refusal in found if refusal.kind in self.allowed],
        )


class Pair(NamedTuple):
    """A side against the first one."""

    verdict: VerdictRow
    figures: list[Compared]
    rows: list[Compared]
    differences: list[Difference]

    @property
    def primary(self) -> Compared:
        """The figure that the verdict is about."""
        return next(figure for figure in self.figures if figure.is_primary)


class Comparison(NamedTuple):
    sides: list[Side]
    rules: Rules
    metric: str
    is_paired: bool
    work: Work
    refused: list[Refusal]
    allowed: list[Refusal]
    notes: list[str]
    pairs: list[Pair]
    sizes: list[SizeRow]
    runs: list[RunRow]
    costs: list[Compared]

    @property
    def is_experiment(self) -> bool:
        return self.sides[0].elapsed_ns is not None

    @property
    def tested(self) -> list[Pair]:
        """Without controls, unless there is nothing else."""
        return [pair for pair in self.pairs if not pair.verdict.is_control] or self.pairs


def half_width(row: VerdictRow) -> float | None:
    """Half the width of the ratio's interval, on a logarithmic scale: 0.02 is from -2 % to +2 %
    around the estimate."""
    if row.low is None or row.high is None:
        return None
    return math.expm1((math.log1p(row.high) - math.log1p(row.low)) / 2)
