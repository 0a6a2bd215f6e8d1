"""Waiting for messages, with real ranks: against what the program's own clock says of when each
rank posted its message and returned."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from . import reporter
from .harness import TRIES, Run

pytestmark = pytest.mark.slow

ROUNDS, BUSY_MS = 24, 20
EAGER, RENDEZVOUS = 64, 1 << 20
CALLS = {
    "blocking": ("MPI_Send", "MPI_Recv"),
    "nonblocking": ("MPI_Isend", "MPI_Irecv"),
    "persistent": ("MPI_Send_init", "MPI_Recv_init"),
    "exchange": ("MPI_Sendrecv",),
    "wildcard": ("MPI_Isend", "MPI_Irecv"),
    "started-exchange": ("MPI_Isendrecv",),
    "probed": ("MPI_Send", "MPI_Probe"),
    "matched": ("MPI_Send", "MPI_Mprobe"),
}
COMPLETING = {
    "blocking": (),
    "exchange": (),
    "persistent": ("MPI_Start", "MPI_Waitall"),
    "probed": ("MPI_Recv",),
    "matched": ("MPI_Imrecv", "MPI_Waitall"),
}
EXCHANGES = ("exchange", "started-exchange")
SENDER, RECEIVER, BOTH = 0, 1, -1


class Reading(NamedTuple):
    """Readings of the program's clock: around the call that posts a message (blocking ones: before
    it, twice), and around the one that completes it."""

    before_post_ns: int
    after_post_ns: int
    before_wait_ns: int
    after_wait_ns: int


@pytest.fixture(scope="module", params=[EAGER, RENDEZVOUS], ids=["eager", "rendezvous"])
def size(request):
    return request.param


@pytest.fixture(scope="module", params=[SENDER, RECEIVER], ids=["late-sender", "late-receiver"])
def late(request):
    return request.param


@pytest.fixture(scope="module", params=list(CALLS))
def how(request):
    return request.param


@pytest.fixture(scope="module")
def job(profile, mpi, late, how, size):
    if how in ("probed", "matched") and size == RENDEZVOUS:
        pytest.skip("the sender also waits for the receive that follows the probe")
    if how == "started-exchange":
        mpi.require("MPI_Isendrecv")
    return profile("late_messages", 2, str(late), how, str(size), str(BUSY_MS), str(ROUNDS))


def rounds_of(run: Run) -> list[list[Reading]]:
    """By round, of each rank in order."""
    rounds: list[dict[int, Reading]] = [{} for _ in range(ROUNDS)]
    for line in run.outcome.stdout.splitlines():
        word, *fields = line.split()
        if word == "reading":
            turn, rank, *readings = map(int, fields)
            rounds[turn][rank] = Reading(*readings)
    return [[of_rank[rank] for rank in sorted(of_rank)] for of_rank in rounds]


def waited_ns(rank: int, own: Reading, other: Reading, how: str) -> int:
    """As docs/SCHEMA.md defines it."""
    is_buffered = (
        rank == SENDER and how not in EXCHANGES and own.after_wait_ns <= other.before_post_ns
    )
    return (
        0 if is_buffered
        else max(0, min(other.before_post_ns, own.after_wait_ns) - own.before_wait_ns)
    )


def between_ns(run: Run, how: str) -> int:
    """How much time the program's readings contain that none of its calls took: no wait is off by
    more."""
    readings = [reading for of_round in rounds_of(run) for reading in of_round]
    read_ns = sum(reading.after_wait_ns - reading.before_post_ns for reading in readings)
    calls = [
        call for call in (*CALLS[how], *COMPLETING.get(how, ("MPI_Waitall",)))
        if not call.endswith("_init")
    ]
    cells = [cell for rank in range(run.ranks) for call in calls for cell in run.cells(rank, call)]
    return read_ns - sum(cell.total_ns for cell in cells if cell.measure == "call")


def test_waiting_is_within_10_percent_of_what_the_program_s_own_clock_says(job, how):
    calls = ",".join(CALLS[how])
    rows = reporter.rows_of_ended("late", job.folder, "--by", "rank", "--call", calls)
    for rank, row in enumerate(rows):
        truth_ns = sum(
            waited_ns(rank, of_round[rank], of_round[1 - rank], how) for of_round in rounds_of(job)
        )
        assert abs(row["wait_ns"] - truth_ns) <= 0.1 * truth_ns + between_ns(job, how)
        assert row["message_calls"] == ROUNDS


def test_the_late_rank_costs_most_and_all_is_matched(job, late):
    ranks = reporter.rows_of_ended("late", job.folder)
    assert max(ranks, key=lambda row: row["cost_ns"])["rank"] == late
    (row,) = reporter.rows_of_ended("late", job.folder, "--by", "run")
    assert (row["unmatched"], row["unsure"], row["uncompleted"]) == (0, 0, 0)
    assert row["coverage"] > 0.9


def test_the_kind_of_waiting_is_the_planted_one(job, late, how, size):
    states = [
        row["wait_state"]
        for row in reporter.rows_of_ended(
            "late", job.folder, "--by", "state", "--call", ",".join(CALLS[how])
        )
    ]
    if how in EXCHANGES:
        assert states[0] in ("late sender", "late receiver")
    elif late == SENDER:
        assert states[0] == "late sender"
    elif size == RENDEZVOUS:  # an eager message is buffered
        assert states[0] == "late receiver"


def test_ranks_that_all_compute_as_long_name_nobody(profile):
    """Other work on the machine may make a rank truly late: then again."""
    named = []
    for attempt in range(TRIES):
        run = profile(
            "late_messages", 2, str(BOTH), "exchange", str(EAGER), "5", "48",
            env={"ATTEMPT": str(attempt)},
        )
        (row,) = reporter.rows_of_ended("late", run.folder, "--by", "run")
        assert row["unmatched"] == 0
        named.append(row["late_ranks"])
        if not named[-1]:
            return
    pytest.fail(f"ranks named late: {named}")
