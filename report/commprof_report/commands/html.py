"""The page needs no other file and requests none: the summary, the steps, a timeline of the run
(ranks x time, from the whole run to single calls, with operations in flight, messages, GPUs and
critical paths; the calls of all steps, or of the median one, the longest ones and as many others as
there is room for), who is late, where the time goes call by call and rank by rank, message sizes,
who sends to whom, communicators, pipelines, calls by size class, advice, and the conditions of the
run. A sentence explains each picture. Tables sort by the head that is pressed, are filtered by
words, and are copied as CSV. It is written beside the databases (RUN/report.html) unless --output
says otherwise. Without matplotlib it holds the tables, the steps and the timeline only, and says
so.

For two sides or more, A... -- B..., or the folder of an experiment, the page shows what compare
says, with the same options: the verdict, each measure with the value of each run and the interval
of its change, calls and sizes, the durations of calls on each side, and what else differs.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..base import (
    FAULTS,
    UsageError,
    attempt,
    checked,
    column,
    option,
    options_add,
    units,
    written_whole,
)
from ..compare.judge import Rules
from ..display import pictures, render
from ..late import (
    headline,
    is_beside_main,
)
from ..plots import bars, timeline
from ..run import anonymous, files_mode, selection, Selection
from ..steps.long_steps import is_whole
from ..steps.run_view import View, run_view
from ..summary.run_summary import communicating
from . import SEPARATOR, Command, command_of, common, compare, counters, late, summary

COMPARISON = "comparison.html"
FIRST = ("Wrong launcher", "Crowded")  # what shows whether a run is healthy


class Section(NamedTuple):
    """A command's answer without options. sentence: explains its picture."""

    command: str
    title: str
    sentence: str = ""
    is_folded: bool = False


SECTIONS = (
    Section(
        "gpu",
        "GPUs",
        "Each bar is one GPU, over the time in which it was traced. Exposed communication is time "
        "in which a kernel of NCCL or its like ran and none that computes; hidden communication "
        "ran beside computing.",
    ),
    Section("steps", "Steps"),
    Section("", "The run in time"),
    Section(
        "late",
        "Who is late",
        "In a collective or message a rank waits for others to arrive, and then the transfer "
        "itself takes time. Each bar is one rank: a rank that waits little while others wait long "
        "may be the one they wait for.",
    ),
    Section("advise", "What could be better"),
    Section(
        "calls",
        "Where the time goes",
        "Each bar is the time that all ranks together spent in one call, with waiting for other "
        "ranks; of NCCL's operations the time on the device, where it was traced. MPI_Init and "
        "MPI_Finalize are only in the table.",
    ),
    Section(
        "ranks",
        "Rank by rank",
        "Each bar is one rank, each colour one call. In a balanced job all bars are alike. Time "
        'inside a collective contains waiting for other ranks: see "Who is late".',
    ),
    Section(
        "regions",
        "Region by region",
        "Regions are the parts of the program that it has named; each row holds what lies in it, "
        'the column "by itself" leaves out the regions within.',
    ),
    Section(
        "traffic",
        "Bulk and control",
        "Bulk calls carry gradients, activations or data. Control calls coordinate them: "
        "negotiation of what is ready, barriers and the like.",
        True,
    ),
    Section(
        "sizes",
        "Message sizes",
        "Each point is one message size: the line is the median duration, the bands reach to the "
        "95th and 99th percentile (where there are 20 calls or more; other points are hollow). A "
        "wide band means that calls of that size take very different times, mostly by waiting for "
        "a late rank.",
    ),
    Section(
        "hvprof",
        "Calls by size class (hvprof)",
        "By the size classes of hvprof's papers.",
        True,
    ),
    Section(
        "peers",
        "Who sends to whom",
        "Each field is what one rank sent to another with point-to-point calls, as the sender "
        "counted it; empty: nothing. Pipelines show as lines beside the diagonal, a coordinator as "
        "one full row and column.",
    ),
    Section(
        "pipeline",
        "Pipelines",
        "The bubble is the waiting for other ranks over the counted time.",
    ),
    Section(
        "communicators",
        "Communicators",
        "The groups of ranks that talk to each other. Kinds of parallelism often have a "
        "communicator each.",
        True,
    ),
)


def run(arguments: argparse.Namespace) -> None:
    if Path(SEPARATOR) in arguments.run or compare.names_experiment(arguments.run):
        write_comparison(arguments)
    else:
        write_run(arguments)


def write_comparison(arguments: argparse.Namespace) -> None:
    if arguments.anonymous or arguments.steps or selection.filters(arguments):
        raise UsageError("html", "a comparison takes neither --anonymous nor --steps nor filters")
    answers = compare.compared(arguments.run, compare.rules(arguments))
    output = arguments.output or (
        arguments.run[0] / "report.html"
        if compare.names_experiment(arguments.run)
        else Path(COMPARISON)
    )
    sides = " and ".join(pair.verdict.side for pair in answers.tested)
    title = f"commprof: {sides} v. {answers.sides[0].name}"
    text = render.page(title, compare.page_parts(answers))
    write(output, text, files_mode(run.path for side in answers.sides for run in side.runs))


def write_run(arguments: argparse.Namespace) -> None:
    if compare.rules(arguments) != Rules():
        raise UsageError("html", "the options of a comparison need two sides: A... -- B...")
    run = common.open_selected(arguments, with_samples=True)
    output = arguments.output or (
        run.path / "report.html" if run.path.is_dir() else run.path.with_suffix(".html")
    )
    if arguments.anonymous:
        anonymous.anonymise(run)
    write(output, page_of(run, arguments.steps), run.mode)


def write(output: Path, text: str, mode: int) -> None:
    with written_whole(output, mode) as file:
        file.write(text)
    common.print_line(str(output))


def page_of(run: Selection, wanted: range | None = None) -> str:
    return render.page(f"commprof: {common.title_of(run)}", parts(common.Analysed(run), wanted))


def parts(known: common.Analysed, wanted: range | None) -> Iterator[str]:
    """The sections say nothing that stands above them."""
    FAULTS.clear()
    said: set[str] = set()
    has_calls = communicating(known.summary.calls) or known.summary.summary.has_nccl
    top = attempt("Top", opening, known, has_calls, said)
    sections = [
        attempt(each.command, section_of, known, each, said)
        if each.command
        else attempt("Timeline", partial(timeline_section, wanted=wanted), known, each.title)
        for each in SECTIONS
        if has_calls or each.command == "gpu"
    ]
    lack = (
        "no matplotlib 3.6 or newer for this Python: this page has no pictures but the steps and "
        "the timeline"
    )
    yield top or ""
    yield render.warnings([*known.run.notes, *FAULTS, *[lack] * (not pictures.is_possible())])
    yield from filter(None, sections)
    yield render.section(
        "Conditions of the run",
        "Where and how the run took place: program, MPI library, settings, environment of "
        "the MPI libraries.",
        render.table(
            (
                column("name", lambda row: row.key, False),
                column("value", lambda row: units.shortened(row.value, 400), False),
                column("ranks", lambda row: units.count(row.ranks)),
            ),
            known.summary.facts,
        ),
        is_folded=True,
    )


def section_of(known: common.Analysed, each: Section, said: set[str]) -> str:
    """A command's answer, and its picture; nothing where it has no rows."""
    command, parser = command_of(each.command), argparse.ArgumentParser()
    options_add(parser, command.options)
    answer = command.run.answer(known, parser.parse_args([]))
    if not answer or not answer.rows:
        return ""
    drawn = common.picture(answer.draw()[0], each.title) if answer.draw else ""
    shown = common.block_html([*answer.blocks()], said)
    return (
        render.section(each.title, each.sentence, drawn, shown, is_folded=each.is_folded)
        if drawn or shown
        else ""
    )


def opening(known: common.Analysed, has_calls: bool, said: set[str]) -> str:
    """The program without the folders of its files, which stand under Conditions; figures, answers
    to the first questions, and the summary."""
    answers, row = known.summary, known.summary.summary
    name = f"run {row.run_id or 'without a name'}"
    advised = (known.advised if has_calls else None) or []
    # the call with the most time that is no negotiation, where there is one
    most = max(
        counters.apart(known, counters.drawn(answers.calls), "call"),
        key=lambda call: (not call.call.endswith(units.NEGOTIATION), call.total_ns),
        default=None,
    )
    facts = [
        ("In MPI", "; ".join(summary.share_texts(answers)) if summary.has_mpi(row) else ""),
        *summary.nccl_facts(answers),
        *summary.closing_facts(known, answers),
    ]
    questions = [
        ("Waiting", attempt("Waiting", headline, answers.late) or "not known"),
        *(fact for fact in facts if fact[0] in FIRST),
        (
            "Costs most",
            f"{most.call}: {bars.call_text(most)}, over all ranks" if advised and most else "",
        ),
        ("To try", late.to_try_text(advised) if advised else ""),
    ]
    said.update(text for _, text in (*questions, *facts) if len(text) > common.LONG)
    return render.header(
        re.sub(
            r"(?<![^\s=:,])/(?:[^\s/]+/)*(?=[^\s/])",
            "",
            row.command_line or row.program or "unknown program",
        ),
        ["; ".join((summary.where_and_when(row), summary.library_name(row), name))],
        attempt("Figures", cards, known) or [],
        [fact for fact in facts if fact[0] not in FIRST],
        questions,
    )


def cards(known: common.Analysed) -> list[tuple[str, str]]:
    """The figures at the top, each with what it is."""
    row, steps = known.summary.summary, known.steps.summary if known.steps else None
    share, said = row.mpi_share_mean, "inside MPI, mean over ranks"
    if row.negotiation_share_mean is not None:
        share = row.data_share_mean
        said = f"in data operations; {units.share(row.negotiation_share_mean)} in negotiation"
    step_ns, number = (steps.step_ns, steps.steps) if steps else (None, 0)
    found = {
        f"a step, the mean of {units.counted(number, 'step')}": step_ns and units.duration(step_ns),
        f"of {summary.whole(row)} {said}": summary.has_mpi(row) and units.share(share),
        f"wall time; {units.share(row.cost_share)} of it is the profiler's own": summary.wall_time(
            row
        ),
    }
    return [(value, name) for name, value in found.items() if value]


steps_read = checked(  # the value of --steps
    lambda word: (
        next(iter(units.spans_in(word) or ()), None) if word.replace("-", "").isdigit() else None
    ),
    "no steps such as 7 or 100-120",
)


def timeline_section(known: common.Analysed, title: str, wanted: range | None) -> str:
    in_steps, waits = known.steps_or_none, known.waits
    if not in_steps or not waits or not known.alignment:
        return ""
    view = run_view(known.connection, in_steps, known.alignment, waits, wanted)
    if not view:
        return ""
    contents = contents_text(view, sum(map(is_whole, in_steps.costs.steps)), wanted)
    thread = (
        "the negotiating thread"
        if waits.is_negotiated
        else "the thread with the most time in MPI"
        if is_beside_main(waits.split.run)
        else "the main thread"
    )
    explained = {
        "A bin too short for single calls has its shares of time as parts of its height.": 1,
        "The wheel, + and -, or two fingers zoom; dragging or the arrow keys move; 0 shows the "
        "whole run. With Shift the wheel, or the keys [ and ], makes rows higher. The mouse, or "
        "the keys . and , name a call.": 1,
        "The arrow of a named call comes from the rank that it waited for, where that is known. "
        "The red line is the critical path of a step, if it is known.": 1,
        "Thin bars beneath a rank are its nonblocking and persistent operations, from their "
        "start to their completion, in rows of some height.": len(view.in_flight),
        "Thin arrows are messages, from the posting of the send to the completion of the "
        "receive, where both sides are known.": len(view.messages),
        "Beneath a rank are its GPUs, with a strip each for computing, communicating and "
        "copying; elsewhere they are idle. Communication beside which the GPU does not compute "
        "is exposed.": any(rank.gpus for rank in view.ranks),
    }
    drawing = render.drawing("timeline", timeline.data(view, waits.participants.hosts))
    return render.section(
        title,
        f"What {thread} of each rank did, from the whole run to single calls. {contents}",
        drawing,
        render.folded("How to read it", [text for text in explained if explained[text]], ""),
    )


def contents_text(view: View, whole: int, wanted: range | None) -> str:
    """Which calls are in the page. Steps that were not sampled whole, or that there is no room for,
    are not."""
    shown = len(view.steps)
    of = f"Single calls of {shown:,} of {units.counted(len(wanted) if wanted else whole, 'step')}"
    ends = "-".join(f"{step:,}" for step in sorted({wanted[0], wanted[-1]})) if wanted else ""
    which = f"step{'s' * ('-' in ends)} {ends}" if wanted else "the median, the longest, and others"
    cases = {
        "None of the steps asked for was sampled whole.": wanted and not shown,
        f"{of} are in this page: {which}.": wanted,
        "All sampled calls are in this page.": view.is_whole,
        "Single calls are in this page where the bar beneath the axis is.": not shown,
        "Each step that was sampled whole, after the warm-up, is in this page.": shown == whole,
        f"{of} are in this page: {which} spread over the run.": True,
    }
    said = next(text for text, is_so in cases.items() if is_so)
    choice = " Choose one in the list, or by a click on its bar in the picture above."
    return said + choice * bool(shown)


COMMANDS = {
    "html": Command(
        __doc__,
        (
            *common.RUN,
            *selection.OPTIONS,
            option(
                "--output",
                "-o",
                type=Path,
                metavar="FILE",
                help="where to write (default: RUN/report.html, EXPERIMENT/report.html; of A... -- "
                f"B... {COMPARISON} in the working directory)",
            ),
            option(
                "--steps",
                type=steps_read,
                metavar="A-B",
                help="the timeline holds the calls of these steps, as many as there is room for: "
                "7, or 100-120 (default: the median, the longest, and others)",
            ),
            option("--anonymous", action="store_true", help=anonymous.HELP),
            *(rule._replace(group="of A... -- B..., as in compare") for rule in compare.RULES),
        ),
        run,
        (
            ("Beside the databases", "hvprof-report html commprof-train.py-1234"),
            ("Two libraries", "hvprof-report html openmpi-* -- mpich-* --output comparison.html"),
        ),
        ("compare", "summary"),
    )
}
