"""Sides of runs compared: the figures of the run, the rows, and one verdict for each side against
the first.

One figure is tested, that of the chosen metric; the verdict is this test alone. If it finds a
difference, rows are tested in order of their share of the time until the first that shows none
(fixed sequence); these are confirmed at the same level. All other findings are selected by the
procedure of Benjamini and Hochberg and are exploratory. With more than two sides, each test has its
part of the level (Bonferroni).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence

from ..base import Row, threshold, units
from . import notes
from .judge import (
    Compared,
    DIFFERENT,
    Judge,
    Rules,
    RunRow,
    VerdictRow,
    fewest_pairs,
)
from .figures import FIGURES, Figures, PERCENTILES, renamed
from .notes import differences
from .refusals import Refusal, disturbances, refusals, weighed, work_of
from .row_table import RowTable, keys_of, rows_per_step
from .sides import Side, in_blocks, kit_of, stands_for

METRICS = ("transfer", "time", *PERCENTILES, "step", "wall")
OF_CALLS = ("transfer", "time", *PERCENTILES)


class Pair(namedtuple("Pair", "verdict figures rows differences")):
    """A side against the first one."""

    @property
    def primary(self) -> Compared:
        """The figure that the verdict is about."""
        return next(figure for figure in self.figures if figure.is_primary)


class Comparison(
    namedtuple(
        "Comparison",
        "sides rules metric is_paired work refused allowed notes pairs sizes runs costs",
    )
):
    """sizes, runs, costs: rows of the tables of these names; notes: sentences."""

    @property
    def is_experiment(self) -> bool:
        return self.sides[0].elapsed_ns is not None

    @property
    def tested(self) -> list[Pair]:
        """Without controls, unless there is nothing else."""
        return [pair for pair in self.pairs if not pair.verdict.is_control] or self.pairs


def compare(sides: Sequence[Side], rules: Rules) -> Comparison:
    """sides: as they were read; the first is the reference."""
    whole, is_paired = _arranged(sides, rules)
    in_steps = rows_per_step(whole, work_of(whole, keys_of(whole)).uneven)
    metric = rules.metric or _default_metric(in_steps, rules)
    work = work_of(in_steps, keys_of(in_steps))
    # percentiles are of single calls
    compared = whole if metric in PERCENTILES else in_steps
    reference, others = compared[0], compared[1:]
    tested = [side for side in others if not side.of] or others
    judge, alone = rules.judge(is_paired, len(tested)), rules.judge(is_paired, 1)
    of_machine, noted = weighed(judge, reference, tested, metric)
    of_others, disturbed = disturbances(judge, compared)
    found = refusals(in_steps, work, is_paired) + of_machine + of_others
    refused = [refusal for refusal in found if refusal.kind not in rules.allowed]
    allowed = [refusal for refusal in found if refusal.kind in rules.allowed]
    table = RowTable(compared, [] if rules.skipped else keys_of(compared), metric)
    pairs = [
        _pair(alone if side.of else judge, rules, metric, table, side, refused, allowed)
        for side in others
    ]
    said = notes.of_sides(compared, metric, rules, table.unmatched)
    if metric in OF_CALLS and _have_other_calls(allowed):
        said.append(
            f"calls differ: {metric} is compared as if each run made those of {reference.name}, in "
            f"{units.counted(len(table.keys), 'row')} that all runs have"
        )
    said += noted + disturbed
    for side, pair in zip(others, pairs):
        said += notes.coarse_clocks(reference, side, pair.primary, rules.skipped)
    return Comparison(
        sides=compared,
        rules=rules,
        metric=metric,
        is_paired=is_paired,
        work=work,
        refused=refused,
        allowed=allowed,
        notes=said,
        pairs=pairs,
        sizes=table.sizes(judge, are_judged=not refused),
        runs=_runs(compared),
        costs=[  # of the profiler: the command with it against the command without
            _figure(
                alone,
                (f"{side.name} without profiler", side.name),
                "elapsed",
                side.bare_ns,
                side.elapsed_ns or (),
            )
            for side in compared
            if side.bare_ns
        ],
    )


def _arranged(sides: Sequence[Side], rules: Rules) -> tuple[list[Side], bool]:
    """The sides with the first run's names for communicators, and their runs in order of blocks;
    and whether there are blocks."""
    first = sides[0].runs[0]
    sides = [side._replace(runs=with_groups_of(first, side.runs)) for side in sides]
    blocked = in_blocks(sides) if rules.pairs else None
    return blocked or [side._replace(blocks=None) for side in sides], blocked is not None


def with_groups_of(reference: Figures, runs: Sequence[Figures]) -> list[Figures]:
    """The runs with communicators under the first run's description."""
    aligned = []
    for run in runs:
        names = renamed(list(run.labels), list(reference.labels))
        parts = {
            (key._replace(group=names.get(key.group, key.group)), traffic): row
            for (key, traffic), row in run.parts.items()
        }
        aligned.append(run._replace(parts=parts) if names else run)
    return aligned


def _have_other_calls(allowed: Sequence[Refusal]) -> bool:
    return any(each.kind in ("work", "filter") for each in allowed)


def _default_metric(sides: Sequence[Side], rules: Rules) -> str:
    """Steps, if messages are cut anew: transfer then hides behind the backward pass, or is
    negotiation."""
    if any(key.per == "step" for key in keys_of(sides)):
        return "step"
    least = min(run.coverage for side in sides for run in side.runs)
    is_covered = least >= threshold("compare.covered")
    return "transfer" if is_covered else "step" if rules.skipped else "time"


def _pair(
    judge: Judge,
    rules: Rules,
    metric: str,
    table: RowTable,
    side: Side,
    refused: list[Refusal],
    allowed: list[Refusal],
) -> Pair:
    reference = table.sides[0]
    are_other_calls = metric in OF_CALLS and _have_other_calls(allowed)
    figures = _figures(judge, rules, metric, table, side, are_other_calls)
    primary = next(figure for figure in figures if figure.is_primary)
    also = differences(reference, side)
    verdict = VerdictRow(
        side=side.name,
        reference=reference.name,
        metric=metric,
        verdict=(
            "refused" if refused else "too few" if primary.outcome == "none" else primary.outcome
        ),
        change=primary.change,
        low=primary.low,
        high=primary.high,
        p=primary.p,
        level=judge.level,
        min_effect=rules.min_effect,
        runs=len(side.runs),
        reference_runs=len(reference.runs),
        pairs=len(side.runs) if judge.is_paired else None,
        agreeing=primary.agreeing,
        failed_runs=side.failed,
        detectable=primary.detectable,
        pairs_needed=fewest_pairs(judge.level),
        refused="; ".join(refusal.kind for refusal in refused),
        allowed="; ".join(refusal.kind for refusal in allowed),
        also_different="; ".join(map(str, also)),
        is_control=int(bool(side.of)),
        skipped=rules.skipped,
        kit=kit_of([reference, side]),
        stands_for=stands_for([reference, side], rules.checked),
    )
    is_found = verdict.verdict in DIFFERENT
    return Pair(verdict, figures, table.tested(judge, side, rules.all_rows, is_found), also)


def _figures(
    judge: Judge, rules: Rules, metric: str, table: RowTable, side: Side, are_other_calls: bool
) -> list[Compared]:
    """are_other_calls: the metric is compared per call."""
    both = table.sides[0], side
    values: dict[str, list] = {
        name: [
            table.as_called(each)
            if are_other_calls and name == metric
            else [run.of_run(name) for run in each.runs]
            for each in both
        ]
        for name in dict.fromkeys((*FIGURES, metric))
    }
    if all(each.bare_ns for each in both) and not rules.skipped:
        values["elapsed"] = [each.elapsed_ns for each in both]
        values["bare"] = [each.bare_ns for each in both]
    names = both[0].name, side.name
    return [
        _figure(judge, names, name, *own)._replace(is_primary=int(name == metric))
        for name, own in values.items()
    ]


def _figure(
    judge: Judge,
    names: tuple[str, str],
    figure: str,
    first: Sequence[float | None],
    second: Sequence[float | None],
) -> Compared:
    """names: of the reference and the side. What some run lacks is not compared: it may lack it
    because it is slow."""
    if None in (*first, *second):
        first, second = [None] * len(first), [None] * len(second)
    return judge.contrast(first, second)._replace(
        side=names[1], reference=names[0], figure=figure, noise=_noise((first, second))
    )


def _noise(values: Sequence[Sequence[float | None]]) -> float | None:
    """The largest ratio of two runs of one side, less 1."""
    known = ([value for value in own if value is not None] for own in values if None not in own)
    ratios = (max(own) / min(own) - 1 for own in known if len(own) > 1 and min(own) > 0)
    return max(ratios, default=None)


def _runs(sides: Sequence[Side]) -> list[Row]:
    return [
        RunRow(
            side=side.name,
            block=block,
            run=str(run.path),
            arithmetic_ns=run.canary_ns("arithmetic_ns"),
            memory_ns=run.canary_ns("memory_ns"),
            **{f"{name}_ns": run.of_run(name) for name in ("start_unix", *FIGURES)},
            coverage=run.coverage,
        )
        for side in sides
        for run, block in zip(side.runs, side.blocks or (None,) * len(side.runs))
    ]
