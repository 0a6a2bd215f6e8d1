"""Durations against an independent clock: the program takes the time of its own calls, some of them kept waiting on purpose."""

import pytest


@pytest.fixture(scope="module")
def run(profile):
    return profile("planted_delays", 2)


def taken_by_the_program(run, call):
    """The durations that rank 1 printed, in nanoseconds."""
    return [int(line.split()[1]) for line in run.outcome.stdout.splitlines() if line.startswith(call + " ")]


def total_ns(run, call):
    return sum(cell.total_ns for cell in run.cells(1, call))


@pytest.mark.parametrize("call", ["MPI_Recv", "MPI_Barrier"])
def test_the_time_of_a_call_is_what_the_program_measures_around_it(run, call):
    taken = taken_by_the_program(run, call)
    assert len(taken) == run.counts(call)[1] == 10
    # The program's clock is read outside ours. Both agree within a hundredth of delays of 20 ms.
    assert 0.99 * sum(taken) < total_ns(run, call) < 1.0001 * sum(taken)


@pytest.mark.parametrize("call", ["MPI_Recv", "MPI_Barrier"])
def test_the_longest_call_is_the_longest_that_the_program_saw(run, call):
    longest = max(cell.max_ns for cell in run.cells(1, call))
    assert longest == pytest.approx(max(taken_by_the_program(run, call)), rel=0.05)  # a first call has more around it
