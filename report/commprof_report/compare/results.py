"""The answers of a comparison, and the rules by which it was made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..base.thresholds import threshold
from .differences import Difference
from .judge import Contrast, Judge
from .refusals import Refusal, Work
from .replays import Checked
from .sides import Side

ROWS = "rows"  # the figure in which each row counts alike
OTHER = "other"  # the call of small rows added up
MIXED = "mixed"  # transfer of the rows of which it is known, time of the others


@dataclass(frozen=True)
class FigureRow(Contrast):
    """A figure of the run, per rank; of `rows`, per call."""

    side: str
    reference: str
    figure: str
    is_primary: int
    noise: float | None


@dataclass(frozen=True)
class ComparedRow(Contrast):
    """A row: nanoseconds per call, or per step on a rank; of the rows added up as `other` per rank.
    per: call, step, rank."""

    side: str
    reference: str
    call: str
    communicator: str
    bytes: int | None
    memory_kind: str
    measure: str
    rows: int
    count: int
    share: float
    metric: str
    change_ns: float
    per: str = "call"
    adjusted_p: float | None = None
    p50_change: float | None = None  # of the durations at p50, ratio - 1
    p99_change: float | None = None
    reference_algorithm: str = ""  # empty: the library does not tell it of all runs
    algorithm: str = ""
    pairs_needed: int | None = None  # where all agree, but are too few among so many rows
    is_confirmed: int = 0
    part_of_change: float | None = None


    @property
    def is_in_tail(self) -> bool:
        """The change is one of its longest calls: at p50 it is less than a part of it, at p99
        more."""
        if not self.difference or self.p50_change is None or self.p99_change is None:
            return False
        changes = self.difference, self.p50_change, self.p99_change
        change, middle, tail = (
            math.copysign(1, self.difference) * math.log1p(each) for each in changes
        )
        return middle < threshold("compare.tail") * change and tail > change


class VerdictRow(NamedTuple):
    side: str
    reference: str
    metric: str
    verdict: str
    change: float | None
    low: float | None
    high: float | None
    p: float | None
    level: float
    min_effect: float
    runs: int
    reference_runs: int
    pairs: int | None
    agreeing: int | None
    failed_runs: int
    detectable: float | None
    pairs_needed: int
    pairs_for_5_percent: int | None
    refused: str
    allowed: str
    also_different: str
    is_control: int
    skipped: float
    kit: str
    stands_for: float | None


class RunRow(NamedTuple):
    """A run as it entered the comparison."""

    side: str
    block: int | None
    run: str
    start_unix_ns: int
    step_ns: float | None
    wait_ns: float | None
    transfer_ns: float | None
    time_ns: float | None
    wall_ns: float | None
    parallel_efficiency: float | None
    coverage: float
    arithmetic_ns: float | None
    memory_ns: float | None


class SizeRow(NamedTuple):
    """A row with the value of each side."""

    call: str
    communicator: str
    bytes: int | None
    memory_kind: str
    measure: str
    metric: str
    count: int  # type: ignore[assignment]  # hides tuple.count
    per: str
    sides: tuple[str, ...]
    values_ns: tuple[float | None, ...]
    best: str | None


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
    figures: list[FigureRow]
    rows: list[ComparedRow]
    differences: list[Difference]

    @property
    def primary(self) -> FigureRow:
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
    costs: list[FigureRow]

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
