"""One planted job and its balanced twin under each library, and what the commands say of them: the
short form of test_doctor, test_late, test_steps, test_advise, test_compare and test_plants."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from . import reporter
from .harness import COMMPROF_RUN, TRIES, Run, compile_program, unprofiled_environment
from .libraries import REPOSITORY, Mpi

sys.path.insert(0, str(REPOSITORY / "tests"))
from truth.plants import PLANTS
from truth.trial import CONFIRMED, Trial, play, told

PLANT = next(plant for plant in PLANTS if plant.name == "slow rank, two ranks")
LATE = "1"


@pytest.fixture(scope="module")
def played(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Trial]:
    """played(is_twin). Other work on the machine may hold up the other rank for as long: then
    nobody is named, and the plant is played again."""
    trials: dict[bool, Trial] = {}

    def get(is_twin: bool) -> Trial:
        if is_twin not in trials:
            for _ in range(TRIES):
                folder = tmp_path_factory.mktemp(f"{mpi.name}-{is_twin}")
                trials[is_twin] = play(mpi, PLANT, is_twin, folder)
                if is_twin or told(trials[is_twin].run).named:
                    break
        return trials[is_twin]

    return get


@pytest.fixture
def planted(played: Callable[[bool], Trial]) -> Run:
    return played(False).run


@pytest.fixture
def balanced(played: Callable[[bool], Trial]) -> Run:
    """Skips where the logs say that other work on the machine made a rank late."""
    twin = played(True)
    if any(twin.truth.is_for([rank]) >= CONFIRMED for rank in range(PLANT.ranks)):
        pytest.skip("other work on this machine made a rank late")
    return twin.run


def test_the_doctor_says_that_the_program_can_be_profiled(mpi: Mpi) -> None:
    said = subprocess.run(
        [COMMPROF_RUN, "--doctor", compile_program(mpi, "plants")], capture_output=True, text=True,
        env=unprofiled_environment(),
    )
    lines = said.stdout.splitlines()
    assert said.returncode == 0 and lines[-1].startswith("verdict: can be profiled"), said
    assert any(f"({mpi.soname})" in line and mpi.says in line for line in lines)
    assert any(line.split() == ["ok", "ABI:", *mpi.abi.split()] for line in lines)


def test_late_names_the_slow_rank_and_the_call(planted: Run) -> None:
    (whole,) = reporter.rows_of_ended("late", planted.folder, "--by", "run")
    assert (whole["late_ranks"], whole["clocks"], whole["unmatched"]) == (LATE, 1, 0)
    assert told(planted).calls["MPI_Allreduce"][0] == int(LATE)


def test_steps_are_as_many_as_rounds_and_slowed_by_the_slow_rank(planted: Run) -> None:
    (steps,) = reporter.rows_of_ended("steps", planted.folder)
    assert (steps["steps"], steps["slowest_ranks"], steps["why"]) == (PLANT.rounds, LATE, "")


def test_advise_names_it_too(planted: Run) -> None:
    first = next(row for row in reporter.rows_of_ended("advise", planted.folder) if row["found"])
    assert first["rule"] == "imbalance" and first["title"].startswith(f"rank {LATE} is waited for")


def test_of_the_balanced_twin_nobody_is_named(balanced: Run) -> None:
    (whole,), (steps,) = (
        reporter.rows_of_ended("late", balanced.folder, "--by", "run"),
        reporter.rows_of_ended("steps", balanced.folder),
    )
    assert (whole["late_ranks"], steps["slowest_ranks"]) == (None, None)
    assert steps["steps"] == PLANT.rounds
    assert not any(
        row["found"] and row["rule"] == "imbalance"
        for row in reporter.rows_of_ended("advise", balanced.folder)
    )


def test_compare_pairs_their_calls_and_asks_for_equal_arguments(
    played: Callable[[bool], Trial], planted: Run
) -> None:
    twin = played(True).run
    (verdict,) = reporter.rows("compare", twin.folder, planted.folder, "--by", "verdict")
    refused = set(verdict["refused"].split("; "))
    assert "program" in refused and not {"work", "placement", "partial"} & refused
    (call,) = reporter.rows("compare", twin.folder, planted.folder, "--by", "row")
    assert (call["call"], call["count"]) == ("MPI_Allreduce", PLANT.ranks * PLANT.rounds)
