"""Steps of programs that know how many they make, with real ranks under each MPI."""

import json
import subprocess

import pytest

from . import reporter
from .harness import REPOSITORY

pytestmark = pytest.mark.nightly

STEPS = 60
PERIODS = {
    "buckets": "3 bulk MPI_Allreduce, 890 KB",
    "nonblocking": "3 bulk MPI_Iallreduce, 400 KB",
    "background": "3 bulk MPI_Allreduce, 890 KB",
}
EXAMPLE = REPOSITORY / "examples/data_parallel/train.py"


def answer(folder, *words):
    return json.loads(reporter.text(*words, folder))


@pytest.mark.parametrize("way", PERIODS)
def test_as_many_steps_are_found_as_were_made(profile, way):
    run = profile("training_loop", 2, way, str(STEPS))
    (row,) = answer(run.folder, "steps", "--json")
    assert (row["steps"], row["delimited_by"], row["why"], row["communicator"]) == (
        STEPS,
        "calls",
        "",
        "MPI_COMM_WORLD",
    )
    assert row["period"].endswith(PERIODS[way])
    assert "bytes of the parameters" in row["evidence"]


def test_a_step_lasts_as_long_as_it_computes_at_least(profile):
    """5 ms on rank 0, 9 ms on rank 1, and 0.3 ms before each of three reductions; every 20 steps 60
    ms more. A step's time is the mean over the ranks; rank 0 need not wait for rank 1 if it
    returned late from the step before."""
    rows = answer(
        profile("training_loop", 2, "buckets", str(STEPS)).folder, "steps", "--json", "--per-step"
    )
    assert all(row["step_ns"] >= 7_900_000 for row in rows)
    assert all(rows[step]["step_ns"] >= 67_900_000 for step in range(20, STEPS, 20))


def test_the_main_thread_drives_where_it_communicates(profile):
    ways = ("buckets", "background")
    driven, background = (
        answer(profile("training_loop", 2, way, str(STEPS)).folder, "steps", "--json")[0]
        for way in ways
    )
    assert (driven["is_driven"], driven["thread_is_main"]) == (1, 1)
    assert (background["is_driven"], background["thread_is_main"]) == (0, 0)


def test_marked_steps_are_those_that_are_found(profile):
    folder = profile("training_loop", 2, "marked", str(STEPS)).folder
    (marked,), (found,) = (
        answer(folder, "steps", "--json", *words) for words in ((), ("--by", "calls"))
    )
    assert (marked["steps"], marked["delimited_by"]) == (STEPS, "marks")
    assert (found["steps"], found["delimited_by"]) == (STEPS, "calls")


@pytest.mark.parametrize(("way", "loop"), [("solver", "2"), ("talk", "1")])
def test_a_solver_has_its_halos_among_its_loops_and_none_is_the_step(profile, way, loop):
    """Two loops, one within the other: either may be the step."""
    folder = profile("training_loop", 2, way, "30").folder
    (none,), (chosen,) = (
        answer(folder, "steps", "--json", *words) for words in ((), ("--loop", loop))
    )
    assert (none["steps"], none["certainty"]) == (0, "none")
    assert (chosen["steps"], chosen["why"]) == (30, "")


def test_the_steps_of_the_data_parallel_example_are_counted(profile, mpi):
    """Six batches an epoch, two epochs."""
    program = f"{mpi.python} -c 'import torch, mpi4py'"
    if subprocess.run(program, shell=True, capture_output=True).returncode:
        pytest.skip(f"no torch with mpi4py for {mpi.python}")
    arguments = ("--epochs", "2", "--pictures", "96", "--batch", "16", "--bucket-bytes", str(2**20))
    run = profile(mpi.python, 2, str(EXAMPLE), *arguments, exit_status=None)
    (row,) = answer(run.folder, "steps", "--json")
    assert (row["steps"], row["delimited_by"]) == (12, "calls"), run.outcome
    assert row["bytes_per_step"] > 4_000_000
