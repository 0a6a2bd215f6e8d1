"""Who is late, with real ranks: against what the program's own clock says of the ranks' coming and
going."""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from statistics import median
from typing import NamedTuple

import pytest

from . import reporter
from .harness import COMMPROF_RUN, TRIES, Run, command_for, launch
from .libraries import REPOSITORY

pytestmark = pytest.mark.slow

ROUNDS, BUSY_MS, OFFSET_S = 8, 30, 1_000
SHAPES = ((4, 2), (8, 5), (2, 0))  # ranks, the late one
CALLS = ("MPI_Allreduce", "MPI_Bcast", "MPI_Reduce", "MPI_Barrier")
OTHER_CLOCK = ("unshare", "--time", "--monotonic", str(OFFSET_S), "--fork", "--kill-child")


class Reading(NamedTuple):
    """Readings of the program's clock, before and after a call."""

    before_ns: int
    after_ns: int


class Truth(NamedTuple):
    """By rank: how long it waited; what its coming last has cost at least and at most (two may have
    come at almost the same time)."""

    wait_ns: list[int]
    least_cost_ns: list[int]
    most_cost_ns: list[int]


@pytest.fixture(scope="module", params=SHAPES, ids=lambda chosen: f"{chosen[0]}-ranks")
def job(request, profile):
    ranks, late = request.param
    return profile("late", ranks, str(late), str(BUSY_MS), str(ROUNDS), env={"ATTEMPT": "0"}), late


def rows_of(run: Run, by: str, call: str) -> list[dict]:
    return reporter.rows_of_ended("late", run.folder, "--by", by, "--call", call)


@lru_cache
def readings_of(stdout: str) -> dict[tuple[str, int], list[Reading]]:
    """By call and round, of each rank in order."""
    readings: dict[tuple[str, int], dict[int, Reading]] = defaultdict(dict)
    for line in stdout.splitlines():
        word, *fields = line.split()
        if word == "reading":
            call, *numbers = fields
            turn, rank, before_ns, after_ns = map(int, numbers)
            readings[call, turn][rank] = Reading(before_ns, after_ns)
    return {key: [of_rank[rank] for rank in sorted(of_rank)] for key, of_rank in readings.items()}


def awaited_by(
    call: str, rank: int, ranks: int, late: int, through_others: bool = False
) -> list[int]:
    """Ranks that a rank waits for, as docs/SCHEMA.md defines it; or may wait for within the
    library, as an inner rank of a tree."""
    others = [other for other in range(ranks) if other != rank]
    if call == "MPI_Bcast":
        return [late] if rank != late else []
    if call == "MPI_Reduce" and not through_others:
        return others if rank == (late + 1) % ranks else []
    return others


def distances_of(run: Run, call: str) -> list[int]:
    """By round: how much farther the program's readings are apart than ours, over all ranks. No
    moment of the round is off by more."""
    duration = "SELECT end_ns - start_ns FROM sample WHERE call = :call ORDER BY start_ns"
    taken = zip(
        *([ns for (ns,) in run.query(rank, duration, call=call)] for rank in range(run.ranks))
    )
    rounds = (readings_of(run.outcome.stdout)[call, turn] for turn in range(ROUNDS))
    return [
        sum(reading.after_ns - reading.before_ns for reading in of_round) - sum(own)
        for of_round, own in zip(rounds, taken)
    ]


def truth_of(
    run: Run, call: str, late: int, tolerance_ns: int, through_others: bool = False
) -> Truth:
    truth = Truth(*([0] * run.ranks for _ in Truth._fields))
    for turn in range(ROUNDS):
        of_round = readings_of(run.outcome.stdout)[call, turn]
        for rank, own in enumerate(of_round):
            awaited = awaited_by(call, rank, run.ranks, late, through_others)
            last_ns = max((of_round[other].before_ns for other in awaited), default=0)
            wait_ns = min(max(0, last_ns - own.before_ns), own.after_ns - own.before_ns)
            candidates = [
                other for other in awaited if of_round[other].before_ns >= last_ns - tolerance_ns
            ]
            truth.wait_ns[rank] += wait_ns
            for other in candidates:
                truth.most_cost_ns[other] += wait_ns
                truth.least_cost_ns[other] += wait_ns if len(candidates) == 1 else 0
    return truth


@pytest.mark.parametrize("call", CALLS)
def test_waiting_and_its_cost_are_what_the_program_s_own_clock_says(job, call):
    run, late = job
    distances_ns = distances_of(run, call)
    tolerance_ns = sum(distances_ns)
    truth = truth_of(run, call, late, tolerance_ns)
    most = truth_of(run, call, late, tolerance_ns, through_others=True)
    # Else this test could not fail. A busy machine may stop a rank between two readings, but not in
    # half of the rounds.
    assert len(distances_ns) == ROUNDS and sum(truth.wait_ns) > 10 * ROUNDS * median(distances_ns)
    rows = rows_of(run, "rank", call)
    assert [row["collectives"] for row in rows] == [ROUNDS] * run.ranks
    costs_ns = zip(truth.least_cost_ns, most.most_cost_ns)
    for row, least_ns, most_ns in zip(rows, truth.wait_ns, most.wait_ns):
        assert least_ns - tolerance_ns <= row["wait_ns"] <= most_ns + tolerance_ns
    for row, (least_ns, most_ns) in zip(rows, costs_ns):
        slack_ns = run.ranks * tolerance_ns
        assert least_ns - slack_ns <= row["cost_ns"] <= most_ns + slack_ns


@pytest.mark.parametrize("call", CALLS)
def test_waiting_and_transfer_are_the_time_of_the_calls(job, call):
    run, _ = job
    for rank, row in enumerate(rows_of(run, "rank", call)):
        total_ns = sum(cell.total_ns for cell in run.cells(rank, call))
        # Samples know better how long a tick is, and each of them is rounded.
        assert row["wait_ns"] + row["transfer_ns"] == pytest.approx(total_ns, rel=1e-6, abs=ROUNDS)


def named(play: Callable[[str], Run], late: int, calls: str) -> tuple[Run, dict]:
    """A run whose late rank is named, and what is said of it. Other work on the machine may hold up
    others for as long: then nobody may be named, and it is played again. Naming another rank is
    never excused."""
    for attempt in range(TRIES):
        run = play(str(attempt))
        (row,) = rows_of(run, "run", calls)
        assert row["late_ranks"] in (str(late), None)
        if row["late_ranks"]:
            return run, row
    return pytest.fail(f"nobody is named in {TRIES} runs")


@pytest.mark.parametrize(("ranks", "late"), SHAPES)
def test_the_late_rank_is_named_and_one_clock_needs_no_alignment(profile, ranks, late):
    def play(attempt):
        program = ("late", ranks, str(late), str(BUSY_MS), str(ROUNDS))
        return profile(*program, env={"ATTEMPT": attempt})

    run, row = named(play, late, ",".join(CALLS))
    assert (row["clocks"], row["estimate_share"]) == (1, 0)
    (verdict,) = re.findall("^Verdict .*", reporter.text("late", run.folder), re.M)
    assert f"rank {late} " in verdict


@pytest.fixture(scope="module")
def three_clocks(mpi, tmp_path_factory):
    """Four ranks; those above 1 live in a time namespace each, whose CLOCK_MONOTONIC is 1000 s
    ahead. Rank 3 is late."""
    if subprocess.run([*OTHER_CLOCK, "true"], capture_output=True).returncode:
        pytest.skip("no time namespaces here")
    folder = tmp_path_factory.mktemp(f"{mpi.name}-three-clocks")
    profiled = [str(COMMPROF_RUN), *command_for(mpi, "late"), "3", str(BUSY_MS), str(ROUNDS)]
    outcome = launch(
        mpi, 2, [*profiled, ":", "-n", "2", *OTHER_CLOCK, *profiled], folder,
        {"COMMPROF_OUTPUT": str(folder / "run")},
    )
    assert outcome.exit_status == 0, outcome
    return Run(4, folder / "run", outcome)


ALIGN = """
import sys
from pathlib import Path
from commprof_report.run.run import run_open
from commprof_report.run.alignment import align
alignment = align(run_open(Path(sys.argv[1]), with_samples=True).connection)
for rank in range(4):
    distance_ns = alignment.error([0, rank], 0).distance_ns
    print(alignment.aligned_ns(rank, 0), distance_ns, alignment.islands)
"""


def test_the_clock_of_another_host_is_found_within_the_stated_error(three_clocks):
    command = [sys.executable, "-B", "-c", ALIGN, str(three_clocks.folder)]
    environment = {"PYTHONPATH": str(REPOSITORY / "report")}
    printed = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=600, env=environment
    ).stdout
    starts = [three_clocks.rank_row(rank)["start_monotonic_ns"] for rank in range(4)]
    found = [line.split() for line in printed.splitlines()]
    for rank, (moment, error_ns, islands) in enumerate(found):
        ahead_ns = OFFSET_S * 10**9 if rank > 1 else 0
        off_ns = int(moment) - int(found[0][0]) - (starts[rank] - starts[0] - ahead_ns)
        assert abs(off_ns) <= float(error_ns) and islands == "1"
        assert (float(error_ns) > 0) == (rank > 1)


def test_the_late_rank_on_another_clock_is_named(three_clocks):
    (row,) = rows_of(three_clocks, "run", "MPI_Allreduce,MPI_Barrier")
    assert (row["clocks"], row["unconnected_clocks"]) == (3, 0)
    assert row["late_ranks"] == "3"


# Windows, files and neighbors

NEIGHBOR_CALLS = ("MPI_Neighbor_alltoall", "MPI_Ineighbor_alltoall")
OBJECT_CALLS = ("MPI_Win_create", "MPI_Win_fence", "MPI_File_write_at_all", *NEIGHBOR_CALLS)
OBJECT_ROUNDS, OBJECT_SHAPE = 16, (4, 2)


def on_objects(profile, call: str, attempt: str = "0", busy_ms: int = BUSY_MS) -> Run:
    ranks, late = OBJECT_SHAPE
    words = (call, str(late), str(busy_ms), str(OBJECT_ROUNDS))
    return profile("late_objects", ranks, *words, env={"ATTEMPT": attempt})


@pytest.mark.parametrize("call", OBJECT_CALLS)
def test_waiting_at_a_window_a_file_or_for_neighbors_is_what_the_program_logged(profile, call):
    run = on_objects(profile, call)
    readings = [readings_of(run.outcome.stdout)[call, turn] for turn in range(OBJECT_ROUNDS)]
    for rank, row in enumerate(rows_of(run, "rank", call)):
        own = [of_round[rank] for of_round in readings]
        awaited = (
            [other for other in (rank - 1, rank + 1) if 0 <= other < run.ranks]
            if call in NEIGHBOR_CALLS else range(run.ranks)
        )
        last_ns = [max(of_round[other].before_ns for other in awaited) for of_round in readings]
        wait_ns = sum(
            min(max(0, last - each.before_ns), each.after_ns - each.before_ns)
            for last, each in zip(last_ns, own)
        )
        assert row["wait_ns"] == pytest.approx(wait_ns, rel=0.1, abs=0.1 * BUSY_MS * 1e6)


@pytest.mark.parametrize("call", OBJECT_CALLS)
def test_the_rank_that_comes_late_to_a_window_a_file_or_its_neighbors_is_named(profile, call):
    _, late = OBJECT_SHAPE
    named(lambda attempt: on_objects(profile, call, attempt), late, call)


@pytest.mark.parametrize("call", OBJECT_CALLS)
def test_nobody_is_named_where_all_come_to_a_window_a_file_or_neighbors_at_once(profile, call):
    words = (call, "0", "0", str(OBJECT_ROUNDS))
    for attempt in range(TRIES):  # other work on the machine may hold up one of them
        run = profile("late_objects", 2, *words, env={"ATTEMPT": str(attempt)})
        (row,) = rows_of(run, "run", call)
        if row["verdict"] in ("transfer", "little"):
            return
    pytest.fail(f"{row['verdict']} in {TRIES} runs")


def test_each_window_and_each_file_has_a_count_of_its_own(profile):
    run = on_objects(profile, "MPI_Win_fence")
    found = "SELECT object, object_sequence FROM sample WHERE call = :call ORDER BY start_ns"
    first, second = 1, 3  # each was created before a file, on one communicator
    expected = [
        (window, turn + 1) for turn in range(OBJECT_ROUNDS // 2) for window in (first, second)
    ]
    for rank in range(run.ranks):
        assert run.query(rank, found, call="MPI_Win_fence") == expected


# Polling

POLLED = "MPI_Iallreduce"


def test_the_rank_that_others_poll_for_is_named_with_the_time_of_their_polls(profile):
    _, late = OBJECT_SHAPE
    run, _ = named(lambda attempt: on_objects(profile, POLLED, attempt), late, POLLED)
    for rank, row in enumerate(rows_of(run, "rank", POLLED)):
        polls_ns = sum(cell.total_ns for cell in run.cells(rank, "MPI_Test", measure="poll"))
        (seen_ns,) = run.query(rank, "SELECT total(polled_ns) FROM sample")[0]
        assert seen_ns == pytest.approx(polls_ns, rel=0.01)
        assert rank == late or row["wait_ns"] >= 0.5 * polls_ns


# Nonblocking collectives

NONBLOCKING_ROUNDS = 24


class Started(NamedTuple):
    """Readings of the program's clock: around the start of a round's last collective, and around
    the call that completes all."""

    before_start_ns: int
    after_start_ns: int
    before_wait_ns: int
    after_wait_ns: int


@pytest.fixture(scope="module", params=[(2, 1), (4, 2)], ids=lambda chosen: f"{chosen[0]}-ranks")
def play_nonblocking(request, profile):
    ranks, late = request.param
    words = (str(late), str(BUSY_MS), str(NONBLOCKING_ROUNDS))
    return lambda attempt: profile(
        "late_nonblocking", ranks, *words, env={"ATTEMPT": attempt}
    ), late


def rounds_of(run: Run) -> list[list[Started]]:
    """By round, of each rank in order."""
    rounds: list[dict[int, Started]] = [{} for _ in range(NONBLOCKING_ROUNDS)]
    for line in run.outcome.stdout.splitlines():
        word, *fields = line.split()
        if word == "reading":
            turn, rank, *readings = map(int, fields)
            rounds[turn][rank] = Started(*readings)
    return [[of_rank[rank] for rank in sorted(of_rank)] for of_rank in rounds]


def test_nonblocking_collectives_are_waited_for_in_waitall_as_long_as_the_program_s_clock_says(
    play_nonblocking,
):
    run = play_nonblocking[0]("0")
    rows = rows_of(run, "rank", "MPI_Iallreduce")
    for rank, row in enumerate(rows):
        wait_ns = taken_ns = start_ns = 0
        for of_round in rounds_of(run):
            own, last = (
                of_round[rank],
                max(
                    of_round[:rank] + of_round[rank + 1 :], key=lambda other: other.before_start_ns
                ),
            )
            wait_ns += min(
                max(0, last.before_start_ns - own.before_wait_ns),
                own.after_wait_ns - own.before_wait_ns,
            )
            start_ns += max(other.after_start_ns - other.before_start_ns for other in of_round)
            taken_ns += own.after_wait_ns - own.before_wait_ns
        # A reading is earlier than the call's own entry by at most what the two of a call are
        # farther apart than the call took.
        tolerance_ns = (
            start_ns
            + taken_ns
            - sum(
                cell.total_ns for cell in run.cells(rank, "MPI_Waitall") if cell.measure == "call"
            )
        )
        assert abs(row["wait_ns"] - wait_ns) <= tolerance_ns


def test_the_rank_that_starts_nonblocking_collectives_late_is_named(play_nonblocking):
    _, row = named(*play_nonblocking, "MPI_Iallreduce")
    assert (row["uncompleted"], row["unsure"]) == (0, 0)


# Chains of waits

GRID_ROUNDS, GRID_LATE = 24, 2


@pytest.fixture(scope="module")
def play_grid(profile):
    return lambda attempt: profile(
        "late_grid", 4, str(GRID_LATE), str(2 * BUSY_MS), str(GRID_ROUNDS), env={"ATTEMPT": attempt}
    )


@pytest.fixture(scope="module")
def grid(play_grid):
    return play_grid("0")


def waited_ns(run: Run, call: str, turn: int, rank: int, other: int) -> int:
    own, awaited = (readings_of(run.outcome.stdout)[call, turn][each] for each in (rank, other))
    return min(max(0, awaited.before_ns - own.before_ns), own.after_ns - own.before_ns)


def test_what_a_rank_causes_through_another_is_what_the_program_s_own_clock_says(grid):
    """Rank 1 waits in its column for 3, and 3 has waited in its row for 2 for at least a part of
    that time."""
    row = rows_of(grid, "rank", "MPI_Allreduce")[GRID_LATE]
    chains = [
        (waited_ns(grid, "column", turn, 1, 3), waited_ns(grid, "row", turn, 3, 2))
        for turn in range(GRID_ROUNDS)
    ]
    assert row["caused_ns"] - row["direct_ns"] == pytest.approx(sum(map(min, chains)), rel=0.1)


def test_causes_and_what_is_not_known_are_the_waiting_that_the_program_logged(grid):
    logged_ns = sum(
        waited_ns(grid, call, turn, rank, rank ^ apart)
        for call, apart in (("row", 1), ("column", 2)) for turn in range(GRID_ROUNDS)
        for rank in range(4)
    )
    (run,) = rows_of(grid, "run", "MPI_Allreduce")
    caused_ns = sum(row["caused_ns"] for row in rows_of(grid, "rank", "MPI_Allreduce"))
    assert caused_ns + run["unknown_cause_ns"] == pytest.approx(logged_ns, rel=0.1)


def test_the_root_cause_is_named_with_the_rank_through_which_it_acts(play_grid):
    _, row = named(play_grid, GRID_LATE, "MPI_Allreduce")
    assert "3" in row["late_through"].split(",")
