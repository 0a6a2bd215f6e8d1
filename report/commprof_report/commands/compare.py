"""Whether groups of runs differ, by how much, and how sure that is.

Compares the runs of two sides or more, A... -- B..., for example the same job with two MPI
libraries; the first side is the reference. The unit is the run: each run has one number for each
figure, and the test asks whether the sides differ by more than runs of one side do. Runs that
alternate (A B B A ...) are compared in pairs of neighbours, so that slow changes of the machine
cancel out. Six pairs are needed for a verdict, ten for a useful one. With one run a side the
estimates are shown without a verdict.

The verdict is about one figure of the run: by default the transfer, which is the MPI library's part
of the time in calls that wait, from the last arrival that a rank depends on to its own return
(hvprof-report late); or the time inside MPI, if transfer is known for less than half of it; or the
step, if a framework cuts its messages otherwise in each run, as by fusion: rows are then in time
per step. If the sides differ, rows say where: each is a call on a communicator with a message size.
Rows are tested in order of their share of the time, until the first that shows no difference;
further findings are marked exploratory. "~" stands for no difference found, beside what would have
been found with a probability of 80 %. "same within 2 %" is a finding of its own (--min-effect).

There is no verdict on runs that are not the same experiment: other work, other placement of ranks,
another program, other binding, incomplete runs, disturbed runs, all runs of one side before all of
the other, other nodes for each side, or a machine that was slower for one side. The report says how
to put it right; --allow takes it as it is. Settings and software that differ between the sides are
listed. A library that tunes itself differs within a run: where steps settle, a note says so, and
--skip-steps 33% leaves the first third of them out. Intervals and tests are exact and assume no
distribution: Wilcoxon's signed rank test for pairs, that of Mann and Whitney otherwise.
docs/COMPARING.md is an introduction.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from ..base import units
from ..base.errors import UsageError
from ..base.forked import forked
from ..base.progress import Progress
from ..compare import machine
from ..compare import sides as sides_of
from ..compare.comparison import METRICS, ROWS, compare
from ..compare.cuts import NEGOTIATION
from ..compare.figures import PERCENTILES, Key, figures, row_name
from ..compare.judge import Contrast
from ..compare.rank_tests import fewest_runs
from ..compare.refusals import KINDS, NOTABLE_WORK, differences_text, program_of
from ..compare.results import (
    ComparedRow, Comparison, FigureRow, Pair, Rules, RunRow, SizeRow, VerdictRow,
)
from ..compare.row_table import OTHER
from ..compare.sides import Side
from ..display import pictures, tables
from ..display.tables import Column
from ..experiment.plan import arm_name, is_experiment, plan_read
from ..plots import compare as plot
from ..plots.axis import time_text
from ..run.rank_files import files_mode
from . import common

EXAMPLES = (
    (
        "Ten runs with each of two libraries, made in turns",
        "hvprof-report compare openmpi-* -- mpich-*",
    ),
    ("An experiment of commprof-experiment(1)", "hvprof-report compare EXPERIMENT"),
    ("Before and after: estimates without a verdict", "hvprof-report compare before after"),
    (
        "All sizes, a column for each library",
        "hvprof-report compare --by size openmpi-* -- mpich-* -- intel-*",
    ),
)
SEE_ALSO = ("late", "sizes", "steps")
SEPARATOR = " -- "
HEAD_WIDTH, WIDTH = 16, 120
# the space between a number and its unit
OF_A_NUMBER = re.compile(r"(?<=\d) (?=%|[mun]?s\b|[KMGT]i?B\b)")
KEPT = "\N{NO-BREAK SPACE}"
OF_WHOLE_RUNS = ("time", *PERCENTILES, "wall")
MOST_CAUSES, MOST_SAME, MOST_DRAWN = 2, 4, 12
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
    ROWS: ("Each row alike, per call", "geometric mean of rows"),
}
OF_CONTRAST = tuple(name for name in Contrast.__dataclass_fields__ if name != "samples")


def own_fields(row: type[Contrast]) -> tuple[str, ...]:
    return tuple(
        name for name in row.__dataclass_fields__ if name not in Contrast.__dataclass_fields__
    )


SCRIPT_FIELDS = {
    "verdict": VerdictRow._fields,
    "figure": (*own_fields(FigureRow), *OF_CONTRAST),
    "row": (*own_fields(ComparedRow), *OF_CONTRAST),
    "size": SizeRow._fields,
    "run": RunRow._fields,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    runs_help = (
        "A... -- B...: the runs of each side (two runs need no --); or the folder of an experiment"
    )
    parser.add_argument("runs", metavar="RUN", type=Path, nargs="*", help=runs_help)
    add_rule_arguments(parser)
    parser.add_argument(
        "--by", choices=SCRIPT_FIELDS,
        help="this table only (--json and --csv: row unless said otherwise); size has a column for "
        "each side",
    )
    tables.add_arguments(parser)
    common.add_plot_argument(parser)


def add_rule_arguments(parser: argparse._ActionsContainer) -> None:
    metric_help = (
        "what is compared (default: step, if messages are cut otherwise in each run; "
        "else transfer, "
    )
    metric_help += "if it is known for half of the time inside MPI; else time)"
    parser.add_argument("--metric", choices=METRICS, help=metric_help)
    parser.add_argument(
        "--min-effect", type=percent, default=0.02, metavar="N%",
        help="differences below this do not matter (default: 2%%)",
    )
    parser.add_argument(
        "--level", type=level, default=0.95, metavar="N%",
        help="confidence of the verdict and of intervals (default: 95%%)",
    )
    parser.add_argument(
        "--allow", type=kinds, default=(), metavar="LIST",
        help=f"give a verdict all the same; a list of {', '.join(KINDS)}, or all",
    )
    skip_help = (
        "leave the first N %% of the steps of each run out, in which a library may still "
        "have tuned itself; rows are not shown then"
    )
    parser.add_argument("--skip-steps", type=percent, default=0.0, metavar="N%", help=skip_help)
    parser.add_argument(
        "--unpaired", action="store_true",
        help="compare all runs with each other, even if they are in blocks",
    )
    parser.add_argument(
        "--all-rows", action="store_true",
        help="show all rows; otherwise those below 1 %% of the time are added up",
    )


def percent(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?%?", text)
    if not match or not 0 < float(match[1]) < 100:
        raise argparse.ArgumentTypeError(f"{text}: a percentage above 0 and below 100, like 2%")
    return round(float(match[1]) / 100, 9)  # 99.9 / 100 is more than 0.999


def level(text: str) -> float:
    value = percent(text)
    if not 0.5 <= value <= 0.999:
        raise argparse.ArgumentTypeError(f"{text}: a level from 50% to 99.9%")
    return value


def kinds(text: str) -> tuple[str, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in (*KINDS, "all")]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]}: not one of {', '.join(KINDS)}, all")
    return KINDS if "all" in words else tuple(words)


def run(arguments: argparse.Namespace) -> None:
    if arguments.skip_steps and arguments.by in ("row", "size"):
        raise UsageError("--skip-steps", f"--by {arguments.by} is known of whole runs only")
    with_histograms = arguments.metric in PERCENTILES or bool(arguments.plot)
    answers = compared(arguments.runs, rules(arguments, arguments.by == "size"), with_histograms)
    if arguments.plot:
        drawn = picture(answers)
        source = " · ".join([program_text(answers), *map(side_text, answers.sides)])
        why_none = "no figure or row has a value in all runs of two sides"
        pictures.save(
            arguments.plot, plot, drawn, units.visible(source), why_none, mode_of(answers)
        )
    if tables.is_for_scripts(arguments):
        by = arguments.by or ("figure" if arguments.skip_steps else "row")
        if by == "size" and arguments.csv and arguments.take_rows is None:
            write_sizes_csv(answers)
            return
        tables.write_rows(arguments, script_rows(answers, by), SCRIPT_FIELDS[by])
    elif arguments.by:
        print_table(answers, arguments.by)
    else:
        print_text(answers)


def compared(words: list[Path], by_rules: Rules, with_histograms: bool) -> Comparison:
    if names_experiment(words):
        by_rules = by_rules._replace(is_sequential=plan_read(words[0]).until is not None)
    return compare(
        read(chosen(words), with_histograms and not by_rules.skipped, by_rules.skipped), by_rules
    )


def mode_of(answers: Comparison) -> int:
    """Mode of files that are made from its runs."""
    return files_mode(run.path for side in answers.sides for run in side.runs)


def names_sides(words: list[Path]) -> bool:
    return Path(SEPARATOR) in words or names_experiment(words)


def names_experiment(words: list[Path]) -> bool:
    return len(words) == 1 and is_experiment(words[0])


def chosen(words: list[Path]) -> list[sides_of.Chosen]:
    if names_experiment(words):
        return sides_of.experiment_read(words[0])
    folder = next(filter(is_experiment, words), None)
    if folder:
        way_out = (
            "which is compared alone: its arms are the sides; or name runs of it, as in "
            f"{folder}/block-*/ARM"
        )
        raise UsageError(folder, f"is an experiment, {way_out}")
    return sides_of.sides_named(sides_of.paths_split(words, Path(SEPARATOR)))


def read(named: list[sides_of.Chosen], with_histograms: bool, skipped: float) -> list[Side]:
    """Runs are read side by side (forked.py); what there is to say about them is said in their
    order."""
    paths = [path for each in named for path in each.paths]
    runs = []
    with Progress("reading", len(paths), "runs") as progress:
        for found, notes in forked(
            partial(figures, with_histograms=with_histograms, skipped=skipped), paths
        ):
            progress.clear()
            common.print_notes(notes)
            progress.step()
            runs.append(found)
    left = iter(runs)
    return [each.with_runs(list(islice(left, len(each.paths)))) for each in named]


def rules(arguments: argparse.Namespace, shows_all: bool = False) -> Rules:
    if arguments.skip_steps and arguments.metric in OF_WHOLE_RUNS:
        raise UsageError("--skip-steps", f"--metric {arguments.metric} is known of whole runs only")
    judged = arguments.metric, arguments.level, arguments.min_effect, arguments.allow
    return Rules(
        *judged, not arguments.unpaired, arguments.all_rows or shows_all, arguments.skip_steps
    )


def script_rows(answers: Comparison, by: str) -> list:
    found = {
        "verdict": [pair.verdict for pair in answers.pairs],
        "figure": [row for pair in answers.pairs for row in pair.figures] + answers.costs,
        "row": [row for pair in answers.pairs for row in pair.rows],
        "size": answers.sizes,
        "run": answers.runs,
    }
    return found[by]


def write_sizes_csv(answers: Comparison) -> None:
    """A column for each side, as in the text."""
    *common_to_sides, _, _, best = SizeRow._fields
    sides = [f"{name}_ns" for name in (answers.sizes[0].sides if answers.sizes else ())]
    rows = (
        (*(getattr(row, name) for name in common_to_sides), *row.values_ns, row.best)
        for row in answers.sizes
    )
    tables.write_csv(sys.stdout, (*common_to_sides, *sides, best), rows)


def print_table(answers: Comparison, by: str) -> None:
    if by == "size":
        print(tables.text_table(size_columns(answers.sizes), answers.sizes))
        if any(row.best for row in answers.sizes):
            print(
                "\n* less than each other side, beyond chance (exploratory: one test for each row)"
            )
        elif answers.refused:
            print(
                "\nno side is marked: not the same experiment "
                f"({'; '.join(refusal.kind for refusal in answers.refused)})"
            )
    elif by == "run":
        print(tables.text_table(run_columns(answers), answers.runs))
    elif by == "verdict":
        for pair in answers.pairs:
            text = (
                verdict_text(answers, pair) if pair in answers.tested
                else control_text(answers, pair)
            )
            common.print_line(f"{pair.verdict.side} v. {pair.verdict.reference}: {text}")
    else:
        for place, pair in enumerate(answers.pairs):
            table = figure_table(pair) if by == "figure" else row_table(pair)
            print(("\n" if place else "") + table)


def picture(answers: Comparison) -> plot.Picture | None:
    """None: no change is known."""
    rows = [(row, figure_name(row)) for pair in answers.pairs for row in pair.figures]
    rows += [(row, row_text(row)) for pair in answers.pairs for row in pair.rows[:MOST_DRAWN]]
    known = [
        (row, units.visible(units.shortened(name, 60))) for row, name in rows
        if row.change is not None
    ]
    values = {name: time_text(row.first_ns) for row, name in reversed(known)}
    verdict = answers.pairs[0].verdict
    intervals = [
        plot.Interval(
            *(row.side, f"{name}, {values[name]}", 1 + row.change),
            *(None if bound is None else 1 + bound for bound in (row.low, row.high)),
            not verdict.refused and row.outcome in ("less", "more"),
        )
        for row, name in known
    ]
    largest, sides = answers.histograms[0] if answers.histograms else ("", {})
    durations = [
        plot.Durations(side, list(buckets.items())) for side, buckets in sides.items() if buckets
    ]
    title = units.visible(units.shortened(largest, 40))
    rules = verdict.reference, verdict.level, verdict.min_effect
    return plot.Picture(*rules, intervals, title, durations, verdict.refused) if intervals else None


def print_text(answers: Comparison) -> None:
    for head, text in facts(answers):
        print_fact(head, text)
    for pair in answers.tested:
        print()
        title = f"{pair.verdict.side} v. {pair.verdict.reference}"
        for head, text in pair_facts(answers, pair, title):
            print_fact(head, text)
        print("\n" + figure_table(pair))
        if pair.rows:
            print("\n" + row_table(pair))


def print_fact(head: str, text: str) -> None:
    kept = OF_A_NUMBER.sub(KEPT, units.visible(text))
    first, *rest = textwrap.wrap(
        kept, WIDTH - HEAD_WIDTH, break_on_hyphens=False, break_long_words=False
    ) or [""]
    print(f"{head:<{HEAD_WIDTH}}{first}".replace(KEPT, " "))
    for line in rest:
        print(" " * HEAD_WIDTH + line.replace(KEPT, " "))


def facts(answers: Comparison) -> Iterator[tuple[str, str]]:
    """The compared runs, and facts about all sides."""
    yield from sides_facts(answers)
    yield from refusal_facts(answers)
    for note in answers.notes:
        yield "Note", note


def program_text(answers: Comparison) -> str:
    first = answers.sides[0].runs[0]
    hosts = len(set(first.placement))
    return (
        f"{units.shortened(program_of(first), 70)}; {units.counted(first.world_size, 'rank')} "
        f"on {units.counted(hosts, 'host')}"
    )


def side_text(side: Side) -> str:
    failed = f"; {units.counted(side.failed, 'failed run')} not compared" if side.failed else ""
    return f"{side.name}: {units.counted(len(side.runs), 'run')}, {library(side)}{failed}"


def sides_facts(answers: Comparison) -> Iterator[tuple[str, str]]:
    yield "Program", program_text(answers)
    for place, side in enumerate(answers.sides):
        yield "" if place else "Sides", side_text(side)
    if answers.is_paired and len(answers.sides[0].runs) > 1:
        yield (
            "Blocks",
            f"{len(answers.sides[0].runs)}: runs made next to each other are compared with each "
            "other",
        )
    elif not answers.is_paired:
        why = (
            "none: the sides do not alternate" if answers.rules.pairs
            else "none, as --unpaired asks"
        )
        yield "Blocks", f"{why}; all runs of one side are compared with all of the other"
    yield "Same work", work_text(answers)
    for pair in answers.pairs:
        if pair.verdict.is_control:
            yield "A/A", control_text(answers, pair)
    if answers.costs:
        yield (
            "Profiler",
            f"launch to end with it v. without: {'; '.join(map(cost_text, answers.costs))}",
        )


def refusal_facts(answers: Comparison) -> Iterator[tuple[str, str]]:
    for refusal in answers.refused:
        yield "Refused", f"{refusal.kind}: {refusal.what}. Way out: {refusal.way_out}"
    for refusal in answers.allowed:
        yield "Allowed", f"{refusal.kind}: {refusal.what}"


def library(side: Side) -> str:
    names = {units.library_name(run.fact("mpi_version")) or "unknown library" for run in side.runs}
    return units.shortened(", ".join(sorted(names)), 60)


def work_text(answers: Comparison) -> str:
    other = any(refusal.kind == "work" for refusal in (*answers.refused, *answers.allowed))
    if other:
        return "no"
    ranks = units.counted(answers.sides[0].runs[0].world_size, "rank")
    cut = cut_text(answers)
    if cut:
        return f"yes: {cut}, on {ranks}"
    same, uneven = map(len, answers.work)
    differ = f"{units.counted(uneven, 'row')} {'differs' if uneven == 1 else 'differ'} between runs"
    varies = (
        f"; {differ}, between the sides by no more than within them or by less than "
        f"{units.share(NOTABLE_WORK)}" if uneven else ""
    )
    return f"yes: {units.counted(same, 'row')} with the same calls and bytes, on {ranks}{varies}"


def cut_text(answers: Comparison) -> str:
    """60 steps of 6.13 MB in every run; MPI_Allreduce sends 161 messages a step in A, 3.0 in B.
    Empty: messages are not cut anew."""
    first = answers.sides[0].runs[0]
    rows = {key: row for key, row in first.rows.items() if key.per == "step" and key != NEGOTIATION}
    if not rows or first.steps is None:
        return ""
    key = max(rows, key=lambda key: rows[key].volume_bytes)
    steps = units.counted(first.steps.count, "step")
    steps += f" of {units.volume(first.steps.bytes)}" if first.steps.bytes else ""
    numbers = [units.three_digits(messages_per_step(side, key)) for side in answers.sides]
    sent = [f"{number} in {side.name}" for number, side in zip(numbers, answers.sides)]
    sent[0] = sent[0].replace(" in ", " messages a step in ", 1)
    return f"{steps} in every run; {key.call} sends {', '.join(sent)}"


def messages_per_step(side: Side, key: Key) -> float:
    rows = [run.rows[key] for run in side.runs if key in run.rows]
    return sum(row.count for row in rows) / max(1, sum(row.steps for row in rows))


def pair_facts(answers: Comparison, pair: Pair, title: str) -> Iterator[tuple[str, str]]:
    yield "Compared", title
    if pair.differences:
        yield "Also different", differences_text(pair.differences)
    noise = [
        f"{units.change(row.noise).lstrip('+')} ({NAMES[row.figure][1]})" for row in pair.figures
        if row.noise is not None and row.figure != ROWS
    ]
    if noise:
        yield "Noise", f"two runs of the same side differ by up to {', '.join(noise)}"
    yield "Verdict", verdict_text(answers, pair)
    yield from alike_facts(answers, pair)
    if pair.verdict.verdict in ("less", "more"):
        for place, row in enumerate(causes(pair)):
            yield "" if place else "Because", cause_text(row)
    same = same_names(pair)
    if same and pair.verdict.verdict != "refused":
        yield (
            "Not changed", f"{', '.join(same)}: same within {units.share(pair.verdict.min_effect)}",
        )


def alike_facts(answers: Comparison, pair: Pair) -> Iterator[tuple[str, str]]:
    """The verdict weighs rows by their time; this does not."""
    row = next(row for row in pair.figures if row.figure == ROWS)
    if row.change is not None and len(answers.sizes) > 1 and answers.metric not in ("step", "wall"):
        change = f"{change_text(row)} per call"
        yield (
            "Each row alike",
            f"{change}: geometric mean of {units.counted(len(answers.sizes), 'row')}",
        )


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
            "" if row.change is None or row.low is not None
            else f"; too few runs, too: {few_text(row)}"
        )
        return f"none: not the same experiment ({row.refused}){few}; what follows are estimates"
    figure = next(each for each in pair.figures if each.is_primary)
    change = f"{name} {change_text(row)}"
    if row.verdict == "same":
        return f"same within {units.share(row.min_effect)}: {change}"
    if row.verdict == "unknown":
        would = (
            "" if row.detectable is None
            else f"; {effect_text(row.detectable)} would have been found with a probability of 80 %"
        )
        return f"no difference found: {change}{would}"
    values = f"{units.duration(figure.first_ns)} -> {units.duration(figure.second_ns)}"
    agreeing = f"; {row.verdict} in {row.agreeing} of {row.pairs} blocks" if row.pairs else ""
    odd = ": something other than the command differs by as much" if row.is_control else ""
    return (
        f"{row.side} takes {row.verdict} {name}: {change}, {values} per "
        f"{per_text(row.metric)}{agreeing} (p {row.p:.2g}){odd}"
    )


def control_text(answers: Comparison, pair: Pair) -> str:
    """Result of comparing one command against itself, beside the verdicts."""
    row = pair.verdict
    found = (
        f"no verdict either; {NAMES[row.metric][1]} {change_text(row)}" if row.verdict == "refused"
        else finding_text(pair)
    )
    return (
        f"{row.side} runs the command of "
        f"{row.reference}{'' if pair in answers.tested else f': {found}'}"
    )


def cost_text(row: FigureRow) -> str:
    return f"{row.side} {change_text(row)}"


def per_text(metric: str) -> str:
    return "step" if metric == "step" else "run" if metric == "wall" else "rank"


def way_text(answers: Comparison, pair: Pair) -> str:
    """From too few runs to a verdict."""
    row = pair.verdict
    more = row.pairs_needed - row.runs
    is_single = row.runs == row.reference_runs == 1
    if more <= 0 or row.change is None or not (row.pairs or is_single):
        return ""
    if answers.is_experiment:
        return f"commprof-experiment add EXPERIMENT --blocks {more}"
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
    advised = f"; about {row.pairs_for_5_percent} would find 5 %" if row.pairs_for_5_percent else ""
    if row.pairs:
        return (
            f"{units.counted(row.pairs, 'pair')}, and {row.pairs_needed} are needed at "
            f"least{advised}"
        )
    needed = fewest_runs(row.level)
    runs = (
        f"{row.reference_runs} + {row.runs} runs are too few; {needed} + {needed} are " "needed at "
        "least"
    )
    return f"{runs}, or {row.pairs_needed} that alternate"


def causes(pair: Pair) -> list[ComparedRow]:
    """The confirmed rows with most of the change, in its direction."""
    found = [
        row for row in pair.rows if row.is_confirmed and row.outcome == pair.verdict.verdict
        and (row.part_of_change or 0) > 0
    ]
    return sorted(found, key=lambda row: -row.part_of_change)[:MOST_CAUSES]


def cause_text(row: ComparedRow) -> str:
    part = (
        f"{units.duration(abs(row.change_ns))} {row.outcome} per rank, "
        f"{units.share(row.part_of_change)} of the change"
    )
    return f"{row_text(row)}: {row.metric} {change_text(row)}, {part}"


def same_names(pair: Pair) -> list[str]:
    names = [
        NAMES[row.figure][1] for row in pair.figures
        if row.outcome == "same" and not row.is_primary and row.figure != ROWS
    ]
    return (names + [row_text(row) for row in pair.rows if row.outcome == "same"])[:MOST_SAME]


def row_text(row: ComparedRow) -> str:
    return row_name(call_text(row), row.bytes, row.communicator)


def call_text(row: ComparedRow | SizeRow) -> str:
    if row.call == OTHER:
        return f"other ({units.counted(row.rows, 'row')}), per rank"
    name = units.call_name(row.call, row.memory_kind, row.measure)
    return f"{name}, per step" if row.per == "step" else name


def change_text(row: VerdictRow | Contrast) -> str:
    """-31 % [-34 %, -27 %]; of too few runs there is no interval."""
    return units.change(row.change) + (
        "" if row.low is None else f" {interval_text(row.low, row.high)}"
    )


def interval_text(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return units.NO_VALUE
    return f"[{units.change(low)}, {units.change(high)}]"


def effect_text(detectable: float) -> str:
    return units.change(detectable).lstrip("+")


def remark(row: ComparedRow | FigureRow, min_effect: float) -> str:
    if row.outcome == "same":
        return f"same within {units.share(min_effect)}"
    if row.outcome == "unknown":
        if isinstance(row, ComparedRow) and row.low is not None and row.low * row.high > 0:
            return f"may be chance among the rows (p {row.adjusted_p:.2g})"
        return (
            "" if row.detectable is None else f"{effect_text(row.detectable)} would have been found"
        )
    is_tested = row.is_confirmed if isinstance(row, ComparedRow) else row.is_primary
    return "exploratory" if row.outcome in ("less", "more") and not is_tested else ""


def comparison_columns(verdict: VerdictRow) -> list[Column]:
    return [
        Column(verdict.reference, lambda row: units.duration(row.first_ns)),
        Column(verdict.side, lambda row: units.duration(row.second_ns)),
        Column("change", lambda row: "~" if row.outcome == "unknown" else units.change(row.change)),
        Column(
            f"{100 * verdict.level:.3g} % interval", lambda row: interval_text(row.low, row.high)
        ),
        Column("", lambda row: remark(row, verdict.min_effect) or " ", False),
    ]


def figure_name(row: FigureRow) -> str:
    return NAMES[row.figure][0] + (" *" if row.is_primary else "")


def figure_columns(pair: Pair) -> list[Column]:
    return [Column("Per rank (* verdict)", figure_name, False), *comparison_columns(pair.verdict)]


def known_figures(pair: Pair) -> list[FigureRow]:
    return [row for row in pair.figures if row.first_ns is not None or row.second_ns is not None]


def figure_table(pair: Pair) -> str:
    return tables.text_table(figure_columns(pair), known_figures(pair))


def row_table(pair: Pair) -> str:
    return tables.text_table(row_columns(pair), pair.rows)


def row_columns(pair: Pair) -> list[Column]:
    is_mixed = len({row.metric for row in pair.rows}) > 1
    part = Column("of change", lambda row: units.share(row.part_of_change))
    *values, last = comparison_columns(pair.verdict)
    return [
        Column("Per call", call_text, False),
        Column("on", lambda row: units.shortened(row.communicator, 32), False),
        Column("bytes", lambda row: units.size(row.bytes)),
        Column("calls", lambda row: units.count(row.count)),
        Column("of time", lambda row: units.share(row.share)),
        *([Column("metric", lambda row: row.metric, False)] if is_mixed else []),
        *values,
        *([part] if any(row.part_of_change is not None for row in pair.rows) else []),
        last,
    ]


def size_columns(rows: list[SizeRow]) -> list[Column]:
    names = rows[0].sides if rows else ()

    def of_side(place: int) -> Column:
        name = names[place]
        return Column(
            name,
            lambda row: units.duration(row.values_ns[place]) + (" *" if row.best == name else ""),
        )

    return [
        Column("call", call_text, False),
        Column("on", lambda row: units.shortened(row.communicator, 32), False),
        Column("bytes", lambda row: units.size(row.bytes)),
        Column("calls", lambda row: units.count(row.count)),
        Column("metric", lambda row: row.metric, False),
        *map(of_side, range(len(names))),
    ]


RUN_COLUMNS = (
    Column("side", lambda row: row.side, False),
    Column("block", lambda row: units.count(row.block)),
    Column("run", lambda row: row.run, False),
    Column("started", lambda row: units.timestamp(row.start_unix_ns), False),
    *(
        Column(name, lambda row, key=f"{figure}_ns": units.duration(getattr(row, key)))
        for figure, (name, _) in NAMES.items() if f"{figure}_ns" in RunRow._fields
    ),
)
CANARY_COLUMNS = tuple(
    Column(f"host: {name}", lambda row, key=key: units.duration(getattr(row, key)))
    for key, name in machine.NAMES.items()
)


def run_columns(answers: Comparison) -> tuple[Column, ...]:
    is_measured = any(row.memory_ns is not None for row in answers.runs)
    return RUN_COLUMNS + (CANARY_COLUMNS if is_measured else ())
