"""Mistakes of other profilers that no table of calls shows."""

import pytest

pytestmark = pytest.mark.slow


def test_time_in_mpi_does_not_exceed_the_time_the_job_took(profile):
    run = profile("many_calls", 2)
    in_mpi = run.query(0, "SELECT SUM(total_ns) FROM cell WHERE measure <> 'completion'")[0][0]
    assert 0 < in_mpi <= run.rank_row(0)["wall_ns"]


def test_no_minimum_is_zero(profile):
    run = profile("many_calls", 2)
    assert all(cell.min_ns > 0 for cell in run.cells(0) + run.cells(1))


def test_a_broadcast_has_its_bytes_on_every_rank(profile):
    run = profile("late_receiver", 2)
    assert run.sizes("MPI_Bcast") == [{4: (1, 4)}, {4: (1, 0)}]


def test_collectives_on_comm_self_by_some_ranks_only_neither_abort_nor_hang(profile):
    run = profile("collectives_alone", 3)
    assert run.counts("MPI_Allreduce") == [1, 3, 3]
    assert run.counts("MPI_Barrier") == [1, 2, 3]


def test_no_barrier_is_added_to_a_broadcast(profile):
    run = profile("late_receiver", 2)  # it would have hung
    assert run.counts("MPI_Barrier") == [0, 0]


def test_counting_goes_on_after_millions_of_calls(profile):
    run = profile("many_calls", 2)
    assert run.counts("MPI_Send") == [3000000, 0]
    assert run.counts("MPI_Recv") == [0, 3000000]
    assert run.sizes("MPI_Allreduce") == [{4: (200000, 800000)}] * 2


def test_callbacks_that_call_mpi_inside_finalize_work(profile):
    run = profile("attribute_callbacks", 2)
    assert run.outcome.stdout == "cleaned up\ncleaned up\n"
    assert run.counts("MPI_Finalize") == [1, 1]
    assert run.counts("MPI_Allreduce") == [1, 1]
