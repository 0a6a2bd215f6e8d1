"""Comparison of two samples of runs, and the rules by which it is made.

It rests on exact rank tests and what follows from them: estimates of a shift with intervals,
sameness, the smallest shift that would be detected.

Paired samples: Wilcoxon's signed rank test and the Hodges-Lehmann estimate, the median of the means
of all pairs of differences (Walsh averages). Unpaired samples: the test of Mann and Whitney and the
median of all differences between the two. The intervals are the shifts that the test does not
reject. None of them assumes a normal distribution. Sources: Hollander, Wolfe, Chicken,
Nonparametric Statistical Methods, chapters 3 and 4; Hoefler, Belli, Scientific Benchmarking of
Parallel Computing Systems, SC 2015.

Then the columns of a comparison, and the rows that have them.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, combinations_with_replacement
from statistics import NormalDist, fmean, median
from typing import Any, NamedTuple

from ..base import Field, np, row_type, text, threshold, units


class Rules(
    namedtuple(
        "Rules",
        "metric level min_effect allowed pairs all_rows skipped checked",
        defaults=[
            None,
            threshold("compare.level"),
            threshold("compare.min-effect"),
            (),
            True,
            False,
            0.0,
            None,
        ],
    )
):
    """How two samples of runs are compared, and what is said of it. metric: null for the default.
    level: of all verdicts together. pairs: where there are any. min_effect: ratio - 1.
    skipped: the share of the steps of each run that was left out when it was read; rows, whose sums
    have all steps, are not compared then. checked: how well replays of a kit stand for its job
    (Checked), if that is known.
    """

    def of_one(self, verdicts: int, is_paired: bool | None = None) -> Rules:
        """The rules of each of so many verdicts, which hold together at the level. is_paired:
        whether the runs are in pairs, if these rules do not say it."""
        pairs = self.pairs if is_paired is None else is_paired
        return self._replace(pairs=pairs, level=1 - (1 - self.level) / verdicts)


def contrast(
    first: Sequence[float | None], second: Sequence[float | None], *, rules: Rules
) -> Compared:
    """rules: those of one verdict."""
    found = NOTHING._replace(
        first_ns=median_known(first),
        second_ns=median_known(second),
        samples=(tuple(first), tuple(second)),
    )
    before, after = _logs(first), _logs(second)
    if before is None or after is None:
        return found
    sample: Paired | Unpaired = Unpaired(before, after)
    if rules.pairs:
        sample = Paired([later - earlier for earlier, later in zip(before, after)])
    shift = shift_of(sample, rules.level)
    same_p = sameness(sample, math.log1p(rules.min_effect))
    found = found._replace(
        change=math.expm1(shift.estimate),
        agreeing=sum(change * shift.estimate > 0 for change in sample.differences)
        if isinstance(sample, Paired)
        else None,
    )
    return (
        found._replace(
            low=math.expm1(shift.low),
            high=math.expm1(shift.high),
            p=shift.p,
            same_p=same_p,
            detectable=math.expm1(detectable(shift, rules.level)),
            outcome=outcome(shift, same_p, rules.level),
        )
        if math.isfinite(shift.low)
        else found
    )


def outcome(shift: Shift, same_p: float, level: float) -> str:
    found = "less" if shift.estimate < 0 else "more"
    return "same" if same_p <= 1 - level else found if shift.is_found else "unknown"


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


class Shift(namedtuple("Shift", "estimate low high p")):
    """The estimated shift of the second sample against the first; p: two-sided. Without enough
    values the interval is infinite."""

    @property
    def is_found(self) -> bool:
        """The interval does not contain 0."""
        return self.low > 0 or self.high < 0


class Paired(NamedTuple):
    """Differences second - first of pairs."""

    differences: Sequence[float]

    def shifts(self) -> list[float]:
        """The means of all pairs of differences, in order (Walsh averages)."""
        return sorted(map(fmean, combinations_with_replacement(self.differences, 2)))

    def left_out(self, level: float) -> int:
        return _left_out(_sum_counts(tuple(range(1, len(self.differences) + 1))), level)

    def tails(self, shift: float = 0.0) -> tuple[float, float]:
        """The probability of as small a sum of positive ranks, and of as large a one, with this
        shift. Zeros are dropped; equal magnitudes share their mean rank, and the distribution is
        that of these ranks."""
        # differences of logarithms below this are zero
        values = [value - shift for value in self.differences if abs(value - shift) > 1e-12]
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
        first = len(self.first)
        counts = _sum_counts(tuple(range(1, first + len(self.second) + 1)), first)
        return _left_out(counts[first * (first + 1) // 2 :], level)

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
    return next(pairs for pairs in range(2, 100) if Paired([0.0] * pairs).left_out(level))


def fewest_runs(level: float) -> int:
    """Fewest runs of each side, without pairs."""
    return next(
        runs for runs in range(2, 100) if Unpaired([0.0] * runs, [0.0] * runs).left_out(level)
    )


def _left_out(counts: Sequence[float], level: float) -> int:
    """How many of the smallest values of a statistic, counted from 0, are less probable than half
    of 1 - level together."""
    most = (1 - level) / 2 * sum(counts) * (1 + 1e-9)
    return sum(below <= most for below in accumulate(counts[: len(counts) // 2]))


def _tails(counts: Sequence[float], at: int) -> tuple[float, float]:
    whole = sum(counts)
    return sum(counts[: at + 1]) / whole, sum(counts[at:]) / whole


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice each value's rank from 1, an integer also where equal values share their mean rank."""
    ordered = np.sort(values)
    low, high = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return (low + high + 1).tolist()


@lru_cache(maxsize=256)
def _sum_counts(ranks: tuple[int, ...], members: int | None = None) -> list[float]:
    """How many subsets of the ranks have the sum 0, 1, 2, ...; of subsets with this number of
    members, if it is given."""
    counts = np.zeros(((members or 0) + 1, sum(ranks) + 1))
    counts[0, 0] = 1
    for rank in ranks:
        with_it = counts[:, :-rank].copy()
        if members is None:
            counts[:, rank:] += with_it
        else:
            counts[1:, rank:] += with_it[:-1]
    return counts[-1].tolist()


DIFFERENT = ("less", "more")  # outcomes
OTHER = "other"  # the call of small rows added up
MIXED = "mixed"  # transfer of the rows of which it is known, time of the others
SIDES = (
    Field("side", "names: what the folders of a side share, without numbers; else A, B, ..."),
    Field("reference", ""),
)
VERDICT = (
    *SIDES,
    Field(
        "metric",
        "by default `step` if rows are per step; else `transfer` if all runs have a `coverage` "
        "of half; else `time` (`step` with `--skip-steps`)",
    ),
    Field("verdict", "an outcome of the metric's figure; `too few`, `refused`"),
    Field("change", "of that figure"),
    *(Field(key, "") for key in ("low", "high", "p")),
    Field("level", "confidence of this side's verdict; the smallest difference that matters"),
    Field("min_effect", ""),
    Field(
        "runs",
        "runs of both; pairs (null: no blocks); those that changed in the direction of the "
        "estimate",
    ),
    *(Field(key, "") for key in ("reference_runs", "pairs", "agreeing")),
    Field("failed_runs", "runs of this arm that failed in an experiment"),
    Field("detectable", "of the metric's figure"),
    Field("pairs_needed", "fewest pairs that can show a difference"),
    Field("refused", "[reasons](METHODS.md#comparisons)"),
    Field("allowed", ""),
    Field(
        "also_different",
        "settings, software and hosts in which all runs of the sides differ",
    ),
    Field(
        "is_control",
        "1: the side runs the reference's command once more (`--aa`)",
    ),
    Field("skipped", "the share of the steps that `--skip-steps` leaves out; 0: none"),
    Field("kit", "SHA-256 of the kit that all these runs replay"),
    Field(
        "stands_for",
        "share of the job's time inside MPI for which replays of the kit stand ([`replay "
        "check`](#replay)); null: not checked, or gaps or arrivals were not the job's",
    ),
)
OF_CONTRAST = (
    Field("first_ns", "medians over the runs of the reference and of the side"),
    Field("second_ns", ""),
    Field("change", "[Comparisons](METHODS.md#comparisons)"),
    *(
        Field(key, "")
        for key in ("low", "high", "p", "same_p", "detectable", "agreeing", "outcome")
    ),
)
FIGURE = (
    *SIDES,
    Field("figure", "the figure; 1: the verdict is about this one"),
    Field("is_primary", ""),
    Field("noise", "the largest ratio of two runs of the same side, less 1"),
)
KEY = (
    Field("call", "of a row"),
    *(Field(key, "") for key in ("communicator", "bytes", "memory_kind", "measure")),
)
ROW = (
    *KEY,
    Field(
        "rows",
        "rows added up; calls in a run of the reference (mean); share of the time in all runs "
        "(mean)",
    ),
    Field("count", ""),
    Field("share", ""),
    Field(
        "metric",
        "the times of the row; `mixed` (`other` alone): transfer where it is known, else time",
    ),
    Field("change_ns", "median over the side - median over the reference, per rank"),
    Field(
        "per",
        "the times are per `call`, `step` (on a rank), `rank` (`other`)",
    ),
    Field("adjusted_p", "p of an exploratory row, adjusted by Benjamini and Hochberg"),
    Field(
        "reference_algorithm",
        "NCCL's most frequent algorithm for this size",
    ),
    Field("algorithm", ""),
    Field("is_confirmed", "[Comparisons](METHODS.md#comparisons)"),
    Field(
        "part_of_change",
        "`change_ns` over that of all rows (null without a verdict of `less` or `more`)",
    ),
)
SIZE = (
    Field("call", "of a row"),
    *KEY[1:],
    *(Field(key, "") for key in ("metric", "count", "per")),
    Field(
        "sides",
        "the sides, and their medians; in `--csv` a column `SIDE_ns` for each",
    ),
    Field("values_ns", ""),
    Field(
        "best",
        "the side with the smallest median, if it is `less` than each other side at 1 - "
        "level, adjusted by Benjamini and Hochberg (exploratory; no controls)",
    ),
)
RUN = (
    text("side", "as above", "side"),
    Field("block", "null: none", "block"),
    text("run", "its path; its start", "run"),
    Field("start_unix_ns", "", "started", units.timestamp, False),
    Field("step_ns", "null: not known", "Step"),
    Field("wait_ns", "", "Waiting"),
    Field("transfer_ns", "", "Transfer"),
    Field("time_ns", "", "Inside MPI"),
    Field("wall_ns", "", "Wall time"),
    Field(
        "coverage",
        "share of the time inside MPI of which waiting and transfer are known",
    ),
    Field("arithmetic_ns", "null: not measured", "host: arithmetic"),
    Field("memory_ns", "", "host: copies in memory"),
)
COMPARED = (*FIGURE, *ROW, *OF_CONTRAST)  # of figures and rows
SAMPLES = Field("samples", "the values themselves, one of each run: of the reference, of the side")
VerdictRow, SizeRow, RunRow = (
    row_type(name, fields)
    for name, fields in (("VerdictRow", VERDICT), ("SizeRow", SIZE), ("RunRow", RUN))
)
compared_row: Any = row_type("ComparedRow", (*COMPARED, SAMPLES))


class Compared(compared_row):
    """Values of one side against those of the first: a figure of the run, per rank (`rows` per
    call), or a row: per call, or per step on a rank, or, added up as `other`, per rank. change,
    low, high, detectable: ratio - 1."""

    @property
    def difference(self) -> float | None:
        """The change, if it is beyond chance."""
        return self.change if self.outcome in DIFFERENT else None


NOTHING = Compared._make([None] * len(compared_row._fields))._replace(
    is_primary=0, per="call", reference_algorithm="", algorithm="", outcome="none", is_confirmed=0
)
