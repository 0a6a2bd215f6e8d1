"""Who comes late, with real ranks, against what the program's own clock says: to messages of every
kind (programs/late_messages.calls), and to windows, files, neighbors and polls
(programs/late_objects.calls). The plants of tests/truth have the other calls."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from . import reporter
from .harness import Run


class Reading(NamedTuple):
    """Readings of the program's clock: around the call that posts a message (blocking ones and
    calls on objects: before it, twice), and around the one that completes it."""

    before_post_ns: int
    after_post_ns: int
    before_wait_ns: int
    after_wait_ns: int


def rounds_of(run: Run) -> list[list[Reading]]:
    """By round, of each rank in order."""
    rounds: dict[int, dict[int, Reading]] = {}
    for line in run.outcome.stdout.splitlines():
        if line.startswith("reading "):
            turn, rank, *times_ns = (int(word) for word in line.split() if word.isdigit())
            first, last = times_ns[0], times_ns[-1]
            reading = (
                Reading(*times_ns) if len(times_ns) == 4 else Reading(first, first, first, last)
            )
            rounds.setdefault(turn, {})[rank] = reading
    return [[rounds[turn][rank] for rank in sorted(rounds[turn])] for turn in sorted(rounds)]


# Messages

ROUNDS, BUSY_MS = 24, 20
EAGER, RENDEZVOUS = 64, 1 << 20
SENDER, RECEIVER = 0, 1
WAYS = {  # the calls that are late, and those that complete them
    "blocking": ("MPI_Send,MPI_Recv", ""),
    "nonblocking": ("MPI_Isend,MPI_Irecv", "MPI_Waitall"),
    "persistent": ("MPI_Send_init,MPI_Recv_init", "MPI_Start,MPI_Waitall"),
    "exchange": ("MPI_Sendrecv", ""),
    "wildcard": ("MPI_Isend,MPI_Irecv", "MPI_Waitall"),
    "started-exchange": ("MPI_Isendrecv", "MPI_Waitall"),
    "probed": ("MPI_Send,MPI_Probe", "MPI_Recv"),
    "matched": ("MPI_Send,MPI_Mprobe", "MPI_Imrecv,MPI_Waitall"),
}
each_way = pytest.mark.parametrize("how", WAYS)
each_size = pytest.mark.parametrize("size", [EAGER, RENDEZVOUS], ids=["eager", "rendezvous"])


def play(profile, mpi, how: str, size: int, late: int, busy_ms: int = BUSY_MS) -> Run:
    if how in ("probed", "matched") and size == RENDEZVOUS:
        pytest.skip("the sender also waits for the receive that follows the probe")
    if how == "started-exchange":
        mpi.require("MPI_Isendrecv")
    words = (str(late), how, str(size), str(busy_ms), str(ROUNDS))
    return profile("late_messages", 2, *words)


def waited_ns(rank: int, own: Reading, other: Reading, how: str) -> int:
    """As docs/METHODS.md defines it."""
    is_buffered = rank == SENDER and "exchange" not in how
    if is_buffered and own.after_wait_ns <= other.before_post_ns:
        return 0
    return max(0, min(other.before_post_ns, own.after_wait_ns) - own.before_wait_ns)


def between_ns(run: Run, how: str) -> int:
    """How much time the program's readings contain that none of its calls took: no wait is off by
    more."""
    readings = [reading for of_round in rounds_of(run) for reading in of_round]
    read_ns = sum(reading.after_wait_ns - reading.before_post_ns for reading in readings)
    calls = [call for call in ",".join(WAYS[how]).split(",") if call and call[-5:] != "_init"]
    cells = [cell for rank in range(run.ranks) for call in calls for cell in run.cells(rank, call)]
    return read_ns - sum(cell.total_ns for cell in cells)


@pytest.mark.slow
@pytest.mark.one_mpi
@each_way
@each_size
def test_all_messages_are_matched(profile, mpi, how, size):
    run = play(profile, mpi, how, size, SENDER, 0)
    for row in reporter.rows("late", run.folder, "--by", "rank", "--call", WAYS[how][0]):
        assert row["message_calls"] == ROUNDS
    (row,) = reporter.rows("late", run.folder, "--by", "run")
    assert (row["unmatched"], row["unsure"], row["uncompleted"]) == (0, 0, 0)


@pytest.mark.nightly
@each_way
@each_size
@pytest.mark.parametrize("late", [SENDER, RECEIVER], ids=["late-sender", "late-receiver"])
def test_waiting_is_within_10_percent_of_what_the_program_s_own_clock_says(
    profile, mpi, late, how, size
):
    run = play(profile, mpi, how, size, late)
    rows = reporter.rows_of_ended("late", run.folder, "--call", WAYS[how][0])
    for rank, row in enumerate(rows):
        truth_ns = sum(waited_ns(rank, of[rank], of[1 - rank], how) for of in rounds_of(run))
        assert abs(row["wait_ns"] - truth_ns) <= 0.1 * truth_ns + between_ns(run, how)
    state = reporter.rows("late", run.folder, "--by", "state", "--call", WAYS[how][0])[0]
    if "exchange" in how:
        assert state["wait_state"] in ("late sender", "late receiver")
    elif late == SENDER or size == RENDEZVOUS:  # an eager message is buffered
        assert state["wait_state"] == ("late sender" if late == SENDER else "late receiver")
    assert max(reporter.rows("late", run.folder), key=lambda row: row["cost_ns"])["rank"] == late


# Windows, files, neighbors and polls

OBJECT_MS, RANKS, LATE, TURNS = 30, 4, 2, 16
CALLS = ("Win_create", "Win_fence", "File_write_at_all", "Neighbor_alltoall", "Ineighbor_alltoall")
POLLED = "Iallreduce"


def rows_of(run: Run, by: str, call: str) -> list[dict]:
    return reporter.rows_of_ended("late", run.folder, "--by", by, "--call", f"MPI_{call}")


def object_play(profile, call: str) -> Run:
    words = (f"MPI_{call}", str(LATE), str(OBJECT_MS), str(TURNS))
    return profile("late_objects", RANKS, *words)


@pytest.mark.nightly
@pytest.mark.parametrize("call", CALLS)
def test_waiting_at_a_window_a_file_or_for_neighbors_is_what_the_program_logged(profile, call):
    run = object_play(profile, call)
    readings = rounds_of(run)
    for rank, row in enumerate(rows_of(run, "rank", call)):
        near = [other for other in (rank - 1, rank + 1) if 0 <= other < run.ranks]
        awaited = near if "eighbor" in call else range(run.ranks)
        wait_ns = 0
        for of_round in readings:
            own, last = of_round[rank], max(of_round[other].before_wait_ns for other in awaited)
            inside_ns = own.after_wait_ns - own.before_wait_ns
            wait_ns += min(max(0, last - own.before_wait_ns), inside_ns)
        assert row["wait_ns"] == pytest.approx(wait_ns, rel=0.1, abs=0.1 * OBJECT_MS * 1e6)


@pytest.mark.nightly
@pytest.mark.parametrize("call", [*CALLS, POLLED])
def test_the_rank_that_comes_late_is_named(profile, call):
    (row,) = rows_of(object_play(profile, call), "run", call)
    assert row["late_ranks"] == str(LATE)


@pytest.mark.nightly
@pytest.mark.parametrize("call", CALLS)
def test_nobody_is_named_where_all_come_at_once(profile, call):
    run = profile("late_objects", 2, f"MPI_{call}", "0", "0", str(TURNS))
    (row,) = rows_of(run, "run", call)
    assert row["verdict"] in ("transfer", "little")


@pytest.mark.nightly
def test_waiting_in_polls_is_the_time_of_the_polls(profile):
    run = object_play(profile, POLLED)
    for rank, row in enumerate(rows_of(run, "rank", POLLED)):
        polls_ns = sum(cell.total_ns for cell in run.cells(rank, "MPI_Test", measure="poll"))
        (seen_ns,) = run.query(rank, "SELECT total(polled_ns) FROM sample")[0]
        assert seen_ns == pytest.approx(polls_ns, rel=0.01)
        assert rank == LATE or row["wait_ns"] >= 0.5 * polls_ns
