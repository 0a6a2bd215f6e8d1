"""Waiting for messages, with real ranks: against what the program's own clock says of when each
rank posted its message and returned."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from . import reporter
from .harness import Run

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
SENDER, RECEIVER = 0, 1


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
def play(profile, mpi, how, size):
    """play(late, busy_ms)"""
    if how in ("probed", "matched") and size == RENDEZVOUS:
        pytest.skip("the sender also waits for the receive that follows the probe")
    if how == "started-exchange":
        mpi.require("MPI_Isendrecv")
    return lambda late, busy_ms=BUSY_MS: profile(
        "late_messages", 2, str(late), how, str(size), str(busy_ms), str(ROUNDS)
    )


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
    """As docs/METHODS.md defines it."""
    is_buffered = (
        rank == SENDER and how not in EXCHANGES and own.after_wait_ns <= other.before_post_ns
    )
    return (
        0
        if is_buffered
        else max(0, min(other.before_post_ns, own.after_wait_ns) - own.before_wait_ns)
    )


def between_ns(run: Run, how: str) -> int:
    """How much time the program's readings contain that none of its calls took: no wait is off by
    more."""
    readings = [reading for of_round in rounds_of(run) for reading in of_round]
    read_ns = sum(reading.after_wait_ns - reading.before_post_ns for reading in readings)
    calls = [
        call
        for call in (*CALLS[how], *COMPLETING.get(how, ("MPI_Waitall",)))
        if not call.endswith("_init")
    ]
    cells = [cell for rank in range(run.ranks) for call in calls for cell in run.cells(rank, call)]
    return read_ns - sum(cell.total_ns for cell in cells if cell.measure == "call")


@pytest.mark.slow
@pytest.mark.one_mpi
def test_all_messages_are_matched(play, how):
    run = play(SENDER, 0)
    for row in reporter.rows("late", run.folder, "--by", "rank", "--call", ",".join(CALLS[how])):
        assert row["message_calls"] == ROUNDS
    (row,) = reporter.rows("late", run.folder, "--by", "run")
    assert (row["unmatched"], row["unsure"], row["uncompleted"]) == (0, 0, 0)


@pytest.mark.nightly
def test_waiting_is_within_10_percent_of_what_the_program_s_own_clock_says(play, late, how, size):
    run = play(late)
    rows = reporter.rows_of_ended("late", run.folder, "--call", ",".join(CALLS[how]))
    for rank, row in enumerate(rows):
        truth_ns = sum(
            waited_ns(rank, of_round[rank], of_round[1 - rank], how) for of_round in rounds_of(run)
        )
        assert abs(row["wait_ns"] - truth_ns) <= 0.1 * truth_ns + between_ns(run, how)
    state = reporter.rows("late", run.folder, "--by", "state", "--call", ",".join(CALLS[how]))[0]
    if how in EXCHANGES:
        assert state["wait_state"] in ("late sender", "late receiver")
    elif late == SENDER or size == RENDEZVOUS:  # an eager message is buffered
        assert state["wait_state"] == ("late sender" if late == SENDER else "late receiver")
    assert max(reporter.rows("late", run.folder), key=lambda row: row["cost_ns"])["rank"] == late
