"""How a process comes into MPI and leaves it: whatever ends it, what was counted is there, and the
job's exit status is its own. In programs/lifetime.c rank 0 sends five messages to rank 1, and both
synchronize twice."""

import pytest

from . import reporter
from .harness import abort_code_in_ledger, calls_in_ledger, ended_in_ledger

# "execle" finds no program, and returns
WAYS_TO_FINALIZE = ["plain", "funneled", "on_another_thread", "finalize_at_exit", "execle"]
# as a ledger says it
WAYS_TO_END_EARLY = {
    "kill": 0,
    "exit_without_finalize": 2,
    "quick_exit": 2,
    "_exit": 2,
    "_Exit": 2,
    "execl": 2,
    "execvp": 2,
    "abort": 3,
}


@pytest.mark.parametrize("how", WAYS_TO_FINALIZE)
def test_a_process_that_finalizes_leaves_a_database_with_everything_it_did(profile, how):
    run = profile("lifetime", 2, how)
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert run.sizes("MPI_Send") == [{4: (5, 20)}, {}]
    assert run.sizes("MPI_Recv") == [{}, {4: (5, 0)}]
    assert (run.counts("MPI_Barrier"), run.counts("MPI_Finalize")) == ([2, 2], [1, 1])
    begins = {"MPI_Init": [1, 1], "MPI_Init_thread": [0, 0]}
    if how in ("funneled", "on_another_thread"):
        begins = {"MPI_Init": [0, 0], "MPI_Init_thread": [1, 1]}
        level = {"funneled": 1, "on_another_thread": 3}[how]
        assert run.rank_row(0)["thread_level"] == level
    assert {call: run.counts(call) for call in begins} == begins
    row = run.rank_row(1)
    ended = [row[key] for key in ("ended", "world_rank", "world_size", "abort_code")]
    assert ended == ["finalize", 1, 2, 0] and row["start_unix_ns"] < row["end_unix_ns"]
    threads = "SELECT DISTINCT is_main FROM cell JOIN thread USING (world_rank, thread) WHERE call "
    assert run.query(0, threads + "= 'MPI_Send'") == [(how != "on_another_thread",)]


def test_a_rank_without_calls_leaves_little_and_nothing_that_it_did_not_do(profile):
    run = profile("no_calls", 2)
    assert run.query(0, "SELECT name FROM call ORDER BY name") == [("MPI_Finalize",), ("MPI_Init",)]
    assert run.query(0, "SELECT call FROM sample ORDER BY call") == [
        ("MPI_Finalize",),
        ("MPI_Init",),
    ]
    assert run.query(0, "SELECT call FROM recent_collective") == []
    assert run.database(0).stat().st_size < 60_000


@pytest.mark.parametrize("how", WAYS_TO_END_EARLY)
def test_a_job_that_ends_early_leaves_the_ledger_with_all_that_was_counted(profile, how):
    run = profile("lifetime", 2, how, exit_status=None)
    assert run.ledger(1).exists() and not run.database(1).exists()
    counted = calls_in_ledger(run.ledger(1))
    assert (counted["MPI_Recv"], counted["MPI_Barrier"]) == (5, 2)
    assert ended_in_ledger(run.ledger(1)) == WAYS_TO_END_EARLY[how]
    if how == "abort":
        assert abort_code_in_ledger(run.ledger(1)) == 5
    if how in ("kill", "abort", "exit_without_finalize"):
        rows = reporter.rows("sizes", run.folder, "--call", "MPI_Recv")
        assert [(row["bytes"], row["count"]) for row in rows] == [(4, 5)]


# 0 for the ways to finalize, above. Hydra, the mpirun of MPICH and Intel MPI, returns the status of
# the process that ends first.
@pytest.mark.parametrize("how", ["exit_without_finalize", "abort", "kill", "return_7"])
def test_mpirun_returns_what_it_returns_without_the_profiler(profile, plain, mpi, how):
    if mpi.family != "openmpi" and how in ("kill", "exit_without_finalize"):
        pytest.skip("Hydra returns 9, 1 or 0 then, also without the profiler")
    run = profile("lifetime", 2, how, exit_status=None)
    assert run.outcome.exit_status == plain("lifetime", 2, how).exit_status
    if how == "return_7":
        assert (run.outcome.exit_status, run.counts("MPI_Finalize")) == (7, [1, 1])


def test_a_program_of_sessions_alone_is_recorded(profile, mpi):
    mpi.require("MPI_Session_init")
    run = profile("sessions", 2)
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert run.sizes("MPI_Allreduce") == [{4: (3, 12)}] * 2
    assert run.calls(0) == {
        "MPI_Session_init", "MPI_Comm_create_from_group", "MPI_Allreduce", "MPI_Send",
        "MPI_Comm_free", "MPI_Session_finalize",
    }  # fmt: skip
    made = [run.communicator(rank, "MPI_Comm_create_from_group") for rank in range(2)]
    assert [each.world_ranks for each in made] == [[0, 1], [0, 1]]
    assert made[0].identity == made[1].identity


def test_a_session_that_was_opened_first_hides_nothing_of_the_world(profile, mpi):
    mpi.require("MPI_Session_init")
    run = profile("session_and_world", 2)
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert run.counts("MPI_Init") == [1, 1]
    assert {cell.communicator for cell in run.cells(0, "MPI_Allreduce")} == {"MPI_COMM_WORLD"}
    assert run.sizes("MPI_Allreduce") == [{4: (3, 12)}] * 2


def test_pcontrol_switches_recording_and_sets_the_counters_to_zero(profile):
    assert profile("pcontrol", 2).counts("MPI_Allreduce") == [8, 8]
    started = profile("pcontrol", 2, env={"COMMPROF_START": "off"})
    assert started.counts("MPI_Allreduce") == [5, 5]
    run = profile("pcontrol_levels", 2)
    assert (run.counts("MPI_Allreduce"), run.counts("MPI_Init")) == ([9, 9], [0, 0])
    for row in map(run.rank_row, range(2)):
        assert row["start_unix_ns"] < row["reset_unix_ns"] < row["end_unix_ns"]
        assert 0 < row["counted_ns"] < row["wall_ns"]
    row = profile("collectives_alone", 3).rank_row(0)  # without Pcontrol
    assert (row["counted_ns"], row["reset_unix_ns"]) == (row["wall_ns"], None)


def test_pcontrol_takes_snapshots_of_a_job_that_goes_on(profile):
    run = profile("pcontrol_levels", 2)
    assert run.files() == ["rank-0.db", "rank-1.db", "snapshot-1", "snapshot-2"]
    walls = []  # of the rank that has lived longest, which need not be rank 0
    for snapshot, count in (("snapshot-1", 4), ("snapshot-2", 9)):
        folder = run.folder / snapshot
        assert sorted(path.name for path in folder.iterdir()) == ["rank-0.ledger", "rank-1.ledger"]
        (counted,) = reporter.rows("calls", folder, "--call", "MPI_Allreduce")
        assert counted["count"] == 2 * count
        (summary,) = reporter.rows("summary", folder)
        assert summary["early_ended_ranks"] == 0
        walls.append(summary["wall_ns"])
    (whole,) = reporter.rows("summary", run.folder)
    assert walls[0] < walls[1] < whole["wall_ns"]


def test_calls_may_be_left_out(profile):
    run = profile("collectives_alone", 2, env={"COMMPROF_EXCLUDE": "MPI_Barrier,MPI_Bcast"})
    made = [run.counts(f"MPI_{call}") for call in ("Barrier", "Bcast", "Allreduce")]
    assert made == [[0, 0], [0, 0], [1, 3]]
