"""Sides of runs compared: the figures of the run, the rows, and one verdict for each side against
the first.

One figure is tested, that of the chosen metric; the verdict is this test alone. If it finds a
difference, rows are tested in order of their share of the time until the first that shows none
(fixed sequence); these are confirmed at the same level. All other findings are selected by the
procedure of Benjamini and Hochberg and are exploratory. With more than two sides, each test has its
part of the level (Bonferroni).

Then all of it in sentences.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Sequence

from ..base import threshold, units
from ..experiment.plan import arm_name
from .figures import FIGURES, Figures, PERCENTILES, renamed, row_name
from .judge import (
    Compared,
    DIFFERENT,
    OTHER,
    Rules,
    RunRow,
    SizeRow,
    VerdictRow,
    contrast,
    fewest_pairs,
    fewest_runs,
)
from .refusals import (
    NOTED,
    Refusal,
    coarse_clocks,
    differences,
    differences_text,
    disturbances,
    layout,
    notes_of_sides,
    program_of,
    refusals,
    weighed,
    work_of,
)
from .sides import (
    NEGOTIATION,
    RowTable,
    Side,
    in_blocks,
    keys_of,
    kit_of,
    rows_per_step,
    stands_for,
    stands_text,
)


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
    own, alone = rules.of_one(len(tested), is_paired), rules.of_one(1, is_paired)
    found = [
        *refusals(in_steps, work, is_paired),
        *weighed(own, reference, tested, metric),
        *disturbances(own, compared),
    ]
    refused = [each for each in found if each.kind not in (NOTED, *rules.allowed)]
    allowed = [each for each in found if each.kind in rules.allowed]
    table = RowTable(compared, [] if rules.skipped else keys_of(compared), metric)
    pairs = [
        _pair(alone if side.of else own, metric, table, side, refused, allowed) for side in others
    ]
    said = notes_of_sides(compared, metric, rules, table.unmatched)
    if metric in OF_CALLS and _have_other_calls(allowed):
        said.append(
            f"calls differ: {metric} is compared as if each run made those of {reference.name}, in "
            f"{units.counted(len(table.keys), 'row')} that all runs have"
        )
    said += [each.what for each in found if each.kind == NOTED]
    for side, pair in zip(others, pairs):
        said += coarse_clocks(reference, side, pair.primary, rules.skipped)
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
        sizes=table.sizes(own, are_judged=not refused),
        runs=[
            RunRow(
                side=side.name,
                block=block,
                run=str(run.path),
                arithmetic_ns=run.canary_ns("arithmetic_ns"),
                memory_ns=run.canary_ns("memory_ns"),
                **{f"{name}_ns": run.of_run(name) for name in ("start_unix", *FIGURES)},
                coverage=run.coverage,
            )
            for side in compared
            for run, block in zip(side.runs, side.blocks or (None,) * len(side.runs))
        ],
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
    sides = [
        side._replace(runs=[with_groups_of(first, run) for run in side.runs]) for side in sides
    ]
    blocked = in_blocks(sides) if rules.pairs else None
    return blocked or [side._replace(blocks=None) for side in sides], blocked is not None


def with_groups_of(reference: Figures, run: Figures) -> Figures:
    """The run with communicators under the reference's description."""
    names = renamed(list(run.labels), list(reference.labels))
    parts = {
        (key._replace(group=names.get(key.group, key.group)), traffic): row
        for (key, traffic), row in run.parts.items()
    }
    return run._replace(parts=parts) if names else run


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
    rules: Rules,
    metric: str,
    table: RowTable,
    side: Side,
    refused: list[Refusal],
    allowed: list[Refusal],
) -> Pair:
    reference = table.sides[0]
    are_other_calls = metric in OF_CALLS and _have_other_calls(allowed)
    figures = _figures(rules, metric, table, side, are_other_calls)
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
        level=rules.level,
        min_effect=rules.min_effect,
        runs=len(side.runs),
        reference_runs=len(reference.runs),
        pairs=len(side.runs) if rules.pairs else None,
        agreeing=primary.agreeing,
        failed_runs=side.failed,
        detectable=primary.detectable,
        pairs_needed=fewest_pairs(rules.level),
        refused="; ".join(refusal.kind for refusal in refused),
        allowed="; ".join(refusal.kind for refusal in allowed),
        also_different="; ".join(map(str, also)),
        is_control=int(bool(side.of)),
        skipped=rules.skipped,
        kit=kit_of([reference, side]),
        stands_for=stands_for([reference, side], rules.checked),
    )
    is_found = verdict.verdict in DIFFERENT
    return Pair(verdict, figures, table.tested(rules, side, rules.all_rows, is_found), also)


def _figures(
    rules: Rules, metric: str, table: RowTable, side: Side, are_other_calls: bool
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
        _figure(rules, names, name, *own)._replace(is_primary=int(name == metric))
        for name, own in values.items()
    ]


def _figure(
    rules: Rules,
    names: tuple[str, str],
    figure: str,
    first: Sequence[float | None],
    second: Sequence[float | None],
) -> Compared:
    """names: of the reference and the side. What some run lacks is not compared: it may lack it
    because it is slow."""
    if None in (*first, *second):
        first, second = [None] * len(first), [None] * len(second)
    return contrast(first, second, rules=rules)._replace(
        side=names[1], reference=names[0], figure=figure, noise=_noise((first, second))
    )


def _noise(values: Sequence[Sequence[float | None]]) -> float | None:
    """The largest ratio of two runs of one side, less 1."""
    known = ([value for value in own if value is not None] for own in values if None not in own)
    ratios = (max(own) / min(own) - 1 for own in known if len(own) > 1 and min(own) > 0)
    return max(ratios, default=None)


PER = {"step": "step", "wall": "run"}  # other figures: rank
NAMES = {  # of a figure: in a table, in a sentence
    "step": ("Step", "step time"),
    "wait": ("Waiting", "waiting"),
    "transfer": ("Transfer", "transfer"),
    "time": ("Inside MPI", "time inside MPI"),
    "wall": ("Wall time", "wall time"),
    "p50": ("At p50", "time at p50"),
    "p99": ("At p99", "time at p99"),
    "elapsed": ("Launch to end", "launch to end"),
    "bare": ("... without profiler", "launch to end without profiler"),
}


def facts(answers: Comparison) -> list[tuple[str, str]]:
    """The compared runs, and facts about all sides."""
    return [
        *sides_facts(answers),
        *(
            ("Refused", f"{each.kind}: {each.what}. Way out: {each.way_out}")
            for each in answers.refused
        ),
        *(("Allowed", f"{each.kind}: {each.what}") for each in answers.allowed),
        *(("Note", note) for note in answers.notes),
    ]


def name_of(pair: Pair) -> str:
    return f"{pair.verdict.side} v. {pair.verdict.reference}"


def program_text(answers: Comparison) -> str:
    """app 1; 2 ranks on 1 host. With "in a, ... in b" where the sides differ."""
    first = [side.runs[0] for side in answers.sides]
    programs = [units.shortened(program_of(run), 70) for run in first]
    return "; ".join(
        texts[0]
        if len(set(texts)) == 1
        else ", ".join(f"{text} in {side.name}" for text, side in zip(texts, answers.sides))
        for texts in (programs, [*map(layout, first)])
    )


def sides_facts(answers: Comparison) -> Iterator[tuple[str, str]]:
    yield "Program", program_text(answers)
    for place, side in enumerate(answers.sides):
        failed = f"; {units.counted(side.failed, 'failed run')} not compared" if side.failed else ""
        runs = units.counted(len(side.runs), "run")
        yield "" if place else "Sides", f"{side.name}: {runs}, {library(side)}{failed}"
    blocks = len(answers.sides[0].runs)
    paired = f"{blocks}: runs made next to each other are compared with each other"
    why = "the sides do not alternate" if answers.rules.pairs else "--unpaired"
    unpaired = f"none: {why}; all runs of one side are compared with all of the other"
    yield "Blocks", unpaired if not answers.is_paired else paired if blocks > 1 else ""
    yield "Same work", work_text(answers)
    stepless = [side.name for side in answers.sides if any(run.steps is None for run in side.runs)]
    loops = "; hvprof-report steps shows the loops"
    yield "Steps", f"none known in {' and '.join(stepless)}{loops}" if stepless else ""
    controls = [pair for pair in answers.pairs if pair.verdict.is_control]
    yield from (("A/A", control_text(answers, pair)) for pair in controls)
    costs = "; ".join(f"{row.side} {change_text(row)}" for row in answers.costs)
    yield "Profiler", f"launch to end with it v. without: {costs}" if costs else ""


def library(side: Side) -> str:
    return units.shortened(", ".join(sorted({run.library for run in side.runs})), 60)


def work_text(answers: Comparison) -> str:
    kinds = {refusal.kind for refusal in (*answers.refused, *answers.allowed)}
    runs = [run for side in answers.sides for run in side.runs]
    why_not = {
        "no": "work" in kinds,
        "not known: a run lacks ranks": any(run.missing for run in runs),
        "not known: other ranks or calls were recorded": "filter" in kinds,
        "not known: no call was recorded": not any(run.rows for run in runs),
    }
    if any(why_not.values()):
        return next(text for text, holds in why_not.items() if holds)
    (same, uneven), cut = map(len, answers.work), cut_text(answers)
    what = cut or f"{units.counted(same, 'row')} with the same calls and bytes"
    differ = (
        f"; {units.counted(uneven, 'row')} {units.agreeing('differ', uneven)} between runs, "
        "between the sides by no more than within them or by less than "
        f"{units.share(threshold('compare.work'))}"
    )
    said = f"yes: {what}, on {units.counted(runs[0].world_size, 'rank')}"
    return said if cut or not uneven else said + differ


def cut_text(answers: Comparison) -> str:
    """60 steps of 6.13 MB in every run; MPI_Allreduce sends 161 messages a step in A, 3.0 in B.
    Empty: messages are not cut anew."""
    first = answers.sides[0].runs[0]
    rows = {key: row for key, row in first.rows.items() if key.per == "step" and key != NEGOTIATION}
    if not rows or first.steps is None:
        return ""
    key = max(rows, key=lambda key: rows[key].volume_bytes)
    steps = units.counted(first.steps.count, "step")
    steps += f" of {units.size(first.steps.bytes)}" if first.steps.bytes else ""
    calls = [[run.rows[key] for run in side.runs if key in run.rows] for side in answers.sides]
    sent = ", ".join(
        units.three_digits(sum(row.count for row in own) / max(1, sum(row.steps for row in own)))
        + f" in {side.name}"
        for side, own in zip(answers.sides, calls)
    )
    sent = sent.replace(" in ", " messages a step in ", 1)
    return f"{steps} in every run; {key.call} sends {sent}"


def pair_facts(answers: Comparison, pair: Pair, title: str) -> Iterator[tuple[str, str]]:
    yield "Compared", title
    yield "Also different", differences_text(pair.differences)
    noise = ", ".join(
        f"{units.change(row.noise).lstrip('+')} ({NAMES[row.figure][1]})"
        for row in pair.figures
        if row.noise is not None
    )
    yield "Noise", f"two runs of the same side differ by up to {noise}" if noise else ""
    yield "Verdict", verdict_text(answers, pair)
    yield "Stands for", stands_text(answers.sides, answers.rules.checked)
    if pair.verdict.verdict in DIFFERENT:
        for place, row in enumerate(causes(pair)):
            yield "" if place else "Because", cause_text(row)


def verdict_text(answers: Comparison, pair: Pair) -> str:
    way = way_text(answers, pair)
    return finding_text(pair) + (f". For a verdict: {way}" if way else "")


def finding_text(pair: Pair) -> str:
    row = pair.verdict
    name = NAMES[row.metric][1]
    if row.verdict == "too few" or row.runs == row.reference_runs == 1:
        return f"none: {few_text(row)}"
    if row.verdict == "refused":
        few = (
            ""
            if row.change is None or row.low is not None
            else f"; too few runs, too: {few_text(row)}"
        )
        return f"none: not the same experiment ({row.refused}){few}; what follows are estimates"
    change = f"{name} {change_text(row)}"
    if row.verdict == "same":
        return f"same within {units.share(row.min_effect)}: {change}"
    if row.verdict == "unknown":
        would = (
            ""
            if row.detectable is None
            else f"; {effect_text(row.detectable)} would have been found with a probability of 80 %"
        )
        return f"no difference found: {change}{would}"
    values = f"{units.duration(pair.primary.first_ns)} -> {units.duration(pair.primary.second_ns)}"
    agreeing = f"; {row.verdict} in {row.agreeing} of {row.pairs} blocks" if row.pairs else ""
    odd = ": something other than the command differs by as much" if row.is_control else ""
    return (
        f"{row.side} takes {row.verdict} {name}: {change}, {values} per "
        f"{PER.get(row.metric, 'rank')}{agreeing} (p {row.p:.2g}){odd}"
    )


def control_text(answers: Comparison, pair: Pair) -> str:
    """Result of comparing one command against itself, beside the verdicts."""
    row = pair.verdict
    said = f"{row.side} runs the command of {row.reference}"
    if pair in answers.tested:
        return said
    refused = f"no verdict either; {NAMES[row.metric][1]} {change_text(row)}"
    return f"{said}: {refused if row.verdict == 'refused' else finding_text(pair)}"


def way_text(answers: Comparison, pair: Pair) -> str:
    """From too few runs to a verdict."""
    row = pair.verdict
    more = row.pairs_needed - row.runs
    is_single = row.runs == row.reference_runs == 1
    if more <= 0 or row.change is None or not (row.pairs or is_single):
        return ""
    if answers.is_experiment:
        return f"commprof-experiment resume EXPERIMENT --blocks {row.pairs_needed}"
    if not is_single:
        return f"{units.counted(more, 'more run')} of each side, in turns"
    arms = " ".join(
        f"--arm '{arm_name(name)}: mpirun ... {{}} ...'" for name in (row.reference, row.side)
    )
    return f"commprof-experiment run EXPERIMENT {arms}; then: hvprof-report compare EXPERIMENT"


def few_text(row: VerdictRow) -> str:
    if row.runs == row.reference_runs == 1:
        return "one run of each side, so their difference may be chance"
    if row.change is None:
        return f"{row.metric} is not known in all runs"
    if row.pairs:
        return f"{units.counted(row.pairs, 'pair')}, and {row.pairs_needed} are needed at least"
    needed = fewest_runs(row.level)
    return (
        f"{row.reference_runs} + {row.runs} runs are too few; {needed} + {needed} are needed at "
        f"least, or {row.pairs_needed} that alternate"
    )


def causes(pair: Pair) -> list[Compared]:
    """The confirmed rows with most of the change, in its direction."""
    found = [
        row
        for row in pair.rows
        if row.is_confirmed
        and row.outcome == pair.verdict.verdict
        and (row.part_of_change or 0) > 0
    ]
    return sorted(found, key=lambda row: -(row.part_of_change or 0))[:2]


def cause_text(row: Compared) -> str:
    by = f"{units.duration(abs(row.change_ns))} {row.outcome} per rank"
    return "; ".join(
        filter(
            None,
            [
                f"{row_text(row)}: {row.metric} {change_text(row)}, {by}, "
                f"{units.share(row.part_of_change)} of the change",
                algorithm_text(row),
            ],
        )
    )


def algorithm_text(row: Compared) -> str:
    """algorithm: ring | tree; algorithm: ring in B. Empty: both are the same, or not known."""
    first, second = row.reference_algorithm, row.algorithm
    if first and second:
        return f"algorithm: {first} | {second}" if first != second else ""
    known = ((first, row.reference), (second, row.side))
    return next((f"algorithm: {each} in {side}" for each, side in known if each), "")


def figure_name(row: Compared) -> str:
    return NAMES[row.figure][0] + (" *" if row.is_primary else "")


def row_text(row: Compared) -> str:
    return row_name(call_text(row), row.bytes, row.communicator)


def call_text(row: Compared | SizeRow) -> str:
    if row.call == OTHER:
        return f"other ({units.counted(row.rows, 'row')}), per rank"
    name = units.call_name(row.call, row.memory_kind, row.measure)
    return f"{name}, per step" if row.per == "step" else name


def change_text(row: VerdictRow | Compared) -> str:
    """-31 % [-34 %, -27 %]; of too few runs there is no interval."""
    return units.change(row.change) + (
        "" if row.low is None else f" {interval_text(row.low, row.high)}"
    )


def interval_text(low: float | None, high: float | None) -> str:
    is_known = low is not None and high is not None
    return f"[{units.change(low)}, {units.change(high)}]" if is_known else units.NO_VALUE


def effect_text(detectable: float) -> str:
    return units.change(detectable).lstrip("+")


def remark(row: Compared, min_effect: float) -> str:
    return "; ".join(filter(None, [_finding(row, min_effect), algorithm_text(row)]))


def _finding(row: Compared, min_effect: float) -> str:
    if row.outcome == "same":
        return f"same within {units.share(min_effect)}"
    if row.outcome == "unknown":
        if (row.low or 0) * (row.high or 0) > 0:
            return f"may be chance among the rows (p {row.adjusted_p:.2g})"
        return (
            "" if row.detectable is None else f"{effect_text(row.detectable)} would have been found"
        )
    is_tested = row.is_confirmed or row.is_primary
    return "exploratory" if row.difference is not None and not is_tested else ""
