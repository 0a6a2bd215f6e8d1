"""Steps of programs that know how many they make, with real ranks under each MPI."""

import pytest

from . import reporter

pytestmark = pytest.mark.nightly

STEPS = 60
PERIODS = {  # and whether the main thread drives
    "buckets": ("3 bulk MPI_Allreduce, 890 KB", 1),
    "nonblocking": ("3 bulk MPI_Iallreduce, 400 KB", 1),
    "background": ("3 bulk MPI_Allreduce, 890 KB", 0),
}


@pytest.mark.parametrize("way", PERIODS)
def test_as_many_steps_are_found_as_were_made_and_last_as_long_as_they_compute(profile, way):
    """5 ms on rank 0, 9 ms on rank 1, and 0.3 ms before each reduction; every 20 steps 60 ms more.
    A step's time is the mean over the ranks."""
    folder, (period, is_driven) = profile("training_loop", 2, way, str(STEPS)).folder, PERIODS[way]
    (row,) = reporter.rows("steps", folder)
    found = [row[key] for key in ("steps", "delimited_by", "why", "communicator")]
    assert found == [STEPS, "calls", "", "MPI_COMM_WORLD"]
    assert row["period"].endswith(period) and "bytes of the parameters" in row["evidence"]
    assert (row["is_driven"], row["thread_is_main"]) == (is_driven, is_driven)
    if way == "buckets":
        steps_ns = [each["step_ns"] for each in reporter.rows("steps", "--per-step", folder)]
        assert min(steps_ns) >= 7_900_000 and min(steps_ns[20::20]) >= 67_900_000


def test_marked_steps_are_those_that_are_found(profile):
    folder = profile("training_loop", 2, "marked", str(STEPS)).folder
    (marked,), (found,) = (
        reporter.rows("steps", folder, *words) for words in ((), ("--by", "calls"))
    )
    assert (marked["steps"], marked["delimited_by"]) == (STEPS, "marks")
    assert (found["steps"], found["delimited_by"]) == (STEPS, "calls")


@pytest.mark.parametrize(
    ("way", "loop", "found"), [("solver", "2", (30, "probably")), ("talk", "1", (0, "none"))]
)
def test_the_step_of_a_solver_is_its_halo_and_its_sum(profile, way, loop, found):
    """If a step makes any number of sums, two loops are there, and either may be the step."""
    folder = profile("training_loop", 2, way, "30").folder
    (row,), (chosen,) = (reporter.rows("steps", folder, *words) for words in ((), ("--loop", loop)))
    assert (row["steps"], row["certainty"]) == found
    assert (chosen["steps"], chosen["why"]) == (30, "")
