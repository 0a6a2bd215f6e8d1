"""Jobs that hang, under `hvprof-report stuck`: while they hang, and when they have been killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .harness import COMMPROF_RUN, REPORT, TIMEOUT_S, become_reaper, command_for, end_stragglers, unprofiled_environment
from .libraries import Mpi

WORLD = "MPI_COMM_WORLD"


class Report:
    """What `stuck` says of a run."""

    def __init__(self, run: Path) -> None:
        done = subprocess.run([REPORT, "stuck", "--json", "--after", "0", run], capture_output=True, text=True, check=False)
        self.status, self.errors = done.returncode, done.stderr
        self.rows = json.loads(done.stdout) if done.returncode == 0 else []

    def kind(self, kind: str) -> list[dict]:
        return [row for row in self.rows if row["kind"] == kind]

    @property
    def verdicts(self) -> list[str]:
        return [row["text"] for row in self.kind("verdict")]

    @property
    def waits(self) -> dict[int, tuple]:
        """By rank: the call, what it waits for, the collective, the ranks."""
        return {row["rank"]: (row["call"], row["awaited"], row["sequence"], row["waited_for"]) for row in self.kind("wait")}


@contextmanager
def hanging(mpi: Mpi, ranks: int, way: str, folder: Path) -> Iterator[Path]:
    """A job that hangs, for as long as the block lasts. Gives its run folder."""
    become_reaper()
    job = subprocess.Popen(
        [*mpi.mpirun, "-n", str(ranks), str(COMMPROF_RUN), *command_for(mpi, "hanging"), way],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=unprofiled_environment() | mpi.environment | {"COMMPROF_OUTPUT": str(folder / "run")},
        start_new_session=True,
    )
    try:
        yield folder / "run"
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        end_stragglers()


def kill_ranks(run: Path) -> None:
    export = subprocess.run([REPORT, "export", "--table", "rank", run], capture_output=True, text=True, check=True)
    for row in json.loads(export.stdout):
        os.kill(row["pid"], signal.SIGKILL)


def reported(run: Path, holds: Callable[[Report], bool]) -> Report:
    """What is said as soon as the condition holds."""
    patience_ends = time.monotonic() + TIMEOUT_S
    while time.monotonic() < patience_ends:
        report = Report(run)
        if holds(report):
            return report
    raise AssertionError(f"never came true; last: {report.verdicts} {report.waits} {report.errors}")


COMPUTES = r"(is|is or was|was killed,) outside MPI after {}(, for .*)?\."
WAYS = {
    "skipped_barrier": (
        dict.fromkeys(range(3), ("MPI_Barrier", None, 2, [3])),
        rf"Ranks 0-2 wait, directly or not, for rank 3, which {COMPUTES.format('MPI_Allreduce')}",
    ),
    "different_functions": (
        {0: ("MPI_Allreduce", None, 2, []), **dict.fromkeys(range(1, 4), ("MPI_Bcast", None, 2, []))},
        rf"Collective 2 on {WORLD} does not match: rank 0 called MPI_Allreduce \(8 B\), "
        r"ranks 1-3 called MPI_Bcast \(8 B, root 0\)\.",
    ),
    "different_sizes": (
        dict.fromkeys(range(3), ("MPI_Barrier", None, 6, [3])),
        rf"Collective 2 on {WORLD} does not match: rank 0 called MPI_Bcast \(4 B, root 0\), "
        r"ranks 1-3 called MPI_Bcast \(8 B, root 0\)\.",
    ),
    "circle": (
        {rank: ("MPI_Recv", None, None, [(rank + 1) % 4]) for rank in range(4)},
        r"A circle: 0 waits for 1, 1 waits for 2, 2 waits for 3, 3 waits for 0\.",
    ),
    "chain": (
        {rank: ("MPI_Recv", None, None, [rank + 1]) for rank in range(3)},
        rf"Ranks 0-2 wait, directly or not, for rank 3, which {COMPUTES.format('MPI_Allreduce')}",
    ),
    "nonblocking": (
        dict.fromkeys(range(3), ("MPI_Waitall", "MPI_Iallreduce", 3, [3])),
        rf"Ranks 0-2 wait, directly or not, for rank 3, which {COMPUTES.format('MPI_Iallreduce')}",
    ),
    "requests": (
        {rank: ("MPI_Wait", "MPI_Irecv", None, [rank + 1]) for rank in range(3)},
        rf"Ranks 0-2 wait, directly or not, for rank 3, which {COMPUTES.format('MPI_Allreduce')}",
    ),
    "sub_communicator": (
        {0: ("MPI_Barrier", None, 1, [2]), 2: ("MPI_Recv", None, None, [1]), 3: ("MPI_Barrier", None, 1, [1])},
        rf"Ranks 0,2-3 wait, directly or not, for rank 1, which {COMPUTES.format('MPI_Comm_split')}",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_job_that_hangs_is_seen_through_while_it_hangs_and_when_it_was_killed(mpi, tmp_path, way):
    waits, verdict = WAYS[way]
    with hanging(mpi, 4, way, tmp_path) as run:
        live = reported(run, lambda report: report.waits == waits)
        assert re.fullmatch(verdict, live.verdicts[0]), live.verdicts
        kill_ranks(run)
    dead = Report(run)
    assert dead.waits == waits
    assert re.fullmatch(verdict, dead.verdicts[0]), dead.verdicts
