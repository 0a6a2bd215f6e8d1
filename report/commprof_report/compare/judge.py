"""Comparison of two samples of runs, and the rules by which it is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from ..base.thresholds import threshold
from . import rank_tests
from .columns import NOTHING, Compared
from .rank_tests import Paired, Shift, Unpaired
from .replays import Checked


class Judge(NamedTuple):
    """How two samples of runs are compared."""

    is_paired: bool
    level: float
    margin: float

    def contrast(self, first: Sequence[float | None], second: Sequence[float | None]) -> Compared:
        found = NOTHING._replace(
            first_ns=median_known(first), second_ns=median_known(second),
            samples=(tuple(first), tuple(second)),
        )
        before, after = _logs(first), _logs(second)
        if before is None or after is None:
            return found
        sample: Paired | Unpaired = Unpaired(before, after)
        if self.is_paired:
            sample = Paired([later - earlier for earlier, later in zip(before, after)])
        shift = rank_tests.shift_of(sample, self.level)
        same_p = rank_tests.sameness(sample, self.margin)
        found = found._replace(
            change=math.expm1(shift.estimate),
            agreeing=sum(change * shift.estimate > 0 for change in sample.differences)
            if isinstance(sample, Paired) else None,
        )
        return found._replace(
            low=math.expm1(shift.low),
            high=math.expm1(shift.high),
            p=shift.p,
            same_p=same_p,
            detectable=math.expm1(rank_tests.detectable(shift, self.level)),
            outcome=self._outcome(shift, same_p),
        ) if math.isfinite(shift.low) else found

    def _outcome(self, shift: Shift, same_p: float) -> str:
        if same_p <= 1 - self.level:
            return "same"
        return ("less" if shift.estimate < 0 else "more") if shift.is_found else "unknown"


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


def known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def median_known(values: Sequence[float | None]) -> float | None:
    return median(known(values)) if known(values) else None


def _logs(values: Sequence[float | None]) -> list[float] | None:
    """Null: one of them is not known, or not above zero."""
    found = [math.log(value) for value in known(values) if value > 0]
    return found if len(found) == len(values) else None
