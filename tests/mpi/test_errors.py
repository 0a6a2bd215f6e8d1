"""A mistake of the job has the same consequences with the profiler: error classes, statuses, calls
of the error handler."""

import pytest


def lines_of(outcome):
    return sorted(outcome.stdout.splitlines())


def is_known_to_differ(mpi, line):
    """Open MPI 5 hides from Waitall without statuses what Waitall with statuses says."""
    return mpi.name.startswith("openmpi-5.") and "Waitall ignored" in line


@pytest.mark.parametrize("handler", [(), ("errors_return",)])
def test_every_mistake_gives_the_same_error_and_the_same_statuses(profile, plain, mpi, handler):
    run, without = profile("error_codes", 2, *handler).outcome, plain("error_codes", 2, *handler)
    unlike = set(lines_of(run)) ^ set(lines_of(without))
    assert [line for line in unlike if not is_known_to_differ(mpi, line)] == []
    assert len(lines_of(run)) == len(lines_of(without))
    if handler:  # the comparison means something
        assert len(lines_of(without)) == 2 * 21 + 28
        assert any("Wait ignored" in line and "class 0" not in line for line in lines_of(without))


def test_an_error_that_waitall_hides_comes_to_light(profile, plain, mpi):
    if not is_known_to_differ(mpi, "Waitall ignored"):
        pytest.skip(f"{mpi.name} hides none")
    said = [profile("error_codes", 2).outcome.stdout, plain("error_codes", 2).stdout]
    assert ["Waitall ignored: class 0" in each for each in said] == [False, True]


def test_a_fatal_error_ends_the_job_with_the_same_exit_status(profile, plain):
    run = profile("fatal_error", 2, exit_status=None)
    assert run.outcome.exit_status == plain("fatal_error", 2).exit_status != 0


def test_a_call_that_failed_is_counted_without_bytes(profile):
    # not with a handler: when it returns, MPICH 4.3 returns MPI_SUCCESS for the call
    run = profile("error_codes", 2, "errors_return")
    assert run.sizes("MPI_Bcast") == [{0: (2, 0)}] * 2
    assert run.sizes("MPI_Allreduce") == [{0: (2, 0)}] * 2
