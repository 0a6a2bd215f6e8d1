"""Durations against an independent clock: the program takes the time of its own calls, some of them
kept waiting on purpose."""

from statistics import median

import pytest

from .harness import CLOCK_ERROR

CALLS = ("MPI_Recv", "MPI_Barrier")
DELAY_NS = 20_000_000


@pytest.fixture(scope="module")
def run(profile):
    return profile("planted_delays", 2)


def taken_by_the_program(run, call):
    """The durations that rank 1 printed, in nanoseconds."""
    lines = (line.split() for line in run.outcome.stdout.splitlines())
    return [int(word) for what, word in lines if what == call]


def sampled(run, call):
    """The durations of the same calls as recorded."""
    sql = "SELECT end_ns - start_ns FROM sample WHERE call = :call ORDER BY start_ns"
    return [ns for (ns,) in run.query(1, sql, call=call)]


@pytest.mark.parametrize("call", CALLS)
def test_the_time_of_a_call_is_what_the_program_measures_around_it(run, call):
    taken, recorded = taken_by_the_program(run, call), sampled(run, call)
    assert len(taken) == len(recorded) == 10
    # The program's clock is read outside ours.
    for ours, theirs in zip(recorded, taken):
        assert ours <= theirs * (1 + CLOCK_ERROR), (recorded, taken)


@pytest.mark.nightly
@pytest.mark.parametrize("call", CALLS)
def test_half_of_the_calls_last_as_long_as_the_program_measures(run, call):
    taken, recorded = taken_by_the_program(run, call), sampled(run, call)
    assert median(theirs - ours for ours, theirs in zip(recorded, taken)) < 0.01 * DELAY_NS


@pytest.mark.parametrize("call", CALLS)
def test_total_least_and_greatest_time_are_those_of_the_single_calls(run, call):
    recorded = sampled(run, call)
    cells = run.cells(1, call)
    counted = (
        sum(cell.total_ns for cell in cells),
        min(cell.min_ns for cell in cells),
        max(cell.max_ns for cell in cells),
    )
    # each duration is rounded
    assert counted == pytest.approx(
        (sum(recorded), min(recorded), max(recorded)), rel=CLOCK_ERROR, abs=len(recorded)
    )
