"""Compares the runs of two sides or more, A... -- B..., for example the same job with two MPI
libraries; the first side is the reference. The unit is the run: each run has one number for each
figure, and the test asks whether the sides differ by more than runs of one side do. Runs that
alternate (A B B A ...) are compared in pairs of neighbours, so that slow changes of the machine
cancel out. Six pairs are needed for a verdict, ten for a useful one. A run that is named twice
counts once; one that is named on two sides is an error. With one run a side the estimates are shown
without a verdict.

The verdict is about one figure of the run: by default the transfer, which is the MPI library's part
of the time: in calls that wait, from the last arrival that a rank depends on to its own return
(hvprof-report late), and in calls that only start operations; or the time inside MPI, if transfer
is known for less than half of it; or the step, if a framework cuts its messages otherwise in each
run, as by fusion: rows are then in time per step. Communicators that are created and the first
Barriers are set-up, which does not count. If the sides differ, rows say where: each is a call on a
communicator with a message size. Rows are tested in order of their share of the time, until the
first that shows no difference; further findings are marked exploratory. "~" stands for no
difference found, beside what would have been found with a probability of 80 %. "same within 2 %" is
a finding of its own (--min-effect).

There is no verdict on runs that are not the same experiment: other work, calls or ranks recorded on
one side only, other placement of ranks, another program, other binding, incomplete runs, runs whose
ranks waited for cores on most blocks or more on one side, all runs of one side before all of the
other, other nodes for each side, or a machine that was slower for one side. The report says how to
put it right; --allow takes it as it is. Settings and software that differ between the sides are
listed. A library that tunes itself differs within a run: where steps settle, a note says so, and
--skip-steps 33% leaves the first third of them out. Intervals and tests are exact and assume no
distribution: Wilcoxon's signed rank test for pairs, that of Mann and Whitney otherwise.
docs/COMPARING.md is an introduction.

With --fail-if slower:3% the exit status is the answer, and one line for each side on standard error
says why. 1: a side is slower in the metric beyond chance, and its estimate is 3 % or more. 0: all
of each interval is below 3 %. 3: neither is known: runs that are refused, too few or cannot be
read, or an interval around 3 %.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ..base import (
    EXECUTOR,
    UsageError,
    checked,
    column,
    Field,
    gathered,
    keys,
    option,
    shown,
    side_by_side,
    telling,
    threshold,
    units,
    watched,
)
from ..compare import comparison, sides as sides_of
from ..compare.judge import (
    Compared,
    FIGURE,
    OF_CONTRAST,
    ROW,
    RUN,
    Rules,
    SIDES,
    SIZE,
    VERDICT,
    VerdictRow,
)
from ..compare.figures import PERCENTILES, figures
from ..compare.refusals import KINDS, binding, hosts_of, layout, one_of, value_text
from ..display import render
from ..experiment.plan import CHECK, is_experiment
from ..plots import bars
from . import SEPARATOR, Command, common

WIDTH, MOST_VALUE = 120, 400  # characters of a line of the text, of a value in the page
MOST_ROWS = 12  # that the page draws
TABLES = {  # for scripts: their columns, and their rows
    "verdict": (VERDICT, lambda answers: [pair.verdict for pair in answers.pairs]),
    "figure": (
        (*FIGURE, *OF_CONTRAST),
        lambda answers: [row for pair in answers.pairs for row in pair.figures] + answers.costs,
    ),
    "row": (
        (*SIDES, *ROW, *OF_CONTRAST),
        lambda answers: [row for pair in answers.pairs for row in pair.rows],
    ),
    "size": (SIZE, lambda answers: answers.sizes),
    "run": (RUN, lambda answers: answers.runs),
}


def share_read(text: str, least: float = 1e-9, most: float = 1 - 1e-9) -> float | None:
    """2% or 2; None: it is no percentage within these bounds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?%?", text)
    share = round(float(match[1]) / 100, 9) if match else 0.0  # 99.9 / 100 is more than 0.999
    return share if least <= share <= most else None


percent = checked(share_read, "a percentage above 0 and below 100, like 2%")
level = checked(partial(share_read, least=0.5, most=0.999), "a level from 50% to 99.9%")
limit = checked(
    lambda text: share_read(text.removeprefix("slower:")) if text.startswith("slower:") else None,
    "slower:N%, like slower:3%",
)


def kinds(text: str) -> tuple[str, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in (*KINDS, "all")]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]}: not one of {', '.join(KINDS)}, all")
    return KINDS if "all" in words else tuple(words)


RULES = (
    option(
        "--metric",
        choices=comparison.METRICS,
        help="what is compared (default: step, if messages are cut otherwise in each run; else "
        "transfer, if it is known for half of the time inside MPI; else time)",
    ),
    option(
        "--min-effect",
        type=percent,
        default=threshold("compare.min-effect"),
        metavar="N%",
        help="differences below this do not matter (default: 2%%)",
    ),
    option(
        "--level",
        type=level,
        default=threshold("compare.level"),
        metavar="N%",
        help="confidence of the verdict and of intervals (default: 95%%)",
    ),
    option(
        "--allow",
        type=kinds,
        default=(),
        metavar="LIST",
        help=f"give a verdict all the same; a list of {', '.join(KINDS)}, or all",
    ),
    option(
        "--skip-steps",
        type=percent,
        default=0.0,
        metavar="N%",
        help="leave the first N %% of the steps of each run out, in which a library may still "
        "have tuned itself; rows are not shown then",
    ),
    option(
        "--check",
        metavar="FILE",
        type=Path,
        help="of replays: the result of replay check -o FILE, by which they stand for a share of "
        "the job (default: EXPERIMENT/job.kit.check)",
    ),
    option(
        "--unpaired",
        action="store_true",
        help="compare all runs with each other, even if they are in blocks",
    ),
    option(
        "--all-rows",
        action="store_true",
        help="show all rows; otherwise those below 1 %% of the time are added up",
    ),
)


GATE = {0: "not slower", 1: "slower", 3: "no answer"}  # by exit status


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit status."""
    if arguments.skip_steps and arguments.by in ("row", "size"):
        raise UsageError("--skip-steps", f"--by {arguments.by} is known of whole runs only")
    answers = compared(arguments.runs, rules(arguments, arguments.by == "size"))
    fields, rows_of = TABLES[arguments.by or ("figure" if arguments.skip_steps else "row")]
    if arguments.by == "size" and arguments.csv and arguments.take_rows is None:
        write_sizes_csv(answers)
    else:
        found = common.Answer(
            rows_of(answers), fields, lambda: TEXTS[arguments.by](answers), nothing=str
        )
        common.show(arguments, None, found)
    return 0 if arguments.fail_if is None else gate(answers, arguments.fail_if)


def gate(answers: comparison.Comparison, most: float) -> int:
    """Says of each side whether it is slower by so much; returns the first of 1, 3, 0 that one of
    them has."""
    found = [(gate_of(pair.verdict, most), pair) for pair in answers.tested]
    common.print_notes(
        f"--fail-if slower:{units.share(most)}: {GATE[status]}: {comparison.name_of(pair)}: "
        f"{comparison.finding_text(pair)}"
        for status, pair in found
    )
    return next(status for status in (1, 3, 0) if status in dict(found))


def gate_of(row: VerdictRow, most: float) -> int:
    if row.verdict in ("refused", "too few"):
        return 3
    is_slower = row.verdict == "more" and row.change >= most
    return 1 if is_slower else 0 if row.high < most else 3


def compared(words: list[Path], by_rules: Rules) -> comparison.Comparison:
    sides = read(chosen(words), by_rules.skipped)
    if names_experiment(words):
        beside = words[0] / CHECK
        if by_rules.checked is None and beside.exists():
            by_rules = by_rules._replace(checked=sides_of.checked_read(beside))
        return comparison.compare(sides, by_rules)
    return comparison.compare(sides_of.each_run_once(sides), by_rules)


def names_experiment(words: list[Path]) -> bool:
    return len(words) == 1 and is_experiment(words[0])


def chosen(words: list[Path]) -> list[sides_of.Side]:
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


def read(named: list[sides_of.Side], skipped: float) -> list[sides_of.Side]:
    """Runs are read side by side (workers.py); what there is to say about them is said in their
    order."""
    paths = [path for each in named for path in each.paths]
    read_run = partial(figures, skipped=skipped)
    found = [*watched(side_by_side(read_run, paths), "reading", len(paths), "runs")]
    for _, notes in found:
        common.print_notes(notes)
    left = iter([run for run, _ in found])
    return [each._replace(runs=list(islice(left, len(each.paths)))) for each in named]


def rules(arguments: argparse.Namespace, shows_all: bool = False) -> Rules:
    if arguments.skip_steps and arguments.metric in ("time", *PERCENTILES, "wall"):
        raise UsageError("--skip-steps", f"--metric {arguments.metric} is known of whole runs only")
    judged = arguments.metric, arguments.level, arguments.min_effect, arguments.allow
    return Rules(
        *judged,
        not arguments.unpaired,
        arguments.all_rows or shows_all,
        arguments.skip_steps,
        checked=sides_of.checked_read(arguments.check) if arguments.check else None,
    )


def write_sizes_csv(answers: comparison.Comparison) -> None:
    """A column for each side, as in the text."""
    *common_to_sides, _, _, best = keys(SIZE)
    sides = [f"{name}_ns" for name in (answers.sizes[0].sides if answers.sizes else ())]
    rows = (
        (*(getattr(row, name) for name in common_to_sides), *row.values_ns, row.best)
        for row in answers.sizes
    )
    render.write_csv(sys.stdout, (*common_to_sides, *sides, best), rows)


def size_blocks(answers: comparison.Comparison) -> list:
    columns = [
        column("call", comparison.call_text, False),
        column("on", lambda row: units.shortened(row.communicator, 32), False),
        column("bytes", lambda row: units.size(row.bytes)),
        column("calls", lambda row: units.count(row.count)),
        column("metric", lambda row: row.metric, False),
        *(
            column(
                name,
                lambda row, place=place, name=name: (
                    units.duration(row.values_ns[place]) + " *" * (row.best == name)
                ),
            )
            for place, name in enumerate(answers.sizes[0].sides if answers.sizes else ())
        ),
    ]
    kinds = "; ".join(refusal.kind for refusal in answers.refused)
    said = f"no side is marked: not the same experiment ({kinds})" if kinds else ""
    if any(row.best for row in answers.sizes):
        said = "* less than each other side, beyond chance among the rows (exploratory)"
    return [common.Rows(columns, answers.sizes), said]


def comparison_columns(verdict: VerdictRow) -> list[Field]:
    return [
        column(verdict.reference, lambda row: units.duration(row.first_ns)),
        column(verdict.side, lambda row: units.duration(row.second_ns)),
        column("change", lambda row: "~" if row.outcome == "unknown" else units.change(row.change)),
        column(
            f"{100 * verdict.level:.3g} % interval",
            lambda row: comparison.interval_text(row.low, row.high),
        ),
        column("remark", lambda row: comparison.remark(row, verdict.min_effect) or " ", False),
    ]


def known_figures(pair: comparison.Pair) -> list[Compared]:
    return [row for row in pair.figures if row.first_ns is not None or row.second_ns is not None]


def figure_rows(pair: comparison.Pair) -> common.Rows:
    name = column("Per rank (* verdict)", comparison.figure_name, False)
    return common.Rows([name, *comparison_columns(pair.verdict)], known_figures(pair))


def call_rows(pair: comparison.Pair) -> common.Rows:
    is_mixed = len({row.metric for row in pair.rows}) > 1
    part = column("of change", lambda row: units.share(row.part_of_change))
    *values, last = comparison_columns(pair.verdict)
    columns = [
        column("Per call", comparison.call_text, False),
        column("on", lambda row: units.shortened(row.communicator, 32), False),
        column("bytes", lambda row: units.size(row.bytes)),
        column("calls", lambda row: units.count(row.count)),
        column("of time", lambda row: units.share(row.share)),
        *([column("metric", lambda row: row.metric, False)] if is_mixed else []),
        *values,
        *([part] if any(row.part_of_change is not None for row in pair.rows) else []),
        last,
    ]
    return common.Rows(columns, pair.rows)


def named(rows: Callable[[comparison.Pair], common.Rows], pairs: Sequence[comparison.Pair]) -> list:
    """One table for each pair, under its name where there are several."""
    return [[comparison.name_of(pair) * (len(pairs) > 1), rows(pair)] for pair in pairs]


def whole_blocks(answers: comparison.Comparison) -> Iterator[Any]:
    yield common.Facts(comparison.facts(answers), WIDTH)
    for pair in answers.tested:
        facts = comparison.pair_facts(answers, pair, comparison.name_of(pair))
        yield from (common.Facts(facts, WIDTH), figure_rows(pair), call_rows(pair))


def run_blocks(answers: comparison.Comparison) -> list:
    fields = shown(RUN)
    optional = [field.key for field in fields if field.key.endswith("_ns")]
    return [common.Rows(telling(fields, answers.runs, *optional), answers.runs)]


TEXTS: dict[str | None, Callable[[comparison.Comparison], Iterable[Any]]] = {  # by --by
    None: whole_blocks,
    "verdict": lambda answers: [
        [
            f"{comparison.name_of(pair)}: "
            + (comparison.verdict_text if pair in answers.tested else comparison.control_text)(
                answers, pair
            )
            for pair in answers.pairs
        ]
    ],
    "size": size_blocks,
    "run": run_blocks,
    "figure": lambda answers: named(figure_rows, answers.pairs),
    "row": lambda answers: named(call_rows, answers.pairs),
}


# The page of a comparison: the same, with the value of each run.


def page_parts(answers: comparison.Comparison) -> Iterator[str]:
    pairs, said = answers.tested, set[str]()
    yield opening(answers)
    figures = gathered(
        (comparison.figure_name(row), row) for pair in pairs for row in known_figures(pair)
    )
    changes = sorted(
        zip(*(pair.rows for pair in pairs)), key=lambda own: -max(abs(row.change_ns) for row in own)
    )
    calls = {comparison.row_text(own[0]): own for own in changes[:MOST_ROWS]}
    for title, sentence, measures, blocks in (
        (
            "Measures",
            "Left: a mark for each run, side by side, on a logarithmic scale from the least value "
            f"to the most. Right: the change against {answers.sides[0].name} with its interval, on "
            "a scale that draws large changes closer together. A filled mark is a difference "
            "beyond chance, a hollow one is none or has no verdict; changes within the grey band "
            "do not matter.",
            figures,
            named(figure_rows, pairs),
        ),
        (
            "Calls and sizes",
            "Calls by communicator and size; those with the largest change are drawn, the first "
            "ones on top. Rows below 1 % of the time are added up as other, unless --all-rows.",
            calls,
            named(call_rows, pairs),
        ),
        (
            "What differs",
            "What the sides ran on, and settings and software in which all runs of one side "
            "differ from all of the other.",
            {},
            difference_blocks(answers),
        ),
        ("The runs", "Each run as it entered the comparison.", {}, run_blocks(answers)),
    ):
        drawn = bars.marks_of(answers, measures)
        picture = common.picture(drawn, "the value of each run, and each change")
        if shown := common.block_html(blocks, said):
            yield render.section(title, sentence, picture, shown, is_folded=title == "The runs")


def opening(answers: comparison.Comparison) -> str:
    pairs, facts = answers.tested, comparison.facts(answers)
    for pair in pairs:
        facts += comparison.pair_facts(answers, pair, comparison.name_of(pair))
    headline = f"{len(pairs)} verdicts against {answers.sides[0].name}"
    if len(pairs) == 1:
        headline = f"Verdict: {comparison.finding_text(pairs[0])}"
        way = "For a verdict", comparison.way_text(answers, pairs[0])
        facts = [way if head == "Verdict" else (head, text) for head, text in facts]
    return render.header(headline, (), (), facts)


def difference_blocks(answers: comparison.Comparison) -> list:
    none = "no setting or software that is known differs."
    sides = (
        column("side", lambda side: side.name, False),
        column("runs", lambda side: units.count(len(side.runs))),
        column("failed", lambda side: units.count(side.failed)),
        column("library", comparison.library, False),
        column("placement", lambda side: one_of({layout(run) for run in side.runs}), False),
        column(
            "cores that a rank may use",
            lambda side: one_of({binding(run) for run in side.runs}),
            False,
        ),
        column("hosts", lambda side: value_text(sorted(hosts_of(side)), MOST_VALUE), False),
    )

    def settings(pair: comparison.Pair) -> Any:
        columns = [
            column("setting", lambda row: row.name, False),
            column(pair.verdict.reference, lambda row: value_text(row.first, MOST_VALUE), False),
            column(pair.verdict.side, lambda row: value_text(row.second, MOST_VALUE), False),
        ]
        return (
            common.Rows(columns, pair.differences)
            if pair.differences
            else f"{comparison.name_of(pair)}: {none}"
        )

    return [
        common.Rows(sides, answers.sides),
        *map(settings, answers.tested),
    ]


COMMANDS = {
    "compare": Command(
        __doc__,
        (
            option(
                "runs",
                metavar="RUN",
                type=Path,
                nargs="*",
                help="A... -- B...: the runs of each side (two runs need no --); or the folder "
                "of an experiment",
            ),
            *RULES,
            option(
                "--fail-if",
                type=limit,
                metavar="slower:N%",
                help="exit with 1 if a side is slower than the first by N %% or more, with 3 if "
                "that is not known",
            ),
            EXECUTOR,
            option(
                "--by",
                choices=TABLES,
                help="this table only (--json and --csv: row unless said otherwise); size has a "
                "column for each side",
            ),
            *render.ROWS,
        ),
        run,
        (
            (
                "Ten runs with each of two libraries, made in turns",
                "hvprof-report compare openmpi-* -- mpich-*",
            ),
            ("An experiment of commprof-experiment(1)", "hvprof-report compare EXPERIMENT"),
            ("Before and after: estimates without a verdict", "hvprof-report compare before after"),
            (
                "In CI: fail if the second is slower by 3 % or more",
                "hvprof-report compare --metric wall --fail-if slower:3% before-* -- after-*",
            ),
            (
                "All sizes, a column for each library",
                "hvprof-report compare --by size openmpi-* -- mpich-* -- intel-*",
            ),
        ),
        ("late", "sizes", "steps"),
    )
}
