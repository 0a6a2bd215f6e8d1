"""Comparison of two samples of runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from . import rank_tests
from .rank_tests import Shift

DIFFERENT = ("less", "more")  # outcomes


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

    @property
    def difference(self) -> float | None:
        """The change, if it is beyond chance."""
        return self.change if self.outcome in DIFFERENT else None


class Judge(NamedTuple):
    """How two samples of runs are compared."""

    is_paired: bool
    level: float
    margin: float

    def contrast(self, first: Sequence[float | None], second: Sequence[float | None]) -> Contrast:
        before, after = _logs(first), _logs(second)
        medians = median_known(first), median_known(second)
        samples = tuple(first), tuple(second)
        if before is None or after is None:
            return Contrast(*medians, None, None, None, None, None, None, None, "none", samples)
        agreeing = None
        if self.is_paired:
            changes = [later - earlier for earlier, later in zip(before, after)]
            shift = rank_tests.paired_shift(changes, self.level)
            same_p = rank_tests.paired_sameness(changes, self.margin)
            agreeing = sum(change * shift.estimate > 0 for change in changes)
        else:
            shift = rank_tests.unpaired_shift(before, after, self.level)
            same_p = rank_tests.unpaired_sameness(before, after, self.margin)
        detectable, is_known = rank_tests.detectable(shift, self.level), math.isfinite(shift.low)
        return Contrast(
            *medians,
            change=math.expm1(shift.estimate),
            low=math.expm1(shift.low) if is_known else None,
            high=math.expm1(shift.high) if is_known else None,
            p=shift.p if is_known else None,
            same_p=same_p if is_known else None,
            detectable=math.expm1(detectable) if is_known else None,
            agreeing=agreeing,
            outcome=self._outcome(shift, same_p) if is_known else "none",
            samples=samples,
        )

    def _outcome(self, shift: Shift, same_p: float) -> str:
        if same_p <= 1 - self.level:
            return "same"
        return ("less" if shift.estimate < 0 else "more") if shift.is_found else "unknown"


def known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def median_known(values: Sequence[float | None]) -> float | None:
    return median(known(values)) if known(values) else None


def _logs(values: Sequence[float | None]) -> list[float] | None:
    """Null: one of them is not known, or not above zero."""
    found = [math.log(value) for value in known(values) if value > 0]
    return found if len(found) == len(values) else None
