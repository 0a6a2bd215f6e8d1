"""Error handlers that leave the failed call, by longjmp (programs/jumping_deeper.c) or by a C++
exception (programs/throwing_handler.cpp): counting goes on exactly, wherever on the stack the next
calls are made from."""

import pytest

from .harness import abort_code_in_ledger, calls_in_ledger, ended_in_ledger

# Hydra ors the statuses of all ranks, and kills those that still run when the first one aborts
KILLED = 9


def test_after_jumps_out_of_calls_all_others_count(profile, plain):
    run = profile("jumping_deeper", 2)
    assert run.outcome.exit_status == plain("jumping_deeper", 2).exit_status == 0
    assert run.counts("MPI_Allreduce") == [900, 900]  # 100 rounds of 9
    assert run.counts("MPI_Send") == [0, 0]  # they did not return


def test_each_thread_jumps_for_itself(profile, mpi):
    if mpi.family != "openmpi":
        pytest.skip(
            "MPICH aborts when a handler leaves a call under MPI_THREAD_MULTIPLE, also without the "
            "profiler"
        )
    run = profile("jumping_deeper", 2, "threads")
    assert run.counts("MPI_Allreduce") == [4 * 900, 4 * 900]
    assert run.rank_row(0)["dropped_calls"] == 0


def test_after_exceptions_out_of_calls_all_others_count(profile, plain):
    run = profile("throwing_handler", 2)
    assert run.outcome.stdout == plain("throwing_handler", 2).stdout == "caught 100\n" * 2
    assert run.counts("MPI_Allreduce") == [150, 150]


def test_what_callbacks_of_the_job_call_counts(profile):
    run = profile("throwing_handler", 2)
    assert all(count > 0 for count in run.counts("MPI_Barrier"))
    assert run.counts("MPI_Send") == [50, 50]  # those whose handler returned


def test_calls_in_callbacks_count_with_their_sizes_and_no_time_counts_twice(profile):
    run = profile("calling_back", 2)
    for rank in range(2):
        sizes = run.sizes("MPI_Allreduce")[rank]
        assert {bytes: sizes[bytes][0] for bytes in sizes} == {16: 1, 24: 2, 32: 1, 40: 1}
        assert run.sizes("MPI_File_write")[rank] == {1 << 16: (1, 1 << 16)}
        (in_mpi,) = run.query(rank, "SELECT SUM(total_ns) FROM cell WHERE measure <> 'completion'")[
            0
        ]
        assert in_mpi <= run.rank_row(rank)["wall_ns"]
        assert run.rank_row(rank)["interrupted_calls"] == 0


@pytest.mark.parametrize(
    "handler", [(), ("mpi",)], ids=["a handler of the job's", "MPI_ERRORS_ABORT where there is one"]
)
def test_a_handler_that_aborts_ends_the_job_as_without_the_profiler(profile, plain, mpi, handler):
    run = profile("aborting_handler", 2, *handler, exit_status=None)
    without = plain("aborting_handler", 2, *handler)
    assert run.outcome.exit_status | KILLED == without.exit_status | KILLED
    if mpi.abi == "MPI standard ABI" and mpi.family == "impi" and handler:
        pytest.skip(f"{mpi.name}: MPI_ERRORS_ABORT has no effect")
    assert run.outcome.exit_status != 0  # MPICH 5 returns from MPI_Abort, and is killed soon after
    assert calls_in_ledger(run.ledger(0))["MPI_Allreduce"] == 3


def test_a_handler_s_abort_is_recorded_with_its_code(profile):
    run = profile("aborting_handler", 2, exit_status=None)
    ledger = next(run.ledger(rank) for rank in range(2) if ended_in_ledger(run.ledger(rank)) == 3)
    assert abort_code_in_ledger(ledger) == 7
