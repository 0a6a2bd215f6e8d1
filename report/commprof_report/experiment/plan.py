"""The folder of an experiment: what was planned, which runs have ended, which one is next.

experiment.json has the plan. runs.jsonl has one object in each line, added and synchronized when a
run has ended; a run without a line was interrupted, and never counts. Blocks are numbered in the
order in which they begin. A block in which a run failed, or that was interrupted, is not compared;
another one, with a number of its own, is run in its place, since runs of a block must be neighbours
in time. Beside each run are its log and the measurements of `commprof-run --canary` before it: how
fast each of its hosts was.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, BinaryIO

from ..base import (
    MOST_BYTES,
    ReportError,
    end_with_parent,
    format_read,
    json_parse,
    json_read,
    list_in,
    number_in,
    regular_open,
    text_in,
    units,
    whole_in,
    written_whole,
)

EXPERIMENT, RUNS = "experiment.json", "runs.jsonl"
KIT, CHECK = "job.kit", "job.kit.check"  # which arms replay, and how well that stands for the job
FORMAT, VERSION = "commprof-experiment", 1
OK, FAILED, WARM_UP = "ok", "failed", "warm-up"
# a run that was OK, and whose folder somebody has removed; its block is repeated
REMOVED = "removed"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,39}")  # of an arm, and of its folders
BLOCK = re.compile(r"block-(\d{1,6})")
MOST_BLOCKS = 999_999
MOST_ARMS = 100
MOST = 10**15  # of any other number


# command: for a shell; {} stands for commprof-run. of: the arm whose command is run once more in
# each block: as a control, or without the profiler (is_bare)
Arm = namedtuple("Arm", "name command of is_bare", defaults=["", False])

# blocks: complete ones that are wanted. directory: where the commands are run; empty: in the
# current one. kit: SHA-256 of the one that arms replay; empty: they have programs of their own
Plan = namedtuple("Plan", "arms blocks seed directory kit", defaults=["", ""])

# A run that has ended. block: 0 for the first run of each arm, which is discarded. why: it failed
Run = namedtuple("Run", "block arm folder status seconds why")


def arm_name(name: str) -> str:
    """The nearest name that an arm can have."""
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", name).lstrip("_.+-")[:40] or "arm"


def is_experiment(folder: Path) -> bool:
    return (folder / EXPERIMENT).is_file()


def plan_read(folder: Path) -> Plan:
    path = folder / EXPERIMENT
    if not path.exists():
        raise ReportError(folder, f"is no experiment: it has no {EXPERIMENT}")
    return format_read(path, FORMAT, VERSION, _plan)


def _plan(values: Any) -> Plan:
    arms = [
        Arm(
            text_in(each, "name"),
            text_in(each, "command"),
            text_in(each, "of", ""),
            bool(each.get("is_bare")),
        )
        for each in list_in(values, "arms")
    ]
    names = [arm.name for arm in arms]
    if (
        not 0 < len(names) <= MOST_ARMS
        or len(set(names)) < len(names)
        or not all(map(NAME.fullmatch, names))
    ):
        raise ValueError(f"names of arms: {units.shortened(', '.join(names), 80) or 'none'}")
    return Plan(
        arms,
        whole_in(values, "blocks", 1, MOST, 1),
        whole_in(values, "seed", -MOST, MOST, 0),
        text_in(values, "directory", ""),
        text_in(values, "kit", ""),
    )


def plan_write(folder: Path, plan: Plan) -> None:
    """Whoever reads the file finds all of it, or what was there before."""
    arms = [arm._asdict() for arm in plan.arms]
    values = {"format": FORMAT, "version": VERSION, **plan._asdict(), "arms": arms}
    with written_whole(folder / EXPERIMENT, 0o666) as file:
        print(json.dumps(values, indent=1), file=file, flush=True)
        os.fsync(file.fileno())


def runs_read(folder: Path) -> list[Run]:
    """A line that is not whole is skipped."""
    path, found = folder / RUNS, []
    if path.exists():
        with regular_open(path) as file:
            while line := file.readline(MOST_BYTES):
                with suppress(ValueError):
                    found.append(_run(json_parse(line)))
    return found


def _run(values: Any) -> Run:
    return Run(
        block=whole_in(values, "block", 0, MOST_BLOCKS),
        arm=text_in(values, "arm"),
        folder=text_in(values, "folder"),
        status=text_in(values, "status"),
        seconds=number_in(values, "seconds", 0, MOST, 0),
        why=text_in(values, "why", ""),
    )


def runs_of(folder: Path, plan: Plan) -> list[Run]:
    """Runs that were read, of which some may be REMOVED by now."""
    bare = {arm.name for arm in plan.arms if arm.is_bare}
    return [
        run._replace(status=REMOVED)
        if run.status in (OK, WARM_UP)
        and run.arm not in bare
        and not (folder / run.folder).exists()
        else run
        for run in runs_read(folder)
    ]


def run_add(folder: Path, run: Run) -> None:
    """On the disk before the next run begins."""
    with open(folder / RUNS, "a+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        begin = b"\n" if file.read(1) not in (b"", b"\n") else b""
        file.write(begin + json.dumps(run._asdict()).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Only one process runs an experiment."""
    with open(folder / RUNS, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ReportError(folder, "another commprof-experiment is running it") from None
        yield


def complete_blocks(plan: Plan, runs: Sequence[Run]) -> list[int]:
    """Blocks with a run of each arm."""
    done = {(run.block, run.arm) for run in runs if run.status == OK}
    return sorted(
        {block for block, _ in done if all((block, arm.name) in done for arm in plan.arms)}
    )


def next_block(folder: Path, runs: Sequence[Run]) -> int:
    """A number that no run and no folder has, also of an interrupted block."""
    found = filter(None, (BLOCK.fullmatch(path.name) for path in folder.iterdir()))
    number = max([0, *(int(match[1]) for match in found), *(run.block for run in runs)]) + 1
    if number > MOST_BLOCKS:
        raise ReportError(folder, f"has a block {MOST_BLOCKS:,}: no number is left for another")
    return number


def order_of(plan: Plan, place: int) -> list[Arm]:
    """The order of the arms in the place-th complete block, from 0: the rows of a Williams square,
    in which each arm follows each other one equally often; of two arms A B, B A, A B, ... The seed
    decides which arm is which."""
    arms, square = Random(plan.seed).sample(plan.arms, len(plan.arms)), williams(len(plan.arms))
    return [arms[number] for number in square[place % len(square)]]


def williams(size: int) -> list[list[int]]:
    """Williams, Australian Journal of Scientific Research A 2 (1949) 149. Of an odd number of arms
    twice as many rows."""
    first = [0] + [(place + 1) // 2 if place % 2 else size - place // 2 for place in range(1, size)]
    rows = [[(number + shift) % size for number in first] for shift in range(size)]
    return rows if size % 2 == 0 else rows + [row[::-1] for row in rows]


# Times of work that is always the same; see src/tools/canary.h.
Canary = namedtuple("Canary", "arithmetic_ns memory_ns")


def folder_of(run: Path) -> Path:
    """Beside the run folder."""
    return run.with_name(f"{run.name}.canary")


def canaries_read(run: Path) -> dict[str, Canary]:
    """By host. A file that is not whole is skipped."""
    found = {}
    for path in sorted(folder_of(run).glob("*")):
        with suppress(ReportError, ValueError):
            values = json_read(path)
            found[path.name] = Canary(
                *(number_in(values, name, 1, MOST) for name in Canary._fields)
            )
    return found


def program_find(name: str) -> str:
    """Beside this program, as built or installed; else in PATH."""
    here = Path(os.path.abspath(sys.argv[0])).parent
    places = (here / name, here.parent / "build/bin" / name, name)
    found = next((path for place in places if (path := shutil.which(place))), None)
    if found is None:
        raise ReportError(name, f"is neither beside {Path(sys.argv[0]).name} nor in PATH")
    return str(found)


PLACEHOLDER = "{}"
# no program follows, but the end, an option, or what a shell reads
WITHOUT_PROGRAM = re.compile(re.escape(PLACEHOLDER) + r"\s*(?:$|[-|&;<>()'\"])")
PATIENCE_S = 10  # between asking a job to end and killing it
# passes on that it is to end, and waits for that
SHELL = "trap 'trap \"\" TERM; kill 0; wait $!' TERM; (%s\n) & wait $!"


def launch(
    experiment: Path,
    block: int,
    arm: Arm,
    commprof_run: str,
    replay: str,
    directory: str,
    timeout_s: float | None,
) -> Run:
    """Runs the arm's command in a shell in the directory (empty: the current one), with the
    launcher's output in a log beside the run folder. Before the run, the hosts are measured.
    replay: the command of an arm that has no program; empty: each has one."""
    folder = experiment / f"block-{block:02d}" / arm.name
    folder.parent.mkdir(exist_ok=True)
    begins = {"--canary": folder_of(folder.resolve())}
    if not arm.is_bare:
        begins["--output"] = folder.resolve()
    profiled = " ".join(
        shlex.join([commprof_run, option, str(path)]) for option, path in begins.items()
    )
    if replay and is_replay(arm.command):
        profiled = f"{profiled} {replay}"
    begin = time.monotonic()
    # a first run that failed keeps its own
    with open(folder.parent / f"{arm.name}.log", "ab") as log:
        why = ended(arm.command.replace(PLACEHOLDER, profiled), directory or None, log, timeout_s)
    if not why and not arm.is_bare and not [*folder.glob("rank-*"), *folder.glob("node-*.tar")]:
        why = "it wrote no profile"
    return Run(
        block,
        arm.name,
        str(folder.relative_to(experiment)),
        FAILED if why else OK,
        time.monotonic() - begin,
        why,
    )


def is_replay(command: str) -> bool:
    """In an experiment with a kit, an arm without a program replays it."""
    return bool(WITHOUT_PROGRAM.search(command))


def ended(command: str, directory: str | None, log: BinaryIO, timeout_s: float | None) -> str:
    """Why the command failed; empty: it did not."""
    job = subprocess.Popen(
        ["/bin/sh", "-c", SHELL % command],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        cwd=directory,
        start_new_session=True,
        # else it would disturb the runs after resume
        preexec_fn=partial(end_with_parent, signal.SIGTERM, os.getpid()),
    )
    try:
        status = job.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return f"it took more than {timeout_s:g} s"
    finally:
        _end(job)
    return "" if status == 0 else f"exit status {status}" if status > 0 else f"signal {-status}"


def _end(job: subprocess.Popen) -> None:
    if job.poll() is not None:
        return
    job.terminate()
    try:
        job.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
