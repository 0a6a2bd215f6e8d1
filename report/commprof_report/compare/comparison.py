"""Sides of runs compared: the figures of the run, the rows, and one verdict for each side against
the first.

One figure is tested, that of the chosen metric; the verdict is this test alone. If it finds a
difference, rows are tested in order of their share of the time until the first that shows none
(fixed sequence); these are confirmed at the same level. All other findings are selected by the
procedure of Benjamini and Hochberg and are exploratory. With more than two sides, each test has its
part of the level (Bonferroni).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from statistics import fmean, median
from typing import NamedTuple

from ..base import units
from . import machine, rank_tests
from .cuts import rows_per_step
from .figures import PERCENTILES, Figures, Key, Row, row_name
from .groups import Group, renamed
from .judge import Contrast, Judge, median_known
from .refusals import (
    MOST_SWITCHES_PER_S, Difference, Refusal, Work, differences, refusals, tunes_itself, work_of,
)
from .sides import Side, in_blocks

METRICS = ("transfer", "time", *PERCENTILES, "step", "wall")
FIGURES = ("step", "wait", "transfer", "time", "wall")
COVERED = 0.5  # of the time inside MPI; transfer is the default metric from there on
NEARLY_ALL = 0.9  # of that time; less is noted
SMALL = 0.01  # share of the time; smaller rows are added up
MOST_HISTOGRAMS = 12  # rows
FEW = 3  # runs with which a scatter is known
FEWEST_OF_A_TREND = 8
# part of 1 - level: blocks until an interval is narrow end more often with one that is too narrow
OF_SEQUENTIAL = 2 / 3
TREND_DEVIATIONS = 3  # of the rank correlation with time, under no trend
OUTLIER = 5  # median absolute deviations, scaled to standard deviations
MAD = 1.4826
NOTABLE_ESTIMATE = 0.05
FEW_SWITCHES_PER_S = 1  # involuntary, of a rank; fewer do not matter
NOTABLE_ERROR = 0.1  # of the clocks, of the difference
ADVISED = math.log(1.05)  # "so many pairs would find 5 %"
OTHER = "other"
MIXED = "mixed"  # transfer of the rows of which it is known, time of the others
ROWS = "rows"  # the figure in which each row counts alike


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
    is_confirmed: int = 0
    part_of_change: float | None = None


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
    count: int
    per: str
    sides: tuple[str, ...]
    values_ns: tuple[float | None, ...]
    best: str | None


class Rules(NamedTuple):
    """metric: null for the default. level: of all verdicts together. min_effect: ratio - 1.
    skipped: the share of the steps of each run that was left out when it was read; rows, whose sums
    have all steps, are not compared then. is_sequential: the number of blocks was chosen by the
    width of the intervals."""

    metric: str | None = None
    level: float = 0.95
    min_effect: float = 0.02
    allowed: tuple[str, ...] = ()
    pairs: bool = True
    all_rows: bool = False
    skipped: float = 0.0
    is_sequential: bool = False

    def level_of_each(self, verdicts: int) -> float:
        return 1 - (1 - self.level) * (OF_SEQUENTIAL if self.is_sequential else 1) / verdicts


class Pair(NamedTuple):
    """A side against the first one."""

    verdict: VerdictRow
    figures: list[FigureRow]
    rows: list[ComparedRow]
    differences: list[Difference]


class Histogram(NamedTuple):
    """The durations of the calls of a row: calls by their bounds, of all runs of each side."""

    name: str
    sides: dict[str, dict[tuple[int, int], int]]


class Comparison(NamedTuple):
    """histograms: of the largest rows; empty where runs were read without."""

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
    histograms: list[Histogram]

    @property
    def is_experiment(self) -> bool:
        return self.sides[0].elapsed_ns is not None

    @property
    def tested(self) -> list[Pair]:
        """Without controls, unless there is nothing else."""
        return [pair for pair in self.pairs if not pair.verdict.is_control] or self.pairs


def compare(sides: Sequence[Side], rules: Rules) -> Comparison:
    sides = [side._replace(runs=_with_groups_of(sides[0].runs[0], side.runs)) for side in sides]
    blocked = in_blocks(sides) if rules.pairs else None
    sides = blocked or [side._replace(blocks=None) for side in sides]
    tested = [side for side in sides[1:] if not side.of] or sides[1:]
    judge = Judge(
        blocked is not None, rules.level_of_each(len(tested)), math.log1p(rules.min_effect)
    )
    in_steps = rows_per_step(sides, work_of(sides, _keys(sides)).uneven)
    metric = rules.metric or _default_metric(in_steps, rules)
    work = work_of(in_steps, _keys(in_steps))
    found = refusals(in_steps, work, judge.is_paired)
    sides = sides if metric in PERCENTILES else in_steps
    drifted = {side.name: _drifted(judge, sides[0], side, metric) for side in tested}
    found += [refusal for refused, _ in drifted.values() for refusal in refused]
    refused = [refusal for refusal in found if refusal.kind not in rules.allowed]
    allowed = [refusal for refusal in found if refusal.kind in rules.allowed]
    table = _Table(sides, [] if rules.skipped else _keys(sides), metric)
    alone = judge._replace(level=rules.level_of_each(1))
    pairs = [
        _pair(alone if side.of else judge, rules, table, side, refused, allowed)
        for side in sides[1:]
    ]
    notes = [
        *_notes(sides, metric, table, rules, judge.level),
        *(note for _, own in drifted.values() for note in own),
    ]
    for side, pair in zip(sides[1:], pairs):
        notes += _disturbance(judge, sides[0], side)
        notes += _coarse_clocks(
            sides[0], side, next(figure for figure in pair.figures if figure.is_primary),
            rules.skipped,
        )
    costs = [_cost(alone, side) for side in sides if side.bare_ns]
    sizes = table.sizes(judge, not refused)
    judged = judge.is_paired, work, refused, allowed, notes, pairs, sizes
    return Comparison(sides, rules, metric, *judged, _runs(sides), costs, table.histograms())


def _drifted(
    judge: Judge, reference: Side, side: Side, metric: str
) -> tuple[list[Refusal], list[str]]:
    """A difference of the machine is a reason against a verdict if it is as large as that of the
    metric; else it is noted."""
    found = judge.contrast(
        *([run.of_run(metric) for run in each.runs] for each in (reference, side))
    )
    refused, notes = [], []
    for drift in machine.drifts(judge, reference, side):
        if found.change is None or abs(math.log1p(drift.change)) >= abs(math.log1p(found.change)):
            way_out = "run more blocks on a machine that nothing else uses; or --allow machine"
            refused.append(
                Refusal(
                    "machine", f"{drift.what}: as much as the sides differ in {metric}", way_out
                )
            )
        else:
            notes.append(
                f"the machine was not the same: {drift.what}; the sides differ by more in {metric}"
            )
    return refused, notes


def _keys(sides: Sequence[Side]) -> list[Key]:
    """The rows that any run has."""
    return list(dict.fromkeys(key for side in sides for run in side.runs for key in run.rows))


def half_width(row: VerdictRow) -> float | None:
    """Half the width of the ratio's interval, on a logarithmic scale: 0.02 is from -2 % to +2 %
    around the estimate."""
    return None if row.low is None else math.expm1((math.log1p(row.high) - math.log1p(row.low)) / 2)


def _with_groups_of(reference: Figures, runs: Sequence[Figures]) -> list[Figures]:
    """The runs with communicators under the first run's description."""
    aligned = []
    for run in runs:
        names = renamed(list(run.labels), list(reference.labels))
        rows = {_renamed(key, names): row for key, row in run.rows.items()}
        parts = {(_renamed(key, names), traffic): row for (key, traffic), row in run.parts.items()}
        aligned.append(replace(run, rows=rows, parts=parts) if names else run)
    return aligned


def _renamed(key: Key, names: dict[Group, Group]) -> Key:
    return key._replace(group=names.get(key.group, key.group))


def _default_metric(sides: Sequence[Side], rules: Rules) -> str:
    """Steps, if messages are cut anew: transfer then hides behind the backward pass, or is
    negotiation."""
    if any(key.per == "step" for key in _keys(sides)):
        return "step"
    is_covered = all(run.coverage >= COVERED for side in sides for run in side.runs)
    return "transfer" if is_covered else "step" if rules.skipped else "time"


class _Table:
    """The rows that all runs have, those below SMALL as one."""

    def __init__(self, sides: Sequence[Side], keys: Sequence[Key], metric: str) -> None:
        self.sides, self.metric = sides, metric
        self.runs = [run for side in sides for run in side.runs]
        self.labels = {
            group: label for run in reversed(self.runs) for group, label in run.labels.items()
        }
        self.keys = [key for key in keys if all(key in run.rows for run in self.runs)]
        self.unmatched = len(keys) - len(self.keys)
        wholes = [sum(row.total_ns for row in run.rows.values()) or 1 for run in self.runs]
        self.share = {
            key: fmean(run.rows[key].total_ns / whole for run, whole in zip(self.runs, wholes))
            for key in self.keys
        }
        self.keys.sort(key=lambda key: -self.share[key])
        self.metrics = {key: self._metric(key) for key in self.keys}

    def _metric(self, key: Key) -> str:
        """Transfer, if it is known in all runs; the figures of the run are not made of rows, which
        then have their time."""
        if self.metric in PERCENTILES:
            return self.metric
        return (
            "transfer"
            if self.metric == "transfer" and all(run.rows[key].is_split for run in self.runs)
            else "time"
        )

    def values(self, key: Key, side: Side) -> list[float | None]:
        return [run.rows[key].value(self.metrics[key]) for run in side.runs]

    def sums(self, keys: Sequence[Key], side: Side) -> list[float]:
        """Per rank, as if each call took its row's value."""
        return [
            sum(_sum(run.rows[key], self.metrics[key]) for key in keys) / len(run.ranks)
            for run in side.runs
        ]

    def alike(self, side: Side) -> list[float | None]:
        """The geometric mean over the rows: nanoseconds per call; not known beside
        rows per step."""
        known = [
            key for key in self.keys
            if all((run.rows[key].value(self.metrics[key]) or 0) > 0 for run in self.runs)
        ]
        if not known or any(key.per == "step" for key in self.keys):
            return [None] * len(side.runs)
        return [
            math.exp(fmean(math.log(run.rows[key].value(self.metrics[key])) for key in known))
            for run in side.runs
        ]

    def row(self, judge: Judge, key: Key, side: Side) -> ComparedRow:
        found = judge.contrast(self.values(key, self.sides[0]), self.values(key, side))
        reference = [run.rows[key] for run in self.sides[0].runs]
        change_ns = _difference([self.sums([key], each) for each in (self.sides[0], side)])
        what = (
            key.call, self.labels.get(key.group, ""), key.bytes, key.memory_kind, key.measure, 1,
        )
        of_row = (round(fmean(row.count for row in reference)), self.share[key], self.metrics[key])
        return ComparedRow(
            *astuple(found), side.name, self.sides[0].name, *what, *of_row, change_ns, key.per
        )

    def other(self, judge: Judge, keys: Sequence[Key], side: Side) -> ComparedRow:
        sums = [self.sums(keys, each) for each in (self.sides[0], side)]
        count = round(fmean(sum(run.rows[key].count for key in keys) for run in self.sides[0].runs))
        metrics = {self.metrics[key] for key in keys}
        metric = metrics.pop() if len(metrics) == 1 else MIXED
        what = (
            OTHER, "", None, "", "", len(keys), count, sum(self.share[key] for key in keys), metric,
        )
        return ComparedRow(
            *astuple(judge.contrast(*sums)), side.name, self.sides[0].name, *what,
            _difference(sums), "rank",
        )

    def histograms(self) -> list[Histogram]:
        found = [self._histogram(key) for key in self.keys[:MOST_HISTOGRAMS]]
        return [each for each in found if any(each.sides.values())]

    def _histogram(self, key: Key) -> Histogram:
        sides = {
            side.name: sum((Counter(run.rows[key].buckets) for run in side.runs), Counter())
            for side in self.sides
        }
        ordered = {name: dict(sorted(buckets.items())) for name, buckets in sides.items()}
        name = row_name(
            units.call_name(key.call, key.memory_kind, key.measure), key.bytes,
            self.labels.get(key.group, ""),
        )
        return Histogram(name, ordered)

    def sizes(self, judge: Judge, are_judged: bool) -> list[SizeRow]:
        found = []
        sides = [side for side in self.sides if not side.of]
        sides = sides if len(sides) > 1 else self.sides
        for key in sorted(
            self.keys,
            key=lambda key: (
                key.call, self.labels.get(key.group, ""), key.bytes or 0, key.memory_kind,
            ),
        ):
            values = [self.values(key, side) for side in sides]
            medians = tuple(median_known(each) for each in values)
            count = round(fmean(run.rows[key].count for run in self.sides[0].runs))
            what = (
                key.call, self.labels.get(key.group, ""), key.bytes, key.memory_kind, key.measure,
                self.metrics[key], count, key.per,
            )
            best = _best(judge, values, medians) if are_judged else None
            found.append(
                SizeRow(
                    *what, tuple(side.name for side in sides), medians,
                    None if best is None else sides[best].name,
                )
            )
        return found


def _best(
    judge: Judge, values: Sequence[Sequence[float | None]], medians: Sequence[float | None]
) -> int | None:
    """The place of the smallest value, if it is less than each other one beyond chance."""
    if None in medians or len(medians) < 2:
        return None
    best = min(range(len(medians)), key=medians.__getitem__)
    others = [
        judge.contrast(values[other], values[best]) for other in range(len(medians))
        if other != best
    ]
    return best if all(found.outcome == "less" for found in others) else None


def _sum(row: Row, metric: str) -> float:
    return (row.value(metric) or 0.0) * row.values


def _difference(sums: Sequence[Sequence[float]]) -> float:
    return median(sums[1]) - median(sums[0])


def _pair(
    judge: Judge, rules: Rules, table: _Table, side: Side, refused: list[Refusal],
    allowed: list[Refusal],
) -> Pair:
    reference = table.sides[0]
    names = (*FIGURES, table.metric) if table.metric in PERCENTILES else FIGURES
    figures = [_figure(judge, reference, side, name, name == table.metric) for name in names]
    if reference.bare_ns and side.bare_ns and not rules.skipped:
        figures += [
            _contrasted(
                judge, reference, side, "elapsed", [each.elapsed_ns for each in (reference, side)]
            ),
            _contrasted(
                judge, reference, side, "bare", [each.bare_ns for each in (reference, side)]
            ),
        ]
    figures.append(
        _contrasted(judge, reference, side, ROWS, [table.alike(each) for each in (reference, side)])
    )
    primary = next(figure for figure in figures if figure.is_primary)
    is_found = primary.outcome in ("less", "more") and not refused
    also = differences(reference, side)
    verdict = _verdict(judge, rules, reference, side, primary, refused, allowed, also, table.metric)
    return Pair(verdict, figures, _tested(judge, table, rules, side, is_found), also)


def _figure(judge: Judge, reference: Side, side: Side, name: str, is_primary: bool) -> FigureRow:
    values = [[run.of_run(name) for run in each.runs] for each in (reference, side)]
    return replace(_contrasted(judge, reference, side, name, values), is_primary=int(is_primary))


def _contrasted(
    judge: Judge, reference: Side, side: Side, name: str, values: Sequence[Sequence[float | None]]
) -> FigureRow:
    return FigureRow(
        *astuple(judge.contrast(*values)), side.name, reference.name, name, 0, _noise(values)
    )


def _cost(judge: Judge, side: Side) -> FigureRow:
    """Cost of the profiler: the command with it against the command without."""
    without = side._replace(name=f"{side.name} without profiler")
    return _contrasted(judge, without, side, "elapsed", [side.bare_ns, side.elapsed_ns])


def _noise(values: Sequence[Sequence[float | None]]) -> float | None:
    """The largest ratio of two runs of one side, less 1."""
    ratios = [
        max(own) / min(own) - 1 for own in values
        if len(own) > 1 and None not in own and min(own) > 0
    ]
    return max(ratios, default=None)


def _tested(
    judge: Judge, table: _Table, rules: Rules, side: Side, is_found: bool
) -> list[ComparedRow]:
    small = [] if rules.all_rows else [key for key in table.keys if table.share[key] < SMALL]
    small = small if len(small) > 1 else []
    shown = table.keys[: len(table.keys) - len(small)]
    rows = [table.row(judge, key, side) for key in shown] + (
        [table.other(judge, small, side)] if small else []
    )
    whole_ns = _difference([table.sums(table.keys, each) for each in (table.sides[0], side)])
    confirmed = (
        next(
            (place for place, row in enumerate(rows) if row.outcome not in ("less", "more")),
            len(shown),
        )
        if is_found
        else 0
    )
    confirmed = min(confirmed, len(shown))
    adjusted = iter(
        rank_tests.benjamini_hochberg([row.p for row in rows[confirmed:] if row.p is not None])
    )
    tested = [
        replace(
            row, is_confirmed=int(place < confirmed),
            adjusted_p=next(adjusted) if place >= confirmed and row.p is not None else None,
        )
        for place, row in enumerate(rows)
    ]
    tested = [_exploratory(judge, row) for row in tested]
    return [
        replace(row, part_of_change=row.change_ns / whole_ns if is_found and whole_ns else None)
        for row in tested
    ]


def _exploratory(judge: Judge, row: ComparedRow) -> ComparedRow:
    """An unconfirmed row shows a difference only if its adjusted p does."""
    is_lost = (
        row.outcome in ("less", "more") and not row.is_confirmed
        and row.adjusted_p > 1 - judge.level
    )
    return replace(row, outcome="unknown") if is_lost else row


def _verdict(
    judge: Judge, rules: Rules, reference: Side, side: Side, primary: FigureRow,
    refused: list[Refusal], allowed: list[Refusal], also: list[Difference], metric: str,
) -> VerdictRow:
    return VerdictRow(
        *(
            side.name, reference.name, metric,
            "refused" if refused else "too few" if primary.outcome == "none" else primary.outcome,
        ),
        *(primary.change, primary.low, primary.high, primary.p, judge.level, rules.min_effect),
        *(
            len(side.runs), len(reference.runs), len(side.runs) if judge.is_paired else None,
            primary.agreeing, side.failed,
        ),
        *(
            primary.detectable, rank_tests.fewest_pairs(judge.level),
            _needed(judge, reference, side, metric),
        ),
        *("; ".join(refusal.kind for refusal in each) for each in (refused, allowed)),
        *("; ".join(map(str, also)), int(bool(side.of)), rules.skipped),
    )


def _needed(judge: Judge, reference: Side, side: Side, metric: str) -> int | None:
    first, second = ([run.of_run(metric) for run in each.runs] for each in (reference, side))
    if (
        not judge.is_paired or len(first) < FEW
        or any(value is None or value <= 0 for value in (*first, *second))
    ):
        return None
    return rank_tests.pairs_to_detect(
        [math.log(after / before) for before, after in zip(first, second)], ADVISED, judge.level
    )


def _notes(
    sides: Sequence[Side], metric: str, table: _Table, rules: Rules, level_of_each: float
) -> Iterator[str]:
    if rules.is_sequential:
        claimed = (
            f"{units.share(rules.level)} "
            f"holds{' for all verdicts together' if len(sides) > 2 else ''}"
        )
        level = units.share(level_of_each)
        yield (
            "blocks were added until intervals are narrow (--until), which costs certainty: "
            f"they are at {level}, so that {claimed}"
        )
    if rules.skipped:
        share = units.share(rules.skipped)
        yield (
            f"the first {share} of the steps of each run are left out; calls and sizes are not "
            "shown: their sums have all steps"
        )
    coverage = min(run.coverage for run in table.runs)
    if coverage < NEARLY_ALL and any(run.coverage for run in table.runs):
        known = (
            f"waiting and transfer are known for {units.share(coverage)} of the time inside "
            "MPI, in the run with least"
        )
        yield known + ("; --metric time has all of it" if metric == "transfer" else "")
    if metric in ("transfer", "wait"):
        estimate = max(run.estimate_share for run in table.runs)
        if estimate > NOTABLE_ESTIMATE:
            yield (
                f"up to {units.share(estimate)} of waiting and transfer is estimated from "
                "durations: the clocks of the hosts are too coarse"
            )
    if table.unmatched:
        yield f"{units.counted(table.unmatched, 'row')} that not every run has left out"
    yield from _trend(sides, "runs", metric, lambda run: run.of_run(metric))
    yield from _own_threads(table.runs)
    for name, noun in machine.NAMES.items():
        yield from _trend(
            sides, "the machine", noun, lambda run, name=name: run.canary_ns(name), rules.min_effect
        )
    yield from machine.slow_hosts(table.runs)
    yield from _outliers(sides, metric, rules.min_effect)
    for side in sides:
        yield from _settling(side, rules.skipped)


def _own_threads(runs: Sequence[Figures]) -> Iterator[str]:
    """Lost cores are no sign of other processes where the job's own threads take turns."""
    lost = [
        (row.switches_per_s or 0, row.rank, run) for run in runs if run.crowds_itself
        for row in run.ranks
    ]
    often, rank, run = max(lost, key=lambda each: each[0], default=(0, 0, None))
    if run is not None and often > MOST_SWITCHES_PER_S:
        most = f"rank {rank} of {run.path} lost its core {units.count(round(often))} times a second"
        others = "whether to other processes, too, is not known"
        yield f"ranks have fewer cores than threads that compute or communicate: {most}; {others}"


def _settling(side: Side, skipped: float) -> Iterator[str]:
    """Whether the steps of most runs that count became slower or faster within the run."""
    tuned = any(map(tunes_itself, side.runs))
    why = (
        "the library tunes itself while it runs" if tuned
        else "a start-up, or a library that tunes itself"
    )
    for way in ("slower", "faster"):
        found = [run.step_trend for run in side.runs if run.step_trend.trend == way]
        if 2 * len(found) > len(side.runs):
            first, last = (
                units.duration(median(getattr(each, f"{part}_tenth_ns") for each in found))
                for part in ("first", "last")
            )
            runs = f"{len(found)} of {units.counted(len(side.runs), 'run')}"
            which = (
                "these are the steps after those left out" if skipped
                else "all steps count, unless --skip-steps leaves out the first"
            )
            yield (
                f"{side.name}: steps became {way} within {runs}, {first} in the first tenth, "
                f"{last} in the last ({why}); {which}"
            )
            return
    if tuned and not skipped:
        yield (
            f"{side.name}: {why}; its first calls may differ from its last; --skip-steps 33% "
            "leaves the first steps out"
        )


def _disturbance(judge: Judge, reference: Side, side: Side) -> Iterator[str]:
    """Whether one side lost its cores twice as often or more, beyond chance."""
    rates = [[run.switches_per_s for run in each.runs] for each in (reference, side)]
    if any(rate is None for own in rates for rate in own):
        return
    found = judge.contrast(*([max(rate, FEW_SWITCHES_PER_S) for rate in own] for own in rates))
    if found.outcome in ("less", "more") and abs(math.log1p(found.change)) >= math.log(2):
        often = [
            f"{median(own):.2g} times a second on {each.name}"
            for own, each in zip(rates, (reference, side))
        ]
        yield f"ranks lost their cores to other processes or threads {often[0]}, {often[1]}"


def _coarse_clocks(reference: Side, side: Side, figure: FigureRow, skipped: float) -> Iterator[str]:
    """Waiting and transfer cannot be separated better than the clocks of the hosts are known."""
    if figure.figure not in ("transfer", "wait") or figure.outcome not in ("less", "more"):
        return
    runs = [*reference.runs, *side.runs]
    calls = median(
        sum(row.count for row in run.rows.values() if row.is_split) / len(run.ranks) for run in runs
    ) * (1 - skipped)
    error_ns, change_ns = (
        max(run.error_ns for run in runs), abs(figure.second_ns - figure.first_ns) / max(calls, 1),
    )
    if error_ns > NOTABLE_ERROR * change_ns:
        known = f"the clocks of the hosts are known to {units.duration(error_ns)}"
        yield (
            f"{known}, and {side.name} differs by {units.duration(change_ns)} a call in "
            f"{figure.figure}; --metric time needs no clocks"
        )


def _trend(
    sides: Sequence[Side], what: str, figure: str, of: Callable[[Figures], float | None],
    least: float = 0.0,
) -> Iterator[str]:
    """Whether a figure of runs grew or fell with time, beside the differences of the sides, and by
    `least` or more."""
    points = []
    for side in sides:
        logs = [(run.start_unix_ns, math.log(value)) for run in side.runs if (value := of(run))]
        middle = median(value for _, value in logs) if logs else 0.0
        points += [(start, value - middle) for start, value in logs]
    if len(points) < FEWEST_OF_A_TREND:
        return
    starts, values = zip(*points)
    times, ranks = ([sorted(each).index(value) for value in each] for each in (starts, values))
    centre = (len(points) - 1) / 2
    square = sum((time - centre) ** 2 for time in range(len(points)))
    correlation = (
        sum((time - centre) * (rank - centre) for time, rank in zip(times, ranks)) / square
    )
    if abs(correlation) * math.sqrt(len(points) - 1) > TREND_DEVIATIONS:
        ordered = [value for _, value in sorted(points)]
        half = len(ordered) // 2
        change = math.expm1(median(ordered[-half:]) - median(ordered[:half]))
        way = "slower" if change > 0 else "faster"
        if abs(change) >= least:
            yield (
                f"{what} became {way} with time: {figure} {units.change(change)} from the first "
                "half of the runs to the second"
            )


def _outliers(sides: Sequence[Side], metric: str, least: float) -> Iterator[str]:
    """Runs far from the others of their side, and by `least` or more."""
    for side in sides:
        values = [run.of_run(metric) for run in side.runs]
        if len(values) < FEWEST_OF_A_TREND or None in values:
            continue
        middle = median(values)
        deviation = MAD * median(abs(value - middle) for value in values)
        for run, value in zip(side.runs, values):
            if deviation and abs(value - middle) > max(OUTLIER * deviation, least * middle):
                apart = f"{units.duration(value)}, median of {side.name} {units.duration(middle)}"
                yield (
                    f"{run.path} stands apart: {metric} {apart}{_peculiar(run, side)}; it is "
                    "compared like the others"
                )


def _peculiar(run: Figures, side: Side) -> str:
    """Possible reasons for a run that stands apart: hosts that no other run of its side had, or
    cores lost more often."""
    others = [other for other in side.runs if other is not run]
    found = ""
    hosts = {row.host for row in run.ranks} - {row.host for other in others for row in other.ranks}
    if hosts:
        names = ", ".join(sorted(host or "an unknown host" for host in hosts))
        found += f"; no other run was on {units.shortened(names, 40)}"
    often = [other.switches_per_s for other in others]
    if (
        run.switches_per_s is not None and None not in often
        and run.switches_per_s >= 2 * max(FEW_SWITCHES_PER_S, median(often))
    ):
        found += (
            f"; its ranks lost their cores {run.switches_per_s:.2g} times a second, those of the "
            f"others {median(often):.2g}"
        )
    return found


def _runs(sides: Sequence[Side]) -> list[RunRow]:
    return [
        RunRow(
            *(
                side.name, side.blocks[place] if side.blocks else None, str(run.path),
                run.start_unix_ns,
            ),
            *(run.step_ns, run.wait_ns, run.transfer_ns, run.time_ns, run.wall_ns, run.coverage),
            *(run.canary_ns(name) for name in machine.NAMES),
        )
        for side in sides
        for place, run in enumerate(side.runs)
    ]
