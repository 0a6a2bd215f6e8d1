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
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from ..advice import advice
from ..base import FAULTS, Row, UsageError, attempt, column, option, units, written_whole
from ..calls.views import RANK_TIMES
from ..compare.judge import Rules
from ..display import page, pictures
from ..late.late_ranks import Late, is_beside_main
from ..late.judgement import Kind
from ..late.sentences import headline
from ..plots import bars, timeline
from ..roles import roles
from ..roles.world import world_of
from ..run import align, Alignment, anonymous, files_mode, Run, selection, Selection, view_rows
from ..steps.long_steps import is_whole
from ..steps.run_view import View, run_view
from ..steps.steps_summary import StepsRow, StepsSummary, steps_summary
from ..summary.run_summary import (
    RunSummary,
    communicating,
    run_summary,
    times_apart,
    with_negotiation_apart,
)
from . import (
    SEPARATOR,
    Command,
    common,
    compare,
    counters,
    gpu,
    groups,
    hvprof,
    late,
    steps,
    summary,
)

COMPARISON = "comparison.html"
FIRST = ("Wrong launcher", "Crowded")  # what shows whether a run is healthy
MOST_RANKS = 64


def run(arguments: argparse.Namespace) -> None:
    if Path(SEPARATOR) in arguments.run or compare.names_experiment(arguments.run):
        write_comparison(arguments)
    else:
        write_run(arguments)


def write_comparison(arguments: argparse.Namespace) -> None:
    if arguments.anonymous or arguments.steps or not common.is_whole(arguments):
        raise UsageError("html", "a comparison takes neither --anonymous nor --steps nor filters")
    answers = compare.compared(arguments.run, compare.rules(arguments))
    output = arguments.output or (
        arguments.run[0] / "report.html"
        if compare.names_experiment(arguments.run)
        else Path(COMPARISON)
    )
    text = page.page(f"commprof: {compare.page_title(answers)}", compare.page_parts(answers))
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
    write(output, page_of(run, common.is_whole(arguments), arguments.steps), run.mode)


def write(output: Path, text: str, mode: int) -> None:
    with written_whole(output, mode) as file:
        file.write(text)
    common.print_line(str(output))


def page_of(run: Selection, is_whole: bool = True, wanted: range | None = None) -> str:
    return page.page(f"commprof: {common.title_of(run)}", parts(run, is_whole, wanted))


def parts(run: Selection, is_whole: bool, wanted: range | None) -> Iterator[str]:
    FAULTS.clear()
    alignment = attempt("Clocks", align, run.connection)
    split = attempt("Waiting", Late, run, alignment)
    answers = run_summary(run, split)
    in_steps = attempt("Steps", steps_summary, run, alignment, late=split)
    world = attempt("Communicators", world_of, run.connection)
    families, purposes = (
        attempt("Communicators", named, world) or {} for named in (roles.families, roles.roles)
    )
    # the timeline needs none
    stepless = in_steps or attempt("Steps", steps_summary, run, alignment, "none", late=split)
    row = in_steps.summary if in_steps else None
    whole = split if is_whole else None
    timed = with_negotiation_apart(answers) or counters.drawn(answers.calls)
    times = times_apart(view_rows(run.connection, RANK_TIMES), answers)
    advised: Sequence[advice.Advice] = []
    made: list[tuple] = [("GPU", gpu.gpu_section, run, in_steps)]
    if communicating(answers.calls) or answers.summary.has_nccl:
        advised = attempt("Advice", advice.advice, run, answers, split, row, world) or []
        made += [
            ("Steps", partial(steps.steps_section, waits=whole), run, in_steps),
            ("Timeline", partial(timeline_section, wanted=wanted), run, stepless, alignment, split),
            ("Waiting", late_section, run, split),
            ("Advice", late.advise_section, run, advised),
            (
                "Calls",
                counters.calls_section,
                answers.calls,
                timed,
                summary.negotiation_columns(answers),
            ),
            ("Ranks", counters.ranks_section, run, answers.ranks, times),
            ("Regions", partial(groups.regions_section, waits=split), run, alignment),
            ("Traffic", counters.traffic_section, run),
            ("Sizes", counters.sizes_section, run, families),
            ("hvprof", partial(hvprof.hvprof_section, in_steps=in_steps), run),
            ("Peers", counters.peers_section, run, answers.peers),
            ("Pipelines", groups.pipeline_section, run, world, split),
            ("Communicators", groups.communicators_section, run, purposes),
        ]
    sections = [attempt(*each) or "" for each in made]
    yield attempt("Top", lambda: opening(run, answers, row, whole, timed, advised)) or ""
    lack = (
        "no matplotlib 3.6 or newer for this Python: this page has no pictures but the steps and "
        "the timeline"
    )
    yield page.warnings([*run.notes, *FAULTS, *[lack] * (not pictures.is_possible())])
    yield from sections
    yield page.section(
        "Conditions of the run",
        "Where and how the run took place: program, MPI library, settings, environment of "
        "the MPI libraries.",
        page.table(
            (
                column("name", lambda row: row.key, False),
                column("value", lambda row: units.shortened(row.value, 400), False),
                column("ranks", lambda row: units.count(row.ranks)),
            ),
            answers.facts,
        ),
        is_folded=True,
    )


def opening(
    run: Selection,
    answers: RunSummary,
    in_steps: StepsRow | None,
    whole: Late | None,
    timed: Sequence[Row],
    advised: Sequence[advice.Advice],
) -> str:
    """The program without the folders of its files, which stand under Conditions; figures, answers
    to the first questions, and the summary."""
    row = answers.summary
    name = f"run {row.run_id or 'without a name'}"
    step = summary.in_a_step(in_steps, whole)
    # the call with the most time that is no negotiation, where there is one
    most = max(
        timed,
        key=lambda call: (not call.call.endswith(units.NEGOTIATION), call.total_ns),
        default=None,
    )
    facts = [
        ("In MPI", "; ".join(summary.share_texts(answers)) if summary.has_mpi(row) else ""),
        *summary.nccl_facts(answers),
        *summary.closing_facts(run, answers, step),
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
    return page.header(
        re.sub(
            r"(?<![^\s=:,])/(?:[^\s/]+/)*(?=[^\s/])",
            "",
            row.command_line or row.program or "unknown program",
        ),
        ["; ".join((summary.where_and_when(row), summary.library_name(row), name))],
        attempt("Figures", lambda: cards(answers, in_steps)) or [],
        [fact for fact in facts if fact[0] not in FIRST],
        questions,
    )


def cards(answers: RunSummary, steps: StepsRow | None) -> list[tuple[str, str]]:
    """The figures at the top, each with what it is."""
    row, cost = answers.summary, units.share(answers.summary.cost_share)
    share, said = row.mpi_share_mean, "inside MPI, mean over ranks"
    if row.negotiation_share_mean is not None:
        share = row.data_share_mean
        said = f"in data operations; {units.share(row.negotiation_share_mean)} in negotiation"
    found = {
        (units.share(share), f"of {summary.whole(row)} {said}"): summary.has_mpi(row),
        (summary.wall_time(row), f"wall time; {cost} of it is the profiler's own"): True,
    }
    shown = [card for card, is_so in found.items() if is_so]
    if steps and steps.step_ns is not None:
        said = f"a step, the mean of {units.counted(steps.steps, 'step')}"
        shown.insert(0, (units.duration(steps.step_ns), said))
    return shown


def timeline_section(
    run: Run, in_steps: StepsSummary, alignment: Alignment, waits: Late, wanted: range | None
) -> str:
    view = run_view(run.connection, in_steps, alignment, waits, wanted)
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
        "start to their completion, in rows of some height.": any(
            rank.in_flight for rank in view.ranks
        ),
        "Thin arrows are messages, from the posting of the send to the completion of the "
        "receive, where both sides are known.": len(view.messages),
        "Beneath a rank are its GPUs, with a strip each for computing, communicating and "
        "copying; elsewhere they are idle. Communication beside which the GPU does not compute "
        "is exposed.": any(rank.gpus for rank in view.ranks),
    }
    drawing = page.drawing("timeline", timeline.data(view, waits.participants.hosts))
    return page.section(
        "The run in time",
        f"What {thread} of each rank did, from the whole run to single calls. {contents}",
        drawing,
        page.folded("How to read it", [text for text in explained if explained[text]], ""),
    )


def steps_read(word: str) -> range:
    """Value of --steps: 7, or 100-120."""
    found = re.fullmatch("([0-9]{1,9})(?:-([0-9]{1,9}))?", word)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if first > last:
        raise argparse.ArgumentTypeError(f"{word}: no steps such as 7 or 100-120")
    return range(first, last + 1)


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


def late_section(run: Run, answers: Late) -> str:
    known = page.facts_list(late.facts(run, answers))
    if answers.is_negotiated or answers.run.verdict is Kind.NONE:
        return page.section("Who is late", "", known)
    ranks = sorted(answers.ranks, key=lambda row: -row.cost_ns)
    drawn = sorted(ranks[:MOST_RANKS], key=lambda row: row.rank)
    calls = late.family_rows(run, answers)
    hosts = answers.hosts if len(answers.hosts) > 1 else []
    return page.section(
        "Who is late",
        "In a collective or message a rank waits for others to arrive, and then the transfer "
        "itself takes time. Each bar is one rank: a rank that waits little while others wait long "
        "may be the one they wait for.",
        known,
        common.picture(bars.of_waits(drawn), "waiting and transfer by rank"),
        page.table(late.cause_columns(late.RANK, ranks), ranks, MOST_RANKS),
        page.sentence_of(late.legend(ranks)),
        page.table(late.cause_columns(late.HOST, hosts), hosts),
        page.table(late.CALL_COLUMNS, calls),
    )


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
