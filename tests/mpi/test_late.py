"""Who comes late to windows, files, neighbors and polls, with real ranks: against what the
program's own clock says of the ranks' coming and going. The plants of tests/truth have the other
calls."""

from typing import NamedTuple

import pytest

from . import reporter
from .harness import Run

pytestmark = pytest.mark.nightly

BUSY_MS, RANKS, LATE, ROUNDS = 30, 4, 2, 16
NEIGHBOR_CALLS = ("MPI_Neighbor_alltoall", "MPI_Ineighbor_alltoall")
CALLS = ("MPI_Win_create", "MPI_Win_fence", "MPI_File_write_at_all", *NEIGHBOR_CALLS)
POLLED = "MPI_Iallreduce"


class Reading(NamedTuple):
    """Readings of the program's clock, before and after a call."""

    before_ns: int
    after_ns: int


def rows_of(run: Run, by: str, call: str) -> list[dict]:
    return reporter.rows_of_ended("late", run.folder, "--by", by, "--call", call)


def readings_of(run: Run) -> list[list[Reading]]:
    """By round, of each rank in order."""
    readings: list[dict[int, Reading]] = [{} for _ in range(ROUNDS)]
    for line in run.outcome.stdout.splitlines():
        word, *fields = line.split()
        if word == "reading":
            turn, rank, *times_ns = map(int, fields[1:])
            readings[turn][rank] = Reading(*times_ns)
    return [[of_round[rank] for rank in sorted(of_round)] for of_round in readings]


def play(profile, call: str) -> Run:
    return profile("late_objects", RANKS, call, str(LATE), str(BUSY_MS), str(ROUNDS))


@pytest.mark.parametrize("call", CALLS)
def test_waiting_at_a_window_a_file_or_for_neighbors_is_what_the_program_logged(profile, call):
    run = play(profile, call)
    readings = readings_of(run)
    for rank, row in enumerate(rows_of(run, "rank", call)):
        own = [of_round[rank] for of_round in readings]
        awaited = (
            [other for other in (rank - 1, rank + 1) if 0 <= other < run.ranks]
            if call in NEIGHBOR_CALLS
            else range(run.ranks)
        )
        last_ns = [max(of_round[other].before_ns for other in awaited) for of_round in readings]
        wait_ns = sum(
            min(max(0, last - each.before_ns), each.after_ns - each.before_ns)
            for last, each in zip(last_ns, own)
        )
        assert row["wait_ns"] == pytest.approx(wait_ns, rel=0.1, abs=0.1 * BUSY_MS * 1e6)


@pytest.mark.parametrize("call", [*CALLS, POLLED])
def test_the_rank_that_comes_late_is_named(profile, call):
    (row,) = rows_of(play(profile, call), "run", call)
    assert row["late_ranks"] == str(LATE)


@pytest.mark.parametrize("call", CALLS)
def test_nobody_is_named_where_all_come_at_once(profile, call):
    run = profile("late_objects", 2, call, "0", "0", str(ROUNDS))
    (row,) = rows_of(run, "run", call)
    assert row["verdict"] in ("transfer", "little")


def test_waiting_in_polls_is_the_time_of_the_polls(profile):
    run = play(profile, POLLED)
    for rank, row in enumerate(rows_of(run, "rank", POLLED)):
        polls_ns = sum(cell.total_ns for cell in run.cells(rank, "MPI_Test", measure="poll"))
        (seen_ns,) = run.query(rank, "SELECT total(polled_ns) FROM sample")[0]
        assert seen_ns == pytest.approx(polls_ns, rel=0.01)
        assert rank == LATE or row["wait_ns"] >= 0.5 * polls_ns
