"""The job's communication as a kit, and how well its replays stand for it.

A kit has the calls of all ranks with their sizes, datatypes, operations, communicators and tags,
and the times in between; no names, paths, arguments, hosts and no data. commprof-replay(1) makes
these calls again, on any MPI library, without the job. The kit covers the longest time in which
all calls of all ranks were sampled; what it leaves out is listed.

- kit RUN -o FILE writes the kit of a run. COMMPROF_SAMPLES=1000000 makes room for more calls.
- show FILE says what is in a kit, after checking it.
- check JOB... -- REPLAY... says for which calls the replays stand: calls and bytes of each rank
  must be equal in each pass, and the mean time within 10 %, or as near as runs of the job are to
  each other. From four runs of each on, made in turns, a test of equivalence may show it; where it
  does not, the estimate counts, and is called one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..base import units
from ..base.aside import renamed_whole
from ..base.errors import ReportError, UsageError
from ..compare import sides
from ..display import tables
from ..display.tables import Column
from ..replay import kit as kits
from ..replay.check import CheckRow, check
from ..replay.from_run import kit_of
from . import common, compare

EXAMPLES = (
    ("The kit of the newest run", "hvprof-report replay kit -o job.kit"),
    ("What is in it", "hvprof-report replay show job.kit"),
    ("Do three replays stand for three runs of the job?",
     "hvprof-report replay check job-* -- replay-*"),
)
SEE_ALSO = ("compare",)
ACTIONS = ("kit", "show", "check")
MOST_ROWS = 24
WHY = {
    "stands": "yes", "near": "yes, as an estimate", "unknown": "too few runs to tell",
    "longer": "no: longer", "shorter": "no: shorter", "other calls": "no: other calls",
    "absent": "not replayed",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=ACTIONS, help="what to do")
    parser.add_argument(
        "runs", metavar="RUN", type=Path, nargs="*",
        help="a run (default: the newest here); a kit; JOB... -- REPLAY...",
    )
    parser.set_defaults(no_cache=False)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="the kit to write (RUN.kit)"
    )
    tables.add_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    if arguments.action == "check":
        check_runs(arguments)
        return
    if tables.is_for_scripts(arguments):
        raise UsageError("replay", f"{arguments.action} has no tables; check has")
    if arguments.action == "show":
        if len(arguments.runs) != 1:
            raise UsageError("replay", "show takes one kit")
        print_kit(*kits.read(arguments.runs[0]))
        return
    arguments.run = arguments.runs
    run = common.open_noted(arguments, with_samples=True, most_samples=None)
    if run.missing or run.profiled:
        raise ReportError(run.path, "has not all ranks of its job; a kit needs them")
    kit = kit_of(run)
    if not kit.made:
        raise ReportError(
            run.path, "has no calls that can be made again in a time in which all calls of all "
            "ranks were sampled (COMMPROF_SAMPLES)",
        )
    output = arguments.output or Path(f"{run.path.resolve().name}.kit")
    with renamed_whole(output, run.mode) as aside:
        digest = kits.write(kit, aside)
    common.print_line(f"{output}: {units.volume(output.stat().st_size)}")
    print_kit(kit, digest)


def print_kit(kit: kits.Kit, digest: str) -> None:
    made = kit.made
    total, left = sum(made.values()), sum(kit.left_out.values())
    common.print_line(
        f"Kit             {units.counted(total, 'call')} of {units.counted(kit.ranks, 'rank')} in "
        f"{units.duration(kit.window_ns)}, recorded under {kit.library}"
    )
    print(f"SHA-256         {digest}")
    print(f"Calls           {counts_text(made.most_common()) or 'none'}")
    if kit.late:
        print(
            f"Completed last  {counts_text(kit.late.most_common())}: another thread, or nobody, "
            "completed them in the job"
        )
    if not left:
        print("Left out        nothing")
        return
    print(
        f"Left out        {units.counted(left, 'call')}, {units.share(left / (total + left))} of "
        "those of that time"
    )
    for (name, why), calls in kit.left_out.most_common():
        common.print_line(f"  {name} {calls:,}: {why}")


def counts_text(counts: list[tuple[str, int]]) -> str:
    return units.visible(", ".join(f"{name} {count:,}" for name, count in counts))


def check_runs(arguments: argparse.Namespace) -> None:
    paths = sides.paths_split(arguments.runs, Path(compare.SEPARATOR))
    if len(paths) != 2:
        raise UsageError("replay", "check takes two sides: JOB... -- REPLAY...")
    jobs, replays = compare.read(sides.sides_named(paths), 0.0)
    answers = check(jobs.runs, replays.runs)
    if tables.is_for_scripts(arguments):
        tables.write_rows(arguments, answers.rows, CheckRow._fields)
        return
    passes = sorted(set(answers.passes))
    print(
        f"Replay          {units.counted(answers.replays, 'replay')} of "
        f"{'/'.join(map(str, passes))} {'pass' if passes == [1] else 'passes'} against "
        f"{units.counted(answers.jobs, 'run')} of the job"
    )
    print(
        f"Stands          for {units.share(answers.share)} of the job's time inside MPI, "
        f"{units.share(answers.tested_share)} by a test, the rest as an estimate"
    )
    print()
    columns = (
        Column("call", lambda row: row.call),
        Column("communicator", lambda row: units.visible(row.communicator)),
        Column("bytes", lambda row: "" if row.bytes is None else units.size(row.bytes)),
        Column("time of", lambda row: row.measure),
        Column("count", lambda row: units.count(row.count)),
        Column("of MPI", lambda row: units.share(row.share) if row.share else ""),
        Column("job", lambda row: units.duration(row.job_ns)),
        Column("replay", lambda row: units.duration(row.replay_ns)),
        Column("change", lambda row: units.change(row.change)),
        Column("within", lambda row: units.share(row.margin)),
        Column("at p50", lambda row: units.change(row.p50_change)),
        Column("stands for it", lambda row: WHY[row.verdict], is_number=False),
    )
    print(tables.text_table(columns, answers.rows[:MOST_ROWS]))
    if len(answers.rows) > MOST_ROWS:
        print(f"... and {len(answers.rows) - MOST_ROWS:,} more rows; --csv has them all.")
