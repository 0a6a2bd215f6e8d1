"""One job that a fault ends, and whether each of its calls is in the report.

The programs count their own calls (programs/ends.c): how many of a kind they had begun, and how
many had returned. The reporter's counts must lie between both, whatever happened: a call less is
lost, a call more is doubled.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from mpi.harness import COMMPROF_RUN, REPORT, TIMEOUT_S, command_for, end_stragglers, start
from mpi.libraries import Mpi

from . import memory_cgroup

RANKS = 2
PATIENCE_S = 1  # for ranks that outlive their launcher
LAUNCHER_S = 10  # for a launcher that outlives its ranks
POLL_S = 0.0001
COUNT = struct.Struct("<24sQQ")
# else it litters when it is killed
OPEN_MPI_FOLDERS = ("OMPI_MCA_orte_tmpdir_base", "OMPI_MCA_btl_vader_backing_directory")


class Count(NamedTuple):
    """A process's own count of its calls of a kind."""

    begun: int
    returned: int


def is_alive(pid: int) -> bool:
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            not in "ZX"
        )
    except OSError:
        return False


def counts_in(page: bytes) -> dict[str, Count]:
    return {
        name.rstrip(b"\0").decode(): Count(*numbers) for name, *numbers in COUNT.iter_unpack(page)
    }


class Fault(NamedTuple):
    """An end of a job. A range is drawn from once for each trial."""

    name: str
    what: str = "none"  # as ends.c calls it
    victims: str = "one"  # or all: the ranks that it strikes
    # before which of its calls; (1, 1): MPI_Init, (0, 0): MPI_Finalize
    calls: tuple[int, int] = (200, 2000)
    delay_ns: tuple[int, int] = (0, 100_000)
    rounds: int = 1_000_000
    threads: int = 0
    act: Callable[[Job], None] | None = None  # what is done to the job from outside
    # options of the interpreter, and what ends_in_python.py calls the fault
    python: tuple[str, ...] = ()
    memory_bytes: int = 0  # what all ranks together may use; 0: anything
    may_drop: bool = False  # calls that could not be recorded and are counted as such


class Outcome(NamedTuple):
    begun: int
    returned: int
    found: int
    ended_early: int  # ranks without MPI_Finalize
    complaints: list[str]


class Job:
    """A job under the profiler, while it runs and afterwards."""

    def __init__(
        self, mpi: Mpi, fault: Fault, chance: random.Random, folder: Path, prefix: list[str]
    ) -> None:
        self.fault, self.chance = fault, chance
        self.complaints: list[str] = []
        self.run_folder, self.truth_folder = folder / "run", folder / "truth"
        self.truth_folder.mkdir(parents=True)
        self.strikes_at = chance.randint(*fault.calls)
        victim = -1 if fault.victims == "all" else chance.randrange(RANKS)
        environment = {
            "TRUTH": str(self.truth_folder),
            "COMMPROF_OUTPUT": str(self.run_folder),
            "COMMPROF_QUIET": "on",
        }
        environment |= {name: str(folder) for name in OPEN_MPI_FOLDERS}
        if not fault.threads:
            environment["COMMPROF_MEMORY"] = "1M"  # full soon, so that it folds on and on
        self.process = start(
            mpi,
            RANKS,
            [*prefix, str(COMMPROF_RUN), *self.command(mpi, victim)],
            folder,
            environment,
        )

    def command(self, mpi: Mpi, victim: int) -> list[str]:
        fault = self.fault
        if fault.python:
            *options, how = fault.python
            interpreter, script = command_for(mpi, "ends_in_python")
            return [interpreter, *options, script, str(self.strikes_at), how, str(victim)]
        numbers = [str(self.strikes_at), str(victim), str(self.chance.randint(*fault.delay_ns))]
        return [
            *command_for(mpi, "ends"),
            str(fault.rounds),
            str(fault.threads),
            fault.what,
            *numbers,
        ]

    def processes(self) -> list[int]:
        return [int(path.name) for path in self.truth_folder.iterdir()]

    def truth(self) -> dict[int, dict[str, Count]]:
        """By process and call."""
        return {
            pid: counts_in((self.truth_folder / str(pid)).read_bytes()) for pid in self.processes()
        }

    def progress(self) -> int:
        """How many calls the process that is furthest has begun."""
        return max(
            (sum(count.begun for count in calls.values()) for calls in self.truth().values()),
            default=0,
        )

    def until(self, happens: Callable[[], bool]) -> None:
        """Waits for something that the job does; not for a job that has ended."""
        deadline = time.monotonic() + TIMEOUT_S
        while not happens() and self.process.poll() is None:
            assert time.monotonic() < deadline, f"{self.fault.name}: nothing happens"
            time.sleep(POLL_S)

    def signal(self, number: int, processes: list[int]) -> None:
        for pid in processes:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def may_go_on(self) -> bool:
        ranks = self.processes()
        return not ranks or any(map(is_alive, ranks))

    def end(self) -> None:
        """Some launchers wait for ever for ranks that were killed in MPI_Init; when all have gone
        they need not be waited for long."""
        deadline = time.monotonic() + TIMEOUT_S
        while self.process.poll() is None and time.monotonic() < deadline and self.may_go_on():
            time.sleep(POLL_S)
        try:
            self.process.wait(LAUNCHER_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        end_stragglers(PATIENCE_S)
        self.process.communicate()


def report(*arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(REPORT), *arguments], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    return done


def report_rows(run_folder: Path) -> tuple[list[dict], str]:
    """The tables that count, and what was said on stderr; no rows where nothing could be read."""
    tables = [word for table in ("rank", "cell", "peer") for word in ("--table", table)]
    done = report("export", "--json", *tables, str(run_folder))
    if done.returncode == 0:
        summary = report("summary", str(run_folder))
        assert summary.returncode == 0, summary.stderr
    return json.loads(done.stdout) if done.returncode == 0 else [], done.stderr


def found_in(rows: list[dict]) -> dict[int, Counter[str]]:
    """By process: how often each call was counted; messages to and from peers as 'MPI_Isend sent'
    and the like."""
    pid_of = {row["world_rank"]: row["pid"] for row in rows if row["table"] == "rank"}
    found: dict[int, Counter[str]] = {pid: Counter() for pid in pid_of.values()}
    for row in rows:
        if row["table"] == "cell" and row["measure"] == "call":
            found[pid_of[row["world_rank"]]][row["call"]] += row["count"]
        elif row["table"] == "peer":
            found[pid_of[row["world_rank"]]][f"{row['call']} {row['direction']}"] += row["count"]
    return found


def counted_as(call: str) -> list[str]:
    """Kinds under which a call is counted: itself, and each direction that its messages take."""
    directions = {
        "MPI_Isend": ["sent"],
        "MPI_Recv": ["received"],
        "MPI_Sendrecv": ["sent", "received"],
    }.get(call, [])
    return [call, *(f"{call} {direction}" for direction in directions)]


def complaints_about(
    truth: dict[int, dict[str, Count]], rows: list[dict], may_drop: bool
) -> Iterator[str]:
    found = found_in(rows)
    dropped = {row["pid"]: row["dropped_calls"] for row in rows if row["table"] == "rank"}
    for pid, calls in truth.items():
        for call, count in calls.items():
            for counted in counted_as(call):
                there = found.get(pid, Counter())[counted]
                if there < count.returned and not (
                    may_drop and there + dropped.get(pid, 0) >= count.returned
                ):
                    yield f"process {pid}: {count.returned - there} of {counted} lost"
                if there > count.begun:
                    yield f"process {pid}: {there - count.begun} of {counted} doubled"
    for pid, number in dropped.items():
        if number and not may_drop:
            yield f"process {pid}: {number} calls dropped"
    yield from (f"process {pid} is none of the job's" for pid in found.keys() - truth.keys())


def complaints_about_ranks(
    truth: dict[int, dict[str, Count]], rows: list[dict], said: str
) -> Iterator[str]:
    """A rank that is not there must be named."""
    there = {row["world_rank"] for row in rows if row["table"] == "rank"}
    if rows and there != set(range(RANKS)) and "is missing" not in said:
        yield f"only ranks {there} are there, and nobody says so"
    if not rows and any(count.returned for calls in truth.values() for count in calls.values()):
        yield f"nothing could be read: {said}"


def judge(job: Job) -> Outcome:
    """Compares what the report finds now with the truth. The processes must have
    stopped or ended."""
    rows, said = report_rows(job.run_folder)
    truth = job.truth()
    complaints = [
        *job.complaints,
        *complaints_about(truth, rows, job.fault.may_drop),
        *complaints_about_ranks(truth, rows, said),
    ]
    every = [count for calls in truth.values() for count in calls.values()]
    found = sum(
        found_in(rows).get(pid, Counter())[call] for pid, calls in truth.items() for call in calls
    )
    finalized = sum(row["ended"] == "finalize" for row in rows if row["table"] == "rank")
    return Outcome(
        sum(count.begun for count in every),
        sum(count.returned for count in every),
        found,
        RANKS - finalized,
        complaints,
    )


def tried(mpi: Mpi, fault: Fault, chance: random.Random, folder: Path) -> Outcome:
    """One trial, in a folder that is kept if there is something to complain about."""
    with (
        memory_cgroup.limited(fault.memory_bytes)
        if fault.memory_bytes
        else nullcontext([]) as prefix
    ):
        job = Job(mpi, fault, chance, folder, prefix)
        try:
            if fault.act:
                fault.act(job)
        finally:
            job.end()
    outcome = judge(job)
    if not outcome.complaints:
        shutil.rmtree(folder)
    return outcome
