"""A framework whose background thread makes all MPI calls, as Horovod's:
examples/background_thread, against its own log of when each rank had handed its gradients over."""

import subprocess
from functools import lru_cache
from statistics import fmean, median
from typing import NamedTuple

import pytest

from . import reporter
from .harness import REPOSITORY

RANKS, STEPS, LATE, DELAY_MS = 2, 30, 1, 80
WAIT = "wait for gradients"
SOURCE = REPOSITORY / "examples/background_thread/train.c"


class Logged(NamedTuple):
    forward_ns: int  # the forward pass had ended
    handed_ns: int  # all gradients were handed over
    reduced_ns: int  # all sums had come


@lru_cache
def compiled(mpi_name: str, mpicc: str) -> str:
    binary = REPOSITORY / "build/tests" / mpi_name / "example_background_thread"
    binary.parent.mkdir(parents=True, exist_ok=True)
    flags = [
        "-std=c11",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pthread",
        f"-I{REPOSITORY / 'include'}",
    ]
    subprocess.run([mpicc, *flags, "-o", str(binary), str(SOURCE)], check=True)
    return str(binary)


@pytest.fixture
def trained(profile, mpi):
    """trained(late, marks): the run, all ranks alike or one late in each forward pass."""

    def run(late: bool, marks: str):
        who = (LATE, DELAY_MS) if late else (-1, 0)
        return profile(compiled(mpi.name, mpi.mpicc), RANKS, *map(str, (STEPS, *who)), marks)

    return run


def log_of(run) -> dict[int, list[Logged]]:
    """By step, the ranks in order."""
    log: dict[int, list[Logged]] = {}
    for line in run.outcome.stdout.splitlines():
        step, rank, *times_ns = map(int, line.split()[1:])
        log.setdefault(step, [None] * RANKS)[rank] = Logged(*times_ns)
    return log


def logged_lead_ns(run, step: int, which: str) -> float:
    """By how much the late rank came after the mean of the others."""
    times = [getattr(own, which) for own in log_of(run)[step]]
    return times[LATE] - fmean(time for rank, time in enumerate(times) if rank != LATE)


def summary_of(run, *options: str) -> dict:
    (row,) = reporter.rows("steps", run.folder, *options)
    return row


def texts_of(run) -> list[str]:
    return [
        reporter.text(command, run.folder) for command in ("summary", "late", "steps", "advise")
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("late", [False, True], ids=["balanced", "late"])
@pytest.mark.parametrize("marks", ["none", "steps"])
def test_the_rank_that_hands_over_last_is_named_with_and_without_a_mark(trained, marks, late):
    run = trained(late, marks)
    (whole,) = reporter.rows("late", run.folder, "--by", "run")
    row = summary_of(run)
    by = "marks" if marks == "steps" else "negotiation"
    assert (row["delimited_by"], row["steps"]) == (by, STEPS)
    assert whole["late_ranks"] == row["slowest_ranks"]
    if late:
        assert (whole["late_mark"], whole["late_ranks"]) == ("negotiation", str(LATE))
        logged_ns = median(logged_lead_ns(run, step, "handed_ns") for step in log_of(run))
        assert row["slowest_lead_ns"] == pytest.approx(logged_ns, rel=0.05)
        for text in texts_of(run)[:3]:
            assert f"rank {LATE} hands its gradients over last in " in " ".join(text.split())
    else:
        assert row["slowest_ranks"] in (None, str(most_often_last(run)))


def step_bytes() -> int:
    return 4 * sum(
        100 + tensor if tensor % 2 else 2_000 * (tensor + 1) + tensor for tensor in range(24)
    )


@pytest.mark.nightly
def test_the_negotiation_is_recognised_and_described(trained):
    run = trained(True, "steps")
    row = summary_of(run)
    assert row["negotiation"] == "MPI_Allreduce"
    # the program's; a busy machine stretches it irregularly
    assert row["cycle_ns"] is None or row["cycle_ns"] >= 1_000_000
    (rounds, _), *_ = (sizes[8] for sizes in run.sizes("MPI_Allreduce"))
    # not all rounds are in steps
    assert row["rounds_per_step"] == pytest.approx(rounds / STEPS, rel=0.25)
    assert row["idle_rounds_share"] > 0.25
    sizes, *_ = run.sizes("MPI_Allreduce")
    bulk = {size: volume for size, (_, volume) in sizes.items() if size > 8}
    assert row["background_bulk_bytes"] == pytest.approx(sum(bulk.values()), rel=0.01)


@pytest.mark.nightly
def test_the_region_around_the_wait_is_the_verdict_and_the_exposed_communication(trained):
    run = trained(True, "regions")
    (late,) = reporter.rows("late", run.folder, "--by", "run")
    assert (late["verdict"], late["late_ranks"]) == ("marks", str(LATE))
    rows = {row["region"]: row for row in reporter.rows("regions", run.folder)}
    logged_ns = [
        sum(ranks[rank].reduced_ns - ranks[rank].handed_ns for ranks in log_of(run).values())
        for rank in range(RANKS)
    ]
    assert rows[WAIT]["visits"] == RANKS * STEPS and rows[WAIT]["count"] == 0
    assert rows[WAIT]["span_ns"] == pytest.approx(sum(logged_ns), rel=0.02)
    assert rows[WAIT]["span_max_ns"] == pytest.approx(max(logged_ns), rel=0.02)
    if summary_of(run)["delimited_by"]:
        assert summary_of(run)["wait_region"] == WAIT
        assert f"outside region '{WAIT}' + " in " ".join(reporter.text("steps", run.folder).split())


@pytest.mark.slow
def test_its_marks_and_its_bytes_are_counted(trained):
    run = trained(False, "steps")
    row = summary_of(run)
    assert (row["delimited_by"], row["steps"]) == ("marks", STEPS)
    sizes, *_ = run.sizes("MPI_Allreduce")
    bulk = sum(volume for size, (_, volume) in sizes.items() if size > 8)
    assert bulk == STEPS * step_bytes()


def most_often_last(run) -> int:
    last = [
        max(range(RANKS), key=lambda rank: ranks[rank].handed_ns)
        for step, ranks in log_of(run).items()
        if step > 1
    ]
    return max(set(last), key=last.count)
