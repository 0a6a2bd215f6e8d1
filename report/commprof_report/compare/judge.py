"""Comparison of two samples of runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from . import rank_tests


@dataclass(frozen=True)
class Contrast:
    """Values of one side against those of the first. change, low, high, detectable: ratio - 1.
    detectable: what would have been found with a probability of 80 %. agreeing: blocks that changed
    in this direction. outcome: less, more, same, unknown, none (too few runs). samples: the values
    themselves, one of each run."""

    first_ns: float | None
    second_ns: float | None
    change: float | None
    low: float | None
    high: float | None
    p: float | None
    same_p: float | None
    detectable: float | None
    agreeing: int | None
    outcome: str
    samples: tuple[tuple[float | None, ...], tuple[float | None, ...]]


class Judge(NamedTuple):
    """How two samples of runs are compared."""

    is_paired: bool
    level: float
    margin: float

    def contrast(self, first: Sequence[float | None], second: Sequence[float | None]) -> Contrast:
        samples = tuple(first), tuple(second)
        if any(value is None or value <= 0 for values in samples for value in values):
            return Contrast(*map(median_known, samples), *[None] * 7, "none", samples)
        before, after = [math.log(value) for value in first], [math.log(value) for value in second]
        changes = [later - earlier for earlier, later in zip(before, after)]
        if self.is_paired:
            shift, same_p = (
                rank_tests.paired_shift(changes, self.level),
                rank_tests.paired_sameness(changes, self.margin),
            )
            detectable = rank_tests.paired_detectable(shift, len(changes), self.level)
        else:
            shift, same_p = (
                rank_tests.unpaired_shift(before, after, self.level),
                rank_tests.unpaired_sameness(before, after, self.margin),
            )
            detectable = rank_tests.unpaired_detectable(shift, len(before), len(after), self.level)
        is_known = math.isfinite(shift.low)
        agreeing = (
            sum(change * shift.estimate > 0 for change in changes) if self.is_paired else None
        )
        return Contrast(
            *(median(first), median(second), math.expm1(shift.estimate)),
            *(math.expm1(bound) if is_known else None for bound in (shift.low, shift.high)),
            *(shift.p if is_known else None, same_p if is_known else None),
            *(
                math.expm1(detectable) if math.isfinite(detectable) and detectable < 50 else None,
                agreeing,
            ),
            *(self._outcome(shift, same_p) if is_known else "none", samples),
        )

    def _outcome(self, shift: rank_tests.Shift, same_p: float) -> str:
        if same_p <= 1 - self.level:
            return "same"
        return ("less" if shift.estimate < 0 else "more") if shift.is_found else "unknown"


def median_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
