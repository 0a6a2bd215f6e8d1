"""Jobs that hang, under `hvprof-report stuck`: while they hang, and when they have been killed."""

from __future__ import annotations

import contextlib
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

from . import reporter
from .harness import COMMPROF_RUN, TIMEOUT_S, command_for, end_stragglers, start
from .libraries import Mpi

WORLD = "MPI_COMM_WORLD"


class Report:
    """Report of `stuck` on a run."""

    def __init__(self, run: Path, *after: str) -> None:
        said = reporter.answer("stuck", "--json", *after, run)
        self.errors = said.stderr
        self.rows = json.loads(said.stdout) if said.exit_status == 0 else []
        self.verdicts = [row["text"] for row in self.kind("verdict")]
        sure = [row for row in [*self.kind("awaited"), *self.kind("circle")] if row["is_sure"]]
        # ranks that the others surely wait for, or that surely wait for each other
        self.blamed = {rank for row in sure for rank in row.get("waited_for", row.get("ranks"))}
        # by rank: the call, what it waits for, the collective, the ranks
        self.waits = {
            row["rank"]: (row["call"], row["request_call"], row["sequence"], row["waited_for"])
            for row in self.kind("wait")
        }

    def kind(self, kind: str) -> list[dict]:
        return [row for row in self.rows if row["kind"] == kind]


@contextmanager
def hanging(mpi: Mpi, ranks: int, way: str, folder: Path) -> Iterator[Path]:
    """A job that hangs, for as long as the block lasts. Gives its run folder."""
    with started(mpi, ranks, way, folder):
        yield folder / "run"


@contextmanager
def started(mpi: Mpi, ranks: int, way: str, folder: Path) -> Iterator[subprocess.Popen]:
    """Ranks that wait for each other keep all cores busy; who looks at them goes first."""
    launcher = mpi._replace(mpirun=("nice", "-n", "19", *mpi.mpirun))
    command = [str(COMMPROF_RUN), *command_for(mpi, "hanging"), way]
    job = start(launcher, ranks, command, folder, {"COMMPROF_OUTPUT": str(folder / "run")})
    try:
        yield job
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        end_stragglers()


def rows_of(run: Path, *words: str) -> list[dict]:
    said = reporter.answer(*words, run)
    return json.loads(said.stdout) if said.exit_status == 0 else []


def kill_ranks(run: Path, *which: int) -> None:
    """Kills the given ranks, or all."""
    for row in rows_of(run, "export", "--table", "rank"):
        if not which or row["world_rank"] in which:
            # the launcher ends the others once the first is gone
            with contextlib.suppress(ProcessLookupError):
                os.kill(row["pid"], signal.SIGKILL)


def reported(run: Path, holds: Callable[[Report], object]) -> Report:
    """The report, as soon as the condition holds."""
    patience_ends = time.monotonic() + TIMEOUT_S
    while time.monotonic() < patience_ends:
        report = Report(run, "--after", "0")
        if holds(report):
            return report
    raise AssertionError(f"never came true; last: {report.verdicts} {report.waits} {report.errors}")


ALREADY = r"(is|is or was|was) outside MPI after {}(, for .*|, and began or ended .*)?\."
FOR_3 = f"Ranks 0-2 wait, directly or not, for rank 3, which {ALREADY}"


def of(ranks, *wait):
    return dict.fromkeys(ranks, wait)


WAYS = {
    "skipped_barrier": (of(range(3), "MPI_Barrier", None, 2, [3]), FOR_3.format("MPI_Allreduce")),
    "different_functions": (
        of([0], "MPI_Allreduce", None, 2, []) | of(range(1, 4), "MPI_Bcast", None, 2, []),
        rf"Collective 2 on {WORLD} does not match: rank 0 called MPI_Allreduce \(8 B\), "
        r"ranks 1-3 called MPI_Bcast \(8 B, root 0\)\.",
    ),
    "different_sizes": (
        of(range(3), "MPI_Barrier", None, 6, [3]),
        rf"Collective 2 on {WORLD} does not match: rank 0 called MPI_Bcast \(4 B, root 0\), "
        r"ranks 1-3 called MPI_Bcast \(8 B, root 0\)\.",
    ),
    "late_root": (
        of((1, 2), "MPI_Bcast", None, 2, [0]),
        f"Ranks 1-2 wait, directly or not, for rank 0, which {ALREADY.format('MPI_Allreduce')}",
    ),
    "circle": (
        {rank: ("MPI_Recv", None, None, [(rank + 1) % 4]) for rank in range(4)},
        r"A circle: 0 waits for 1, 1 waits for 2, 2 waits for 3, 3 waits for 0\.",
    ),
    "chain": (
        {rank: ("MPI_Recv", None, None, [rank + 1]) for rank in range(3)},
        FOR_3.format("MPI_Allreduce"),
    ),
    "nonblocking": (
        of(range(3), "MPI_Waitall", "MPI_Iallreduce", 3, [3]),
        FOR_3.format("MPI_Iallreduce"),
    ),
    "requests": (
        {rank: ("MPI_Wait", "MPI_Irecv", None, [rank + 1]) for rank in range(3)},
        FOR_3.format("MPI_Allreduce"),
    ),
    "sub_communicator": (
        of([0], "MPI_Barrier", None, 1, [2])
        | of([2], "MPI_Recv", None, None, [1])
        | of([3], "MPI_Barrier", None, 1, [1]),
        f"Ranks 0,2-3 wait, directly or not, for rank 1, which {ALREADY.format('MPI_Comm_split')}",
    ),
}


# Others are slow: tests/report/test_stuck.py shows each way's verdict from positions written down.
QUICK = {"skipped_barrier", "different_functions", "circle", "requests"}


@pytest.mark.parametrize(
    "way", [way if way in QUICK else pytest.param(way, marks=pytest.mark.slow) for way in WAYS]
)
def test_a_job_that_hangs_is_seen_through_while_it_hangs_and_when_it_was_killed(mpi, tmp_path, way):
    waits, verdict = WAYS[way]
    with hanging(mpi, 4, way, tmp_path) as run:
        # ledgers of a job that starts are read one after the other: a rank may be seen in MPI_Init
        reported(run, lambda live: live.waits == waits and re.fullmatch(verdict, live.verdicts[0]))
        kill_ranks(run)
    dead = Report(run, "--after", "0")
    assert dead.waits == waits
    assert re.fullmatch(verdict, dead.verdicts[0]), dead.verdicts


CUT_OFF = "ended without MPI_Finalize: killed, or left by _exit or exec."


def killed(report: Report) -> list[str]:
    return [row["text"] for row in report.kind("verdict") if row["what"] == "killed"]


def go_on(run: Path, ranks: int) -> bool:
    """Whether all ranks have made some steps."""
    rows = rows_of(run, "ranks", "--per-rank", "--json")
    return len(rows) == ranks and all(row["count"] > 100 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("what", ["the ranks", "the launcher", "one rank"])
def test_a_healthy_job_that_was_killed_blames_nobody_but_the_rank_that_was(
    mpi, tmp_path, ranks, what
):
    run = tmp_path / "run"
    with started(mpi, ranks, "healthy", tmp_path) as job:
        reported(run, lambda _: go_on(run, ranks))
        if what == "the launcher":
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
            end_stragglers(0)  # ranks that outlive it
        elif what == "the ranks":
            kill_ranks(run)
        else:
            kill_ranks(run, ranks - 1)
            job.wait()  # the launcher ends the others
    dead = Report(run)
    if what == "one rank":
        assert dead.blamed <= {ranks - 1}, dead.verdicts
        return
    assert dead.blamed == set(), dead.verdicts
    states = {row["state"] for row in rows_of(run, "ranks", "--per-rank", "--json")}
    if states == {"killed"}:  # some MPI libraries leave by exit when their launcher is gone
        (text,) = killed(dead)
        unknown = "Nothing shows that one ended first or hung: "
        assert text.startswith(f"All {ranks} ranks {CUT_OFF} {unknown}")


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.slow), 4])
def test_a_hang_that_nothing_shows_to_have_lasted_is_told_as_a_possibility(mpi, tmp_path, ranks):
    with hanging(mpi, ranks, "skipped_barrier", tmp_path) as run:
        reported(run, lambda report: report.blamed == {ranks - 1})
        kill_ranks(run)
    dead = Report(run)
    assert dead.blamed == set() and len(killed(dead)) == 1
    (awaited,) = dead.kind("awaited")
    assert (awaited["waited_for"], awaited["waiting"]) == ([ranks - 1], list(range(ranks - 1)))
    assert dead.verdicts[1].startswith("If the job hung before that: ")


AFTER = ("--after", "0.05")


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.slow), 4])
def test_a_hang_that_lasted_while_another_rank_went_on_is_named_after_the_job_was_killed(
    mpi, tmp_path, ranks
):
    def is_quiet(_: Report) -> bool:
        since = {
            row["rank"]: row["doing_since_unix_ns"]
            for row in rows_of(run, "ranks", "--per-rank", "--json")
        }
        return (
            len(since) == ranks
            and None not in since.values()
            and all(since[0] - since[rank] > 100_000_000 for rank in range(1, ranks))
        )

    with hanging(mpi, ranks, "polling", tmp_path) as run:
        reported(run, is_quiet)
        kill_ranks(run)
    dead = Report(run, *AFTER)
    if ranks == 2:  # nobody waits for the one that hangs
        assert re.search(
            rf"All 2 ranks {CUT_OFF} Rank 1 went quiet .* before the others: ended first, or "
            r"hung\.",
            killed(dead)[0],
        )
    else:
        assert dead.blamed == {ranks - 1}
        assert re.match(
            r"Ranks 1-2 wait, directly or not, for rank 3, which was outside MPI after "
            r"MPI_Allreduce, and",
            dead.verdicts[0],
        )
        assert killed(dead) == [f"All 4 ranks {CUT_OFF}"]
