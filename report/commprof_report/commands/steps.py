"""Shows how many steps there were and of which calls, how long they took, how much of a step is
communication and on which thread, which rank is slowest, whether steps became slower over the run,
and what was different in those that took much longer. Then, call by call, what a step consists of;
communicators of a family, such as 16 tensor-parallel groups, share a row. Steps that the program
marks are taken as they are. Otherwise they are iterations of a loop in the sequence of calls,
messages included: "Loops" shows the nest, such as `100 x (24 message calls, Allreduce of 8 B);
every 10: Gather`. What is done now and then, a checkpoint or output, is no part of a step. That
calls repeat shows a loop and no step: the second line names the evidence, such as the bytes of the
parameters, a region that is visited once a step, or as many iterations as the command line asks
for; "probably" stands for one kind. Without evidence all levels of the loops are shown, and --loop
chooses one. Ranks that step at other times, as another ensemble, are listed under "Other
steps".

The time of a step is the mean over its ranks; the headline splits it into time outside MPI,
transfer and waiting, and names the rank that causes most of the waiting, if there is one beyond
chance. The slowest rank is the one that `late` names, if the others wait for it in steps, too. The
critical path of a step is followed back from the rank that ended last, at each wait on to the rank
that was waited for. Calls are means over the ranks that make them; bytes count for the call that
starts an operation, not for the one that completes it. Shares are of the mean over all steps after
the warm-up, outliers included. Time inside MPI on the thread that drives the steps, by default the
main one, is exposed communication. The time of a background thread is shown apart: how much of it a
step waits for shows in a region around the wait, named "wait ..." or "sync ...", and is unknown
without one. If a thread that negotiates makes the calls, as Horovod's, ranks are compared by when
each reaches that region or the mark of its step: a slow rank shows at a mark set where the main
thread begins to wait. NCCL's operations count by their time on the device, where that is known.
Nothing marks the end of the last marked step, so it ends with its last call.

This needs the log of single calls. The log of a long run holds parts of it, and steps are known of
those parts.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, repeat

from ..base import attempt, column, Field, option, present, Row, shown, telling, units
from ..display import render
from ..late import (
    HANDED,
    Late,
    efficiency_text,
    headline as headline_of,
    mark_text,
)
from ..plots import bars as plot
from ..roles import roles
from ..run import Alignment, Selection, crowded_facts, unsampled_facts
from ..run.crowding import crowding
from ..steps.columns import STEP, STEPS, remark
from ..steps.long_steps import FEWEST_STEPS, PATH, doing_text
from ..steps.step_costs import CALL, call_rows
from ..steps.steps_summary import (
    NOTABLE_POLLS,
    StepsRow,
    StepsSummary,
    headline,
    level_texts,
    outside_text,
    slowest_text,
    steps_summary,
    waited_text,
)
from . import Command, common

MOST_CALLS = 10
MOST_OUTLIERS = 6
MOST_ROWS = 200
MOST_PARTS = 3  # of the critical path, in a line
NOTABLE_PART = 0.01  # of it
MOST_OF_RUN = 0.9  # of the counted time without set-up; that steps are less of it is said
UNTIMED = (
    "not all were timed: sends and receives never are one by one, others while the GPU is traced"
)
CALL_COLUMNS = shown(
    CALL,
    "call communicator library ranks count bytes total_ns exposed_ns share_of_step overlap",
)
STEP_COLUMNS: Sequence[Field] = (
    *shown(
        STEP,
        "step begin_ns step_ns communication_ns file_ns outside_ns background_ns nccl_device_ns "
        "slowest_rank",
    ),
    column("", remark, False),
)


def opened(arguments: argparse.Namespace) -> Selection:
    """--region is the step, no filter."""
    return common.SAMPLES(argparse.Namespace(**{**vars(arguments), "region": None}))


def steps(
    known: common.Analysed, arguments: argparse.Namespace, alignment: Alignment
) -> common.Answer | None:
    asked = arguments.by, arguments.region, known.waits, arguments.loop
    is_default = not any((arguments.by, arguments.region, arguments.loop))
    answers = known.steps if is_default else steps_summary(known.run, alignment, *asked)
    if answers is None:
        return None
    rows, fields, columns = chosen(arguments, known, answers)
    return common.Answer(
        rows,
        fields,
        lambda: (
            [common.Rows(columns, rows, MOST_ROWS, "; --csv has them all.")]
            if columns and rows
            else blocks(known, answers)
        ),
        lambda: (
            plot.of_steps(answers.costs.steps, remark),
            units.counted(len(answers.costs.steps), "step"),
        ),
        lambda: "The critical path is not known of any step." * arguments.critical_path,
        lambda: f"no steps: {answers.summary.why}",
    )


def chosen(
    arguments: argparse.Namespace, known: common.Analysed, answers: StepsSummary
) -> tuple[Sequence[Row], Sequence[Field], Sequence[Field]]:
    """Rows, what they have, and the columns on screen; none: the screen has the text."""
    if arguments.per_step:
        columns = telling(STEP_COLUMNS, answers.costs.steps, "nccl_device_ns")
        return answers.costs.steps, STEP, columns
    if arguments.per_call:
        rows = call_rows(known.connection, answers.sampled, answers.steps.rows, answers.costs)
        return rows, CALL, call_columns(rows)
    is_path = arguments.critical_path
    return (answers.paths, PATH, shown(PATH)) if is_path else ([answers.summary], STEPS, ())


def blocks(known: common.Analysed, answers: StepsSummary) -> list:
    """Calls have one row for a family of communicators."""
    given = answers.sampled, answers.steps.rows, answers.costs, known.named(roles.family_labels)
    calls = attempt("Calls", call_rows, known.connection, *given) or []
    said = (
        *crowded_facts(crowding(known.connection)),
        *facts(answers, known.waits),
        ("Late", attempt("Waiting", headline_of, known.waits) or "not known"),
        *unsampled_facts(known.connection),
        *common.part_facts(known.run),
    )
    columns, more = call_columns(calls[:MOST_CALLS]), "; --per-call has them all."
    left = sum(row.is_outlier for row in answers.costs.steps) - MOST_OUTLIERS
    return [
        [common.Facts(said), common.Hint("--per-step has all outliers." if left > 0 else "")],
        common.Rows(columns, calls, MOST_CALLS, more),
    ]


def call_columns(rows: Sequence[Row]) -> list[Field]:
    """Without what is the same for all calls of MPI, or for all ranks."""
    absent = {
        "timed on": all(row.library == "mpi" for row in rows),
        "ranks": len({row.ranks for row in rows}) < 2,
    }
    return [column for column in CALL_COLUMNS if not absent.get(column.head)]


def facts(answers: StepsSummary, waits: Late | None) -> list[tuple[str, str]]:
    """(head, text) a line. `waits`: the analysis of waiting of the whole run, if it was made."""
    summary = answers.summary
    if not summary.delimited_by:
        levels = level_texts(answers.steps.detection.found.levels)
        way = "the program can mark its steps: see commprof_step(3)"
        return [
            ("Steps", f"none found: {summary.why}"),
            *zip(chain(["Loops"], repeat("")), levels),
            ("", "" if waits and waits.unsampled else way),
            *negotiation_facts(summary),
        ]
    is_part = (
        waits
        and not waits.last
        and (0 < summary.judged_steps < summary.steps - summary.warm_up_steps)
    )
    judged = f"judged by {summary.judged_steps:,} of {summary.steps:,} steps"
    return [
        ("Steps", steps_text(summary)),
        ("", ("probably: " if summary.certainty == "probably" else "by ") + summary.evidence),
        ("Loops", summary.loops),
        ("Other steps", summary.apart),
        ("Step time", time_text(summary)),
        *share_facts(summary, waits.run if waits else None),
        ("Critical path", path_text(answers)),
        *negotiation_facts(summary),
        ("On the GPU", gpu_text(summary)),
        ("Slowest rank", slowest_text(summary)),
        ("", judged if is_part else ""),
        ("Trend", trend_text(summary)),
        *outlier_facts(answers),
    ]


def steps_text(summary: StepsRow) -> str:
    """300 steps of 5 bulk MPI_Allreduce, 102 MB, on MPI_COMM_WORLD"""
    steps = units.counted(summary.steps, "step")
    if summary.total_steps and summary.total_steps > summary.steps:
        about = "" if summary.delimited_by == HANDED else "about "
        steps += f" sampled of {about}{summary.total_steps:,}"
    if summary.delimited_by == "marks":
        return f"{steps}, marked by the program"
    if summary.delimited_by == HANDED:
        return f"{steps}: in each, the ranks agree on {summary.period}"
    if summary.delimited_by == "region":
        steps += ": visits to the region"
    else:
        where = f", on {summary.communicator}" if summary.communicator else ""
        steps += f" of {summary.period}{where}"
    return f"{steps}; {summary.why}" if summary.why else steps


def time_text(summary: StepsRow) -> str:
    if summary.p50_ns is None:
        return "unknown: there is none but the warm-up"
    median, low, high = (
        units.duration(ns) for ns in (summary.p50_ns, summary.p5_ns, summary.p95_ns)
    )
    left_out = (
        f"; {units.counted(summary.warm_up_steps, 'warm-up step')} left out"
        if summary.warm_up_steps
        else ""
    )
    is_part = summary.time_share is not None and summary.time_share < MOST_OF_RUN
    share = (
        f"; these steps are {units.share(summary.time_share)} of the counted time without set-up"
        if is_part
        else ""
    )
    return f"median {median}; 5 % are below {low}, 5 % above {high}{left_out}{share}"


def share_facts(summary: StepsRow, late: Row | None) -> Iterator[tuple[str, str]]:
    if summary.step_ns is None:
        return
    thread, waited = "main thread", ""
    if not summary.thread_is_main:
        thread = f"thread {units.shortened(summary.thread, 16) or 'beside it'}"
    if summary.wait_region:
        waited = f"{waited_text(summary)} ({units.duration(summary.wait_region_ns)})"
        waited = f"exposed besides: {waited} in {mark_text(summary.wait_region)}"
    nccl = "" if summary.nccl_host_ns is None else nccl_text(summary)
    if summary.is_driven:
        efficiency = efficiency_text(summary)
        yield "In a step", headline(summary, late)
        yield "Efficiency", f"{efficiency} (POP)" if efficiency else ""
        yield (
            "",
            f"{units.share(summary.communication_share)} exposed communication, on the "
            f"{thread}; means over steps and ranks",
        )
        other = f"{units.share(summary.background_share)} ({units.duration(summary.background_ns)})"
        yield (
            "",
            f"another thread communicates {other} of it; how much of that a step waits for is "
            "not known"
            if summary.background_ns
            else "",
        )
        yield "", f"{waited}; {waiting_text(summary)}" if waited else ""
    elif nccl and not summary.background_ns:
        yield "In a step", nccl
        nccl = ""
    else:
        communication = f"{communication_parts(summary)}, all on the {thread}"
        yield "In a step", headline(summary, late) if waited else communication
        yield (
            "",
            f"{waiting_text(summary)}; in all {communication}"
            if waited
            else "the thread that drives the steps makes no MPI call: between none and all of this "
            "may be exposed; a region around the wait for it, named 'wait ...', shows how much "
            "(commprof_step(3))",
        )
    yield "", nccl
    yield (
        "",
        f"polls that found nothing ({units.share(summary.poll_share)} of the time in MPI) are "
        "in it only before a sampled call that found something"
        if summary.poll_share > NOTABLE_POLLS
        else "",
    )
    least = "no step was sampled whole: the time inside MPI is at least this long"
    yield "", "" if summary.complete_steps else least


def communication_parts(summary: StepsRow) -> str:
    """31.8 % data operations (11.7 ms) and 43.6 % negotiation (16.1 ms)"""
    background_ns, step_ns = present(summary.background_ns), present(summary.step_ns)
    parts = {"communication": background_ns}
    if summary.negotiation and summary.data_ns is not None:
        rest_ns = max(0.0, background_ns - summary.data_ns)
        parts = {"data operations": summary.data_ns, "negotiation": rest_ns}
    said = " and ".join(
        f"{units.share(ns / max(step_ns, 1))} {what} ({units.duration(ns)})"
        for what, ns in parts.items()
    )
    return said if summary.complete_steps else f"at least {said}"


def waiting_text(summary: StepsRow) -> str:
    overlap = units.share(summary.wait_region_overlap)
    if summary.wait_region == HANDED:
        return f"data operations take {overlap} of the latter"
    return (
        "in it the thread makes no MPI call, while another one is in data operations for "
        f"{overlap} of the time"
    )


def path_text(answers: StepsSummary) -> str:
    """98.2 % rank 2 outside MPI, 1.1 % rank 0 in MPI_Allreduce, 0.7 % others; over 39 steps"""
    parts: Counter = Counter()
    for row in answers.paths:
        parts[row.rank, row.state, row.call] += row.time_ns
    whole_ns, outside = sum(parts.values()), outside_text(answers.summary)
    most = {part: ns for part, ns in parts.most_common(MOST_PARTS) if ns >= NOTABLE_PART * whole_ns}
    rest_ns = whole_ns - sum(most.values())
    terms = [
        f"{units.share(ns / whole_ns)} rank {rank} {doing_text(state, call, outside)}"
        for (rank, state, call), ns in most.items()
    ]
    terms += [f"{units.share(rest_ns / whole_ns)} others"] if rest_ns else []
    steps = units.counted(len({row.step for row in answers.paths}), "step")
    return f"{', '.join(terms)}; over {steps}" if terms else ""


def negotiation_facts(summary: StepsRow) -> list[tuple[str, str]]:
    """Facts on a background thread that agrees with the other ranks in every cycle on what to send,
    as Horovod's does."""
    if not summary.negotiation:
        return []
    exposed = "" if summary.wait_region else ", between none and all of it exposed"
    bulk = (
        (
            f", {units.volume(summary.background_bulk_bytes)} a rank in "
            f"{units.duration(summary.background_bulk_ns)} of MPI's data operations{exposed}"
        )
        if summary.background_bulk_bytes
        else ""
    )
    rounds = (
        ""
        if summary.rounds_per_step is None
        else (
            f"{units.three_digits(summary.rounds_per_step)} rounds in a step on average, one every "
            f"{units.duration(summary.cycle_ns)} while nothing is handed over: "
            f"{units.share(summary.idle_rounds_share)} of them"
        )
    )
    return [
        (
            "Negotiation",
            "a background thread agrees with the other ranks on what to send, as Horovod's does, "
            f"mostly in {summary.negotiation}",
        ),
        ("", rounds),
        (
            "",
            f"that thread over the whole run: {units.duration(summary.background_control_ns)} "
            f"of negotiation{bulk}",
        ),
    ]


def nccl_text(summary: StepsRow) -> str:
    on_host = f"NCCL's calls take {units.duration(summary.nccl_host_ns)} on the host"
    if summary.nccl_device_ns is None:
        return f"{on_host}; what its operations take on the device is not known ({UNTIMED})"
    share = units.share(summary.nccl_device_share)
    spent = units.duration(summary.nccl_device_ns)
    return (
        f"NCCL's operations run on the device for {share} of it ({spent}; is it exposed? "
        f"hvprof-report gpu); {on_host}"
    )


def gpu_text(summary: StepsRow) -> str:
    if not summary.gpu_steps:
        return ""
    share, time = units.share(summary.gpu_exposed_share), units.duration(summary.gpu_exposed_ns)
    return (
        f"{share} exposed communication ({time} of {units.duration(summary.gpu_step_ns)}; medians "
        f"of {units.counted(summary.gpu_steps, 'step')} that were traced whole; hvprof-report gpu "
        "has more)"
    )


def trend_text(summary: StepsRow) -> str:
    steps = summary.steps - summary.warm_up_steps
    if summary.trend == "unknown":
        return f"unknown: {units.are(steps, 'step')} too few, {FEWEST_STEPS} are needed"
    if summary.trend == "none":
        return f"none beyond chance, in {units.counted(steps, 'step')}"
    first, last = units.duration(summary.first_tenth_ns), units.duration(summary.last_tenth_ns)
    return (
        f"{summary.trend}: first tenth {first}, last tenth {last} (medians); chance alone would "
        f"show this with a probability of {summary.trend_p:.1g}"
    )


def outlier_facts(answers: StepsSummary) -> list[tuple[str, str]]:
    summary = answers.summary
    outliers = sorted(
        (row for row in answers.costs.steps if row.is_outlier), key=lambda row: -row.step_ns
    )
    if summary.outlier_limit_ns is None:
        return [("Outliers", "unknown: there is no step but the warm-up")]
    limit = f"beyond {units.duration(summary.outlier_limit_ns)}"
    steady = units.counted(summary.steps - summary.warm_up_steps, "step")
    if not outliers:
        return [("Outliers", f"none of {steady} is {limit}")]
    left = len(outliers) - MOST_OUTLIERS
    return [
        ("Outliers", f"{units.counted(len(outliers), 'step')} {limit}, as means over ranks"),
        *(
            (f"  step {row.step:,}", f"{units.duration(row.step_ns)}: {row.why}")
            for row in sorted(outliers[:MOST_OUTLIERS], key=lambda row: row.step)
        ),
        ("", f"and {left} more" if left > 0 else ""),
    ]


COMMANDS = {
    "steps": Command(
        __doc__,
        (
            *common.RUN,
            option(
                "--by",
                choices=("marks", "calls"),
                group="what is a step",
                is_alone=True,
                help="only marked steps, or only found ones (default: marked, else found)",
            ),
            option(
                "--region",
                type=units.as_read,
                metavar="NAME",
                group="what is a step",
                is_alone=True,
                help="each visit to the region of this name is a step",
            ),
            option(
                "--loop",
                type=int,
                metavar="N",
                group="what is a step",
                is_alone=True,
                help="each iteration of the loop with this number is a step",
            ),
            option(
                "--per-step",
                action="store_true",
                group="what to show",
                is_alone=True,
                help="a row for each step",
            ),
            option(
                "--critical-path",
                action="store_true",
                group="what to show",
                is_alone=True,
                help="a row for each part of the critical path of each step",
            ),
            option(
                "--per-call",
                action="store_true",
                group="what to show",
                is_alone=True,
                help="a row for each call and communicator",
            ),
            *render.ROWS,
            common.PLOT,
        ),
        common.View(steps, opened, ("alignment",)),
        (
            ("Where a step goes", "hvprof-report steps RUN"),
            ("All steps for a spreadsheet", "hvprof-report steps --per-step --csv RUN"),
        ),
        ("gpu", "late", "traffic"),
    )
}
