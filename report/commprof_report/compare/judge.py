"""Comparison of two samples of runs, and the rules by which it is made.

It rests on exact rank tests and what follows from them: estimates of a shift with intervals,
sameness, the smallest shift that would be detected.

Paired samples: Wilcoxon's signed rank test and the Hodges-Lehmann estimate, the median of the means
of all pairs of differences (Walsh averages). Unpaired samples: the test of Mann and Whitney and the
median of all differences between the two. The intervals are the shifts that the test does not
reject. None of them assumes a normal distribution. Sources: Hollander, Wolfe, Chicken,
Nonparametric Statistical Methods, chapters 3 and 4; Hoefler, Belli, Scientific Benchmarking of
Parallel Computing Systems, SC 2015.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist, median
from typing import NamedTuple

from ..base import threshold
from .columns import NOTHING, Compared
from .sides import Checked


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
        shift = shift_of(sample, self.level)
        same_p = sameness(sample, self.margin)
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
            detectable=math.expm1(detectable(shift, self.level)),
            outcome=self._outcome(shift, same_p),
        ) if math.isfinite(shift.low) else found

    def _outcome(self, shift: Shift, same_p: float) -> str:
        if same_p <= 1 - self.level:
            return "same"
        return ("less" if shift.estimate < 0 else "more") if shift.is_found else "unknown"


class Rules(NamedTuple):
    """metric: null for the default. level: of all verdicts together. min_effect: ratio - 1.
    skipped: the share of the steps of each run that was left out when it was read; rows, whose sums
    have all steps, are not compared then. checked: how well replays of a kit stand for its job, if
    that is known.
    """

    metric: str | None = None
    level: float = threshold("compare.level")
    min_effect: float = threshold("compare.min-effect")
    allowed: tuple[str, ...] = ()
    pairs: bool = True
    all_rows: bool = False
    skipped: float = 0.0
    checked: Checked | None = None

    def judge(self, is_paired: bool, verdicts: int) -> Judge:
        """The judge of each of so many verdicts, which hold together at the level."""
        return Judge(is_paired, 1 - (1 - self.level) / verdicts, math.log1p(self.min_effect))


def known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def median_known(values: Sequence[float | None]) -> float | None:
    return median(known(values)) if known(values) else None


def _logs(values: Sequence[float | None]) -> list[float] | None:
    """Null: one of them is not known, or not above zero."""
    found = [math.log(value) for value in known(values) if value > 0]
    return found if len(found) == len(values) else None


POWER = 0.8  # probability with which the smallest detectable shift is detected
NORMAL = NormalDist()
ZERO = 1e-12  # differences of logarithms below this are zero


class Shift(NamedTuple):
    """The estimated shift of the second sample against the first. Without enough values the
    interval is infinite."""

    estimate: float
    low: float
    high: float
    p: float  # two-sided

    @property
    def is_found(self) -> bool:
        """The interval does not contain 0."""
        return self.low > 0 or self.high < 0


class Paired(NamedTuple):
    """Differences second - first of pairs."""

    differences: Sequence[float]

    def shifts(self) -> list[float]:
        """The means of all pairs of differences, in order (Walsh averages)."""
        return sorted(
            (one + other) / 2 for place, one in enumerate(self.differences)
            for other in self.differences[place:]
        )

    def left_out(self, level: float) -> int:
        return _signed_ranks_left_out(len(self.differences), level)

    def tails(self, shift: float = 0.0) -> tuple[float, float]:
        """The probability of as small a sum of positive ranks, and of as large a one, with this
        shift. Zeros are dropped; equal magnitudes share their mean rank, and the distribution is
        that of these ranks."""
        values = [value - shift for value in self.differences if abs(value - shift) > ZERO]
        ranks = _doubled_ranks([abs(value) for value in values])
        positive = sum(rank for rank, value in zip(ranks, values) if value > 0)
        return _tails(_sum_counts(tuple(sorted(ranks))), positive)


class Unpaired(NamedTuple):
    first: Sequence[float]
    second: Sequence[float]

    def shifts(self) -> list[float]:
        """All differences, in order."""
        return sorted(after - before for before in self.first for after in self.second)

    def left_out(self, level: float) -> int:
        return _rank_sums_left_out(len(self.first), len(self.second), level)

    def tails(self, shift: float = 0.0) -> tuple[float, float]:
        """The same of the sum of the second sample's ranks among all."""
        ranks = _doubled_ranks([*self.first, *(value - shift for value in self.second)])
        counts = _sum_counts(tuple(sorted(ranks)), len(self.second))
        return _tails(counts, sum(ranks[len(self.first) :]))


def shift_of(sample: Paired | Unpaired, level: float) -> Shift:
    shifts, left_out = sample.shifts(), sample.left_out(level)
    low, high = (shifts[left_out - 1], shifts[-left_out]) if left_out else (-math.inf, math.inf)
    return Shift(median(shifts), low, high, min(1.0, 2 * min(sample.tails())))


def sameness(sample: Paired | Unpaired, margin: float) -> float:
    """The p of two one-sided tests: small if the shift is certainly inside +-margin."""
    at_most, _ = sample.tails(margin)
    _, at_least = sample.tails(-margin)
    return max(at_most, at_least)


def detectable(shift: Shift, level: float) -> float:
    """The shift that as many runs with this scatter would have shown with probability POWER. The
    scatter is taken from the width of the interval, so single outliers count no more than they do
    in the test, and its bounds are taken as normal; infinite: no shift would be found."""
    of_width = 1 + NORMAL.inv_cdf(POWER) / NORMAL.inv_cdf((1 + level) / 2)
    return (shift.high - shift.low) * of_width / 2


def fewest_pairs(level: float) -> int:
    """With fewer, no difference of any size is found."""
    return next(pairs for pairs in range(2, 100) if _signed_ranks_left_out(pairs, level))


def fewest_runs(level: float) -> int:
    """Fewest runs of each side, without pairs."""
    return next(runs for runs in range(2, 100) if _rank_sums_left_out(runs, runs, level))


@lru_cache(maxsize=256)
def _signed_ranks_left_out(pairs: int, level: float) -> int:
    return _left_out(_sum_counts(tuple(range(1, pairs + 1))), level)


@lru_cache(maxsize=256)
def _rank_sums_left_out(first: int, second: int, level: float) -> int:
    counts = _sum_counts(tuple(range(1, first + second + 1)), first)
    return _left_out(counts[first * (first + 1) // 2 :], level)


def _left_out(counts: Sequence[int], level: float) -> int:
    """How many of the smallest values of a statistic, counted from 0, are less probable than half
    of 1 - level together."""
    most = (1 - level) / 2 * sum(counts) * (1 + 1e-9)
    return sum(below <= most for below in accumulate(counts[: len(counts) // 2]))


def _tails(counts: Sequence[int], at: int) -> tuple[float, float]:
    whole = sum(counts)
    return sum(counts[: at + 1]) / whole, sum(counts[at:]) / whole


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice each value's rank from 1, an integer also where equal values share their mean rank."""
    ordered = sorted(values)
    first: dict[float, int] = {}
    last: dict[float, int] = {}
    for place, value in enumerate(ordered, 1):
        first.setdefault(value, place)
        last[value] = place
    return [first[value] + last[value] for value in values]


@lru_cache(maxsize=256)
def _sum_counts(ranks: tuple[int, ...], members: int | None = None) -> list[int]:
    """How many subsets of the ranks have the sum 0, 1, 2, ...; of subsets with this number of
    members, if it is given. The counts are the digits of one large integer whose base exceeds the
    number of subsets, so adding a rank to all subsets is a shift."""
    digit_bytes = len(ranks) // 8 + 1
    if members is None:
        number = 1
        for rank in ranks:
            number += number << 8 * digit_bytes * rank
    else:
        numbers = [1] + [0] * members
        for rank in ranks:
            for size in range(members, 0, -1):
                numbers[size] += numbers[size - 1] << 8 * digit_bytes * rank
        number = numbers[members]
    digits = number.to_bytes((sum(ranks) + 1) * digit_bytes, "little")
    counts = [
        int.from_bytes(digits[at : at + digit_bytes], "little")
        for at in range(0, len(digits), digit_bytes)
    ]
    return counts if members is None else counts[: sum(ranks[len(ranks) - members :]) + 1]
