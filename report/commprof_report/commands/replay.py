"""A kit has the calls of all ranks with their sizes, datatypes, operations, communicators and tags,
and the times in between; no names, paths, arguments, hosts and no data. commprof-replay(1) makes
these calls again, on any MPI library, without the job. The kit covers the window that the job was
asked to record (commprof-run --record SECONDS@START); without one, the longest time in which all
calls of all ranks were sampled. What it leaves out is listed.

- kit RUN -o FILE writes the kit of a run.
- show FILE says what is in a kit, after checking its sum.
- source FILE -o FILE.c writes the kit as a program in one file of C, which mpicc builds, for the
  authors of an MPI library: commprof-replay's options, but no file beside it.
- check JOB... -- REPLAY... (or the experiment whose two arms they are) says for which calls the
  replays stand: calls and bytes of each rank must be equal in each pass, and the mean time within
  10 %, or as near as runs of the job are to each other. From four runs of each on, made in turns, a
  test of equivalence may show it; where it does not, the estimate counts, and is called one. With
  -o FILE compare can say so, too.

Where the time of collectives comes from, compare says of replays of one kit with other --arrival,
--gaps and --buffers.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..base import ReportError, UsageError, column, option, renamed_whole, units, written_whole
from ..compare.figures import Figures, row_name
from ..compare.sides import MOST_NAMED, Checked, altered, checked_write, kit_replayed
from ..display import render
from ..replay import kit as kits
from ..replay.check import SCATTER, SMALL, STANDS, Check, CheckRow, check
from ..replay.from_run import kit_of
from ..run import files_mode
from . import Command, common, compare

MOST_ROWS, MORE = 24, " rows; --csv has them all."
WHY = {
    "stands": "yes",
    "near": "yes, as an estimate",
    "unknown": "not known",
    "longer": "no: longer",
    "shorter": "no: shorter",
    "other calls": "no: other calls",
    "absent": "not replayed",
}


def action(text: str) -> str:
    if text not in RUN and Path(text).exists():
        raise argparse.ArgumentTypeError(f"of a run: hvprof-report replay kit {text!r}")
    return text


def run(arguments: argparse.Namespace) -> None:
    action = arguments.action
    if render.is_for_scripts(arguments) and action != "check":
        raise UsageError("replay", f"{action} has no table; check has")
    if action in ("show", "source") and len(arguments.runs) != 1:
        raise UsageError("replay", f"{action} takes one kit")
    RUN[action](arguments)


def write_kit(arguments: argparse.Namespace) -> None:
    arguments.run = arguments.runs
    run = common.open_noted(arguments, with_samples=True, most_samples=None)
    if run.missing or run.profiled:
        raise ReportError(run.path, "has not all ranks of its job; a kit needs them")
    kit = kit_of(run)
    if not kit.made:
        raise ReportError(
            run.path,
            "has no calls that can be made again in a time in which all calls of all "
            "ranks were sampled (commprof-run --record)",
        )
    output = arguments.output or Path(f"{run.path.resolve().name}.kit")
    with renamed_whole(output, run.mode) as aside:
        digest = kits.write(kit, aside)
    common.print_line(f"{output}: {units.volume(output.stat().st_size)}")
    print_kit(kit, digest)


def write_source(arguments: argparse.Namespace) -> None:
    (path,) = arguments.runs
    output = arguments.output or Path(path.name).with_suffix(".c")
    text = kits.program_of(path, output.stem)
    with written_whole(output, files_mode([path])) as file:
        file.write(text)
    common.print_line(f"{output}: {units.volume(output.stat().st_size)}; mpicc builds it")


def print_kit(kit: kits.Kit, digest: str) -> None:
    total, left = sum(kit.made.values()), sum(kit.left_out.values())
    share = units.share(left / (total + left or 1))
    facts = common.facts_text(
        (
            (
                "Kit",
                f"{units.counted(total, 'call')} of {units.counted(kit.ranks, 'rank')} in "
                f"{units.duration(kit.window_ns)}, recorded under {kit.library}",
            ),
            ("Recorded", record_text(kit.record) if kit.record else ""),
            ("SHA-256", digest),
            ("Calls", counts_text(kit.made) or "none"),
            (
                "Completed last",
                f"{counts_text(kit.late)}: another thread, or nobody, completed them in the job"
                if kit.late
                else "",
            ),
            (
                "Left out",
                f"{units.counted(left, 'call')}, {share} of those of that time"
                if left
                else "nothing",
            ),
        )
    )
    reasons = (
        units.visible(f"  {name} {calls:,}: {why}")
        for (name, why), calls in most_first(kit.left_out)
    )
    print("\n".join((facts, *reasons)))


def record_text(record: kits.Record) -> str:
    """Against what was asked for."""
    asked = f"of the {units.duration(record.asked_ns)} asked for"
    asked += f": {record.why}" if record.why else ""
    made = f"{units.duration(record.ns)} {asked}"
    return made if record.ns else f"nothing {asked}; the kit is of another time"


def counts_text(counts: Counter[str]) -> str:
    return units.visible(", ".join(f"{name} {count:,}" for name, count in most_first(counts)))


def most_first(counts: Counter[Any]) -> list[tuple[Any, int]]:
    """Equal counts by name, so that a kit written and the same kit read have one order."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def result_of(answers: Check, replays: Sequence[Figures]) -> Checked:
    """For compare, to be said beside verdicts on replays of the kit."""
    found = {"" if altered(run) else kit_replayed(run) for run in replays}
    if "" in found or len(found) != 1:
        raise UsageError(
            "--output", "needs replays of one kit, with its gaps and arrival, whose profile says so"
        )
    failing = tuple(
        f"{row_name(row.call, row.bytes, '')} ({WHY[row.verdict].removeprefix('no: ')})"
        for row in answers.rows
        if row.verdict not in STANDS and row.share >= SMALL
    )
    return Checked(
        found.pop(),
        answers.share(*STANDS),
        answers.share("stands"),
        answers.jobs,
        answers.replays,
        replays[0].library,
        answers.margin,
        failing[:MOST_NAMED],
    )


def sides_checked(words: list[Path]) -> list[list[Figures]]:
    """Runs of the job, and replays. In an experiment it is known which are which."""
    found = [side.runs for side in compare.read(compare.chosen(words), 0.0)]
    if compare.names_experiment(words):
        found.sort(key=lambda runs: bool(kit_replayed(runs[0])))
    if len(found) != 2:
        raise UsageError("replay", "check takes two sides: JOB... -- REPLAY..., or an experiment")
    return found


def check_runs(arguments: argparse.Namespace) -> None:
    jobs, replays = sides_checked(arguments.runs)
    answers = check(jobs, replays)
    if arguments.output:
        checked_write(
            arguments.output, result_of(answers, replays), files_mode(run.path for run in jobs)
        )
    passes, known = sorted(set(answers.passes)), answers.share(*WHY.keys() - {"unknown"})
    facts = (
        (
            "Replay",
            f"{units.counted(answers.replays, 'replay')} of "
            f"{'/'.join(map(str, passes))} {'pass' if passes == [1] else 'passes'} "
            f"({units.share(answers.made)} of the job's calls) against "
            f"{units.counted(answers.jobs, 'run')} of the job",
        ),
        (
            "Known",
            f"for {units.share(known)} of the job's time inside MPI; in the rest runs of "
            f"the job differ by more than {units.share(SCATTER)}, or too much to tell",
        ),
        (
            "Stands",
            f"for {units.share(answers.share(*STANDS) / (known or 1))} of that, "
            f"{units.share(answers.share('stands') / (known or 1))} by a test, within "
            f"{units.share(answers.margin)}",
        ),
    )
    columns = (
        column("call", lambda row: row.call),
        column("communicator", lambda row: units.visible(row.communicator)),
        column("bytes", lambda row: "" if row.bytes is None else units.size(row.bytes)),
        column("time of", lambda row: row.measure),
        column("count", lambda row: units.count(row.count)),
        column("of MPI", lambda row: units.share(row.share) if row.share else ""),
        column("job", lambda row: units.duration(row.job_ns)),
        column("replay", lambda row: units.duration(row.replay_ns)),
        column("change", lambda row: units.change(row.change)),
        column("within", lambda row: units.share(row.margin)),
        column("stands for it", lambda row: WHY[row.verdict], is_number=False),
    )
    common.show(
        arguments,
        None,
        common.Answer(
            answers.rows,
            CheckRow._fields,
            lambda: [common.Facts(facts), common.Rows(columns, answers.rows, MOST_ROWS, MORE)],
            nothing=str,
        ),
    )


RUN = {
    "kit": write_kit,
    "show": lambda arguments: print_kit(*kits.read(*arguments.runs)),
    "source": write_source,
    "check": check_runs,
}


COMMANDS = {
    "replay": Command(
        __doc__,
        (
            option("action", type=action, choices=tuple(RUN), help="what to do"),
            option(
                "runs",
                metavar="RUN",
                type=Path,
                nargs="*",
                help="a run (default: the newest here); a kit; JOB... -- REPLAY...",
            ),
            option(
                "-o",
                "--output",
                metavar="FILE",
                type=Path,
                help="the kit to write (RUN.kit); of source: the program (KIT.c); of check: its "
                "result, for compare (job.kit.check)",
            ),
            *render.ROWS,
        ),
        run,
        (
            ("The kit of the newest run", "hvprof-report replay kit -o job.kit"),
            ("What is in it", "hvprof-report replay show job.kit"),
            (
                "The same as a program, for a bug report",
                "hvprof-report replay source job.kit -o job.c",
            ),
            (
                "Do three replays stand for three runs of the job?",
                "hvprof-report replay check job-* -- replay-*",
            ),
            (
                "The same of an experiment, for compare",
                "hvprof-report replay check EXPERIMENT -o job.kit.check",
            ),
            (
                "Is it the library, or ranks that come late?",
                "hvprof-report compare --metric time --by size recorded-* -- together-*",
            ),
        ),
        ("compare",),
    )
}
